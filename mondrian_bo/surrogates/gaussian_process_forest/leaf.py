"""The Gaussian process in a leaf: its posterior, predictions and draws.

References: Rasmussen2006, Algorithm 2.1 (regression), section 2.7 (the unknown mean) and section
5.4.2 (leave-one-out); J. T. Wilson et al., Efficiently sampling functions from Gaussian process
posteriors, ICML 2020 (draws).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import copy
from typing import NamedTuple

import numpy as np
from numba import njit
from scipy.linalg import lapack

from mondrian_bo.array_types import FloatArray
from mondrian_bo.surrogates.gaussian_process.covariance import (
    Covariance,
    cross_kernel,
    factorise,
)

PANEL = 48
"""Number of columns of a panel of the whitening matrix, our choice: products of smaller matrices
cost more than they save."""


_FEWEST_EXTENDED = 64
"""Number of points from which on a leaf is extended, our choice: a smaller one is soon computed
anew, and a process that starts does not load the compiled code."""


class Posterior(NamedTuple):
    """The posterior of a leaf's process, as a function of the leaf's mean.

    A is the covariance of the targets before it is multiplied by `scale`, and L its lower Cholesky
    factor.

    Attributes
    ----------
    points : float64 array of shape (n, d)
        The points.
    white : float64 array of shape (2, n)
        L^-1 1 and L^-1 y.
    solved : float64 array of shape (2, n)
        A^-1 1 and A^-1 y.
    panels : float64 array of shape (k,)
        The transpose of L^-1, which is upper triangular. A panel has 48 of its columns, without the
        rows below the diagonal of the last of them, and the panels follow each other.
    """

    points: FloatArray
    white: FloatArray
    solved: FloatArray
    panels: FloatArray


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

    Attributes
    ----------
    n_points : int
        Number of points.
    buffer : float64 array of shape (k,)
        The posterior, as :func:`parts_of` reads it. A leaf that is extended has another one.
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
    Takes O(n^3) time and O(n^2) memory; a prediction takes O(n^2).
    """

    def __init__(
        self,
        points: FloatArray,
        targets: FloatArray,
        covariance: Covariance,
        scale_strength: float = math.inf,
    ) -> None:
        self._covariance, self._scale_strength = covariance, scale_strength
        self.n_points = n = len(points)
        factor = factorise(covariance.of_targets(points))  # Algorithm 2.1, line 2
        self._log_determinant = 2.0 * float(np.log(factor.diagonal()).sum())
        right_sides = np.stack([np.ones(n), targets], axis=1)
        solutions, _ = lapack.dpotrs(factor, right_sides, lower=1)  # line 3, for 1 and y
        inverse, _ = lapack.dtrtri(factor, lower=1, overwrite_c=1)
        self.buffer = _room_for(n, points.shape[1])
        own = self.posterior
        own.points[:], own.solved[:] = points, solutions.T
        own.white[:] = (inverse @ right_sides).T
        columns, start = inverse.T, 0
        for first in range(0, n, PANEL):
            end = min(first + PANEL, n)
            panel = own.panels[start : start + end * (end - first)].reshape(end, end - first)
            panel[:] = columns[:end, first:end]
            start += panel.size
        self._set_scale(targets)

    def extended(self, points: FloatArray, targets: FloatArray) -> GaussianProcessLeaf:
        """Return the posterior for further points, O(n^2) for each.

        Parameters
        ----------
        points : float64 array of shape (n, d)
            The points of this leaf, and further ones.
        targets : float64 array of shape (n,)
            Their targets.
        """
        leaf = copy(self)
        for n in range(self.n_points, len(points)):
            known, leaf.buffer = leaf.buffer, _room_for(n + 1, points.shape[1])
            variance = append_point(known, n, points[n], targets[n], self._covariance, leaf.buffer)
            if not variance > 0.5 * self._covariance.independent_noise:
                # What rounding errors leave of the variance is not above its smallest value.
                return GaussianProcessLeaf(points, targets, self._covariance, self._scale_strength)
            leaf._log_determinant += math.log(variance)
        leaf.n_points = len(points)
        leaf._set_scale(targets)
        return leaf

    def _set_scale(self, targets: FloatArray) -> None:
        """Set the scale of the covariances, and the message about the mean."""
        n, (solved_ones, solved_targets) = self.n_points, self.posterior.solved
        precision = float(solved_ones.sum())  # 1' A^-1 1: H K_y^-1 H' of eq. 2.41
        self.location = float(solved_ones @ targets) / precision
        centred = targets - self.location
        residual = max(float(centred @ (solved_targets - self.location * solved_ones)), 0.0)
        strength, self.scale = self._scale_strength, 1.0
        if strength < math.inf:
            self.scale = (strength + residual) / (strength + n)
        self.precision = precision / self.scale
        self.residual = residual / self.scale
        self.log_determinant = self._log_determinant + n * math.log(self.scale)
        self.noise = self._covariance.independent_noise * self.scale

    @property
    def posterior(self) -> Posterior:
        """The posterior as a function of the leaf's mean."""
        n, d = self.n_points, len(self._covariance.precisions)
        # The Python function: the compiled one takes longer to return its views.
        posterior: Posterior = parts_of.py_func(self.buffer, n, d)  # type: ignore[no-untyped-call]
        return posterior

    def message(self, gamma_1: float) -> tuple[float, float, float, float]:
        """Return the message about the mean, in units of gamma_1."""
        own = self.precision * gamma_1, self.location
        return *own, self.residual * gamma_1, self.log_determinant

    def mean_alone(self, gamma_1: float) -> tuple[float, float]:
        """Return posterior mean and variance of the leaf's mean where there is no other leaf.

        Its prior mean is 0, and its prior variance half of `gamma_1`.
        """
        variance = 0.5 * gamma_1 / (1.0 + 0.5 * gamma_1 * self.precision)
        return variance * self.precision * self.location, variance

    @property
    def whitening(self) -> FloatArray:
        """The transpose of L^-1, shape (n, n)."""
        n, start, panels = self.n_points, 0, self.posterior.panels
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

    def draw(
        self, mean: float, prior: Callable[[FloatArray], FloatArray], rng: np.random.Generator
    ) -> Callable[[FloatArray], FloatArray]:
        """Draw a function from the posterior, given the leaf's mean and a draw from the prior.

        Matheron's rule (Wilson et al.) adds a correction by the targets to the draw from the prior.

        Parameters
        ----------
        mean : float
            The leaf's mean.
        prior : callable
            A function drawn from the prior of a process of amplitude 1.
        rng : numpy.random.Generator
            Source of the noise of the targets.

        Returns
        -------
        callable
            Maps points of shape (m, d) to values of shape (m,).
        """
        points, _, (solved_ones, solved_targets), _ = self.posterior
        whitening = self.whitening
        prior_std = math.sqrt(self.scale * self._covariance.amplitude)
        noise_std = math.sqrt(self.noise)
        at_points = prior_std * prior(points) + noise_std * rng.standard_normal(len(points))
        weights = solved_targets - mean * solved_ones - whitening @ (at_points @ whitening)

        def function(rows: FloatArray) -> FloatArray:
            cross = self._covariance.between(rows, points)
            return np.asarray(mean + prior_std * prior(rows) + cross @ weights)

        return function


