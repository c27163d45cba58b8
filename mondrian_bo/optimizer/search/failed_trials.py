"""Failed trials: which of them the model learns, and with which value."""

from __future__ import annotations

import numpy as np

from mondrian_bo.optimizer.shared.search_trials import SearchTrials
from mondrian_bo.search_space.space import row_gaps
from mondrian_bo.shared.array_types import FloatArray
from mondrian_bo.shared.float_range import LOWEST
from mondrian_bo.shared.growing_array import GrowingArray

_N_FAILED = 2
"""Number of nearest trials that must have failed for a failed trial to be learnt: a single failure
may be an accident. Our choice."""

_MANY_FAILED = 2
"""Ratio of failed trials to others above which a failed trial is learnt as the worst, our choice:
the median of few values is too good for most of the space."""


class FailedTrials:
    """The trials that failed.

    A failed trial is not learnt, and its exact point is not suggested again. If the nearest trials
    failed as well, the region is probably faulty, and a model without these trials would keep
    suggesting points in it. The trial is then learnt with the median of all values, and is never
    the incumbent. If most trials have failed, it is learnt with the worst value instead.

    Parameters
    ----------
    trials : SearchTrials
        The trials that are learnt. The caller adds failed ones to them.

    Attributes
    ----------
    rows : GrowingArray
        The points of all failed trials, rows of shape (d,).
    learnt : list of int
        Positions in `trials` of the failed trials that are learnt.
    """

    def __init__(self, trials: SearchTrials) -> None:
        self._trials = trials
        self.rows = GrowingArray(trials.rows.shape[1])
        self.learnt: list[int] = []

    def add(self, row: FloatArray) -> FloatArray | None:
        """Store a failed trial and decide whether it is learnt; O(n).

        Parameters
        ----------
        row : float64 array of shape (1, d)
            Its point.

        Returns
        -------
        float64 array of shape (1,) or (1, K), or None
            The values that it is learnt with; None if its point is only avoided.
        """
        n_trials = len(self._trials)
        is_faulty = self._is_among_failures(row)
        self.rows.extend(row)
        if not is_faulty:
            self._trials.avoid(row)
            return None
        self.learnt.append(n_trials)
        values = self._trials.values
        if len(self.rows) > _MANY_FAILED * (n_trials + 1 - len(self.learnt)):
            return _worse_than_most(values)
        middle = (n_trials - 1) // 2
        return np.partition(values, middle, axis=0)[middle : middle + 1]

    def _is_among_failures(self, row: FloatArray) -> bool:
        """Return whether the nearest trials failed."""
        if len(self.rows) < _N_FAILED or len(self._trials) == 0:
            return False
        to_failed = np.sort(_distances(row, self.rows.rows))
        to_others = np.delete(_distances(row, self._trials.rows), self.learnt)
        return bool(to_failed[_N_FAILED - 1] <= to_others.min())


def _worse_than_most(values: FloatArray) -> FloatArray:
    """Return the worst finite values, below them where all are equal, shape (1,) or (1, K)."""
    finite = np.isfinite(values)
    has_finite = finite.any(axis=0, keepdims=True)
    low = np.where(finite, values, np.inf).min(axis=0, keepdims=True)
    high = np.where(finite, values, -np.inf).max(axis=0, keepdims=True)
    low = np.where(has_finite, low, 0.0)
    # Halves of numbers next to the largest float64 do not overflow.
    below = 2.0 * np.maximum(0.5 * low - 0.5 * np.maximum(np.abs(low), 1.0), 0.5 * LOWEST)
    worst = np.where(low < high, low, below)
    return np.asarray(np.where(has_finite, worst, values.min(axis=0, keepdims=True)))


def _distances(row: FloatArray, others: FloatArray) -> FloatArray:
    """Return the L1 distances of a row, shape (1, d), from others, shape (n, d)."""
    # Different categories have distance 1, whatever their indices.
    return np.asarray(np.minimum(row_gaps(others, row), 1.0).sum(axis=1))
