"""Local search of an acquisition from several starts: gradients and neighbouring choices."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numba import njit

from mondrian_bo.array_types import FloatArray
from mondrian_bo.search_space import SearchSpace

Gradients: TypeAlias = Callable[[FloatArray], tuple[FloatArray, FloatArray]]
"""Maps rows of shape (k, d) to scores of shape (k,) and their derivatives of shape (k, d)."""

_FIRST_MOVE = 0.02
_LARGEST_MOVE = 0.2
_SMALLEST_MOVE = 1e-7

_ROUNDS = 2

_ALL_VALUES = 16
"""Of grids with at most this many values all are neighbours; of others the next on both sides."""


def climb(gradients: Gradients, space: SearchSpace, rows: FloatArray, n_steps: int) -> FloatArray:
    """Climb along the continuous columns by projected gradient steps, all rows in step.

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
        How many steps to take at most.

    Returns
    -------
    float64 array of shape (k, d)
        The best rows met, one for each start.
    """
    free = (space.grid_sizes == 0) & ~np.isnan(rows)
    if not free.any():
        return rows
    current, proposal = rows.copy(), rows.copy()
    scores, slope = gradients(current)
    gradient = np.where(free, slope, 0.0)
    best, best_scores = current.copy(), scores.copy()
    size = np.max(np.abs(gradient), axis=1)
    step = _FIRST_MOVE / np.maximum(size, np.finfo(np.float64).tiny)
    for _ in range(n_steps):
        _propose(current, gradient, step, free, proposal)
        scores, slope = gradients(proposal)
        _keep_better(proposal, scores, best, best_scores)
        if _move(proposal, slope, free, current, gradient, step) < _SMALLEST_MOVE:
            break
    return best


@njit(cache=True, nogil=True)
def _propose(current, gradient, step, free, proposal):  # type: ignore[no-untyped-def]
    """Write where a step leads, within the cube; what is not free stays."""
    for i in range(current.shape[0]):
        for j in range(current.shape[1]):
            if free[i, j]:
                move = min(max(step[i] * gradient[i, j], -_LARGEST_MOVE), _LARGEST_MOVE)
                proposal[i, j] = min(max(current[i, j] + move, 0.0), 1.0)


@njit(cache=True, nogil=True)
def _keep_better(rows, scores, best, best_scores):  # type: ignore[no-untyped-def]
    for i in range(rows.shape[0]):
        if scores[i] > best_scores[i]:
            best_scores[i] = scores[i]
            for j in range(rows.shape[1]):
                best[i, j] = rows[i, j]


@njit(cache=True, nogil=True)
def _move(proposal, slope, free, current, gradient, step):  # type: ignore[no-untyped-def]
    """Go to the proposal, whose derivatives are `slope`; return the largest move."""
    largest = 0.0
    for i in range(current.shape[0]):
        overlap, square = 0.0, 0.0
        for j in range(current.shape[1]):
            if free[i, j]:
                moved = proposal[i, j] - current[i, j]
                overlap += moved * (gradient[i, j] - slope[i, j])
                square += moved * moved
                largest = max(largest, abs(moved))
                current[i, j] = proposal[i, j]
                gradient[i, j] = slope[i, j]
        # Where the score is not concave along the move, go on faster.
        step[i] = min(square / overlap if overlap > 1e-300 else 2.0 * step[i], 1e100)
    return largest


def improve(
    score: Callable[[FloatArray], FloatArray],
    gradients: Gradients,
    space: SearchSpace,
    rows: FloatArray,
    n_steps: int,
) -> FloatArray:
    """Search from each row in turns along the continuous columns and among neighbouring choices.

    Parameters
    ----------
    score : callable
        Maps rows of shape (m, d) to scores of shape (m,).
    gradients, space, rows, n_steps
        As in :func:`climb`.

    Returns
    -------
    float64 array of shape (k, d)
        Rows with scores at least as good.
    """
    rows = climb(gradients, space, rows, n_steps)
    if not (space.grid_sizes > 0).any():
        return rows
    for _ in range(_ROUNDS):
        neighbours = [_neighbours(space, row) for row in rows]
        starts = np.cumsum([0, *map(len, neighbours)])
        scores = score(np.concatenate(neighbours))
        improved = [
            options[np.argmax(scores[start : start + len(options)])]
            for start, options in zip(starts, neighbours, strict=False)
        ]
        if np.array_equal(improved, rows, equal_nan=True):
            break
        rows = climb(gradients, space, np.array(improved), n_steps)
    return rows


def _neighbours(space: SearchSpace, row: FloatArray) -> FloatArray:
    """Return a row and those that differ in one column with a grid, shape (m, d)."""
    found = [row]
    for j in np.flatnonzero((space.grid_sizes > 1) & ~np.isnan(row)):
        size = int(space.grid_sizes[j])
        if space.is_categorical[j]:
            values = np.arange(size, dtype=np.float64)
        elif size <= _ALL_VALUES:
            values = (np.arange(size) + 0.5) / size
        else:
            values = np.clip(row[j] + np.array([-2.0, -1.0, 1.0, 2.0]) / size, 0.0, 1.0)
        options = np.repeat(row[None], len(values), axis=0)
        options[:, j] = values
        found.append(options[values != row[j]])
    first, *others = found
    return np.concatenate([first[None], space.snap(np.concatenate([row[None], *others]))])
