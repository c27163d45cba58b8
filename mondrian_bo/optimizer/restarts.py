"""A search that restarts when it has collapsed on its incumbent."""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np

from mondrian_bo.array_types import BoolArray, FloatArray
from mondrian_bo.optimizer.failed_trials import FailedTrials
from mondrian_bo.optimizer.search import Search
from mondrian_bo.optimizer.trials import Trials

_NEAR = 0.02
"""Largest difference of a number between near rows, in sides of the unit cube; our choice."""

_LEAST_GAIN = 1e-3
"""Largest difference of equal values, as a share of the interquartile range of all: our choice."""

_COLLAPSED = 6
"""Pressure at which a search has collapsed: three trials in vain in a row, our choice. A trial in
vain adds 2, another trial that does not improve subtracts 1 (see :class:`RestartingSearch`)."""

_BACKOFF = 2.0
"""Factor of the next restart's pressure after a restart without a gain: restarts become rarer."""

_PATIENCE = 12
"""Trials without improvement of its own incumbent that end a restarted search; our choice."""


class SearchMaker(Protocol):
    """Makes searches that differ only in their random draws."""

    def new(self, trials: Trials) -> Search:
        """Return a search over trials, which are empty."""
        ...


class RestartingSearch:
    """A search over all trials and, at times, a restarted one that knows only its own trials.

    A search collapses when its model is certain of the rest of the space: it then suggests points
    near its incumbent only. A restarted search has a model of its own trials, and finds another
    basin or the same one.

    A trial near the incumbent is in vain if its value is equal to the incumbent's. That is so at
    the bottom of a smooth basin, where values differ by the square of the distance. If the value
    is worse (at a cusp, on a ripple, in a bent valley), a gain is still possible, and the trial is
    not in vain. Rows that differ only in numbers on grids cannot be refined: such a trial is in
    vain if it does not improve.

    The state depends only on the trials told and on their order.

    Parameters
    ----------
    maker : SearchMaker
        Makes the searches.
    is_categorical, is_continuous : bool arrays of shape (d,)
        Which columns hold categories, and which hold numbers without a grid.
    n_startup_trials : int
        Number of first trials of a restarted search that do not count against it.
    restarts : bool
        Whether the search restarts at all.

    Attributes
    ----------
    trials : Trials
        All trials.
    current : Search
        The search that the next trial is for.
    whole : Search
        The search over all trials.
    failed : FailedTrials
        The trials that failed.
    """

    def __init__(
        self,
        maker: SearchMaker,
        is_categorical: BoolArray,
        is_continuous: BoolArray,
        n_startup_trials: int,
        restarts: bool,
    ) -> None:
        self._n_dimensions = len(is_categorical)
        self.trials = Trials(self._n_dimensions)
        self.whole = maker.new(self.trials)
        self.current = self.whole
        self._maker = maker
        self._nearness = np.where(is_categorical, 0.0, _NEAR)
        self._is_continuous = is_continuous
        self._n_startup_trials = n_startup_trials
        self._restarts = restarts
        self.failed = FailedTrials(self.trials)
        self._pressure = 0
        self._n_in_vain = 0
        self._threshold = _COLLAPSED
        self._gained = False
        self._gain, self._n_at_gain = 0.0, 0

    @property
    def n_successes(self) -> int:
        """Number of trials told that did not fail."""
        return len(self.trials) - len(self.failed.learnt)

    def tell(self, rows: FloatArray, values: FloatArray, feasible: BoolArray | None = None) -> None:
        """Add trials, one after the other.

        :class:`FailedTrials` decides what becomes of failed ones.

        Parameters
        ----------
        rows : float64 array of shape (m, d)
            The points; NaN at inactive parameters.
        values : float64 array of shape (m,)
            Their values, larger is better; may be infinite, NaN for trials that failed.
        feasible : bool array of shape (m,) or None, default=None
            Which of them satisfy the constraints; None is all.
        """
        for i, value in enumerate(values.tolist()):
            row = rows[i : i + 1]
            if not math.isnan(value):
                self._tell(row, value, feasible is None or bool(feasible[i]))
                continue
            imputed = self.failed.value_of(row)
            if imputed is not None:
                self._tell(row, imputed, False)

    def _tell(self, row: FloatArray, value: float, feasible: bool) -> None:
        """Add one trial, shape (1, d); start or end a restarted search if it is due."""
        values = np.array([value])
        if not self._restarts or len(self.trials) == 0:
            self.trials.tell(row, values, feasible)
            return
        best_row, best_value = self.trials.best()
        # The difference of equal infinities would be NaN.
        gain = 0.0 if value == best_value else value - best_value
        least = self._least_gain()
        improved = gain > least
        is_near, is_refined = self._compare(row[0], best_row)
        found_again = is_near and not improved
        in_vain = found_again and (gain >= -least or not is_refined)
        self.trials.tell(row, values, feasible)
        if self.current is self.whole:
            if improved:
                self._pressure = 0
            else:
                self._pressure = max(self._pressure + (2 if in_vain else -1), 0)
            if self._pressure >= self._threshold:
                self.current = self._maker.new(Trials(self._n_dimensions))
                self._n_in_vain = 0
                self._gained = False
            return
        self._gained = self._gained or improved
        own = self.current.trials
        own_best = own.best()[1] if len(own) else -math.inf
        own.tell(row, values, feasible)
        self._n_in_vain = 0 if value > own_best else self._n_in_vain + 1
        is_over = found_again or self._n_in_vain >= _PATIENCE
        if len(own) > self._n_startup_trials and is_over:
            self.current = self.whole
            self._pressure = 0
            self._threshold = _COLLAPSED if self._gained else int(_BACKOFF * self._threshold)

    def _least_gain(self) -> float:
        """Return the largest difference of values that count as equal."""
        n_trials = len(self.trials)
        # The range of many values changes slowly: O(1) per trial in the long run.
        if n_trials > 1.1 * self._n_at_gain:
            finite = self.trials.values[np.isfinite(self.trials.values)]
            # Quarters of the values have finite differences.
            lower, upper = np.percentile(0.25 * finite, (25.0, 75.0)) if len(finite) else (0.0, 0.0)
            self._gain, self._n_at_gain = 4.0 * _LEAST_GAIN * float(upper - lower), n_trials
        return self._gain

    def _compare(self, row: FloatArray, other: FloatArray) -> tuple[bool, bool]:
        """Return whether two rows are near each other, and whether continuous numbers differ."""
        gaps = np.abs(row - other)
        gaps[np.isnan(row) & np.isnan(other)] = 0.0
        # A parameter that only one row has gives the gap NaN, which is not near.
        is_near = bool(np.all(gaps <= self._nearness))
        return is_near, bool(np.any(gaps[self._is_continuous] > 0.0))
