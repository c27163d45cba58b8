"""Matern kernels with a lengthscale for each dimension, over numbers and categories.

Points are rows of floats. The squared distance of two is the sum over dimensions of
``precision_j * difference_j ** 2``, with ``precision_j = lengthscale_j ** -2``; the difference of
two categories is 0 if they are the same and 1 otherwise. The kernel here has amplitude 1 and
smoothness 5/2, or 1/2: the exponential kernel of rough functions.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

_ROOT_5 = math.sqrt(5.0)
_SMALLEST_DISTANCE = 1e-150
"""The exponential kernel has no derivative at 0; what it is multiplied by is 0 there."""


@njit(cache=True, nogil=True)
def _matern(square, smoothness, peak):  # type: ignore[no-untyped-def]
    """Return the kernel at a squared distance, and the factor s of its derivatives."""
    distance = math.sqrt(square)
    if smoothness == 2.5:
        root = _ROOT_5 * distance
        decay = math.exp(-root)
        value, slope = (1.0 + root + root * root / 3.0) * decay, -5.0 / 3.0 * (1.0 + root) * decay
    else:
        value = math.exp(-distance)
        slope = -value / max(distance, _SMALLEST_DISTANCE)
    return (peak if square == 0.0 else value), slope


@njit(cache=True, nogil=True)
def _add_squares(point, column, n, precision, categorical, result):  # type: ignore[no-untyped-def]
    # One dimension at a time, so that the processor works on several points at once.
    if categorical:
        for k in range(n):
            result[k] += precision if point != column[k] else 0.0
    else:
        for k in range(n):
            difference = point - column[k]
            result[k] += precision * difference * difference


@njit(cache=True, nogil=True)
def _squared_distances(points, others, precisions, categorical, result):  # type: ignore[no-untyped-def]
    m, n = result.shape
    columns = others.T.copy()
    for i in range(m):
        result[i] = 0.0
        for j in range(points.shape[1]):
            _add_squares(points[i, j], columns[j], n, precisions[j], categorical[j], result[i])


@njit(cache=True, nogil=True)
def cross_kernel(points, others, precisions, categorical, smoothness, peak, result):  # type: ignore[no-untyped-def]
    """Write the kernel between two sets of points.

    Parameters
    ----------
    points, others : float64 arrays of shapes (m, d) and (n, d)
        Points.
    precisions : float64 array of shape (d,)
        Inverse squared lengthscales.
    categorical : bool array of shape (d,)
        Which dimensions hold categories.
    smoothness : float
        0.5 or 2.5.
    peak : float
        The kernel at distance 0; beyond 1, points have something of their own.
    result : float64 array of shape (m, n)
        Result.
    """
    _squared_distances(points, others, precisions, categorical, result)
    for i in range(result.shape[0]):
        for k in range(result.shape[1]):
            result[i, k] = _matern(result[i, k], smoothness, peak)[0]


@njit(cache=True, nogil=True)
def kernel_and_slope(  # type: ignore[no-untyped-def]
    points, others, precisions, categorical, smoothness, peak, result, slope
):
    """Write the kernel, and the factor s of its derivatives by the points.

    The derivative by coordinate j of a point is ``s * precision_j * difference_j``, 0 for
    categories.

    Parameters
    ----------
    points, others, precisions, categorical, smoothness, peak
        As in :func:`cross_kernel`.
    result, slope : float64 arrays of shape (m, n)
        Results.
    """
    _squared_distances(points, others, precisions, categorical, result)
    for i in range(result.shape[0]):
        for k in range(result.shape[1]):
            result[i, k], slope[i, k] = _matern(result[i, k], smoothness, peak)


@njit(cache=True, nogil=True)
def kernel_matrix(  # type: ignore[no-untyped-def]
    points, precisions, categorical, smoothness, peak, result, slope
):
    """Write the lower triangle of the kernel among points, and of the factors of its derivatives.

    Parameters
    ----------
    points : float64 array of shape (n, d)
        Points.
    precisions, categorical, smoothness, peak
        As in :func:`cross_kernel`.
    result : float64 array of shape (n, n)
        The kernel, on and below the diagonal; the rest is left as it is.
    slope : float64 array of shape (n, n) or (0, 0)
        The factors s of :func:`kernel_and_slope`, if there is room for them.
    """
    n = len(points)
    column = np.empty(n)
    for i in range(n):
        result[i, : i + 1] = 0.0
    for j in range(points.shape[1]):
        column[:] = points[:, j]
        for i in range(n):
            _add_squares(column[i], column, i, precisions[j], categorical[j], result[i])
    with_gradients = len(slope) > 0
    for i in range(n):
        for k in range(i + 1):
            result[i, k], factor = _matern(result[i, k], smoothness, peak)
            if with_gradients:
                slope[i, k] = factor


@njit(cache=True, nogil=True)
def precision_gradient(points, precisions, categorical, weights, slope, result):  # type: ignore[no-untyped-def]
    """Write the derivative of ``sum_ik weights_ik kernel_ik`` with respect to log precisions.

    Parameters
    ----------
    points, precisions, categorical
        As in :func:`cross_kernel`.
    weights : float64 array of shape (n, n)
        Symmetric; what is above the diagonal is not read.
    slope : float64 array of shape (n, n)
        As from :func:`kernel_matrix`; overwritten.
    result : float64 array of shape (d,)
        Result.
    """
    n = len(points)
    column, sums = np.empty(n), np.empty(n)
    for i in range(n):
        for k in range(i):
            slope[i, k] *= weights[i, k]
    for j in range(points.shape[1]):
        column[:] = points[:, j]
        sums[:] = 0.0
        for i in range(n):
            point = column[i]
            if categorical[j]:
                for k in range(i):
                    sums[k] += slope[i, k] if point != column[k] else 0.0
            else:
                for k in range(i):
                    difference = point - column[k]
                    sums[k] += slope[i, k] * difference * difference
        # The factor s is twice the derivative by the squared distance, and pairs occur twice.
        result[j] = precisions[j] * sums.sum()
