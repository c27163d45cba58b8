"""The covariance of a Gaussian process: Matern kernels, noise, and the Cholesky factor.

Points are rows of floats. The squared distance of two points is the sum over dimensions of
``precision_j * difference_j ** 2``, with ``precision_j = lengthscale_j ** -2`` (Rasmussen2006,
section 5.1: automatic relevance determination). The difference of two categories is 0 if they are
equal and 1 otherwise. The kernel has amplitude 1 and smoothness nu = 5/2 or 1/2, the exponential
kernel of rough functions.

The compiled functions take the hyper-parameters as a :class:`Covariance` and compute the kernel of
amplitude 1. The amplitude of the :class:`Covariance` matters only for equal points: their kernel is
`peak`, 1 plus the shared noise in units of the amplitude.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from scipy.linalg import lapack

from mondrian_bo.shared.array_types import BoolArray, FloatArray, IntArray
from mondrian_bo.shared.exponential import exp_below_zero

_ROOT_5 = math.sqrt(5.0)
"""Factor of the distance in the Matern-5/2 kernel (Rasmussen2006, eq. 4.17)."""

_SMALLEST_DISTANCE = 1e-150
"""Distance, in lengthscales, that replaces 0 in the derivative of the exponential kernel, which has
none at 0. All derivatives are multiplied by differences, which are 0 there."""

_SMALLEST_JITTER = 1e-10
"""First addition to the diagonal, relative to its mean: far below any noise that is fitted."""

_LARGEST_JITTER = 1e-2
"""Largest single addition, relative to the mean diagonal: rounding errors never need so much."""

_WIDE = 32
"""Number of dimensions from which rare values are looked for; our choice: it takes as long as the
distances of one point."""

_RARE = 0.25
"""Largest share of a dimension's values that counts as rare, our choice: pairs of them are visited
one by one, not in vector instructions."""

_INNER: dict[str, Any] = {
    "cache": True,
    "nogil": True,
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
}
"""For compiled functions that are never called from Python: a wrapper takes time to compile."""

_NO_FACTORS: FloatArray = np.empty((0, 0))
"""No room for gradient factors."""


class Covariance(NamedTuple):
    """Hyper-parameters of Gaussian processes with a Matern kernel, without their mean.

    Compiled functions take it as an argument.

    Attributes
    ----------
    precisions : float64 array of shape (d,)
        Inverse squared lengthscales.
    amplitude : float
        Variance of the process.
    noise : float
        Variance of the noise, the shared part included.
    categorical : bool array of shape (d,)
        Which dimensions hold categories.
    smoothness : float, default=2.5
        Parameter nu of the Matern kernel: 0.5 or 2.5.
    shared_noise : float, default=0
        Variance of the noise that targets at equal inputs have in common. It is part of the
        function, whose kernel is discontinuous at distance 0.
    """

    precisions: FloatArray
    amplitude: float
    noise: float
    categorical: BoolArray
    smoothness: float = 2.5
    shared_noise: float = 0.0

    @property
    def independent_noise(self) -> float:
        """Variance of the noise that is independent for each target."""
        return self.noise - self.shared_noise

    @property
    def peak(self) -> float:
        """The kernel of equal points, in units of the amplitude."""
        return 1.0 + self.shared_noise / self.amplitude

    def between(self, points: FloatArray, others: FloatArray) -> FloatArray:
        """Return the covariances of the function at two sets of points, shape (m, n)."""
        result = np.empty((len(points), len(others)))
        cross_kernel(points, others, self, result, _NO_FACTORS)
        result *= self.amplitude
        return result

    def of_targets(self, points: FloatArray, known_noise: FloatArray | None = None) -> FloatArray:
        """Return the lower triangle of the covariances of targets at points, shape (n, n).

        Parameters
        ----------
        points : float64 array of shape (n, d)
            Points.
        known_noise : float64 array of shape (n,) or None, default=None
            Variances of further noise, which differ between targets; None is none.
        """
        n = len(points)
        result = np.zeros((n, n))
        kernel_matrix(points, self, result, _NO_FACTORS)
        result *= self.amplitude
        result.ravel()[:: n + 1] += self.independent_noise
        if known_noise is not None:
            result.ravel()[:: n + 1] += known_noise
        return result


def factorise(matrix: FloatArray) -> FloatArray:
    """Return the lower Cholesky factor of a covariance matrix.

    Only the lower triangle of the matrix is read, and the matrix may be overwritten. If rounding
    has made it indefinite, its diagonal is increased step by step.

    Raises
    ------
    numpy.linalg.LinAlgError
        If the matrix has NaN or infinite entries, or is far from positive definite.
    """
    factor, info = lapack.dpotrf(matrix, lower=1, clean=1)
    jitter, largest = 0.0, 0.0
    while info != 0:
        if jitter == 0.0:
            size = float(matrix.diagonal().mean())
            jitter, largest = _SMALLEST_JITTER * size, _LARGEST_JITTER * size
        if not jitter < largest:
            raise np.linalg.LinAlgError("The covariance matrix is not positive definite.")
        matrix[np.diag_indices(len(matrix))] += jitter
        jitter *= 10.0
        factor, info = lapack.dpotrf(matrix, lower=1, clean=1)
    return np.asarray(factor)


# The kernel, compiled -----------------------------------------------------------------------------


@njit(**_INNER)
def _peak(covariance):  # type: ignore[no-untyped-def]
    """Return the kernel of equal points."""
    return 1.0 + covariance.shared_noise / covariance.amplitude


@njit(fastmath={"contract"}, **_INNER)
def _smooth(square):  # type: ignore[no-untyped-def]
    """Return the Matern-5/2 kernel at a squared distance r^2, and its gradient factor k'(r) / r."""
    root = _ROOT_5 * math.sqrt(square)
    decay = exp_below_zero(-root)
    # Rasmussen2006, eq. 4.17
    return (1.0 + root * (1.0 + root * (1.0 / 3.0))) * decay, -5.0 / 3.0 * (1.0 + root) * decay


