"""The trials of a search: rows, values, the best of them, and points not to be tried again."""

from __future__ import annotations

import heapq
import math
from collections.abc import Collection
from typing import NamedTuple

import numpy as np

from mondrian_bo.search_space import Float, SearchSpace
from mondrian_bo.shared.array_types import BoolArray, FloatArray
from mondrian_bo.shared.growing_array import GrowingArray

N_BEST = 10
"""Number of best trials that candidates start from, and whose predictions set the value to beat:
several, so that one lucky trial of a noisy objective does not decide where the search goes."""

KEY_DIGITS = 12
"""Digits to which rows are rounded where the same trials are looked for: decoding and encoding a
row moves its entries by a few units of rounding, 1e-16 in most ranges."""

_LARGEST_EQUAL_RATIO = 2.0
"""Largest ratio of the largest to the smallest known error at which errors count as equal, our
choice. For such errors, a noise for each observation gains nothing and costs the estimate of a
common one."""


class TrialsState(NamedTuple):
    """What identifies a former state of :class:`Trials`.

    Attributes
    ----------
    n_trials, n_known : int
        Numbers of trials and of known rows.
    best : list of (bool, float, int)
        The best trials.
    n_excluded : dict of bytes to int
        Numbers of excluded rows, by which of their entries are NaN.
    errors_differ : bool
        Whether known errors differ.
    """

    n_trials: int
    n_known: int
    best: list[tuple[bool, float, int]]
    n_excluded: dict[bytes, int]
    errors_differ: bool


def rounded(rows: FloatArray) -> FloatArray:
    """Return rows with the same bytes for all rows that count as the same trial."""
    # The sum replaces -0.0.
    return np.asarray(np.round(rows, KEY_DIGITS) + 0.0)


def decoding_rounds(space: SearchSpace) -> bool:
    """Return whether decoding and encoding may move an entry by more than `KEY_DIGITS`."""
    for one in space.values():
        if isinstance(one, Float) and one.step is None:
            rounding = np.spacing(max(abs(one.low), abs(one.high)))
            if rounding > 0.1 * 10.0**-KEY_DIGITS * (one.high - one.low):
                return True
    return False


