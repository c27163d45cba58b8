"""Local search of an acquisition from several starts: gradients and neighbouring choices."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numba import njit

from mondrian_bo.acquisitions.base import Score, ScoreGradients
from mondrian_bo.search_space import SearchSpace
from mondrian_bo.shared.array_types import FloatArray
from mondrian_bo.shared.float_range import TINY
from mondrian_bo.shared.projected_lbfgs import UNLIMITED, minimise_in_box

_FIRST_MOVE = 0.02
"""Length of the largest column of a first step, in sides of the unit cube; our choice."""

_LARGEST_MOVE = 0.2
"""Cap of a step's length in any column, in sides of the unit cube; our choice."""

_SMALLEST_MOVE = 1e-7
"""Largest move at which the ascent ends, in sides of the unit cube: such moves gain nothing."""

_POLISHING_STEPS = 150
"""Largest number of quasi-Newton steps, our choice. With many constraints the best point is far
from the best candidate, along their bounds; with few constraints an ascent ends earlier."""

_ROUNDS = 2
"""Number of times that neighbouring choices are tried, each followed by an ascent; our choice."""

_ALL_VALUES = 16
"""Largest size of a grid whose values are all neighbours; on larger ones two on either side are."""

_NEXT = (-2.0, -1.0, 1.0, 2.0)
"""Steps of these two on either side, in cells."""

_ALL_CHOICES = 64
"""Largest number of choices that are all neighbours; our choice."""

_MOST_COLUMNS = 64
"""Number of columns with a grid from which only each second, third, ... one is changed in the
neighbours of a row; our choice."""


class _Ascent(NamedTuple):
    """The state of an ascent of k rows.

    Attributes
    ----------
    current, gradient : float64 arrays of shape (k, d)
        Where the rows are, and the derivatives of their scores there.
    step : float64 array of shape (k,)
        Factors of the gradients in the next move, first 0.
    best : float64 array of shape (k, d)
        The best rows met, one for each start.
    best_scores : float64 array of shape (k,)
        Their scores, first minus infinity.
    """

    current: FloatArray
    gradient: FloatArray
    step: FloatArray
    best: FloatArray
    best_scores: FloatArray


def climb(
    gradients: ScoreGradients, space: SearchSpace, rows: FloatArray, n_steps: int
) -> FloatArray:
    """Climb along the continuous columns by projected gradient steps, all rows at once.

    Step sizes are those of Barzilai and Borwein (1988), two-point step size gradient methods.

    Parameters
    ----------
    gradients : callable
        Maps rows of shape (k, d) to scores, shape (k,), and their derivatives, shape (k, d).
    space : SearchSpace
        The space.
    rows : float64 array of shape (k, d)
        Where to start.
    n_steps : int
        Largest number of steps.

    Returns
    -------
    float64 array of shape (k, d)
        The best rows visited, one for each start.
    """
    free = (space.grid_sizes == 0) & ~np.isnan(rows)
    if not free.any():
        return rows
    step, best_scores = np.zeros(len(rows)), np.full(len(rows), -math.inf)
    ascent = _Ascent(rows.copy(), np.zeros(rows.shape), step, rows.copy(), best_scores)
    proposal = rows.copy()
    for k in range(n_steps + 1):
        largest = _advance(ascent, free, proposal, *gradients(proposal))
        if k > 0 and largest < _SMALLEST_MOVE:
            break
    return ascent.best


@njit(cache=True, nogil=True)
def _advance(ascent, free, proposal, scores, new_gradient):  # type: ignore[no-untyped-def]
    """Go to the proposal, keep the best rows and write the next proposal, within the cube.

    Returns the largest move to the former proposal. Columns that are not free stay.
    """
    current, gradient, step = ascent.current, ascent.gradient, ascent.step
    largest = 0.0
    for i in range(current.shape[0]):
        if scores[i] > ascent.best_scores[i]:
            ascent.best_scores[i] = scores[i]
            for j in range(current.shape[1]):
                ascent.best[i, j] = proposal[i, j]
        overlap, square, steepest = 0.0, 0.0, TINY
        for j in range(current.shape[1]):
            if free[i, j]:
                moved = proposal[i, j] - current[i, j]
                overlap += moved * (gradient[i, j] - new_gradient[i, j])
                square += moved * moved
                largest = max(largest, abs(moved))
                current[i, j] = proposal[i, j]
                gradient[i, j] = new_gradient[i, j]
                steepest = max(steepest, abs(gradient[i, j]))
        if step[i] == 0.0:
            step[i] = _FIRST_MOVE / steepest
        else:
            # The step doubles if the score is not concave along the move.
            step[i] = min(square / overlap if overlap > 1e-300 else 2.0 * step[i], 1e100)
        for j in range(current.shape[1]):
            if free[i, j]:
                move = min(max(step[i] * gradient[i, j], -_LARGEST_MOVE), _LARGEST_MOVE)
                proposal[i, j] = min(max(current[i, j] + move, 0.0), 1.0)
    return largest


