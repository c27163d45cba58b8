"""Local search of an acquisition from several starts: gradients and neighbouring choices."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from mondrian_bo.search_space import SearchSpace

FloatArray = NDArray[np.float64]

Slopes: TypeAlias = Callable[[FloatArray], tuple[FloatArray, FloatArray]]
"""Maps rows of shape (k, d) to scores of shape (k,) and their derivatives of shape (k, d)."""

_FIRST_MOVE = 0.02
_LARGEST_MOVE = 0.2
_SMALLEST_MOVE = 1e-7

_ROUNDS = 2

_ALL_VALUES = 16
"""Of grids with at most this many values all are neighbours; of others the next on both sides."""


def climb(slopes: Slopes, space: SearchSpace, rows: FloatArray, n_steps: int) -> FloatArray:
    """Climb along the continuous columns by projected gradient steps, all rows in step.

    Step sizes are those of Barzilai and Borwein (1988), two-point step size gradient methods.

    Parameters
    ----------
    slopes : callable
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
    current = rows
    scores, gradient = slopes(current)
    gradient = np.where(free, gradient, 0.0)
    best, best_scores = current, scores
    size = np.max(np.abs(gradient), axis=1, keepdims=True)
    step = _FIRST_MOVE / np.maximum(size, np.finfo(np.float64).tiny)
    for _ in range(n_steps):
        move = np.clip(step * gradient, -_LARGEST_MOVE, _LARGEST_MOVE)
        proposal = np.where(free, np.clip(current + move, 0.0, 1.0), current)
        scores, new_gradient = slopes(proposal)
        new_gradient = np.where(free, new_gradient, 0.0)
        moved = np.where(free, proposal - current, 0.0)
        change = gradient - new_gradient
        overlap = np.einsum("ij,ij->i", moved, change)[:, None]
        square = np.einsum("ij,ij->i", moved, moved)[:, None]
        curved = overlap > 1e-300
        # Where the score is not concave along the move, go on faster.
        step = np.where(curved, square / np.where(curved, overlap, 1.0), 2.0 * step)
        step = np.minimum(step, 1e100)
        better = scores > best_scores
        best = np.where(better[:, None], proposal, best)
        best_scores = np.where(better, scores, best_scores)
        current, gradient = proposal, new_gradient
        if np.abs(moved).max() < _SMALLEST_MOVE:
            break
    return best


def improve(
    score: Callable[[FloatArray], FloatArray],
    slopes: Slopes,
    space: SearchSpace,
    rows: FloatArray,
    n_steps: int,
) -> FloatArray:
    """Search from each row in turns along the continuous columns and among neighbouring choices.

    Parameters
    ----------
    score : callable
        Maps rows of shape (m, d) to scores of shape (m,).
    slopes, space, rows, n_steps
        As in :func:`climb`.

    Returns
    -------
    float64 array of shape (k, d)
        Rows with scores at least as good.
    """
    rows = climb(slopes, space, rows, n_steps)
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
        rows = climb(slopes, space, np.array(improved), n_steps)
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
