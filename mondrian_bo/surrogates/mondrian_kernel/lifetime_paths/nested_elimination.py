"""Ridge regression at all states of a path, by nested elimination of cells.

All cuts of a path are known from the start. The cells that no cut of the path changes are
eliminated from the equations once, for all states. The path is halved; the cells that no cut of a
half changes are eliminated once for that half; and so on down to single states. The result is a
Cholesky decomposition for each state, each in an order of its own. What these decompositions share
is computed once, by products of matrices, and nothing is updated.

The Gram matrix of a part of the path is that of the cells at its end. Earlier cells are unions of
these, so the matrix of the first half consists of sums of rows and columns.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Literal, NamedTuple

import numpy as np
from numba import njit
from scipy.linalg import cholesky, solve_triangular

from mondrian_bo.shared.array_types import BoolArray, FloatArray, IntArray
from mondrian_bo.surrogates.mondrian_kernel.cell_matrices import normal_equations
from mondrian_bo.surrogates.mondrian_kernel.lifetime_paths.cholesky_system import (
    NOT_POSITIVE_DEFINITE,
)
from mondrian_bo.surrogates.mondrian_kernel.lifetime_paths.cuts import CellHistory

_FEW = 32
"""Number of changing cells up to which the equations are solved state by state: halving so small a
system costs more than it saves."""

_CHUNK = 128
"""Largest number of states whose solutions are extended together: enough for products of matrices
to be fast, and few enough to bound the memory of the weights."""


class StateFits(NamedTuple):
    """Solutions at consecutive states of a path.

    Attributes
    ----------
    first : int
        Position of the first of them among all chosen states.
    weights : float64 array of shape (C, k)
        For each cell, the weight at each state of the cell that it is then part of.
    log_determinants : float64 array of shape (k,)
        log det (Phi^T Phi + ridge I), of the features of the state's cells.
    squares : float64 array of shape (k,)
        Sum of the squares of the weights of the state's cells.
    """

    first: int
    weights: FloatArray
    log_determinants: FloatArray
    squares: FloatArray


class Elimination:
    """A ridge regression from which the weights of some cells are eliminated.

    Parameters
    ----------
    gram : float64 array of shape (C, C)
        Phi^T Phi of all cells without the ridge, or its Schur complement after eliminations.
    moments : float64 array of shape (C,)
        Phi^T targets of all cells, reduced likewise.
    eliminated : bool array of shape (C,)
        Which e cells to eliminate.
    ridge : float
        The regularisation delta^2.

    Attributes
    ----------
    gram : float64 array of shape (C - e, C - e)
        The Schur complement: the matrix of the other cells.
    moments : float64 array of shape (C - e,)
        The right-hand side of the other cells.

    Raises
    ------
    numpy.linalg.LinAlgError
        If the regularised matrix is not positive definite.

    Notes
    -----
    O(e C^2), and O(e C) for each solution, in products of matrices. An elimination is a step of a
    Cholesky decomposition by blocks, and as accurate.
    """

    def __init__(
        self, gram: FloatArray, moments: FloatArray, eliminated: BoolArray, ridge: float
    ) -> None:
        self._eliminated = eliminated
        gone, rest = np.flatnonzero(eliminated), np.flatnonzero(~eliminated)
        matrix = _part(gram, gone, gone)
        matrix.flat[:: len(gone) + 1] += ridge
        # The transpose has Fortran order, so LAPACK works without a copy.
        try:
            self._lower = cholesky(matrix.T, lower=True, overwrite_a=True, check_finite=False)
        except np.linalg.LinAlgError:
            raise np.linalg.LinAlgError(NOT_POSITIVE_DEFINITE) from None
        self._columns = self._solve_triangular(_part(gram, rest, gone).T)
        self._rotated = self._solve_triangular(moments[gone])
        self.gram = _part(gram, rest, rest)
        self.gram -= self._columns.T @ self._columns
        self.moments = moments[rest] - self._columns.T @ self._rotated
        self._log_determinant = 2.0 * float(np.log(self._lower.diagonal()).sum())

    def extended(self, fits: StateFits) -> StateFits:
        """Return the solutions for all cells, given those for the cells that are left."""
        solved = self._solve_triangular(
            self._rotated[:, None] - self._columns @ fits.weights, trans="T"
        )
        weights = np.empty((len(self._eliminated), fits.weights.shape[1]))
        weights[self._eliminated] = solved
        weights[~self._eliminated] = fits.weights
        return StateFits(
            fits.first,
            weights,
            fits.log_determinants + self._log_determinant,
            fits.squares + np.einsum("ij,ij->j", solved, solved),
        )

    def _solve_triangular(self, vectors: FloatArray, trans: Literal["N", "T"] = "N") -> FloatArray:
        solved = solve_triangular(
            self._lower, vectors, trans=trans, lower=True, overwrite_b=True, check_finite=False
        )
        return np.asarray(solved, dtype=np.float64)


def solve_states(
    history: CellHistory, targets: FloatArray, ridge: float, states: IntArray
) -> tuple[IntArray, Iterator[StateFits]]:
    """Return the solutions at chosen states of a path, and the rows of their weights.

    With C cells at the last state O(n M^2 + C^3) in all, a few times what a fit there takes, and
    O(C^2) of memory.

    Parameters
    ----------
    history : CellHistory
        The states.
    targets : float64 array of shape (n,)
        Targets of the training points, which are the first points of the history.
    ridge : float
        The regularisation delta^2.
    states : int64 array of shape (k,)
        The chosen states, in increasing order.

    Returns
    -------
    rows : int64 array of shape (n_all, M)
        The row of the weights that belongs to each point and partition; all points, training points
        first.
    fits : iterator of StateFits
        Solutions, from the first state to the last one. They raise
        :class:`numpy.linalg.LinAlgError` if a regularised matrix is not positive definite.
    """
    cells, rows = history.cells(int(states[-1]))
    gram, moments = normal_equations(rows[: len(targets)], len(cells), targets)
    return rows, _Halving(history, ridge, states).part(0, len(states), cells, gram, moments)


class _Halving(NamedTuple):
    """The recursion of :func:`solve_states`, whose arguments it has."""

    history: CellHistory
    ridge: float
    states: IntArray

    def part(
        self, first: int, last: int, cells: IntArray, gram: FloatArray, moments: FloatArray
    ) -> Iterator[StateFits]:
        """Yield the solutions at states `first` to ``last - 1``, given the last state's cells."""
        stays = self.history.births[cells] <= self.states[first]
        if not stays.any():
            yield from self._halves(first, last, cells, gram, moments)
            return
        rest = Elimination(gram, moments, stays, self.ridge)
        fits = self._halves(first, last, cells[~stays], rest.gram, rest.moments)
        for part in _joined(fits) if last - first <= _CHUNK else fits:
            yield rest.extended(part)

    def _halves(
        self, first: int, last: int, cells: IntArray, gram: FloatArray, moments: FloatArray
    ) -> Iterator[StateFits]:
        """Yield the solutions half by half, or state by state if few cells change."""
        if len(cells) <= _FEW:
            yield self._one_by_one(first, last, cells, gram, moments)
            return
        middle = (first + last) // 2
        before, groups = self.history.groups(cells, int(self.states[middle - 1]))
        united = _united(gram, np.searchsorted(groups, np.arange(len(before) + 1)))
        sums = np.asarray(np.bincount(groups, moments, len(before)), dtype=np.float64)
        for fits in self.part(first, middle, before, united, sums):
            yield fits._replace(weights=fits.weights[groups])
        yield from self.part(middle, last, cells, gram, moments)

    def _one_by_one(
        self, first: int, last: int, cells: IntArray, gram: FloatArray, moments: FloatArray
    ) -> StateFits:
        """Return the solutions of small systems."""
        groups = np.empty((last - first, len(cells)), dtype=np.int64)
        for row, state in zip(groups, self.states[first:last], strict=True):
            _, row[:] = self.history.groups(cells, int(state))
        weights = np.zeros((len(cells), last - first))
        log_determinants, squares = np.zeros((2, last - first))
        if len(cells) > 0:
            arguments = gram, moments, groups, self.ridge, weights, log_determinants, squares
            if not _solve(*arguments):
                raise np.linalg.LinAlgError(NOT_POSITIVE_DEFINITE)
        return StateFits(first, weights, log_determinants, squares)