@njit(fastmath={"contract"}, **_INNER)
def _rough(square):  # type: ignore[no-untyped-def]
    """Return the exponential kernel and its gradient factor as :func:`_smooth` does."""
    distance = math.sqrt(square)
    value = exp_below_zero(-distance)  # Rasmussen2006, eq. 4.16 with p = 0
    return value, -value / max(distance, _SMALLEST_DISTANCE)


@njit(fastmath={"contract"}, **_INNER)
def _apply_matern(squares, n, smoothness, peak, factors):  # type: ignore[no-untyped-def]
    """Replace n squared distances by the kernel and, if there is room, write gradient factors."""
    # One loop for each kernel, so that they compile to vector instructions.
    if smoothness == 2.5 and len(factors) > 0:
        for k in range(n):
            value, factors[k] = _smooth(squares[k])
            squares[k] = peak if squares[k] == 0.0 else value
    elif smoothness == 2.5:
        for k in range(n):
            squares[k] = peak if squares[k] == 0.0 else _smooth(squares[k])[0]
    elif len(factors) > 0:
        for k in range(n):
            value, factors[k] = _rough(squares[k])
            squares[k] = peak if squares[k] == 0.0 else value
    else:
        for k in range(n):
            squares[k] = peak if squares[k] == 0.0 else _rough(squares[k])[0]


@njit(**_INNER)
def _plain_fours(counts, categorical):  # type: ignore[no-untyped-def]
    """Return whether the four dimensions from each on are numeric and without rare values."""
    d = len(counts)
    plain = np.zeros(d, dtype=np.bool_)
    run = 0
    for j in range(d - 1, -1, -1):
        run = run + 1 if counts[j] < 0 and not categorical[j] else 0
        plain[j] = run >= 4
    return plain


@njit(**_INNER)
def _find_rare(columns):  # type: ignore[no-untyped-def]
    """Find the rare values of each dimension of many, where most values are equal.

    In a conditional space most parameters are inactive in most rows. Pairs of equal values add
    nothing to distances and need no visit.

    Returns
    -------
    rare : int64 array of shape (d, n)
        For each dimension, the positions of values other than the most common one, ascending.
    counts : int64 array of shape (d,)
        Their numbers; -1 where they are not rare.
    common : float64 array of shape (d,)
        The most common values.
    """
    d, n = columns.shape
    counts, common = np.full(d, -1), np.empty(d)
    if d < _WIDE:
        return np.empty((d, 0), dtype=np.int64), counts, common
    rare = np.empty((d, n), dtype=np.int64)
    for j in range(d):
        # A value of more than half of the points wins this vote.
        votes = 0
        for k in range(n):
            if votes == 0:
                common[j] = columns[j, k]
            votes += 1 if columns[j, k] == common[j] else -1
        count = 0
        for k in range(n):
            if columns[j, k] != common[j]:
                rare[j, count] = k
                count += 1
        if count <= _RARE * n:
            counts[j] = count
    return rare, counts, common


class _Columns(NamedTuple):
    """Points by dimension, and what speeds up the sums over dimensions.

    Attributes
    ----------
    values : float64 array of shape (d, n)
        The coordinates.
    rare, counts, common
        See :func:`_find_rare`.
    plain : bool array of shape (d,)
        See :func:`_plain_fours`.
    """

    values: FloatArray
    rare: IntArray
    counts: IntArray
    common: FloatArray
    plain: BoolArray


@njit(**_INNER)
def _columns_of(points, categorical):  # type: ignore[no-untyped-def]
    values = points.T.copy()
    rare, counts, common = _find_rare(values)
    return _Columns(values, rare, counts, common, _plain_fours(counts, categorical))


