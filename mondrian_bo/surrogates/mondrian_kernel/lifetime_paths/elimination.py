"""Elimination of the cells that stay, from the equations of a part of a path."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numba import njit
from scipy.linalg import cholesky, solve_triangular

from mondrian_bo.array_types import BoolArray, FloatArray
from mondrian_bo.surrogates.mondrian_kernel.lifetime_paths.linear_system import (
    NOT_POSITIVE_DEFINITE,
)


class StateFits(NamedTuple):
    """The solutions at consecutive states of a path.

    Attributes
    ----------
    first : int
        Position of the first one among the states.
    weights : float64 array of shape (C, k)
        Weights of cells at each state: of the cell that a cell is then part of.
    log_determinants : float64 array of shape (k,)
        log det (Phi^T Phi + ridge I), of the features of the state's cells.
    squares : float64 array of shape (k,)
        The sum of the squares of the weights of the state's cells.
    """

    first: int
    weights: FloatArray
    log_determinants: FloatArray
    squares: FloatArray


class Elimination:
    """A ridge regression without the weights of some cells, which follow from the others.

    Parameters
    ----------
    gram : float64 array of shape (C, C)
        Phi^T Phi of all cells, or what stands for it; without the ridge.
    moments : float64 array of shape (C,)
        Phi^T targets of all cells.
    eliminated : bool array of shape (C,)
        Which e cells to eliminate.
    ridge : float
        The regularisation delta^2.

    Attributes
    ----------
    gram : float64 array of shape (C - e, C - e)
        What stands for Phi^T Phi of the other cells.
    moments : float64 array of shape (C - e,)
        What stands for Phi^T targets.

    Raises
    ------
    numpy.linalg.LinAlgError
        If the regularised matrix is not positive definite.

    Notes
    -----
    O(e C^2), and O(e C) for each solution, in products of matrices. It is a step of a Cholesky
    decomposition by blocks, and as accurate.
    """

    def __init__(
        self, gram: FloatArray, moments: FloatArray, eliminated: BoolArray, ridge: float
    ) -> None:
        self._eliminated = eliminated
        gone, rest = np.flatnonzero(eliminated), np.flatnonzero(~eliminated)
        matrix = _part(gram, gone, gone)
        matrix.flat[:: len(gone) + 1] += ridge
        # Transposed arrays are in the order of Fortran, and not copied.
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
        """Return solutions for all cells, given those for the cells that are left."""
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


@njit(cache=True, nogil=True)
def _part(matrix, rows, columns):  # type: ignore[no-untyped-def]
    """Return the entries of some rows and columns; indexing with `np.ix_` is much slower."""
    result = np.empty((len(rows), len(columns)))
    for i in range(len(rows)):
        for j in range(len(columns)):
            result[i, j] = matrix[rows[i], columns[j]]
    return result
