"""The Gaussian process in a leaf: its posterior, and the table of the leaves of a tree.

References: Rasmussen2006, Algorithm 2.1 (regression), section 2.7 (the unknown mean) and section
5.4.2 (leave-one-out).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from mondrian_bo.shared.array_types import FloatArray, IntArray
from mondrian_bo.surrogates.gaussian_process.covariance import Covariance, factorise
from mondrian_bo.surrogates.gaussian_process_forest.leaf_posterior import (
    PANEL,
    Posterior,
    append_point,
)

_FEWEST_NODES = 16
"""Number of nodes that a table first has room for, our choice."""

_FEWEST_EXTENDED = 64
"""Number of points from which on a leaf is extended, our choice: a smaller one is soon computed
anew, and a process that starts does not load the compiled code."""


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
        A leaf with the same hyper-parameters. If it is large and has the first of the points, with
        the same known noise, it is extended.
    known_noise : float64 array of shape (n,) or None, default=None
        Known variances of the noise of each target, beside that of the hyper-parameters; None is
        none. No factor multiplies them: `scale_strength` does not count then.

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
        Variance of the noise that is independent for each target, without what is known of it.
    known_noise
        As given.

    Notes
    -----
    Takes O(n^3) time, or O(n^2) for each further point of a former leaf, and O(n^2) memory; a
    prediction takes O(n^2).
    """

    posterior: Posterior
    known_noise: FloatArray | None = None

    def __init__(
        self,
        points: FloatArray,
        targets: FloatArray,
        covariance: Covariance,
        scale_strength: float = math.inf,
        former: GaussianProcessLeaf | None = None,
        known_noise: FloatArray | None = None,
    ) -> None:
        self._covariance = covariance
        self.known_noise = known_noise
        n, extended = len(points), None
        if former is not None and len(former.posterior.points) >= _FEWEST_EXTENDED:
            extended = former._extended(points, targets, known_noise)
        if extended is not None:
            self.posterior, self._log_determinant = extended
        else:
            matrix = covariance.of_targets(points, known_noise)
            factor = factorise(matrix)  # Algorithm 2.1, line 2
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
        if scale_strength < math.inf and known_noise is None:
            self.scale = (scale_strength + residual) / (scale_strength + n)
        self.precision = precision / self.scale
        self.residual = residual / self.scale
        self.log_determinant = self._log_determinant + n * math.log(self.scale)
        self.noise = covariance.independent_noise * self.scale

    def _extended(
        self, points: FloatArray, targets: FloatArray, known_noise: FloatArray | None
    ) -> tuple[Posterior, float] | None:
        """Return posterior and log det A of the points here and further ones, O(n^2) for each.

        None if the first of the points are others, or if A must be factorised anew.
        """
        posterior, log_determinant = self.posterior, self._log_determinant
        n_known = len(posterior.points)
        if n_known >= len(points) or not np.array_equal(posterior.points, points[:n_known]):
            return None
        covariance = self._covariance
        if known_noise is not None:
            former = self.known_noise
            if former is None or not np.array_equal(former, known_noise[:n_known]):
                return None
        for k in range(n_known, len(points)):
            if known_noise is not None:
                noise = self._covariance.noise + float(known_noise[k])
                covariance = self._covariance._replace(noise=noise)
            point, target = points[k], targets[k]
            posterior, variance = append_point(posterior, point, target, covariance)
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
