"""The learning curves of an Optuna study."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import optuna
from optuna.trial import FrozenTrial

from mondrian_bo.integrations.optuna.study.trial_rows import is_feasible
from mondrian_bo.shared.argument_checks import is_integer
from mondrian_bo.shared.array_types import FloatArray

if TYPE_CHECKING:
    from mondrian_bo.optimizer.learning_curves.curve_regression import Curve
    from mondrian_bo.optimizer.learning_curves.learning_curves import LearningCurves

_DISORDER_KEY = "mondrian:unordered_reports"
"""The study attribute that says that trials report their steps out of order. Relational storages
return reports in the order of their steps, so that only the worker of a trial can see it."""

_ORDER_KEY = "mondrian:report_order"
"""The trial attribute with the steps of the first reports, in the order in which they were made."""

_MOST_ORDERED = 150
"""Number of steps in this attribute, at most: as many as one of a relational storage holds."""

_MOST_MATCHED = 128
"""Number of latest complete trials that a trial is compared with at its own steps, as many as the
model of all knows."""


def is_noted_as_unordered(study: optuna.Study) -> bool:
    """Whether a worker has noted that trials report their steps out of order."""
    return bool(study._storage.get_study_system_attrs(study._study_id).get(_DISORDER_KEY, False))


def note_as_unordered(study: optuna.Study) -> None:
    """Store for all readers of a study that its trials report their steps out of order."""
    study._storage.set_study_system_attr(study._study_id, _DISORDER_KEY, True)


def store_order(study: optuna.Study, trial: FrozenTrial, stored: FrozenTrial) -> None:
    """Store the order of a running trial's reports if readers of the storage do not know it.

    Parameters
    ----------
    study : optuna.Study
        Its study.
    trial : FrozenTrial
        The trial as its worker has it, with its reports in their order.
    stored : FrozenTrial
        The trial as the storage returns it.
    """
    # First the known order: of a trial that is resumed, the worker may have read sorted reports.
    known = _known_order(stored)
    order = list(islice(_completed(known, trial.intermediate_values), _MOST_ORDERED))
    if list(islice(_steps_in_order(stored), _MOST_ORDERED)) != order:
        study._storage.set_trial_system_attr(trial._trial_id, _ORDER_KEY, order)


def _steps_in_order(trial: FrozenTrial) -> Iterator[int]:
    """Iterate over the steps of a trial's reports in the order of these, if it is known.

    Those after the last decision of the pruner are in the order of the storage.
    """
    return _completed(_known_order(trial), trial.intermediate_values)


def _completed(known: dict[int, None], steps: Iterable[int]) -> Iterator[int]:
    """Yield the known steps, then the others; the first ones without a look at them all."""
    yield from known
    yield from (step for step in steps if step not in known)


def _known_order(trial: FrozenTrial) -> dict[int, None]:
    """Return the trial attribute as the keys of a dict; empty if there is none, or a foreign one.

    Steps that the trial has not reported are left out.
    """
    steps, reports = trial.system_attrs.get(_ORDER_KEY), trial.intermediate_values
    if not isinstance(steps, list | tuple):
        return {}
    return dict.fromkeys(int(step) for step in steps if is_integer(step) and step in reports)


class StudyCurves:
    """The learning curves of one study: complete ones, and those of running trials.

    If a trial reports its steps out of order, as folds that are shuffled, the number of reports
    takes the place of the step in the whole study, and trials are learnt in the order of their
    reports as far as it is known (:func:`store_order`). The value of a pruned trial is predicted
    from the reports of complete trials at its own steps, where three of them have these. So is that
    of a trial which lacks a step that all complete trials have, before its last one: a storage that
    sorts reports hides their order.

    Parameters
    ----------
    settings : dict
        Arguments of :class:`~mondrian_bo.optimizer.learning_curves.learning_curves.CurveSettings`.
    maximize : bool
        The study's direction.

    Attributes
    ----------
    model : LearningCurves
        The model of the complete curves.
    """

    def __init__(self, settings: dict[str, Any], maximize: bool) -> None:
        # Loaded here: samplers and pruners are constructed without scipy.
        from mondrian_bo.optimizer.learning_curves.learning_curves import (
            CurveSettings,
            LearningCurves,
        )

        self._sign = 1.0 if maximize else -1.0
        self._counts_reports = False
        # Steps that all complete trials with reports have; None without any.
        self._common: set[int] | None = None
        self._new_model = partial(LearningCurves, CurveSettings(**settings))
        self.model = self._new_model()
        self._complete: list[FrozenTrial] = []
        # Curves of running trials, with their latest steps.
        self._running: dict[int, tuple[Curve, int]] = {}

    @property
    def counts_reports(self) -> bool:
        """Whether the number of reports takes the place of the step."""
        return self._counts_reports

    def note_disorder(self) -> None:
        """Count reports in place of steps, and learn all trials anew."""
        if not self._counts_reports:
            self._counts_reports = True
            self.model = self._new_model()
            self._running = {}
            for trial in self._complete:
                self._tell(trial)

    def look_for_disorder(self, trials: Iterable[FrozenTrial]) -> None:
        """Note whether trials without a value have reported their steps out of order."""
        for trial in trials:
            self._notices_disorder(list(_steps_in_order(trial)))

    def learn(self, trial: FrozenTrial) -> None:
        """Learn a complete trial."""
        self._running.pop(trial.number, None)
        self._complete.append(trial)
        if trial.intermediate_values:
            steps = trial.intermediate_values.keys()
            self._common = set(steps) if self._common is None else self._common.intersection(steps)
        if not self._notices_disorder(list(_steps_in_order(trial))):
            self._tell(trial)

    def forget(self, trial: FrozenTrial) -> None:
        """Forget a running trial that has ended without a value."""
        self._running.pop(trial.number, None)

    def running(self, trial: FrozenTrial) -> Curve:
        """Return the curve of a running trial; O(new reports)."""
        reports = trial.intermediate_values
        curve, last = self._running.get(trial.number, (None, None))
        n_known = 0 if curve is None else len(curve.values)
        n_new = len(reports) - n_known
        # With the latest known one: another reader of the trial may have it elsewhere.
        latest = list(islice(reversed(reports.items()), max(n_new + 1, 0)))[::-1]
        if curve is None or n_new < 0 or (n_known and latest[0][0] != last):
            curve, n_known, n_new = self._new_curve(), 0, len(reports)
            latest = [(step, reports[step]) for step in _steps_in_order(trial)]
        if self._notices_disorder([step for step, _ in latest]):
            return self.running(trial)
        new = latest[len(latest) - n_new :]
        steps = [step for step, _ in new]
        positions = range(n_known, len(reports)) if self._counts_reports else steps
        curve.extend(positions, [self._sign * value for _, value in new])
        if latest:
            self._running[trial.number] = curve, next(reversed(reports))
        return curve

    def predict(self, trial: FrozenTrial) -> tuple[float, float] | None:
        """Predict the value of a trial that has ended early: median and standard error.

        None if there is too little to compare it with.
        """
        model, curve = self._compared(trial)
        predicted = model.predict(curve)
        return None if predicted is None else (self._sign * predicted[0], predicted[1])

    def predict_quantiles(self, trial: FrozenTrial, levels: FloatArray) -> FloatArray | None:
        """Predict quantiles of the value of a trial that has none, shape (q,).

        None if there is too little to compare it with.
        """
        own = levels if self._sign > 0.0 else 1.0 - levels
        model, curve = self._compared(trial)
        found = model.predict_quantiles(curve, own)
        return None if found is None else self._sign * found

    def _compared(self, trial: FrozenTrial) -> tuple[LearningCurves, Curve]:
        """Return a model that predicts a trial which has ended early, and its curve."""
        self._notices_disorder(list(_steps_in_order(trial)))
        curve = self._new_curve()
        if self._counts_reports or self._has_gaps(trial):
            steps = sorted(trial.intermediate_values)
            model = self._model_at(steps)
            if model is not None:
                curve.extend(range(len(steps)), self._values_at(trial, steps))
                return model, curve
        curve.extend(*self._reports(trial))
        return self.model, curve

    def _has_gaps(self, trial: FrozenTrial) -> bool:
        """Whether a trial lacks a step that all complete ones have, before its last one."""
        reports, common = trial.intermediate_values, self._common or set()
        return bool(reports) and any(step < max(reports) for step in common.difference(reports))

    def _model_at(self, steps: list[int]) -> LearningCurves | None:
        """Return a model of the complete trials that have some steps, of their reports there.

        None if fewer than three have them. Folds differ, so the same ones say most, and the order
        of the reports, which the storage may have lost, does not matter.
        """
        from mondrian_bo.optimizer.learning_curves.learning_curves import (
            CurveSettings,
            LearningCurves,
        )

        having = (
            one
            for one in reversed(self._complete)
            if all(s in one.intermediate_values for s in steps)
        )
        matched = list(islice(having, _MOST_MATCHED))[::-1]
        if len(matched) < 3:
            return None
        model = LearningCurves(CurveSettings(n_warmup_steps=len(steps) - 1))
        for trial in matched:
            assert trial.value is not None
            outcome = self._sign * trial.value
            # The outcome as the next report: trials are compared with those that go on.
            values = [*self._values_at(trial, steps), outcome]
            model.tell(outcome, range(len(values)), values)
        return model

    def _values_at(self, trial: FrozenTrial, steps: list[int]) -> list[float]:
        return [self._sign * trial.intermediate_values[step] for step in steps]

    def _new_curve(self) -> Curve:
        from mondrian_bo.optimizer.learning_curves.curve_regression import Curve

        return Curve()

    def _tell(self, trial: FrozenTrial) -> None:
        assert trial.value is not None
        outcome = self._sign * trial.value
        self.model.tell(outcome, *self._reports(trial), is_feasible=is_feasible(trial))

    def _reports(self, trial: FrozenTrial) -> tuple[list[float], list[float]]:
        """Return positions and values of a trial's reports; larger is better."""
        steps = list(_steps_in_order(trial))
        positions = range(len(steps)) if self._counts_reports else steps
        return list(positions), self._values_at(trial, steps)

    def _notices_disorder(self, steps: Sequence[float]) -> bool:
        """Whether steps are the first ones out of order; all trials are then learnt anew."""
        if self._counts_reports or all(np.diff(steps) > 0):
            return False
        self.note_disorder()
        return True
