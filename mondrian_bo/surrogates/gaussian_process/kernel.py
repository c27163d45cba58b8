"""The Matern-5/2 kernel with a lengthscale for each dimension, over numbers and categories.

Points are rows of floats. The squared distance of two is the sum over dimensions of
``precision_j * difference_j ** 2``, with ``precision_j = lengthscale_j ** -2``; the difference of
two categories is 0 if they are the same and 1 otherwise. The kernel here has amplitude 1.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

_ROOT_5 = math.sqrt(5.0)


@njit(cache=True, nogil=True, inline="always")
def _difference(a, b, categorical):  # type: ignore[no-untyped-def]
    return (1.0 if a != b else 0.0) if categorical else a - b


@njit(cache=True, nogil=True)
def cross_kernel(points, others, precisions, categorical, result):  # type: ignore[no-untyped-def]
    """Write the kernel between two sets of points.

    Parameters
    ----------
    points, others : float64 arrays of shapes (m, d) and (n, d)
        Points.
    precisions : float64 array of shape (d,)
        Inverse squared lengthscales.
    categorical : bool array of shape (d,)
        Which dimensions hold categories.
    result : float64 array of shape (m, n)
        Result.
    """
    for i in range(points.shape[0]):
        for k in range(others.shape[0]):
            square = 0.0
            for j in range(points.shape[1]):
                difference = _difference(points[i, j], others[k, j], categorical[j])
                square += precisions[j] * difference * difference
            root = _ROOT_5 * math.sqrt(square)
            result[i, k] = (1.0 + root + root * root / 3.0) * math.exp(-root)


@njit(cache=True, nogil=True)
def precision_gradient(points, precisions, categorical, weights, result):  # type: ignore[no-untyped-def]
    """Write the derivative of ``sum_ik weights_ik kernel_ik`` with respect to log precisions.

    Parameters
    ----------
    points, precisions, categorical
        As in :func:`cross_kernel`.
    weights : float64 array of shape (n, n)
        Symmetric.
    result : float64 array of shape (d,)
        Result.
    """
    d = points.shape[1]
    squares = np.empty(d)
    result[:] = 0.0
    for i in range(points.shape[0]):
        for k in range(i):
            total = 0.0
            for j in range(d):
                difference = _difference(points[i, j], points[k, j], categorical[j])
                squares[j] = precisions[j] * difference * difference
                total += squares[j]
            root = _ROOT_5 * math.sqrt(total)
            # dk/d(r^2) = -5/6 (1 + sqrt(5) r) exp(-sqrt(5) r); each pair occurs twice.
            slope = -5.0 / 3.0 * (1.0 + root) * math.exp(-root) * weights[i, k]
            for j in range(d):
                result[j] += slope * squares[j]


@njit(cache=True, nogil=True)
def point_gradient(points, others, precisions, categorical, weights, result):  # type: ignore[no-untyped-def]
    """Write the derivatives of ``sum_k weights_hik k(point_i, other_k)`` by the points.

    Parameters
    ----------
    points, others, precisions, categorical
        As in :func:`cross_kernel`.
    weights : float64 array of shape (h, m, n)
        Several sums at once.
    result : float64 array of shape (h, m, d)
        Result; 0 for categories.
    """
    d = points.shape[1]
    result[:] = 0.0
    for i in range(points.shape[0]):
        for k in range(others.shape[0]):
            total = 0.0
            for j in range(d):
                difference = _difference(points[i, j], others[k, j], categorical[j])
                total += precisions[j] * difference * difference
            root = _ROOT_5 * math.sqrt(total)
            slope = -5.0 / 3.0 * (1.0 + root) * math.exp(-root)
            for h in range(weights.shape[0]):
                own = slope * weights[h, i, k]
                for j in range(d):
                    if not categorical[j]:
                        result[h, i, j] += own * precisions[j] * (points[i, j] - others[k, j])