def improve(
    score: Score,
    gradients: ScoreGradients,
    space: SearchSpace,
    rows: FloatArray,
    n_steps: int,
    known: FloatArray | None = None,
    n_polished: int = 0,
    n_evaluations: int = UNLIMITED,
) -> FloatArray:
    """Search from each row, by turns along the continuous columns and among neighbouring choices.

    Parameters
    ----------
    score : callable
        Maps rows of shape (m, d) to scores of shape (m,).
    gradients, space, rows, n_steps
        As in :func:`climb`.
    known : float64 array of shape (n, d) or None, default=None
        Trials. Of more than 64 choices only theirs are tried, and the first other one: a model
        tells no others apart. None tries all.
    n_polished : int, default=0
        Number of best rows from which a quasi-Newton method climbs on, see :func:`_polish`.
    n_evaluations : int, default=2**62
        Largest number of evaluations of that method for each row.

    Returns
    -------
    float64 array of shape (k, d)
        Rows with scores at least as good, one for each start.
    """
    rows = climb(gradients, space, rows, n_steps)
    for _ in range(_ROUNDS if (space.grid_sizes > 0).any() else 0):
        options, starts = _neighbours(space, rows, known)
        scores = score(options)
        improved = [
            options[start + np.argmax(scores[start:end])] for start, end in pairwise(starts)
        ]
        if np.array_equal(improved, rows, equal_nan=True):
            break
        rows = climb(gradients, space, np.array(improved), n_steps)
    if n_polished == 0:
        return rows
    best = np.argsort(-score(rows), kind="stable")[:n_polished]
    rows = rows.copy()
    rows[best] = [_polish(gradients, space, row, n_evaluations) for row in rows[best]]
    return rows


def _polish(
    gradients: ScoreGradients, space: SearchSpace, row: FloatArray, n_evaluations: int
) -> FloatArray:
    """Climb along the continuous columns of one row by a quasi-Newton method.

    Next to the bound of a constraint a score is steep across the bound and flat along it. The
    gradient steps of :func:`climb`, which have one step size for all directions, hardly advance.
    """
    free = np.flatnonzero((space.grid_sizes == 0) & ~np.isnan(row))
    if not len(free):
        return row

    def loss(x: FloatArray) -> tuple[float, FloatArray]:
        moved = row.copy()
        moved[free] = x
        scores, by_rows = gradients(moved[None])
        return -float(scores[0]), -by_rows[0, free]

    polished = row.copy()
    bounds = np.zeros(len(free)), np.ones(len(free))
    polished[free] = minimise_in_box(
        loss, row[free], bounds, _POLISHING_STEPS, max_evaluations=n_evaluations
    ).x
    return polished


def _neighbours(
    space: SearchSpace, rows: FloatArray, known: FloatArray | None
) -> tuple[FloatArray, list[int]]:
    """Return rows, each followed by those that differ in one column with a grid.

    Returns
    -------
    neighbours : float64 array of shape (m, d)
        The rows with their neighbours.
    starts : list of int, of length k + 1
        Where those of each row begin, and `m`.
    """
    n_columns = space.n_dimensions
    # The entries that neighbours may have, of each column with a grid; none where it is large.
    values = [np.empty(0)] * n_columns
    for j in np.flatnonzero(space.grid_sizes > 1).tolist():
        size = int(space.grid_sizes[j])
        if not space.is_categorical[j]:
            values[j] = (np.arange(size if size <= _ALL_VALUES else 0) + 0.5) / size
        elif size > _ALL_CHOICES and known is not None:
            values[j] = _tried_choices(known[:, j], size)
        else:
            values[j] = np.arange(size, dtype=np.float64)
    ends = np.cumsum([0, *map(len, values)])
    most = 2 + int(ends[-1]) + len(_NEXT) * n_columns
    options, starts = np.empty((len(rows) * most, n_columns)), np.zeros(len(rows) + 1, np.int64)
    _write_adjacent(rows, space.grid_sizes, np.concatenate(values), ends, options, starts)
    neighbours = space.snap(options[: starts[-1]])
    # The first of each are the rows themselves, also where snapping would move them.
    neighbours[starts[:-1]] = rows
    return neighbours, starts.tolist()


@njit(cache=True, nogil=True)
def _write_adjacent(rows, grid_sizes, values, ends, options, starts):  # type: ignore[no-untyped-def]
    """Write each row twice, then its neighbours, and where those of each row begin.

    Parameters
    ----------
    rows : float64 array of shape (k, d)
        The rows.
    grid_sizes : int64 array of shape (d,)
        Numbers of values; 0 in a continuous column.
    values : float64 array of shape (v,)
        The entries that neighbours may have, one column after the other.
    ends : int64 array of shape (d + 1,)
        Where the values of each column begin, and `v`.
    options : float64 array of shape (m, d)
        Result, with room to spare.
    starts : int64 array of shape (k + 1,)
        Result.
    """
    n, d = 0, rows.shape[1]
    for i in range(len(rows)):
        n_columns = 0
        for j in range(d):
            n_columns += grid_sizes[j] > 1 and not math.isnan(rows[i, j])
        starts[i] = n
        rank = 0
        for j in range(-1, d):
            n_values = 2  # of the row itself
            if j >= 0:
                if grid_sizes[j] <= 1 or math.isnan(rows[i, j]):
                    continue
                rank += 1
                if (rank - 1) % (n_columns // _MOST_COLUMNS + 1):
                    continue
                n_values = ends[j + 1] - ends[j] if ends[j + 1] > ends[j] else len(_NEXT)
            for k in range(n_values):
                value = math.nan
                if j >= 0 and ends[j + 1] > ends[j]:
                    value = values[ends[j] + k]
                elif j >= 0:
                    value = min(max(rows[i, j] + _NEXT[k] / grid_sizes[j], 0.0), 1.0)
                if j >= 0 and value == rows[i, j]:
                    continue
                for column in range(d):
                    options[n, column] = value if column == j else rows[i, column]
                n += 1
    starts[len(rows)] = n


def _tried_choices(entries: FloatArray, size: int) -> FloatArray:
    """Return the choices among the entries of a column, and the first other one."""
    tried = np.unique(entries[(entries >= 0.0) & (entries < size)])
    gaps = np.flatnonzero(tried != np.arange(len(tried)))
    other = float(gaps[0]) if len(gaps) else float(len(tried))
    return np.append(tried, other) if other < size else tried
