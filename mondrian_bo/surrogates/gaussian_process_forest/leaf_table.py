"""Predictions of the Gaussian processes in the leaves of a tree.

One compiled call predicts at points in many leaves. A table has the addresses of the leaves'
posteriors: a suggestion needs a hundred leaves, with a few points in each, and a call for each of
them would take longer than what it computes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numba import carray, njit, types  # type: ignore[attr-defined]
from numba.extending import intrinsic

from mondrian_bo.array_types import FloatArray, IntArray
from mondrian_bo.surrogates.gaussian_process.covariance import Covariance, cross_kernel
from mondrian_bo.surrogates.gaussian_process_forest.leaf import (
    PANEL,
    GaussianProcessLeaf,
    buffer_size,
    parts_of,
)

_SMALLEST_SHARE = 1e-12
"""Smallest variance of a function relative to the amplitude: rounding would make it negative."""


_CHUNK = 100
"""Largest number of points that are predicted at once, our choice: their kernels stay in the
processor's cache."""

_FEWEST_NODES = 16
"""Number of nodes that a table first has room for, our choice."""


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


class LeafTable:
    """What predictions need of the leaves of one tree, by node.

    Compiled code reads the leaves' buffers by their addresses. The table keeps these buffers.

    Parameters
    ----------
    leaves : mapping of int to GaussianProcessLeaf, default={}
        The first leaves.

    Attributes
    ----------
    addresses : int64 array of shape (k, 2)
        By node, the address of a leaf's buffer and its number of points.
    numbers : float64 array of shape (k, 4)
        By node, the leaf's scale and noise, and the posterior mean and variance of its mean, which
        are NaN where they are not known.
    """

    def __init__(self, leaves: Mapping[int, GaussianProcessLeaf] = MappingProxyType({})) -> None:
        self.addresses = np.empty((0, 2), dtype=np.int64)
        self.numbers = np.empty((0, 4))
        self._buffers: dict[int, FloatArray] = {}
        for node, leaf in leaves.items():
            self.enter(node, leaf)

    def duplicate(self) -> LeafTable:
        """Return a table of the same leaves."""
        table = LeafTable()
        table.addresses, table.numbers = self.addresses.copy(), self.numbers.copy()
        table._buffers = self._buffers.copy()
        return table

    @property
    def means(self) -> FloatArray:
        """Posterior means and variances of the leaves' means, a view of shape (k, 2)."""
        return self.numbers[:, 2:]

    def enter(self, node: int, leaf: GaussianProcessLeaf) -> None:
        """Enter a leaf, whose mean is not known."""
        if node >= len(self.numbers):
            n_more = max(node + 1, len(self.numbers), _FEWEST_NODES)
            self.addresses = np.concatenate([self.addresses, np.zeros((n_more, 2), np.int64)])
            self.numbers = np.concatenate([self.numbers, np.full((n_more, 4), math.nan)])
        if not leaf.buffer.flags.writeable:
            # The arrays of a file in memory are replaced by copies after this.
            leaf.buffer = leaf.buffer.copy()
        self._buffers[node] = leaf.buffer
        self.addresses[node] = leaf.buffer.ctypes.data, leaf.n_points
        self.numbers[node] = leaf.scale, leaf.noise, math.nan, math.nan

    def remove(self, node: int) -> None:
        """Remove a leaf."""
        del self._buffers[node]
        self.addresses[node] = 0

    def predict(
        self,
        nodes: IntArray,
        rows: FloatArray,
        covariance: Covariance,
        moments: Moments,
        with_noise: bool = False,
    ) -> None:
        """Write the predictive moments of the function or, with noise, of targets.

        Parameters
        ----------
        nodes : int64 array of shape (m,)
            The leaf of each point.
        rows : float64 array of shape (m, d)
            The points.
        covariance : Covariance
            Hyper-parameters of all leaves.
        moments : Moments
            Result. Gradients are computed if it has room for them.
        with_noise : bool, default=False
            Whether variances include the noise.
        """
        predict_leaves(self.addresses, self.numbers, nodes, rows, covariance, with_noise, moments)


# The prediction, compiled -------------------------------------------------------------------------


