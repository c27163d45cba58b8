"""Failed trials: which of them the model learns, and with which value."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from mondrian_bo.optimizer.shared.search_trials import SearchTrials
from mondrian_bo.optimizer.shared.trials import rounded
from mondrian_bo.search_space.space import row_gaps
from mondrian_bo.shared.array_types import BoolArray, FloatArray
from mondrian_bo.shared.float_range import LOWEST
from mondrian_bo.shared.growing_array import GrowingArray

_N_FAILED = 2
"""Number of nearest points that must have failed for a failed trial to be learnt: a single failure
may be an accident. Our choice."""

_LEAST_ODDS = 3.0
"""Bayes factor of faulty places to accidents above which a failed trial is learnt, our choice: the
model cannot unlearn it."""

_LEAST_CHANCE = 1e-3
"""Probability that the nearest points all failed by accident, below which a failed trial is learnt
whatever other failures are; our choice. A search with many accidents meets a faulty region, too."""

_ANYWHERE = (1.0, 3.0)
"""Beta prior of the rate of failures where the nearest earlier trial is complete, and of accidents:
a mean of a quarter, our choice."""

_IN_FAULTY_PLACES = (20.0, 1.0)
"""Beta prior of the rate of failures where the nearest earlier trial failed, if places are faulty:
a mean of 20/21, our choice, as trials next to failed ones are often very near."""

_MOST_COUNTED = 1000
"""Number of complete trials after which outcomes are counted no more: our choice. It bounds the
time. Failures that only begin later are judged by `_LEAST_CHANCE` alone."""

_MANY_FAILED = 2
"""Ratio of failed trials to others above which a failed trial is learnt as the worst, our choice:
the median of few values is too good for most of the space."""


class _Tally(NamedTuple):
    """Outcomes of trials, by those of their nearest earlier trials.

    Attributes
    ----------
    n_complete : int
        Number of complete trials that have been counted.
    near : tuple of int
        Numbers of failed and of complete trials whose nearest earlier trial had failed.
    away : tuple of int
        The same where the nearest earlier trial was complete.
    """

    n_complete: int = 0
    near: tuple[int, int] = (0, 0)
    away: tuple[int, int] = (0, 0)

    def with_trial(self, is_near: bool, failed: bool) -> _Tally:
        """Return the tally with a further trial."""
        n_failed, n_complete = self.near if is_near else self.away
        counts = (n_failed + failed, n_complete + (not failed))
        return self._replace(near=counts) if is_near else self._replace(away=counts)

    def odds(self) -> float:
        """Return the logarithm of the Bayes factor of faulty places to accidents.

        Accidents have one rate everywhere, whatever points the search chooses. If places are
        faulty, trials near failed ones have a rate of their own.
        """
        both = (self.near[0] + self.away[0], self.near[1] + self.away[1])
        places = _log_evidence(self.near, _IN_FAULTY_PLACES) + _log_evidence(self.away, _ANYWHERE)
        return places - _log_evidence(both, _ANYWHERE)

    def chance(self, n_failed: int) -> float:
        """Return the probability of that many accidents in a row.

        Their rate is the posterior mean where the nearest earlier trial was complete.
        """
        n_away = sum(self.away) + sum(_ANYWHERE)
        return ((self.away[0] + _ANYWHERE[0]) / n_away) ** n_failed


class FailedTrials:
    """The trials that failed.

    A failed trial is not learnt, and its exact point is not suggested again. If the nearest trials
    failed as well, the region may be faulty, and a model without these trials would keep
    suggesting points in it. The trial is then learnt with the median of all values, and is never
    the incumbent. If most trials have failed, it is learnt with the worst value instead.

    A search suggests points next to a failed one, so two failures side by side may be accidents,
    such as workers that are killed. A false value at the optimum would end the search. So a failed
    trial is learnt only while faulty places explain all failures better than accidents: trials next
    to failed ones fail more often than others. A trial with more failed points around it than
    accidents explain is learnt, too. While the rate of accidents is constant, a search that adapts
    to failures does not bias this comparison. Where a rate rises late, a few accidents are learnt.

    Several attempts at a point count as one, which is complete as soon as one of them is.

    Parameters
    ----------
    trials : SearchTrials
        The trials that are learnt. The caller adds failed ones to them.

    Attributes
    ----------
    rows : GrowingArray
        The different points of failed trials without an earlier outcome, rows of shape (d,).
    learnt : list of int
        Positions in `trials` of the failed trials that are learnt.
    """

    def __init__(self, trials: SearchTrials) -> None:
        self._trials = trials
        self.rows = GrowingArray(trials.rows.shape[1])
        self.learnt: list[int] = []
        # After each failed row.
        self._tallies: list[_Tally] = []

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore; in pickles of earlier versions nothing was counted."""
        self.__dict__.update({"_tallies": [_Tally()] * len(state["rows"]), **state})

    def add(self, row: FloatArray) -> FloatArray | None:
        """Store a failed trial and decide whether it is learnt.

        It costs O(n) for the trial, and for each of the first 1,000 complete trials that is new.

        Parameters
        ----------
        row : float64 array of shape (1, d)
            Its point.

        Returns
        -------
        float64 array of shape (1,) or (1, K), or None
            The values that it is learnt with; None if its point is only avoided.
        """
        complete = np.delete(self._trials.rows, self.learnt, axis=0)
        complete_keys, failed_keys = _keys(complete), _keys(self.rows.rows)
        (key,) = _keys(row)
        if key in complete_keys or key in failed_keys:
            self._trials.avoid(row)
            return None
        tally = self._count(complete, complete_keys, failed_keys)
        is_open = _lacks(failed_keys, set(complete_keys))
        n_near = self._n_failed_near(row, complete, is_open)
        if len(complete) + len(self.rows) > 0 and len(complete) <= _MOST_COUNTED:
            tally = tally.with_trial(n_near > 0, failed=True)
        self.rows.extend(row)
        self._tallies.append(tally)
        is_faulty = tally.odds() > math.log(_LEAST_ODDS) or tally.chance(n_near) < _LEAST_CHANCE
        if n_near < _N_FAILED or not len(complete) or not is_faulty:
            self._trials.avoid(row)
            return None
        n_trials = len(self._trials)
        self.learnt.append(n_trials)
        values = self._trials.values
        if is_open.sum() + 1 > _MANY_FAILED * len(set(complete_keys)):
            return _worse_than_most(values)
        middle = (n_trials - 1) // 2
        return np.partition(values, middle, axis=0)[middle : middle + 1]

    def restore(self, n_failed: int, n_learnt: int) -> None:
        """Remove all failed rows but the first ones, and all that was learnt but the first."""
        self.rows.shorten(n_failed)
        del self._tallies[n_failed:]
        del self.learnt[n_learnt:]

    def _count(
        self, complete: FloatArray, complete_keys: list[bytes], failed_keys: list[bytes]
    ) -> _Tally:
        """Return the tally with the trials that completed since the last failed one."""
        if not failed_keys:
            return _Tally(len(complete), away=(0, max(len(set(complete_keys)) - 1, 0)))
        tally = self._tallies[-1]
        failed, earlier = set(failed_keys), set(complete_keys[: tally.n_complete])
        n_counted = min(len(complete), _MOST_COUNTED)
        for i in range(tally.n_complete, n_counted):
            key = complete_keys[i]
            # Trials at a known point are no trials of their own.
            if key not in earlier and key not in failed:
                is_open = _lacks(failed_keys, earlier)
                n_near = self._n_failed_near(complete[i : i + 1], complete[:i], is_open)
                tally = tally.with_trial(n_near > 0, failed=False)
            earlier.add(key)
        return tally._replace(n_complete=max(n_counted, tally.n_complete))

    def _n_failed_near(self, row: FloatArray, complete: FloatArray, is_open: BoolArray) -> int:
        """Return how many failed rows without an outcome are no farther than any complete one."""
        to_failed = _distances(row, self.rows.rows[is_open])
        to_complete = _distances(row, complete).min(initial=np.inf)
        return int(np.count_nonzero(to_failed <= to_complete))


def _keys(rows: FloatArray) -> list[bytes]:
    """Return one key of each row, equal for rows that count as the same trial."""
    return [one.tobytes() for one in rounded(rows)]


def _lacks(keys: list[bytes], known: set[bytes]) -> BoolArray:
    """Return which keys are not among those known."""
    return np.array([key not in known for key in keys], dtype=np.bool_)


def _log_evidence(counts: tuple[int, int], prior: tuple[float, float]) -> float:
    """Return the logarithm of the probability of failures and successes under a Beta prior."""
    return _log_beta(prior[0] + counts[0], prior[1] + counts[1]) - _log_beta(*prior)


def _log_beta(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


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
