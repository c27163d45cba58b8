"""Pruned trials: which value the sampler learns them with, and how certain it is."""

from __future__ import annotations

import bisect
import math
from typing import NamedTuple

from optuna.trial import FrozenTrial

from mondrian_bo.integrations.optuna.study.study_curves import StudyCurves
from mondrian_bo.shared.float_range import SHRINK


class ImputedValue(NamedTuple):
    """The value that a pruned trial is learnt with.

    Attributes
    ----------
    value : float
        The value; NaN if nothing is known.
    error : float
        Standard error of a prediction, else 0.
    """

    value: float
    error: float = 0.0


class PrunedTrials:
    """Imputes the values of pruned trials in a study with one objective.

    A pruned trial has the value that its reports predict, compared with those of complete trials,
    and the prediction's standard error. See :class:`StudyCurves` for reports that are out of order.
    Where fewer than three complete trials went on beyond its last report, it has its last report,
    but no better than the median of the complete trials. A trial without reports has this median,
    and their standard deviation as its standard error.

    Parameters
    ----------
    complete : list of FrozenTrial
        The complete trials so far that they are compared with. The caller appends to it.
    maximize : bool
        The study's direction.
    """

    def __init__(self, complete: list[FrozenTrial], maximize: bool) -> None:
        self._complete = complete
        self._maximize = maximize
        self._n_read = 0
        self._outcomes: list[float] = []
        self._curves: StudyCurves | None = None
        # Number of the finite outcomes, and their mean and standard deviation after a factor that
        # keeps all differences finite.
        self._n_finite, self._mean, self._deviation = 0, 0.0, 0.0

    def impute(
        self, trial: FrozenTrial, reported: float | None, is_unordered: bool = False
    ) -> ImputedValue:
        """Return the value of a pruned trial.

        It takes time proportional to its reports and the new complete trials. Where steps are
        reported out of order, or the trial lacks steps that all complete trials have, it looks
        through all complete trials and fits a model to those with its steps: some milliseconds.

        Parameters
        ----------
        trial : FrozenTrial
            The trial.
        reported : float or None
            Its last report; None without one.
        is_unordered : bool, default=False
            Whether trials are known to report their steps out of order.

        Returns
        -------
        ImputedValue
            The value and its standard error.
        """
        predicted = None
        for former in self._complete[self._n_read :]:
            assert former.value is not None
            bisect.insort(self._outcomes, former.value)
            self._count(former.value)
            if self._curves is not None:
                self._curves.learn(former)
        self._n_read = len(self._complete)
        if trial.intermediate_values:
            if self._curves is None:
                self._curves = StudyCurves({"n_warmup_steps": 0}, self._maximize)
                for former in self._complete:
                    self._curves.learn(former)
            if is_unordered:
                self._curves.note_disorder()
            predicted = self._curves.predict(trial)
        if predicted is not None:
            return ImputedValue(*predicted)
        if not self._outcomes:
            return ImputedValue(math.nan if reported is None else reported)
        # The pruner judged the trial to be worse than most, whatever its early value.
        n_complete = len(self._outcomes)
        # Of an even number the worse one of the two in the middle counts.
        median = self._outcomes[(n_complete - 1 if self._maximize else n_complete) // 2]
        if reported is None:
            spread = self._deviation / SHRINK
            return ImputedValue(median, spread if math.isfinite(spread) else 0.0)
        return ImputedValue(min(reported, median) if self._maximize else max(reported, median))

    def _count(self, value: float) -> None:
        """Count an outcome by Welford's update, on the scale of deviations: squares overflow."""
        if math.isfinite(value):
            self._n_finite += 1
            n = self._n_finite
            gap = value * SHRINK - self._mean
            self._mean += gap / n
            own = gap * math.sqrt(n - 1) / n
            self._deviation = math.hypot(self._deviation * math.sqrt((n - 1) / n), own)
