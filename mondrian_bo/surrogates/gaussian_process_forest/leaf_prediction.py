"""Predictions in the leaves of a tree, compiled.

One compiled call predicts at points in many leaves: a suggestion needs a hundred leaves, with a few
points in each, and a call for each of them would take longer than what it computes.

References: Rasmussen2006, Algorithm 2.1 (regression) and section 2.7 (the unknown mean).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import carray, njit, types  # type: ignore[attr-defined]
from numba.extending import intrinsic

from mondrian_bo.shared.array_types import FloatArray
from mondrian_bo.surrogates.gaussian_process.covariance import cross_kernel
from mondrian_bo.surrogates.gaussian_process_forest.leaf_posterior import PANEL, Posterior
from mondrian_bo.trees.compiling import GENERIC

_SMALLEST_SHARE = 1e-12
"""Smallest variance of a function relative to the amplitude: rounding would make it negative."""

_CHUNK = 100
"""Largest number of points that are predicted at once, our choice: their kernels stay in the
processor's cache."""


class Moments(NamedTuple):
    """Predictions at m points and their gradients, which are empty arrays (0, d) if not wanted.

    Attributes
    ----------
    means, variances : float64 arrays of shape (m,)
        Predictions.
    mean_gradients, variance_gradients : float64 arrays of shape (m, d)
        Their derivatives by the coordinates of the points.
    """

    means: FloatArray
    variances: FloatArray
    mean_gradients: FloatArray
    variance_gradients: FloatArray


def _to_pointer(typingctx: Any, address: Any) -> Any:
    """Return a pointer to floats at an address."""
    pointer = types.CPointer(types.float64)  # type: ignore[no-untyped-call]

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], context.get_value_type(pointer))

    return pointer(types.int64), codegen


_floats_at: Any = intrinsic(_to_pointer)


@njit(cache=True, nogil=True)
def lacks_means(numbers, nodes):  # type: ignore[no-untyped-def]
    """Return whether the mean of any of some leaves is unknown; `numbers` are of a `LeafTable`."""
    n_unknown = 0
    for node in nodes:
        n_unknown += math.isnan(numbers[node, 2])
    return n_unknown > 0


@njit(cache=True, nogil=True)
def predict_leaves(  # type: ignore[no-untyped-def]
    table, nodes, tree, rows, covariance, with_noise, moments, gradients
):
    """Write the predictive moments at points in the leaves of one tree.

    One compiled call computes all of them: with few points in each leaf, calls would take longer.
    It takes arrays of all trees, as numba takes longer for NamedTuples and views.

    Parameters
    ----------
    table : tuple of two arrays
        Addresses and numbers of a `LeafTable`, with the means of all leaves of the points.
    nodes : int64 array of shape (m, T)
        The leaf of each point in each tree.
    tree : int
        Which tree.
    rows : float64 array of shape (m, d)
        The points.
    covariance : Covariance
        Hyper-parameters of all leaves.
    with_noise : bool
        Whether to predict targets, and not the function.
    moments : float64 array of shape (2, C, m)
        Result: means and variances.
    gradients : float64 array of shape (2, C, m, d) or (2, C, 0, d)
        Result: their derivatives, if there is room.
    """
    (addresses, numbers), (m, d) = table, rows.shape
    of_tree = Moments(moments[0, tree], moments[1, tree], gradients[0, tree], gradients[1, tree])
    starts = np.zeros(len(numbers) + 1, dtype=np.int64)
    for i in range(m):
        starts[nodes[i, tree] + 1] += 1
    for node in range(len(numbers)):
        starts[node + 1] += starts[node]
    order, filled = np.empty(m, dtype=np.int64), starts.copy()
    for i in range(m):
        node = nodes[i, tree]
        order[filled[node]] = i
        filled[node] += 1
    first = 0
    while first < m:
        node = nodes[order[first], tree]
        n, end = addresses[node, 3], starts[node + 1]
        whole, rest = n // PANEL, n % PANEL
        size = PANEL * PANEL * whole * (whole + 1) // 2 + n * rest
        own = Posterior(
            carray(_floats_at(addresses[node, 0]), (n, d)),
            np.empty((2, 0)),  # not needed
            carray(_floats_at(addresses[node, 1]), (2, n)),
            carray(_floats_at(addresses[node, 2]), (size,)),
        )
        while first < end:
            selected = order[first : min(first + _CHUNK, end)]
            first += len(selected)
            _predict_leaf(own, numbers[node], selected, rows, covariance, with_noise, of_tree)


@njit(cache=True, nogil=True, error_model="numpy")
def take_roots(variances, gradients):  # type: ignore[no-untyped-def]
    """Replace variances, shape (C, m), by their roots, and gradients, (C, m, d), by the roots'."""
    n_components, m, d = gradients.shape
    for c in range(n_components):
        for i in range(m):
            std = math.sqrt(variances[c, i])
            variances[c, i] = std
            for j in range(d):
                gradients[c, i, j] = 0.5 * gradients[c, i, j] / std


# Numba writes the code of these steps into the caller: on its own, each would be compiled a second
# time there. They have loops in place of array expressions, which compile for a second longer.


@njit(**GENERIC)
def _cross_covariances(own, points, covariance, with_gradients):  # type: ignore[no-untyped-def]
    """Return the covariances of points with those of a leaf, (m, n), and their gradient factors.

    The factors are those of :func:`cross_kernel`, times the amplitude; (0, n) without gradients.
    """
    m, n = len(points), len(own.points)
    cross, factors = np.empty((m, n)), np.empty((m if with_gradients else 0, n))
    cross_kernel(points, own.points, covariance, cross, factors)
    for i in range(m):
        for k in range(n):
            cross[i, k] *= covariance.amplitude
    for i in range(len(factors)):
        for k in range(n):
            factors[i, k] *= covariance.amplitude
    return cross, factors


