"""A linear system solved by an explicit inverse: the reference for `CholeskySystem`."""

from __future__ import annotations

import math

import numpy as np

from mondrian_bo.shared.array_types import FloatArray
from mondrian_bo.surrogates.mondrian_kernel.lifetime_paths.cholesky_system import (
    NOT_POSITIVE_DEFINITE,
)


class InverseSystem:
    """A system A w = b as A^-1 and log det A, with the updates of `CholeskySystem`.

    Updates follow Balog2016thesis, section 4.2: Corollary 4.2 and Lemmas 4.3 and 4.4. Errors grow
    with the number of updates and the square of the condition number of A.

    Parameters
    ----------
    matrix : float64 array of shape (C, C)
        A.
    moments : float64 array of shape (C,)
        b.
    """

    def __init__(self, matrix: FloatArray, moments: FloatArray) -> None:
        self.inverse: FloatArray = np.asarray(np.linalg.inv(matrix), dtype=np.float64)
        self._moments = np.array(moments)
        self._log_determinant = float(np.linalg.slogdet(matrix)[1])

    @property
    def size(self) -> int:
        """Number of equations, C."""
        return len(self._moments)

    def append(self, columns: FloatArray, corner: FloatArray, moments: FloatArray) -> None:
        """Border A (Lemma 4.4), see `CholeskySystem.append`."""
        for q in range(len(moments)):
            border = np.concatenate([columns[q], corner[:q, q]])
            solved = self.inverse @ border
            complement = float(corner[q, q] - border @ solved)
            if not complement > 0.0:
                raise np.linalg.LinAlgError(NOT_POSITIVE_DEFINITE)
            extended = np.append(solved, -1.0)
            inverse = np.outer(extended, extended / complement)
            inverse[:-1, :-1] += self.inverse
            self.inverse = inverse
            self._log_determinant += math.log(complement)
            self._moments = np.append(self._moments, moments[q])

    def delete(self, index: int) -> None:
        """Remove an equation (Lemma 4.3), see `CholeskySystem.delete`."""
        column = np.delete(self.inverse[:, index], index)
        pivot = float(self.inverse[index, index])
        rest = np.delete(np.delete(self.inverse, index, axis=0), index, axis=1)
        self.inverse = rest - np.outer(column, column / pivot)
        self._log_determinant += math.log(pivot)
        self._moments = np.delete(self._moments, index)

    def add(self, vector: FloatArray, value: float) -> None:
        """Add a rank-one term (Corollary 4.2), see `CholeskySystem.add`."""
        solved = self.inverse @ vector
        growth = 1.0 + float(vector @ solved)
        self.inverse -= np.outer(solved, solved / growth)
        self._log_determinant += math.log(growth)
        self._moments += value * vector

    def solution(self) -> FloatArray:
        """Return w."""
        return np.asarray(self.inverse @ self._moments)

    def log_determinant(self) -> float:
        """Return log det A."""
        return self._log_determinant
