"""A search that restarts where it has collapsed on its incumbent."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from mondrian_bo.array_types import BoolArray, FloatArray
from mondrian_bo.optimizer.search import Search
from mondrian_bo.optimizer.trials import Trials
from mondrian_bo.surrogates.shared.growing_array import GrowingArray

_NEAR = 0.02
"""Rows that differ by no more than this in any number are near each other."""

_LEAST_GAIN = 1e-3
"""Values that differ by no more than this share of the interquartile range of all are equal."""

_COLLAPSED = 6
"""A search has collapsed at this pressure: trials in vain (see :class:`RestartingSearch`) count
two, others
that do not improve take one off."""

_BACKOFF = 2.0
"""After an epoch that was no better than what was known, the next takes so much more pressure."""

_N_FAILED = 2
"""A trial that failed is learnt if the nearest, so many, failed as well: one may be an accident."""

_PATIENCE = 12
"""A fresh epoch ends after so many trials of its models without improvement."""


class RestartingSearch:
    """A search over all trials and, at times, a fresh one that knows only its own.

    A search that polishes its incumbent in vain leaves the rest of the space alone, because its
    model is sure of it. A fresh epoch has another model, and finds another basin or the same one.
    Polishing is in vain where the objective is flat: around the best point of a smooth basin values
    differ by the square of the distance, and soon not at all. Where they are still worse near the
    incumbent (a cusp, a ripple, a bent valley) there is something left to gain, unless only numbers
    on grids differ, which cannot be refined.
    What happens follows from the trials told, and from nothing else.

    Parameters
    ----------
    new_search : callable
        Makes a search over trials, which are empty.
    is_categorical, is_continuous : bool arrays of shape (d,)
        Which columns hold categories, and which numbers without a grid.
    n_startup_trials : int
        An epoch's first trials, which do not count against it.
    restarts : bool
        Whether there are fresh epochs.

    Attributes
    ----------
    learnt_failures : list of int
        Which of the trials failed, and are learnt all the same (see `fail`).
    """

    def __init__(
        self,
        new_search: Callable[[Trials], Search],
        is_categorical: BoolArray,
        is_continuous: BoolArray,
        n_startup_trials: int,
        restarts: bool,
    ) -> None:
        self._n_dimensions = len(is_categorical)
        self.trials = Trials(self._n_dimensions)
        self.whole = new_search(self.trials)
        self._new_search = new_search
        self._nearness = np.where(is_categorical, 0.0, _NEAR)
        self._is_continuous = is_continuous
        self._n_startup_trials = n_startup_trials
        self._restarts = restarts
        self._failed = GrowingArray(self._n_dimensions)
        self.learnt_failures: list[int] = []
        self._fresh: Search | None = None
        self._pressure = 0
        self._n_in_vain = 0
        self._threshold = _COLLAPSED
        self._gained = False
        self._gain, self._n_at_gain = 0.0, 0

    @property
    def current(self) -> Search:
        """The search that the next trial is for."""
        return self.whole if self._fresh is None else self._fresh

    def tell(self, row: FloatArray, value: float, feasible: bool = True) -> None:
        """Add a trial; see :meth:`Trials.tell`."""
        if not self._restarts or len(self.trials) == 0:
            self.trials.tell(row, value, feasible)
            return
        best_row, best_value = self.trials.best()
        # The difference of equal infinities would be NaN.
        gain = 0.0 if value == best_value else value - best_value
        least = self._least_gain()
        improved = gain > least
        is_near, is_refined = self._compare(row, best_row)
        found_again = is_near and not improved
        in_vain = found_again and (gain >= -least or not is_refined)
        self.trials.tell(row, value, feasible)
        if self._fresh is None:
            if improved:
                self._pressure = 0
            else:
                self._pressure = max(self._pressure + (2 if in_vain else -1), 0)
            if self._pressure >= self._threshold:
                self._fresh = self._new_search(Trials(self._n_dimensions))
                self._n_in_vain = 0
                self._gained = False
            return
        self._gained = self._gained or improved
        own = self._fresh.trials
        own_best = own.best()[1] if len(own) else -math.inf
        own.tell(row, value, feasible)
        self._n_in_vain = 0 if value > own_best else self._n_in_vain + 1
        is_over = found_again or self._n_in_vain >= _PATIENCE
        if len(own) > self._n_startup_trials and is_over:
            self._fresh = None
            self._pressure = 0
            self._threshold = _COLLAPSED if self._gained else int(_BACKOFF * self._threshold)

    def fail(self, row: FloatArray) -> None:
        """Add a trial that failed.

        Its exact point is avoided. Where the nearest trials failed as well the fault is likely to
        lie there, and a model that knew nothing of it would suggest the like for ever: the trial is
        learnt as the median, and as infeasible.
        """
        to_failed = np.sort(self._distances(row, self._failed.rows))
        to_others = np.delete(self._distances(row, self.trials.rows), self.learnt_failures)
        self._failed.extend(row[None])
        n_trials = len(self.trials)
        is_faulty = len(to_failed) >= _N_FAILED and n_trials > 0
        if is_faulty and to_failed[_N_FAILED - 1] <= to_others.min():
            middle = (n_trials - 1) // 2
            median = float(np.partition(self.trials.values, middle)[middle])
            self.learnt_failures.append(n_trials)
            self.tell(row, median, feasible=False)
        else:
            self.trials.avoid(row)

    def _distances(self, row: FloatArray, others: FloatArray) -> FloatArray:
        """Return the L1 distances of a row from others."""
        # Of categories, and of what only one of two rows has: whether they differ.
        gaps = np.minimum(np.abs(others - row), 1.0)
        gaps = np.where(np.isnan(gaps), np.isnan(others) != np.isnan(row), gaps)
        return np.asarray(gaps.sum(axis=1))

    def _least_gain(self) -> float:
        """Return what a trial must gain to count as better, and may lose to count as equal."""
        n_trials = len(self.trials)
        # The range of many values changes slowly: O(1) per trial in the long run.
        if n_trials > 1.1 * self._n_at_gain:
            finite = self.trials.values[np.isfinite(self.trials.values)]
            # Of quarters, whose differences are finite.
            lower, upper = np.percentile(0.25 * finite, (25.0, 75.0)) if len(finite) else (0.0, 0.0)
            self._gain, self._n_at_gain = 4.0 * _LEAST_GAIN * float(upper - lower), n_trials
        return self._gain

    def _compare(self, row: FloatArray, other: FloatArray) -> tuple[bool, bool]:
        """Return whether rows are near each other, and whether continuous numbers differ."""
        gaps = np.abs(row - other)
        gaps[np.isnan(row) & np.isnan(other)] = 0.0
        # What one row has and the other lacks is a gap that is NaN, and not near.
        is_near = bool(np.all(gaps <= self._nearness))
        return is_near, bool(np.any(gaps[self._is_continuous] > 0.0))
