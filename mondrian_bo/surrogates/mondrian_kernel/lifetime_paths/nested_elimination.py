"""Ridge regression on the cells of all states of a path, by nested elimination.

What changes between two states is known beforehand. So the cells that no cut of a part of the path
concerns are eliminated once for all its states, those that no cut of its first half concerns once
for that half, and so on, until a single state is left. Each solution is that of a Cholesky
decomposition of its equations, in an order of its own; what these have in common is computed once,
by products of matrices, and nothing is updated.

The Gram matrix of a part of the path is that of the cells at its end. Earlier cells are unions of
these, so that the matrix of the first half has sums of its rows and columns.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numba import njit

from mondrian_bo.array_types import FloatArray, IntArray
from mondrian_bo.surrogates.mondrian_kernel.counts import normal_equations
from mondrian_bo.surrogates.mondrian_kernel.lifetime_paths.cell_history import CellHistory
from mondrian_bo.surrogates.mondrian_kernel.lifetime_paths.elimination import Elimination, StateFits
from mondrian_bo.surrogates.mondrian_kernel.lifetime_paths.linear_system import (
    NOT_POSITIVE_DEFINITE,
)

_FEW = 32
"""The equations of so many changing cells are solved state by state."""

_CHUNK = 128
"""Solutions of so many states are extended together."""


class NestedElimination:
    """Solutions at chosen states of a path.

    Parameters
    ----------
    history : CellHistory
        The states.
    targets : float64 array of shape (n,)
        What is predicted at the training points, the first ones of the history.
    ridge : float
        The regularisation delta^2.
    states : int64 array of shape (k,)
        The chosen states, in increasing order.

    Notes
    -----
    With C cells at the last state O(n M^2 + C^3) in all, a few times what a fit there takes,
    and O(C^2) of memory.
    """

    def __init__(
        self, history: CellHistory, targets: FloatArray, ridge: float, states: IntArray
    ) -> None:
        self._history = history
        self._targets = targets
        self._ridge = ridge
        self._states = states

    def solve(self) -> tuple[IntArray, Iterator[StateFits]]:
        """Return an iterator over the solutions, and what their weights belong to.

        Returns
        -------
        rows : int64 array of shape (n_all, M)
            The row of the weights for each point and partition, of training and other points.
        fits : iterator of StateFits
            Solutions, from the first state to the last one. They raise
            :class:`numpy.linalg.LinAlgError` if a regularised matrix is not positive definite.
        """
        cells, rows = self._history.cells(int(self._states[-1]))
        training = rows[: len(self._targets)]
        gram, moments = normal_equations(training, len(cells), self._targets)
        return rows, self._part(0, len(self._states), cells, gram, moments)

    def _part(
        self, first: int, last: int, cells: IntArray, gram: FloatArray, moments: FloatArray
    ) -> Iterator[StateFits]:
        """Yield solutions from the first to before the last state, at which the cells are."""
        stays = self._history.births[cells] <= self._states[first]
        if not stays.any():
            yield from self._halves(first, last, cells, gram, moments)
            return
        rest = Elimination(gram, moments, stays, self._ridge)
        fits = self._halves(first, last, cells[~stays], rest.gram, rest.moments)
        for part in _joined(fits) if last - first <= _CHUNK else fits:
            yield rest.extended(part)

    def _halves(
        self, first: int, last: int, cells: IntArray, gram: FloatArray, moments: FloatArray
    ) -> Iterator[StateFits]:
        """Yield solutions half by half, or state by state if few cells change."""
        if len(cells) <= _FEW:
            yield self._one_by_one(first, last, cells, gram, moments)
            return
        middle = (first + last) // 2
        before, groups = self._history.groups(cells, int(self._states[middle - 1]))
        united = _united(gram, np.searchsorted(groups, np.arange(len(before) + 1)))
        sums = np.asarray(np.bincount(groups, moments, len(before)), dtype=np.float64)
        for fits in self._part(first, middle, before, united, sums):
            yield fits._replace(weights=fits.weights[groups])
        yield from self._part(middle, last, cells, gram, moments)

    def _one_by_one(
        self, first: int, last: int, cells: IntArray, gram: FloatArray, moments: FloatArray
    ) -> StateFits:
        """Return solutions of small systems."""
        groups = np.empty((last - first, len(cells)), dtype=np.int64)
        for row, state in zip(groups, self._states[first:last], strict=True):
            _, row[:] = self._history.groups(cells, int(state))
        weights = np.zeros((len(cells), last - first))
        log_determinants, squares = np.zeros((2, last - first))
        if len(cells) > 0:
            arguments = gram, moments, groups, self._ridge, weights, log_determinants, squares
            if not _solve(*arguments):
                raise np.linalg.LinAlgError(NOT_POSITIVE_DEFINITE)
        return StateFits(first, weights, log_determinants, squares)


def _joined(fits: Iterator[StateFits]) -> list[StateFits]:
    """Return solutions at consecutive states as one."""
    parts = list(fits)
    if len(parts) == 1:
        return parts
    arrays = zip(*(part[1:] for part in parts), strict=True)
    joined = (np.concatenate(array, axis=-1) for array in arrays)
    return [StateFits(parts[0].first, *joined)]


@njit(cache=True, nogil=True)
def _united(matrix, bounds):  # type: ignore[no-untyped-def]
    """Return sums of neighbouring rows and columns."""
    size = len(bounds) - 1
    result = np.zeros((size, size))
    row = np.empty(len(matrix))
    for p in range(size):
        row[:] = 0.0
        for i in range(bounds[p], bounds[p + 1]):
            for j in range(len(row)):
                row[j] += matrix[i, j]
        for q in range(size):
            for j in range(bounds[q], bounds[q + 1]):
                result[p, q] += row[j]
    return result


@njit(cache=True, nogil=True, fastmath={"reassoc", "nsz", "contract"})
def _solve(gram, moments, groups, ridge, weights, log_determinants, squares):  # type: ignore[no-untyped-def]
    """Solve for unions of cells, for each state; False if a matrix is not positive definite.

    Parameters
    ----------
    gram : float64 array of shape (C, C)
        The matrix of the cells.
    moments : float64 array of shape (C,)
        Their right-hand side.
    groups : int64 array of shape (k, C)
        The union that each cell is part of in each of the states.
    ridge : float
        What to add to the diagonals of the matrices of the unions.
    weights : float64 array of shape (C, k)
        Solutions, written for each cell.
    log_determinants, squares : float64 arrays of shape (k,)
        Log determinants and squared norms of the solutions, written.
    """
    size = len(moments)
    lower = np.empty((size, size))
    solution = np.empty(size)
    for k in range(len(groups)):
        group = groups[k]
        n_groups = group[-1] + 1
        lower[:n_groups, :n_groups] = 0.0
        solution[:n_groups] = 0.0
        for i in range(size):
            for j in range(size):
                lower[group[i], group[j]] += gram[i, j]
            solution[group[i]] += moments[i]
        for i in range(n_groups):
            for j in range(i + 1):
                rest = lower[i, j]
                for q in range(j):
                    rest -= lower[i, q] * lower[j, q]
                if j < i:
                    lower[i, j] = rest / lower[j, j]
                elif rest + ridge > 0.0:
                    lower[i, i] = math.sqrt(rest + ridge)
                else:
                    return False
            for q in range(i):
                solution[i] -= lower[i, q] * solution[q]
            solution[i] /= lower[i, i]
            log_determinants[k] += 2.0 * math.log(lower[i, i])
        for i in range(n_groups - 1, -1, -1):
            solution[i] /= lower[i, i]
            for q in range(i):
                solution[q] -= lower[i, q] * solution[i]
            squares[k] += solution[i] * solution[i]
        for i in range(size):
            weights[i, k] = solution[group[i]]
    return True