def _to_pointer(typingctx: Any, address: Any) -> Any:
    """Return a pointer to floats at an address."""
    pointer = types.CPointer(types.float64)  # type: ignore[no-untyped-call]

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], context.get_value_type(pointer))

    return pointer(types.int64), codegen


_floats_at: Any = intrinsic(_to_pointer)


@njit(cache=True, nogil=True)
def predict_leaves(  # type: ignore[no-untyped-def]
    addresses, numbers, nodes, rows, covariance, with_noise, moments
):
    """Write the predictive moments at points in the leaves of one tree.

    One compiled call computes all of them: with few points in each leaf, calls would take longer.

    Parameters
    ----------
    addresses, numbers
        Those of a :class:`LeafTable`.
    nodes, rows, covariance, with_noise, moments
        As in :meth:`LeafTable.predict`.
    """
    m, d = rows.shape
    starts = np.zeros(len(numbers) + 1, dtype=np.int64)
    for i in range(m):
        starts[nodes[i] + 1] += 1
    for node in range(len(numbers)):
        starts[node + 1] += starts[node]
    order, filled = np.empty(m, dtype=np.int64), starts.copy()
    for i in range(m):
        order[filled[nodes[i]]] = i
        filled[nodes[i]] += 1
    first = 0
    while first < m:
        node = nodes[order[first]]
        n, end = addresses[node, 1], starts[node + 1]
        buffer = carray(_floats_at(addresses[node, 0]), (buffer_size(n, d),))
        own = parts_of(buffer, n, d)
        scale, noise, mean, variance = numbers[node]
        while first < end:
            selected = order[first : min(first + _CHUNK, end)]
            first += len(selected)
            added = noise if with_noise else 0.0
            _predict_leaf(own, scale, added, mean, variance, selected, rows, covariance, moments)


@njit(cache=True, nogil=True)
def _predict_leaf(  # type: ignore[no-untyped-def]
    own, scale, noise, mean, variance, selected, rows, covariance, moments
):
    """Write the predictive moments at some of the points (Rasmussen2006, Alg. 2.1 and eq. 2.41)."""
    m, (n, d) = len(selected), own.points.shape
    points = np.empty((m, d))
    for i in range(m):
        points[i] = rows[selected[i]]
    with_gradients = len(moments.mean_gradients) > 0
    amplitude = covariance.amplitude
    cross, factors = np.empty((m, n)), np.empty((m if with_gradients else 0, n))
    cross_kernel(points, own.points, covariance, cross, factors)
    cross *= amplitude
    factors *= amplitude
    weights = own.solved[1] - mean * own.solved[0]
    means = np.dot(cross, weights)  # line 4: k_*^T alpha
    explained = np.dot(cross, own.solved[0])
    squares = np.zeros(m)
    solved = np.zeros((m if with_gradients else 0, n))  # A^-1 k_*
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
    prior_variance = amplitude + covariance.shared_noise
    for i in range(m):
        index, unexplained = selected[i], 1.0 - explained[i]
        # Line 6: k_** - v^T v.
        left = scale * max(prior_variance - squares[i], _SMALLEST_SHARE * amplitude)
        moments.means[index] = mean + means[i]
        # Eq. 2.41: the unknown mean adds R^T variance R with R = 1 - 1^T A^-1 k_*.
        moments.variances[index] = left + variance * unexplained * unexplained + noise
    if not with_gradients:
        return
    # Derivatives of the variance and of the mean by entries of `cross`, times gradient factors.
    for i in range(m):
        unexplained = variance * (1.0 - explained[i])
        for k in range(n):
            by_cross = -2.0 * (scale * solved[i, k] + unexplained * own.solved[0, k])
            solved[i, k] = by_cross * factors[i, k]
            factors[i, k] *= weights[k]
    # The sums over k of s_ik (x_ij - x_kj), as two matrix products.
    mean_sums, variance_sums = np.dot(factors, own.points), np.dot(solved, own.points)
    for i in range(m):
        index = selected[i]
        mean_total, variance_total = factors[i].sum(), solved[i].sum()
        for j in range(d):
            precision = 0.0 if covariance.categorical[j] else covariance.precisions[j]
            x = points[i, j]
            moments.mean_gradients[index, j] = precision * (x * mean_total - mean_sums[i, j])
            moments.variance_gradients[index, j] = precision * (
                x * variance_total - variance_sums[i, j]
            )
