"""A linear system A w = b that is solved by an updatable Cholesky factor.

Each update costs O(C^2), while solving anew takes O(C^3) (Balog2016, section 4.2.1 and Appendix C;
Balog2016thesis, section 4.2 and Appendix D).
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from scipy.linalg import cholesky, solve_triangular

from mondrian_bo.shared.array_types import FloatArray

NOT_POSITIVE_DEFINITE = (
    "the regularised matrix is not positive definite in floating point: "
    "the noise variance is too small beside the prior variance"
)
"""Message of :class:`numpy.linalg.LinAlgError`, from all solvers of ridge regression."""

_ANY_ORDER = {"reassoc", "nsz", "contract"}
"""LLVM flags that let the compiler reorder sums, which vector instructions need."""


class CholeskySystem:
    """A symmetric positive definite system A w = b of C equations, as A = U^T U and z = U^-T b.

    A border extends U by columns. A deletion is a rank-one update of the rows after the deleted
    one, and rank-one updates are plane rotations. No update subtracts from A, so any number of
    updates is backward stable (Balog2016thesis, Appendix D; Seeger 2004).

    Parameters
    ----------
    matrix : float64 array of shape (C, C)
        A; only its upper triangle is read.
    moments : float64 array of shape (C,)
        b.

    Raises
    ------
    numpy.linalg.LinAlgError
        If A is not positive definite.
    """

    def __init__(self, matrix: FloatArray, moments: FloatArray) -> None:
        self._size = len(moments)
        try:
            upper = cholesky(matrix, lower=False, check_finite=False)
        except np.linalg.LinAlgError:
            raise np.linalg.LinAlgError(NOT_POSITIVE_DEFINITE) from None
        self._upper: FloatArray = np.ascontiguousarray(upper)
        self._rotated = solve_triangular(upper, moments, trans="T", check_finite=False)
        self._work = np.empty((2, self._size))

    @property
    def size(self) -> int:
        """Number of equations, C."""
        return self._size

    @property
    def factor(self) -> FloatArray:
        """U, shape (C, C); entries below its diagonal are meaningless."""
        return self._upper[: self._size, : self._size]

    def append(self, columns: FloatArray, corner: FloatArray, moments: FloatArray) -> None:
        """Border A by p more rows and columns, O(p C^2) (Balog2016thesis, Appendix D).

        Parameters
        ----------
        columns : float64 array of shape (p, C)
            Entries between the new and the old equations.
        corner : float64 array of shape (p, p)
            Entries among the new ones.
        moments : float64 array of shape (p,)
            New entries of b.

        Raises
        ------
        numpy.linalg.LinAlgError
            If the new matrix is not positive definite.
        """
        n_new = len(moments)
        self._make_room(self._size + n_new, n_new)
        work = self._work[:n_new, : self._size]
        work[:] = columns
        if not _append(self._upper, self._rotated, self._size, work, corner, moments):
            raise np.linalg.LinAlgError(NOT_POSITIVE_DEFINITE)
        self._size += n_new

    def delete(self, index: int) -> None:
        """Remove an equation, O(C^2); later ones move up (Balog2016thesis, Appendix D)."""
        _delete(self._upper, self._rotated, self._size, index, self._work[0])
        self._size -= 1

    def add(self, vector: FloatArray, value: float) -> None:
        """Add ``vector vector^T`` to A and ``value * vector`` to b, O(C^2) (Appendix D)."""
        work = self._work[0, : self._size]
        work[:] = vector
        _add(self._upper, self._rotated, self._size, work, value)

    def solution(self) -> FloatArray:
        """Return w, shape (C,), by back substitution; O(C^2)."""
        result = self._rotated[: self._size].copy()
        _back_substitute(self._upper, result)
        return result

    def log_determinant(self) -> float:
        """Return log det A."""
        return 2.0 * float(np.log(self.factor.diagonal()).sum())

    def half_solve(self, vectors: FloatArray) -> FloatArray:
        """Return U^-T V for V of shape (C, m); the squares of a column add up to v^T A^-1 v."""
        if self._size == 0:
            return vectors
        return np.asarray(
            solve_triangular(self.factor, vectors, trans="T", check_finite=False), dtype=np.float64
        )

    def solve(self, vectors: FloatArray) -> FloatArray:
        """Return A^-1 v for v of shape (C,), or for the columns of (C, m); O(C^2) each."""
        result = self.half_solve(vectors)
        if result.ndim == 1:
            _back_substitute(self._upper, result)
        elif self._size > 0:
            result = solve_triangular(self.factor, result, check_finite=False)
        return np.asarray(result, dtype=np.float64)

    def copy(self) -> CholeskySystem:
        """Return an independent copy, O(C^2)."""
        other = CholeskySystem.__new__(CholeskySystem)
        other._size = self._size
        other._upper, other._rotated = self._upper.copy(), self._rotated.copy()
        other._work = np.empty_like(self._work)
        return other

    def set_moments(self, moments: FloatArray) -> None:
        """Replace b, O(C^2)."""
        self._rotated[: self._size] = self.half_solve(moments)

    def _make_room(self, size: int, n_work: int) -> None:
        if size > len(self._upper):
            capacity = size + size // 4 + 8
            upper = np.empty((capacity, capacity))
            upper[: self._size, : self._size] = self.factor
            rotated = np.empty(capacity)
            rotated[: self._size] = self._rotated[: self._size]
            self._upper, self._rotated = upper, rotated
        if n_work > len(self._work) or self._work.shape[1] < len(self._upper):
            self._work = np.empty((max(n_work, 2), len(self._upper)))


# Loops run from 0 over slices. The compiler then knows that no index is negative, and uses vector
# instructions.


@njit(cache=True, nogil=True, fastmath=_ANY_ORDER, inline="always")
def _dot(left, right):  # type: ignore[no-untyped-def]
    total = 0.0
    for j in range(len(left)):
        total += left[j] * right[j]
    return total


@njit(cache=True, nogil=True, fastmath=_ANY_ORDER)
def _rotate(row, rest, cosine, sine, target):  # type: ignore[no-untyped-def]
    """Rotate two rows; write the first to `target`, which may overlap it from the left."""
    for j in range(len(rest)):
        old = row[j]
        other = rest[j]
        target[j] = cosine * old + sine * other
        rest[j] = cosine * other - sine * old


@njit(cache=True, nogil=True, fastmath=_ANY_ORDER)
def _append(upper, rotated, size, columns, corner, moments):  # type: ignore[no-untyped-def]
    """Extend the factor by columns, which are overwritten; return False if A is not definite."""
    n_new = len(columns)
    for k in range(size):
        row = upper[k, k + 1 : size]
        for q in range(n_new):
            entry = columns[q, k] / upper[k, k]
            columns[q, k] = entry
            rest = columns[q, k + 1 : size]
            for j in range(len(row)):
                rest[j] -= entry * row[j]
    for q in range(n_new):
        for k in range(size):
            upper[k, size + q] = columns[q, k]
        for p in range(q + 1):
            rest = corner[p, q] - _dot(columns[p, :size], columns[q, :size])
            for k in range(size, size + p):
                rest -= upper[k, size + p] * upper[k, size + q]
            if p < q:
                upper[size + p, size + q] = rest / upper[size + p, size + p]
            elif rest > 0.0:
                upper[size + q, size + q] = math.sqrt(rest)
            else:
                return False
        moment = moments[q] - _dot(columns[q, :size], rotated[:size])
        for k in range(size, size + q):
            moment -= upper[k, size + q] * rotated[k]
        rotated[size + q] = moment / upper[size + q, size + q]
    return True


@njit(cache=True, nogil=True, fastmath=_ANY_ORDER)
def _delete(upper, rotated, size, index, rest):  # type: ignore[no-untyped-def]
    """Remove a column of the factor, and rotate the deleted row into the rows after it."""
    rest[index + 1 : size] = upper[index, index + 1 : size]
    value = rotated[index]
    for k in range(index):
        row = upper[k, index:size]
        for j in range(len(row) - 1):
            row[j] = row[j + 1]
    for k in range(index + 1, size):
        row = upper[k, k:size]
        radius = math.sqrt(row[0] * row[0] + rest[k] * rest[k])
        cosine, sine = row[0] / radius, rest[k] / radius
        upper[k - 1, k - 1] = radius
        _rotate(row[1:], rest[k + 1 : size], cosine, sine, upper[k - 1, k : size - 1])
        old_value = rotated[k]
        rotated[k - 1] = cosine * old_value + sine * value
        value = cosine * value - sine * old_value


@njit(cache=True, nogil=True, fastmath=_ANY_ORDER)
def _add(upper, rotated, size, vector, value):  # type: ignore[no-untyped-def]
    """Rotate a vector into the factor; the vector is overwritten."""
    for k in range(size):
        if vector[k] == 0.0:
            continue
        row = upper[k, k:size]
        radius = math.sqrt(row[0] * row[0] + vector[k] * vector[k])
        cosine, sine = row[0] / radius, vector[k] / radius
        row[0] = radius
        _rotate(row[1:], vector[k + 1 : size], cosine, sine, row[1:])
        old_value = rotated[k]
        rotated[k] = cosine * old_value + sine * value
        value = cosine * value - sine * old_value


@njit(cache=True, nogil=True, fastmath=_ANY_ORDER)
def _back_substitute(upper, result):  # type: ignore[no-untyped-def]
    """Solve U w = z in place."""
    size = len(result)
    for k in range(size - 1, -1, -1):
        done = _dot(upper[k, k + 1 : size], result[k + 1 :])
        result[k] = (result[k] - done) / upper[k, k]