@njit(**GENERIC)
def _whiten(own, cross, with_gradients):  # type: ignore[no-untyped-def]
    """Return ``v^T v``, (m,), and ``A^-1 k_*``, (m, n) or (0, n), of points.

    This is Algorithm 2.1, line 5; the second is empty without gradients. `cross`, shape (m, n), has
    the covariances k_* of the points with those of the leaf. The inverse factor of the leaf is
    multiplied panel by panel.
    """
    m, n = cross.shape
    squares = np.zeros(m)
    solved = np.zeros((m if with_gradients else 0, n))
    room = np.empty(m * n)
    start = 0
    for first in range(0, n, PANEL):
        end = min(first + PANEL, n)
        panel = own.panels[start : start + end * (end - first)].reshape(end, end - first)
        start += panel.size
        part = room[: m * end].reshape(m, end)
        for i in range(m):
            for k in range(end):
                part[i, k] = cross[i, k]
        white = np.dot(part, panel)  # line 5: v = L \ k_*
        for i in range(m):
            for k in range(end - first):
                squares[i] += white[i, k] * white[i, k]
        if with_gradients:
            product = np.dot(white, panel.T)
            for i in range(m):
                for k in range(end):
                    solved[i, k] += product[i, k]
    return squares, solved


@njit(**GENERIC)
def _write_gradients(own, points, covariance, parts, selected, moments):  # type: ignore[no-untyped-def]
    """Write the derivatives of means and variances by the coordinates of the points.

    Parameters
    ----------
    own, points : Posterior and float64 array of shape (m, d)
        The leaf's posterior, and the points.
    covariance : Covariance
        Hyper-parameters.
    parts : tuple
        ``A^-1 k_*`` and gradient factors, shape (m, n), which are overwritten; the derivatives of
        the means by k_*, (n,); those of the variances by 1^T A^-1 k_*, (m,); the leaf's scale.
    selected, moments
        See :func:`_predict_leaf`.
    """
    solved, factors, weights, by_explained, scale = parts
    (m, n), d = solved.shape, points.shape[1]
    # Derivatives of the variance and of the mean by k_*, times gradient factors.
    for i in range(m):
        for k in range(n):
            by_cross = -2.0 * (scale * solved[i, k] + by_explained[i] * own.solved[0, k])
            solved[i, k] = by_cross * factors[i, k]
            factors[i, k] *= weights[k]
    # The sums over k of s_ik (x_ij - x_kj), as two matrix products.
    mean_sums, variance_sums = np.dot(factors, own.points), np.dot(solved, own.points)
    for i in range(m):
        index = selected[i]
        mean_total, variance_total = 0.0, 0.0
        for k in range(n):
            mean_total += factors[i, k]
            variance_total += solved[i, k]
        for j in range(d):
            precision = 0.0 if covariance.categorical[j] else covariance.precisions[j]
            x = points[i, j]
            moments.mean_gradients[index, j] = precision * (x * mean_total - mean_sums[i, j])
            moments.variance_gradients[index, j] = precision * (
                x * variance_total - variance_sums[i, j]
            )


@njit(**GENERIC)
def _predict_leaf(  # type: ignore[no-untyped-def]
    own, numbers, selected, rows, covariance, with_noise, moments
):
    """Write the predictive moments at points of one leaf (Rasmussen2006, Alg. 2.1 and eq. 2.41).

    Parameters
    ----------
    own, numbers : Posterior and float64 array of shape (4,)
        The leaf's posterior, without its `white`, and its row of `LeafTable.numbers`.
    selected : int64 array of shape (k,)
        Which points are predicted.
    rows : float64 array of shape (m, d)
        All points.
    covariance, with_noise
        As in :func:`predict_leaves`.
    moments : Moments
        Result: the entries at `selected`. There are no derivatives where their arrays are empty.
    """
    scale, noise, mean, variance = numbers
    added = noise if with_noise else 0.0
    m, (n, d) = len(selected), own.points.shape
    points = np.empty((m, d))
    for i in range(m):
        for j in range(d):
            points[i, j] = rows[selected[i], j]
    with_gradients = len(moments.mean_gradients) > 0
    cross, factors = _cross_covariances(own, points, covariance, with_gradients)
    weights = np.empty(n)
    for k in range(n):
        weights[k] = own.solved[1, k] - mean * own.solved[0, k]
    means = np.dot(cross, weights)  # line 4: k_*^T alpha
    explained = np.dot(cross, own.solved[0])
    squares, solved = _whiten(own, cross, with_gradients)  # line 5
    prior_variance = covariance.amplitude + covariance.shared_noise
    smallest = _SMALLEST_SHARE * covariance.amplitude
    for i in range(m):
        index, unexplained = selected[i], 1.0 - explained[i]
        left = scale * max(prior_variance - squares[i], smallest)  # line 6: k_** - v^T v
        moments.means[index] = mean + means[i]
        # Eq. 2.41: the unknown mean adds R^T variance R with R = 1 - 1^T A^-1 k_*.
        moments.variances[index] = left + variance * unexplained * unexplained + added
    if with_gradients:
        for i in range(m):
            explained[i] = variance * (1.0 - explained[i])
        parts = solved, factors, weights, explained, scale
        _write_gradients(own, points, covariance, parts, selected, moments)
