"""Failed trials: which of them the model learns, and with which value."""

from __future__ import annotations

import numpy as np

from mondrian_bo.optimizer.shared.search_trials import SearchTrials
from mondrian_bo.search_space.space import row_gaps
from mondrian_bo.shared.array_types import FloatArray
from mondrian_bo.shared.growing_array import GrowingArray

_N_FAILED = 2
"""Number of nearest trials that must have failed for a failed trial to be learnt: a single failure
may be an accident. Our choice."""


class FailedTrials:
    """The trials that failed.

    A failed trial is not learnt, and its exact point is not suggested again. If the nearest trials
    failed as well, the region is probably faulty, and a model without these trials would keep
    suggesting points in it. The trial is then learnt with the median of all values, as infeasible.

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
        middle = (n_trials - 1) // 2
        return np.partition(self._trials.values, middle, axis=0)[middle : middle + 1]

    def _is_among_failures(self, row: FloatArray) -> bool:
        """Return whether the nearest trials failed."""
        if len(self.rows) < _N_FAILED or len(self._trials) == 0:
            return False
        to_failed = np.sort(_distances(row, self.rows.rows))
        to_others = np.delete(_distances(row, self._trials.rows), self.learnt)
        return bool(to_failed[_N_FAILED - 1] <= to_others.min())


def _distances(row: FloatArray, others: FloatArray) -> FloatArray:
    """Return the L1 distances of a row, shape (1, d), from others, shape (n, d)."""
    # Different categories have distance 1, whatever their indices.
    return np.asarray(np.minimum(row_gaps(others, row), 1.0).sum(axis=1))
