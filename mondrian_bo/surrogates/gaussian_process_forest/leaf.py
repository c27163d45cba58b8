"""The Gaussian process in a leaf: its posterior, and predictions in the leaves of a tree.

One compiled call predicts at points in many leaves: a suggestion needs a hundred leaves, with a few
points in each, and a call for each of them would take longer than what it computes.

References: Rasmussen2006, Algorithm 2.1 (regression), section 2.7 (the unknown mean) and section
5.4.2 (leave-one-out).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numba import carray, njit, types  # type: ignore[attr-defined]
from numba.extending import intrinsic
from scipy.linalg import lapack

from mondrian_bo.shared.array_types import FloatArray, IntArray
from mondrian_bo.surrogates.gaussian_process.covariance import (
    Covariance,
    cross_kernel,
    factorise,
)
from mondrian_bo.surrogates.gaussian_process_forest.leaf_posterior import (
    PANEL,
    Posterior,
    append_point,
)

_SMALLEST_SHARE = 1e-12
"""Smallest variance of a function relative to the amplitude: rounding would make it negative."""

_CHUNK = 100
"""Largest number of points that are predicted at once, our choice: their kernels stay in the
processor's cache."""

_FEWEST_NODES = 16
"""Number of nodes that a table first has room for, our choice."""

_FEWEST_EXTENDED = 64
"""Number of points from which on a leaf is extended, our choice: a smaller one is soon computed
anew, and a process that starts does not load the compiled code."""


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


