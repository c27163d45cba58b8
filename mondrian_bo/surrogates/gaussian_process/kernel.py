"""Matern kernels with a lengthscale for each dimension, over numbers and categories.

Points are rows of floats. The squared distance of two points is the sum over dimensions of
``precision_j * difference_j ** 2``, with ``precision_j = lengthscale_j ** -2`` (Rasmussen2006,
section 5.1: automatic relevance determination). The difference of two categories is 0 if they are
equal and 1 otherwise. The kernel has amplitude 1 and smoothness nu = 5/2 or 1/2, the exponential
kernel of rough functions.

The functions take the kernel's parameters as a
:class:`mondrian_bo.surrogates.gaussian_process.covariance.Covariance`. Its amplitude enters only
through the peak: the shared noise in units of the amplitude, which equal points have in addition.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

_ROOT_5 = math.sqrt(5.0)
"""Factor of the distance in the Matern-5/2 kernel (Rasmussen2006, eq. 4.17)."""

_SMALLEST_DISTANCE = 1e-150
"""Distance, in lengthscales, that replaces 0 in the derivative of the exponential kernel, which has
none at 0. All derivatives are multiplied by differences, which are 0 there."""


@njit(cache=True, nogil=True)
def _peak(covariance):  # type: ignore[no-untyped-def]
    """Return the kernel of equal points."""
    return 1.0 + covariance.shared_noise / covariance.amplitude


@njit(cache=True, nogil=True)
def _matern(square, smoothness, peak):  # type: ignore[no-untyped-def]
    """Return the kernel k at a squared distance r^2, and its gradient factor k'(r) / r."""
    distance = math.sqrt(square)
    if smoothness == 2.5:
        root = _ROOT_5 * distance
        decay = math.exp(-root)
        value = (1.0 + root + root * root / 3.0) * decay  # Rasmussen2006, eq. 4.17
        factor = -5.0 / 3.0 * (1.0 + root) * decay
    else:
        value = math.exp(-distance)  # Rasmussen2006, eq. 4.16 with p = 0
        factor = -value / max(distance, _SMALLEST_DISTANCE)
    return (peak if square == 0.0 else value), factor


@njit(cache=True, nogil=True)
def _add_squares(point, column, n, precision, categorical, result):  # type: ignore[no-untyped-def]
    """Add one dimension of the squared distances of a point from n others."""
    # One dimension at a time, so that the loops over points compile to vector instructions.
    if categorical:
        for k in range(n):
            result[k] += precision if point != column[k] else 0.0
    else:
        for k in range(n):
            difference = point - column[k]
            result[k] += precision * difference * difference


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
    precisions, categorical = covariance.precisions, covariance.categorical
    m, n = kernel.shape
    columns = others.T.copy()
    for i in range(m):
        kernel[i] = 0.0
        for j in range(points.shape[1]):
            _add_squares(points[i, j], columns[j], n, precisions[j], categorical[j], kernel[i])
    smoothness, peak = covariance.smoothness, _peak(covariance)
    if len(factors) > 0:
        for i in range(m):
            for k in range(n):
                kernel[i, k], factors[i, k] = _matern(kernel[i, k], smoothness, peak)
    else:
        for i in range(m):
            for k in range(n):
                kernel[i, k] = _matern(kernel[i, k], smoothness, peak)[0]


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
    precisions, categorical = covariance.precisions, covariance.categorical
    n = len(points)
    column = np.empty(n)
    for i in range(n):
        kernel[i, : i + 1] = 0.0
    for j in range(points.shape[1]):
        column[:] = points[:, j]
        for i in range(n):
            _add_squares(column[i], column, i, precisions[j], categorical[j], kernel[i])
    smoothness, peak = covariance.smoothness, _peak(covariance)
    with_factors = len(factors) > 0
    for i in range(n):
        for k in range(i + 1):
            kernel[i, k], factor = _matern(kernel[i, k], smoothness, peak)
            if with_factors:
                factors[i, k] = factor


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
    column, sums = np.empty(n), np.empty(n)
    for i in range(n):
        for k in range(i):
            factors[i, k] *= weights[i, k]
    for j in range(points.shape[1]):
        column[:] = points[:, j]
        sums[:] = 0.0
        for i in range(n):
            point = column[i]
            if categorical[j]:
                for k in range(i):
                    sums[k] += factors[i, k] if point != column[k] else 0.0
            else:
                for k in range(i):
                    difference = point - column[k]
                    sums[k] += factors[i, k] * difference * difference
        # The factor is twice the derivative by the squared distance, and each pair occurs twice in
        # the sum over the symmetric matrix.
        result[j] = precisions[j] * sums.sum()