@njit(**_INNER)
def _write_squares(points, i, columns, n, covariance, result):  # type: ignore[no-untyped-def]
    """Write the squared distances of point i from the first n others into row i."""
    # Without views of rows and columns, whose references would be counted. The loops over the
    # other points compile to vector instructions.
    precisions, categorical = covariance.precisions, covariance.categorical
    values, rare, counts, common, plain = columns
    for k in range(n):
        result[i, k] = 0.0
    j = 0
    while j < len(precisions):
        if plain[j]:
            # Sums are loaded and stored once, not four times, and are the same bit for bit.
            x0, x1, x2, x3 = points[i, j], points[i, j + 1], points[i, j + 2], points[i, j + 3]
            p0, p1 = precisions[j], precisions[j + 1]
            p2, p3 = precisions[j + 2], precisions[j + 3]
            for k in range(n):
                d0, d1 = x0 - values[j, k], x1 - values[j + 1, k]
                d2, d3 = x2 - values[j + 2, k], x3 - values[j + 3, k]
                total = result[i, k] + p0 * d0 * d0
                total += p1 * d1 * d1
                total += p2 * d2 * d2
                total += p3 * d3 * d3
                result[i, k] = total
            j += 4
            continue
        x, precision = points[i, j], precisions[j]
        if counts[j] >= 0 and x == common[j]:
            for position in range(counts[j]):
                k = rare[j, position]
                if k >= n:
                    break
                difference = 1.0 if categorical[j] else x - values[j, k]
                result[i, k] += precision * difference * difference
        elif categorical[j]:
            for k in range(n):
                result[i, k] += precision if x != values[j, k] else 0.0
        else:
            for k in range(n):
                difference = x - values[j, k]
                result[i, k] += precision * difference * difference
        j += 1


@njit(cache=True, nogil=True)
def cross_kernel(points, others, covariance, kernel, factors):  # type: ignore[no-untyped-def]
    """Write the kernel between two sets of points and, if there is room, its gradient factors.

    The derivative of the kernel by coordinate j of a point is
    ``factor * precision_j * (point_j - other_j)``, and 0 for categories.

    Parameters
    ----------
    points, others : float64 arrays of shapes (m, d) and (n, d)
        Points.
    covariance : Covariance
        Parameters of the kernel.
    kernel : float64 array of shape (m, n)
        Result.
    factors : float64 array of shape (m, n) or (0, n)
        Result: the gradient factors, or nothing.
    """
    m, n = kernel.shape
    columns = _columns_of(others, covariance.categorical)
    smoothness, peak = covariance.smoothness, _peak(covariance)
    for i in range(m):
        _write_squares(points, i, columns, n, covariance, kernel)
        row_factors = factors[i] if len(factors) > 0 else kernel[i, :0]
        _apply_matern(kernel[i], n, smoothness, peak, row_factors)


@njit(cache=True, nogil=True)
def kernel_matrix(points, covariance, kernel, factors):  # type: ignore[no-untyped-def]
    """Write the lower triangle of the kernel among points and, if there is room, of its factors.

    Parameters
    ----------
    points : float64 array of shape (n, d)
        Points.
    covariance : Covariance
        Parameters of the kernel.
    kernel : float64 array of shape (n, n)
        Result, on and below the diagonal; the rest keeps its values.
    factors : float64 array of shape (n, n) or (0, 0)
        Result: the gradient factors of :func:`cross_kernel`, or nothing.
    """
    columns = _columns_of(points, covariance.categorical)
    smoothness, peak = covariance.smoothness, _peak(covariance)
    for i in range(len(points)):
        _write_squares(points, i, columns, i, covariance, kernel)
        kernel[i, i] = 0.0
        row_factors = factors[i] if len(factors) > 0 else kernel[i, :0]
        _apply_matern(kernel[i], i + 1, smoothness, peak, row_factors)


@njit(cache=True, nogil=True)
def precision_gradient(points, covariance, weights, factors, result):  # type: ignore[no-untyped-def]
    """Write the derivative of ``sum_ik weights_ik kernel_ik`` with respect to log precisions.

    Parameters
    ----------
    points, covariance
        See :func:`kernel_matrix`.
    weights : float64 array of shape (n, n)
        A symmetric matrix, of which only the lower triangle is read.
    factors : float64 array of shape (n, n)
        The gradient factors of :func:`kernel_matrix`; overwritten.
    result : float64 array of shape (d,)
        Result.
    """
    precisions, categorical = covariance.precisions, covariance.categorical
    n = len(points)
    columns, sums = points.T.copy(), np.empty(n)
    rare, counts, common = _find_rare(columns)
    for i in range(n):
        for k in range(i):
            factors[i, k] *= weights[i, k]
    for j in range(points.shape[1]):
        column = columns[j]
        sums[:] = 0.0
        for i in range(n):
            point = column[i]
            if counts[j] >= 0 and point == common[j]:
                for k in rare[j, : counts[j]]:
                    if k >= i:
                        break
                    difference = 1.0 if categorical[j] else point - column[k]
                    sums[k] += factors[i, k] * difference * difference
            elif categorical[j]:
                for k in range(i):
                    sums[k] += factors[i, k] if point != column[k] else 0.0
            else:
                for k in range(i):
                    difference = point - column[k]
                    sums[k] += factors[i, k] * difference * difference
        # The factor is twice the derivative by the squared distance, and each pair occurs twice in
        # the sum over the symmetric matrix.
        result[j] = precisions[j] * sums.sum()