class GaussianProcessLeaf:
    """The posterior of a Gaussian process on the points of a leaf.

    Targets are ``mean + process + noise``. Terms that depend on the unknown constant mean are kept
    apart, so that the leaf enters its tree as one Gaussian message about the mean.

    Parameters
    ----------
    points : float64 array of shape (n, d)
        The points, n >= 1.
    targets : float64 array of shape (n,)
        Their targets.
    covariance : Covariance
        Hyper-parameters of the process.
    scale_strength : float, default=inf
        The covariance, noise included, is multiplied by ``(strength + residual) / (strength + n)``:
        its maximum-likelihood factor, shrunk towards 1 by `strength` further points.
    former : GaussianProcessLeaf or None, default=None
        A leaf with the same hyper-parameters. If it is large and has the first of the points, it is
        extended.

    Attributes
    ----------
    posterior : Posterior
        The posterior as a function of the leaf's mean.
    precision, location : float
        The message: precision and centre of the likelihood of the mean.
    residual, log_determinant : float
        ``(y - location)' A^-1 (y - location)`` and log det A, of the log marginal likelihood
        ``-1/2 (residual + precision (mean - location)^2 + log_determinant + n log 2 pi)``.
    scale : float
        Factor of all covariances, noise included.
    noise : float
        Variance of the noise that is independent for each target.

    Notes
    -----
    Takes O(n^3) time, or O(n^2) for each further point of a former leaf, and O(n^2) memory; a
    prediction takes O(n^2).
    """

    posterior: Posterior

    def __init__(
        self,
        points: FloatArray,
        targets: FloatArray,
        covariance: Covariance,
        scale_strength: float = math.inf,
        former: GaussianProcessLeaf | None = None,
    ) -> None:
        self._covariance = covariance
        n, extended = len(points), None
        if former is not None and len(former.posterior.points) >= _FEWEST_EXTENDED:
            extended = former._extended(points, targets)
        if extended is not None:
            self.posterior, self._log_determinant = extended
        else:
            factor = factorise(covariance.of_targets(points))  # Algorithm 2.1, line 2
            self._log_determinant = 2.0 * float(np.log(factor.diagonal()).sum())
            right_sides = np.stack([np.ones(n), targets], axis=1)
            solutions, _ = lapack.dpotrs(factor, right_sides, lower=1)  # line 3, for 1 and y
            inverse, _ = lapack.dtrtri(factor, lower=1, overwrite_c=1)
            ends = range(PANEL, n + PANEL, PANEL)
            panels = [inverse.T[:end, end - PANEL : end].ravel() for end in ends]
            self.posterior = Posterior(
                np.array(points, order="C"),
                np.ascontiguousarray((inverse @ right_sides).T),
                np.ascontiguousarray(solutions.T),
                np.concatenate(panels),
            )
        solved_ones, solved_targets = self.posterior.solved
        precision = float(solved_ones.sum())  # 1' A^-1 1: H K_y^-1 H' of eq. 2.41
        self.location = float(solved_ones @ targets) / precision
        centred = targets - self.location
        residual = max(float(centred @ (solved_targets - self.location * solved_ones)), 0.0)
        self.scale = 1.0
        if scale_strength < math.inf:
            self.scale = (scale_strength + residual) / (scale_strength + n)
        self.precision = precision / self.scale
        self.residual = residual / self.scale
        self.log_determinant = self._log_determinant + n * math.log(self.scale)
        self.noise = covariance.independent_noise * self.scale

    def _extended(self, points: FloatArray, targets: FloatArray) -> tuple[Posterior, float] | None:
        """Return posterior and log det A of the points here and further ones, O(n^2) for each.

        None if the first of the points are others, or if A must be factorised anew.
        """
        posterior, log_determinant = self.posterior, self._log_determinant
        n_known = len(posterior.points)
        if n_known >= len(points) or not np.array_equal(posterior.points, points[:n_known]):
            return None
        for point, target in zip(points[n_known:], targets[n_known:], strict=True):
            posterior, variance = append_point(posterior, point, target, self._covariance)
            if not variance > 0.5 * self._covariance.independent_noise:
                # What rounding errors leave of the variance is not above its smallest value.
                return None
            log_determinant += math.log(variance)
        return posterior, log_determinant

    def message(self, gamma_1: float) -> tuple[float, float, float, float]:
        """Return the message about the mean, in units of gamma_1."""
        own = self.precision * gamma_1, self.location
        return *own, self.residual * gamma_1, self.log_determinant

    @property
    def whitening(self) -> FloatArray:
        """The transpose of L^-1, shape (n, n)."""
        n, start, panels = len(self.posterior.points), 0, self.posterior.panels
        result = np.zeros((n, n))
        for first in range(0, n, PANEL):
            end = min(first + PANEL, n)
            panel = panels[start : start + end * (end - first)]
            result[:end, first:end] = panel.reshape(end, end - first)
            start += panel.size
        return result

    def joint(
        self, rows: FloatArray, mean: float, variance: float
    ) -> tuple[FloatArray, FloatArray]:
        """Return the means, shape (m,), and covariances, (m, m), of the function at rows.

        Parameters
        ----------
        rows : float64 array of shape (m, d)
            Points.
        mean, variance : float
            Posterior mean and variance of the leaf's mean given all targets.

        Returns
        -------
        means : float64 array of shape (m,)
            Posterior means.
        covariances : float64 array of shape (m, m)
            Posterior covariances, without noise.
        """
        points, _, (solved_ones, solved_targets), _ = self.posterior
        cross = self._covariance.between(rows, points)
        white, unexplained = cross @ self.whitening, 1.0 - cross @ solved_ones
        means = mean + cross @ (solved_targets - mean * solved_ones)
        own = self._covariance.between(rows, rows) - white @ white.T
        return means, self.scale * own + variance * np.outer(unexplained, unexplained)  # eq. 2.41

    def leave_one_out(self, mean: float, variance: float) -> tuple[FloatArray, FloatArray]:
        """Predict each target from all others (Rasmussen2006, eq. 5.12).

        Parameters
        ----------
        mean, variance : float
            Posterior mean and variance of the leaf's mean given all targets.

        Returns
        -------
        residuals, variances : float64 arrays of shape (n,)
            Targets minus their predictive means, and their predictive variances.
        """
        solved_ones, solved_targets = self.posterior.solved
        whitening, scale = self.whitening, self.scale
        # The diagonal of K_y^-1, where the unknown mean adds a term of rank one to A.
        precisions = (whitening * whitening).sum(axis=1)
        precisions -= variance / scale * solved_ones * solved_ones
        return (solved_targets - mean * solved_ones) / precisions, scale / precisions  # eq. 5.12


