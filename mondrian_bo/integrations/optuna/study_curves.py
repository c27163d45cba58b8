"""The learning curves of an Optuna study."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
from optuna.trial import FrozenTrial

from mondrian_bo.integrations.optuna.trial_rows import is_feasible
from mondrian_bo.shared.array_types import FloatArray

if TYPE_CHECKING:
    from mondrian_bo.optimizer.learning_curves.curve_regression import Curve


class StudyCurves:
    """The learning curves of one study: complete ones, and those of running trials.

    If a trial reports its steps out of order, as folds that are shuffled, the number of reports
    takes the place of the step in the whole study.

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
        self._new_model = partial(LearningCurves, CurveSettings(**settings))
        self.model = self._new_model()
        self._complete: list[FrozenTrial] = []
        self._running: dict[int, Curve] = {}

    def learn(self, trial: FrozenTrial) -> None:
        """Learn a complete trial."""
        self._running.pop(trial.number, None)
        self._complete.append(trial)
        if not self._notices_disorder(list(trial.intermediate_values)):
            self._tell(trial)

    def forget(self, trial: FrozenTrial) -> None:
        """Forget a running trial that has ended without a value."""
        self._running.pop(trial.number, None)

    def running(self, trial: FrozenTrial) -> Curve:
        """Return the curve of a running trial; O(new reports)."""
        reports = trial.intermediate_values
        curve = self._running.get(trial.number)
        if curve is None or self._counts_reports or len(curve.values) > len(reports):
            curve = self._running[trial.number] = self._new_curve()
        n_new = len(reports) - len(curve.values)
        new = list(islice(reversed(reports.items()), n_new))[::-1]
        steps = [*curve.positions[-1:], *(step for step, _ in new)]
        if self._notices_disorder(steps):
            return self.running(trial)
        positions = range(len(new)) if self._counts_reports else [step for step, _ in new]
        curve.extend(positions, [self._sign * value for _, value in new])
        return curve

    def predict(self, trial: FrozenTrial) -> tuple[float, float] | None:
        """Predict the value of a trial that has ended early: median and standard error.

        None if there is too little to compare it with.
        """
        predicted = self.model.predict(self._whole(trial))
        return None if predicted is None else (self._sign * predicted[0], predicted[1])

    def predict_quantiles(self, trial: FrozenTrial, levels: FloatArray) -> FloatArray | None:
        """Predict quantiles of the value of a trial that has none, shape (q,).

        None if there is too little to compare it with.
        """
        own = levels if self._sign > 0.0 else 1.0 - levels
        curve = self._whole(trial)
        found = self.model.predict_quantiles(curve, own)
        return None if found is None else self._sign * found

    def _whole(self, trial: FrozenTrial) -> Curve:
        """Return all reports of a trial as a curve."""
        self._notices_disorder(list(trial.intermediate_values))
        curve = self._new_curve()
        curve.extend(*self._reports(trial))
        return curve

    def _new_curve(self) -> Curve:
        from mondrian_bo.optimizer.learning_curves.curve_regression import Curve

        return Curve()

    def _tell(self, trial: FrozenTrial) -> None:
        assert trial.value is not None
        outcome = self._sign * trial.value
        self.model.tell(outcome, *self._reports(trial), is_feasible=is_feasible(trial))

    def _reports(self, trial: FrozenTrial) -> tuple[list[float], list[float]]:
        """Return positions and values of a trial's reports; larger is better."""
        steps, values = trial.intermediate_values.keys(), trial.intermediate_values.values()
        positions = range(len(steps)) if self._counts_reports else steps
        return list(positions), [self._sign * value for value in values]

    def _notices_disorder(self, steps: Sequence[float]) -> bool:
        """Whether steps are the first ones out of order; all trials are then learnt anew."""
        if self._counts_reports or all(np.diff(steps) > 0):
            return False
        self._counts_reports = True
        self.model = self._new_model()
        self._running = {}
        for trial in self._complete:
            self._tell(trial)
        return True