class Trials:
    """Trials as rows of the unit cube with values, larger is better.

    Parameters
    ----------
    n_dimensions : int
        Dimension d of the rows.

    Attributes
    ----------
    n_objectives : int
        Number of values of a trial: 1.
    errors_differ : bool
        Whether the known standard errors of the values differ by more than a factor of two, or some
        values have none beside others that have one.
    """

    n_objectives = 1
    errors_differ = False
    _observed: GrowingArray | None = None

    def __init__(self, n_dimensions: int) -> None:
        self._rows = GrowingArray(n_dimensions)
        self._values = GrowingArray()
        self._best: list[tuple[bool, float, int]] = []
        # Keys of dictionaries are ordered sets: the latest can be removed again.
        self._known: dict[bytes, None] = {}
        # Rows by which of their entries are NaN.
        self._excluded: dict[bytes, tuple[BoolArray, dict[bytes, None]]] = {}

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def rows(self) -> FloatArray:
        """The points, shape (n, d); NaN at inactive parameters."""
        return self._rows.rows

    @property
    def values(self) -> FloatArray:
        """Their values, shape (n,); may be infinite, not NaN."""
        return self._values.rows

    def tell(
        self,
        rows: FloatArray,
        values: FloatArray,
        eligible: bool = True,
        observed: FloatArray | None = None,
    ) -> None:
        """Add trials, O(1) each; with known errors, O(n).

        Parameters
        ----------
        rows : float64 array of shape (m, d)
            The points; NaN at inactive parameters.
        values : float64 array of shape (m,)
            Their values, larger is better; may be infinite, not NaN.
        eligible : bool, default=True
            Whether they may be the incumbent: they have not failed, satisfy the constraints and,
            with a fidelity, are at its target. Eligible trials rank before all others.
        observed : float64 array of shape (m, 2) or None, default=None
            With known standard errors, the values as observed and these errors, 0 where there is
            none and NaN where the value is imputed. `values` are then the posterior means that
            :class:`KnownNoise` computes from observation and model.
        """
        n_trials = len(self._rows)
        if observed is not None or self._observed is not None:
            self._note(values, observed)
        self._rows.extend(rows)
        self._values.extend(values)
        for i, value in enumerate(values.tolist()):
            # Of equal values the earlier trial ranks higher.
            entry = (eligible, value, -(n_trials + i))
            if len(self._best) < N_BEST:
                heapq.heappush(self._best, entry)
            else:
                heapq.heappushpop(self._best, entry)
            self._known[rounded(rows[i]).tobytes()] = None

    def _note(self, values: FloatArray, observed: FloatArray | None) -> None:
        """Store observed values and errors of the next trials; None is values without errors."""
        noted = self._observed
        if noted is None:
            if observed is None or not (observed[:, 1] > 0.0).any():
                return
            noted = GrowingArray(2)
            noted.extend(_exact(self.values))
        # What an interrupted call has left is removed.
        noted.shorten(len(self._rows))
        noted.extend(_exact(values) if observed is None else observed)
        errors = noted.rows[:, 1]
        # Maxima and minima without NaN.
        largest = float(np.fmax.reduce(errors, initial=0.0))
        smallest = float(np.fmin.reduce(errors, initial=np.inf))
        self._observed = noted
        self.errors_differ = largest > _LARGEST_EQUAL_RATIO * smallest

    def observed(self, start: int, end: int) -> tuple[FloatArray, FloatArray]:
        """Return the values of some trials as observed, and their errors, shape (end - start,).

        An error is 0 where none is known. There are known errors.
        """
        assert self._observed is not None
        values, errors = self._observed.rows[start:end].T
        return values, np.nan_to_num(errors, posinf=np.inf)

    def chosen(self, which: BoolArray) -> Trials:
        """Return some of the trials; `which` has shape (n,). All of them count as eligible."""
        some = Trials(self.rows.shape[1])
        observed = None if self._observed is None else self._observed.rows[which]
        some.tell(self.rows[which], self.values[which], observed=observed)
        # They count as those of all trials do.
        some.errors_differ = self.errors_differ
        return some

    def is_taken(self, row: FloatArray, running: Collection[bytes] = ()) -> bool:
        """Whether a trial has been told, or ruled out by `avoid` or `exclude`, or is running.

        Parameters
        ----------
        row : float64 array of shape (d,)
            The point.
        running : collection of bytes
            Bytes of the rows of running trials after :func:`rounded`.
        """
        row = rounded(row)
        key = row.tobytes()
        if key in self._known or key in running:
            return True
        excluded = self._excluded.values()
        return any(np.where(gaps, np.nan, row).tobytes() in rows for gaps, rows in excluded)

    def avoid(self, rows: FloatArray) -> None:
        """Let :meth:`is_taken` count rows of shape (m, d), which have no value: failed trials."""
        self._known.update((row.tobytes(), None) for row in rounded(rows))

    def exclude(self, rows: FloatArray) -> None:
        """Count all points as known that have the values of one of these rows.

        Parameters
        ----------
        rows : float64 array of shape (m, d)
            Points; NaN matches every value.
        """
        for row in rounded(rows):
            gaps = np.isnan(row)
            self._excluded.setdefault(gaps.tobytes(), (gaps, {}))[1][row.tobytes()] = None

    @property
    def excluded(self) -> FloatArray:
        """The rows that `exclude` was called with, rounded, without duplicates, shape (k, d)."""
        keys = [key for _, rows in self._excluded.values() for key in rows]
        return np.frombuffer(b"".join(keys)).reshape(len(keys), self._rows.rows.shape[1])

    def best_rows(self, eligible: bool = False) -> FloatArray:
        """Return the rows of the ten best trials, best first, shape (k, d).

        Parameters
        ----------
        eligible : bool, default=False
            Whether to leave out those among them that are not eligible.
        """
        best = sorted(self._best, reverse=True)
        return self._rows.rows[[-index for good, _, index in best if good or not eligible]]

    def best(self) -> tuple[FloatArray, float, bool]:
        """Return row, shape (d,), and value of the best trial, and whether it is eligible."""
        eligible, value, index = max(self._best)
        return self._rows.rows[-index], value, eligible

    def front(self) -> BoolArray:
        """Return which trial is the best one, if it is eligible, shape (n,)."""
        is_best = np.zeros(len(self), dtype=np.bool_)
        if self._best and (entry := max(self._best))[0]:
            is_best[-entry[2]] = True
        return is_best

    def is_on_plateau(self) -> bool:
        """Whether several eligible trials have the best value, and it is finite."""
        if len(self._best) < 2:
            return False
        second, best = (entry[:2] for entry in sorted(self._best)[-2:])
        return best[0] and math.isfinite(best[1]) and second == best

    def state(self) -> TrialsState:
        """Return what `restore` needs; O(1)."""
        n_excluded = {key: len(rows) for key, (_, rows) in self._excluded.items()}
        return TrialsState(
            len(self), len(self._known), self._best.copy(), n_excluded, self.errors_differ
        )

    def restore(self, state: TrialsState) -> None:
        """Remove what was added after a state; O(what is removed)."""
        self._rows.shorten(state.n_trials)
        self._values.shorten(state.n_trials)
        if self._observed is not None:
            self._observed.shorten(state.n_trials)
        self.errors_differ = state.errors_differ
        self._best = state.best.copy()
        # The last entry of a dictionary is the latest.
        while len(self._known) > state.n_known:
            self._known.popitem()
        for key, (_, rows) in self._excluded.items():
            while len(rows) > state.n_excluded.get(key, 0):
                rows.popitem()


def _exact(values: FloatArray) -> FloatArray:
    """Return values without known errors as observed ones, shape (m, 2)."""
    return np.column_stack([values, np.zeros(len(values))])