def _joined(fits: Iterator[StateFits]) -> list[StateFits]:
    """Join solutions at consecutive states."""
    parts = list(fits)
    if len(parts) == 1:
        return parts
    arrays = zip(*(part[1:] for part in parts), strict=True)
    joined = (np.concatenate(array, axis=-1) for array in arrays)
    return [StateFits(parts[0].first, *joined)]


@njit(cache=True, nogil=True)
def _part(matrix, rows, columns):  # type: ignore[no-untyped-def]
    """Return a submatrix; indexing with `np.ix_` is much slower."""
    result = np.empty((len(rows), len(columns)))
    for i in range(len(rows)):
        for j in range(len(columns)):
            result[i, j] = matrix[rows[i], columns[j]]
    return result


@njit(cache=True, nogil=True)
def _united(matrix, bounds):  # type: ignore[no-untyped-def]
    """Sum neighbouring rows and columns, from each bound to the next."""
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
    """Solve the equations of each state; return False if a matrix is not positive definite.

    Parameters
    ----------
    gram : float64 array of shape (C, C)
        The matrix of the cells.
    moments : float64 array of shape (C,)
        Their right-hand side.
    groups : int64 array of shape (k, C)
        The union of cells that each cell is part of at each state.
    ridge : float
        The regularisation delta^2, added to the diagonals of the matrices of the unions.
    weights : float64 array of shape (C, k)
        Result: the solutions, for each cell.
    log_determinants, squares : float64 arrays of shape (k,)
        Results: log determinants of the matrices, and squared norms of the solutions.
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