class TreeLeaf(NamedTuple):
    """A leaf of a tree.

    Attributes
    ----------
    node : int
        Its node.
    process : GaussianProcessLeaf
        Its process.
    members : int64 array of shape (n,) or slice
        What selects its points.
    mean, variance : float
        Posterior moments of its mean.
    """

    node: int
    process: GaussianProcessLeaf
    members: IntArray | slice
    mean: float
    variance: float


class LeafTable:
    """What predictions need of the leaves of one tree, by node.

    Compiled code reads the leaves' arrays by their addresses. The table keeps these arrays.

    Parameters
    ----------
    leaves : mapping of int to GaussianProcessLeaf, default={}
        The first leaves.

    Attributes
    ----------
    addresses : int64 array of shape (k, 4)
        By node, the addresses of a leaf's points, A^-1 [1, y] and panels, and its number of points.
    numbers : float64 array of shape (k, 4)
        By node, the leaf's scale and noise, and the posterior mean and variance of its mean, which
        are NaN where they are not known.
    """

    def __init__(self, leaves: Mapping[int, GaussianProcessLeaf] = MappingProxyType({})) -> None:
        self.addresses = np.empty((0, 4), dtype=np.int64)
        self.numbers = np.empty((0, 4))
        self._kept: dict[int, Posterior] = {}
        for node, leaf in leaves.items():
            self.enter(node, leaf)

    def duplicate(self) -> LeafTable:
        """Return a table of the same leaves."""
        table = LeafTable()
        table.addresses, table.numbers = self.addresses.copy(), self.numbers.copy()
        table._kept = self._kept.copy()
        return table

    def enter(self, node: int, leaf: GaussianProcessLeaf) -> None:
        """Enter a leaf, whose mean is not known."""
        if node >= len(self.numbers):
            n_more = max(node + 1, len(self.numbers), _FEWEST_NODES)
            self.addresses = np.concatenate([self.addresses, np.zeros((n_more, 4), np.int64)])
            self.numbers = np.concatenate([self.numbers, np.full((n_more, 4), math.nan)])
        posterior = leaf.posterior
        if not all(part.flags.writeable for part in posterior):
            # An estimator that was read from a file in memory then replaces the arrays by copies.
            posterior = leaf.posterior = Posterior(*map(np.array, posterior))
        # An interrupt in between must not leave the addresses of arrays that nothing keeps.
        self.addresses[node] = 0
        self._kept[node] = posterior
        points, _, solved, panels = (part.ctypes.data for part in posterior)
        self.addresses[node] = points, solved, panels, len(posterior.points)
        self.numbers[node] = leaf.scale, leaf.noise, math.nan, math.nan

    def remove(self, node: int) -> None:
        """Remove a leaf."""
        self.addresses[node] = 0
        del self._kept[node]


# The prediction, compiled -------------------------------------------------------------------------


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
        Addresses and numbers of a :class:`LeafTable`, with the means of all leaves of the points.
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


# Numba writes its code into the caller: on its own, it would be compiled a second time there.
@njit(nogil=True, inline="always")
def _predict_leaf(  # type: ignore[no-untyped-def]
    own, numbers, selected, rows, covariance, with_noise, moments
):
    """Write the predictive moments at points of one leaf (Rasmussen2006, Alg. 2.1 and eq. 2.41).

    Parameters
    ----------
    own, numbers : Posterior and float64 array of shape (4,)
        The leaf's posterior, without its `white`, and its row of :attr:`LeafTable.numbers`.
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
    # Loops in place of array expressions, which compile for a second longer.
    points = np.empty((m, d))
    for i in range(m):
        for j in range(d):
            points[i, j] = rows[selected[i], j]
    with_gradients = len(moments.mean_gradients) > 0
    amplitude = covariance.amplitude
    cross, factors = np.empty((m, n)), np.empty((m if with_gradients else 0, n))
    cross_kernel(points, own.points, covariance, cross, factors)
    for i in range(m):
        for k in range(n):
            cross[i, k] *= amplitude
    for i in range(len(factors)):
        for k in range(n):
            factors[i, k] *= amplitude
    weights = np.empty(n)
    for k in range(n):
        weights[k] = own.solved[1, k] - mean * own.solved[0, k]
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
        moments.variances[index] = left + variance * unexplained * unexplained + added
    if with_gradients:
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