def updated_leaf(
    former: GaussianProcessLeaf | None,
    points: FloatArray,
    targets: FloatArray,
    covariance: Covariance,
    scale_strength: float,
) -> GaussianProcessLeaf:
    """Return the leaf of points, which extends a large former one that has the first of them.

    The parameters are those of :class:`GaussianProcessLeaf`, and the leaf before, if there was one.
    """
    n_known = 0 if former is None else former.n_points
    if (
        former is not None
        and _FEWEST_EXTENDED <= n_known < len(points)
        and np.array_equal(former.posterior.points, points[:n_known])
    ):
        return former.extended(points, targets)
    return GaussianProcessLeaf(points, targets, covariance, scale_strength)


def _room_for(n: int, d: int) -> FloatArray:
    """Return a buffer for the posterior of n points in d dimensions."""
    return np.empty(buffer_size.py_func(n, d))  # type: ignore[no-untyped-call]


# The posterior, compiled --------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def buffer_size(n, d):  # type: ignore[no-untyped-def]
    """Return the number of floats of a posterior of n points in d dimensions."""
    whole, rest = n // PANEL, n % PANEL
    return n * (d + 4) + PANEL * PANEL * whole * (whole + 1) // 2 + n * rest


@njit(cache=True, nogil=True)
def parts_of(buffer, n, d):  # type: ignore[no-untyped-def]
    """Return views of the posterior in a buffer, of n points in d dimensions."""
    first, second, third = n * d, n * (d + 2), n * (d + 4)
    return Posterior(
        buffer[:first].reshape(n, d),
        buffer[first:second].reshape(2, n),
        buffer[second:third].reshape(2, n),
        buffer[third:],
    )


@njit(cache=True, nogil=True)
def append_point(buffer, n, point, target, covariance, result):  # type: ignore[no-untyped-def]
    """Write the posterior of n points and a further one.

    The Cholesky factor and its inverse get one more row; all else stays.

    Parameters
    ----------
    buffer : float64 array of shape (k,)
        The posterior of n points.
    n : int
        Number of points, at least 1.
    point : float64 array of shape (d,)
        The further point.
    target : float
        Its target.
    covariance : Covariance
        Hyper-parameters of the process.
    result : float64 array
        Result, of the size for one more point.

    Returns
    -------
    float
        Variance of the target given the others, the square of the last entry of L. If it is not
        positive, `result` is not complete.
    """
    d = len(point)
    own, new = parts_of(buffer, n, d), parts_of(result, n + 1, d)
    cross, factors = np.empty((1, n)), np.empty((0, n))
    cross_kernel(point.copy().reshape(1, d), own.points, covariance, cross, factors)
    known = cross[0]
    known *= covariance.amplitude
    white, inverse = np.empty(n), np.zeros(n + 1)  # L^-1 k_*, and the new row of L^-1
    start = 0
    for first in range(0, n, PANEL):
        end = min(first + PANEL, n)
        panel = own.panels[start : start + end * (end - first)].reshape(end, end - first)
        start += panel.size
        white[first:end] = np.dot(known[:end], panel)
        inverse[:end] += np.dot(panel, white[first:end])
    variance = covariance.amplitude + covariance.noise - np.dot(white, white)
    if not variance > 0.0:
        return variance
    diagonal = math.sqrt(variance)
    for k in range(n):
        inverse[k] /= -diagonal
    inverse[n] = 1.0 / diagonal
    new.points[:n], new.points[n] = own.points, point
    for side in range(2):
        value = 1.0 if side == 0 else target
        last = (value - np.dot(white, own.white[side])) / diagonal
        new.white[side, :n], new.white[side, n] = own.white[side], last
        for k in range(n):
            new.solved[side, k] = own.solved[side, k] + last * inverse[k]
        new.solved[side, n] = last * inverse[n]
    # The last panel gets one more row and column, or a panel begins.
    width = n % PANEL
    start = len(own.panels) - n * width
    new.panels[:start] = own.panels[:start]
    panel = new.panels[start:].reshape(n + 1, width + 1)
    panel[:n, :width] = own.panels[start:].reshape(n, width)
    panel[n, :width] = 0.0
    panel[:, width] = inverse
    return variance
