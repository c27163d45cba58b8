"""The trials of a search with several objectives, and those near the Pareto front."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import numpy as np

from mondrian_bo.optimizer.shared.trials import Trials, TrialsState
from mondrian_bo.shared.array_types import BoolArray, FloatArray
from mondrian_bo.shared.float_range import SHRINK
from mondrian_bo.shared.growing_array import GrowingArray

_NEAR_FRONT = 2.0
"""Largest number of trials that dominate one near the front, our choice: with noise, the model may
predict it to be better than those."""

_UNRANKED = 1e9
"""Number of dominating trials that one counts as having that is not eligible."""


class ParetoState(NamedTuple):
    """What identifies a former state of :class:`ParetoTrials`.

    Attributes
    ----------
    columns : tuple of TrialsState
        Those of the columns.
    n_dominating : float64 array of shape (n,)
        Numbers of trials that dominate each.
    """

    columns: tuple[TrialsState, ...]
    n_dominating: FloatArray


class ParetoTrials:
    """Trials with K values each, larger is better; the counterpart of :class:`Trials`.

    Parameters
    ----------
    n_dimensions : int
        Dimension d of the rows.
    n_objectives : int
        Number K of values.
    reference : float64 array of shape (K,) or None, default=None
        Values below which nothing counts; None or NaN if they are not given.

    Attributes
    ----------
    reference : float64 array of shape (K,)
        As given.
    columns : tuple of Trials
        The same trials with the values of one objective each.
    """

    def __init__(
        self, n_dimensions: int, n_objectives: int, reference: FloatArray | None = None
    ) -> None:
        self.reference = np.full(n_objectives, np.nan) if reference is None else reference
        self.columns = tuple(Trials(n_dimensions) for _ in range(n_objectives))
        self._values = GrowingArray(n_objectives)
        self._n_dominating = np.empty(0)

    def __len__(self) -> int:
        return len(self._values)

    @property
    def n_objectives(self) -> int:
        """Number K of values of a trial."""
        return len(self.columns)

    @property
    def rows(self) -> FloatArray:
        """The points, shape (n, d); NaN at inactive parameters."""
        return self.columns[0].rows

    @property
    def values(self) -> FloatArray:
        """Their values, shape (n, K); may be infinite, not NaN."""
        return self._values.rows

    def tell(
        self,
        rows: FloatArray,
        values: FloatArray,
        eligible: bool = True,
        observed: FloatArray | None = None,
    ) -> None:
        """Add trials with values of shape (m, K), O(n K) each; see :meth:`Trials.tell`.

        Trials that are not eligible neither dominate nor are near the front.
        """
        for k, (column, own) in enumerate(zip(self.columns, values.T, strict=True)):
            column.tell(rows, own, eligible, None if observed is None else observed[:, k])
        for value in values:
            self._n_dominating = self._counted(value, eligible)
            self._values.extend(value[None])

    def _counted(self, value: FloatArray, eligible: bool) -> FloatArray:
        """Return the numbers of dominating trials with one more trial; states keep the former."""
        others = self._values.rows
        counts = self._n_dominating
        ranked, dominating = counts < _UNRANKED, _UNRANKED
        if eligible:
            counts = counts + (ranked & _dominates(value, others))
            dominating = float(np.count_nonzero(ranked & _dominates(others, value)))
        return np.append(counts, dominating)

    def is_taken(self, row: FloatArray, running: Collection[bytes] = ()) -> bool:
        """Whether a trial has been told or ruled out, or is running; see :class:`Trials`."""
        return self.columns[0].is_taken(row, running)

    def avoid(self, rows: FloatArray) -> None:
        """Count rows of shape (m, d) as known without values."""
        self.columns[0].avoid(rows)

    def exclude(self, rows: FloatArray) -> None:
        """Count all points as known that have the values of one of these rows."""
        self.columns[0].exclude(rows)

    @property
    def excluded(self) -> FloatArray:
        """The rows that `exclude` was called with, shape (k, d)."""
        return self.columns[0].excluded

    def state(self) -> ParetoState:
        """Return what `restore` needs; O(1)."""
        return ParetoState(tuple(one.state() for one in self.columns), self._n_dominating)

    def restore(self, state: ParetoState) -> None:
        """Remove what was added after a state; O(what is removed)."""
        for column, own in zip(self.columns, state.columns, strict=True):
            column.restore(own)
        self._values.shorten(state.columns[0].n_trials)
        self._n_dominating = state.n_dominating

    def front(self) -> BoolArray:
        """Return which trials are eligible and not dominated by another one, shape (n,)."""
        return np.asarray(self._n_dominating == 0.0)

    def near_front(self) -> BoolArray:
        """Return which eligible trials are dominated by at most two others, shape (n,)."""
        return np.asarray(self._n_dominating <= _NEAR_FRONT)

    def has_extended(self, n_latest: int, least: float) -> bool:
        """Return whether an end of the front has moved in the latest trials; O(n K).

        Parameters
        ----------
        n_latest : int
            Number of latest trials that count.
        least : float
            Least move of an end that counts, as a share of the front's range.

        Returns
        -------
        bool
            True, too, while there are no other eligible trials to compare with.
        """
        n_before = max(len(self) - n_latest, 0)
        before = self._n_dominating[:n_before] < _UNRANKED
        if not before.any():
            return True
        front, earlier = SHRINK * self.values[self.front()], SHRINK * self.values[:n_before][before]
        best = front.max(axis=0)
        # Infinite values that stay do not move, though their difference is NaN.
        with np.errstate(invalid="ignore"):
            moved, extent = best - earlier.max(axis=0), best - front.min(axis=0)
            return bool((moved > least * extent).any())

    def best_rows(self, eligible: bool = False) -> FloatArray:
        """Return the rows of the Pareto front, shape (k, d).

        Parameters
        ----------
        eligible : bool, default=False
            Whether to return nothing while no trial is eligible; otherwise these are then the best
            trials of the first objective.
        """
        front = self.rows[self.front()]
        return front if eligible or len(front) else self.columns[0].best_rows()


def _dominates(values: FloatArray, others: FloatArray) -> BoolArray:
    """Return where values are at least as good as others and not equal; one of both is (n, K)."""
    return np.asarray((values >= others).all(axis=1) & (values > others).any(axis=1))
