"""The Gaussian process in a leaf: its posterior, predictions and draws.

References: Rasmussen2006, Algorithm 2.1 (regression), section 2.7 (the unknown mean) and section
5.4.2 (leave-one-out); J. T. Wilson et al., Efficiently sampling functions from Gaussian process
posteriors, ICML 2020 (draws).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numba import njit
from scipy.linalg import lapack

from mondrian_bo.array_types import FloatArray, IntArray
from mondrian_bo.surrogates.gaussian_process.covariance import (
    Covariance,
    cross_kernel,
    factorise,
)

_SMALLEST_SHARE = 1e-12
"""Smallest variance of a function relative to the amplitude: rounding would make it negative."""


class Posterior(NamedTuple):
    """The posterior of a leaf's process, as a function of the leaf's mean.

    A is the covariance of the targets before it is multiplied by `scale`, and L its lower Cholesky
    factor.

    Attributes
    ----------
    points : float64 array of shape (n, d)
        The points.
    whitening : float64 array of shape (n, n)
        The transpose of L^-1.
    solved_ones, solved_targets : float64 arrays of shape (n,)
        A^-1 1 and A^-1 y.
    scale : float
        Factor of all covariances, noise included.
    """

    points: FloatArray
    whitening: FloatArray
    solved_ones: FloatArray
    solved_targets: FloatArray
    scale: float


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

    Attributes
    ----------
    precision, location : float
        The message: precision and centre of the likelihood of the mean.
    residual, log_determinant : float
        ``(y - location)' A^-1 (y - location)`` and log det A, of the log marginal likelihood
        ``-1/2 (residual + precision (mean - location)^2 + log_determinant + n log 2 pi)``.
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
        self._covariance = covariance
        factor = factorise(covariance.of_targets(points))  # Algorithm 2.1, line 2
        log_determinant = 2.0 * float(np.log(factor.diagonal()).sum())
        right_sides = np.stack([np.ones(len(points)), targets], axis=1)
        solutions, _ = lapack.dpotrs(factor, right_sides, lower=1)  # line 3, for 1 and y
        solved_ones, solved_targets = np.ascontiguousarray(solutions.T)
        precision = float(solved_ones.sum())  # 1' A^-1 1: H K_y^-1 H' of eq. 2.41
        self.location = float(solved_ones @ targets) / precision
        centred = targets - self.location
        residual = max(float(centred @ (solved_targets - self.location * solved_ones)), 0.0)
        n = len(points)
        scale = 1.0
        if scale_strength < math.inf:
            scale = (scale_strength + residual) / (scale_strength + n)
        self.precision = precision / scale
        self.residual = residual / scale
        self.log_determinant = log_determinant + n * math.log(scale)
        self.noise = covariance.independent_noise * scale
        inverse, _ = lapack.dtrtri(factor, lower=1, overwrite_c=1)
        self._posterior = Posterior(points, inverse.T, solved_ones, solved_targets, scale)

    @property
    def posterior(self) -> Posterior:
        """The posterior as a function of the leaf's mean."""
        return self._posterior

    def predict(
        self,
        rows: FloatArray,
        selected: IntArray,
        mean: float,
        variance: float,
        moments: Moments,
        with_noise: bool = False,
    ) -> None:
        """Write the predictive moments of the function or, with noise, of targets.

        Parameters
        ----------
        rows : float64 array of shape (m, d)
            Points.
        selected : int64 array of shape (k,)
            Indices of the points to predict.
        mean, variance : float
            Posterior mean and variance of the leaf's mean given all targets.
        moments : Moments
            Result, for all m points, of which the selected ones are written. Gradients are computed
            if it has room for them.
        with_noise : bool, default=False
            Whether variances include the noise.
        """
        noise = self.noise if with_noise else 0.0
        predict_leaf(
            self._posterior, self._covariance, mean, variance, noise, rows, selected, moments
        )

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
        points, whitening, solved_ones, solved_targets, scale = self._posterior
        cross = self._covariance.between(rows, points)
        white, unexplained = cross @ whitening, 1.0 - cross @ solved_ones
        means = mean + cross @ (solved_targets - mean * solved_ones)
        own = self._covariance.between(rows, rows) - white @ white.T
        return means, scale * own + variance * np.outer(unexplained, unexplained)  # eq. 2.41

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
        _, whitening, solved_ones, solved_targets, scale = self._posterior
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
        points, whitening, solved_ones, solved_targets, scale = self._posterior
        prior_std = math.sqrt(scale * self._covariance.amplitude)
        noise_std = math.sqrt(self.noise)
        at_points = prior_std * prior(points) + noise_std * rng.standard_normal(len(points))
        weights = solved_targets - mean * solved_ones - whitening @ (at_points @ whitening)

        def function(rows: FloatArray) -> FloatArray:
            cross = self._covariance.between(rows, points)
            return np.asarray(mean + prior_std * prior(rows) + cross @ weights)

        return function


@njit(cache=True, nogil=True)
def predict_leaf(  # type: ignore[no-untyped-def]
    posterior, covariance, mean, variance, noise, rows, selected, moments
):
    """Write the predictive moments of a leaf (Rasmussen2006, Algorithm 2.1 and eq. 2.41).

    One compiled call computes all of them, because predictions are most of the time of a
    suggestion.

    Parameters
    ----------
    posterior : Posterior
        The leaf.
    covariance : Covariance
        Hyper-parameters of the process.
    mean, variance : float
        Posterior mean and variance of the leaf's mean given all targets.
    noise : float
        Variance that is added to the variances.
    rows, selected, moments
        As in :meth:`GaussianProcessLeaf.predict`.
    """
    d, n = rows.shape[1], posterior.points.shape[0]
    m = len(selected)
    points = np.empty((m, d))
    for i in range(m):
        points[i] = rows[selected[i]]
    with_gradients = len(moments.mean_gradients) > 0
    amplitude = covariance.amplitude
    cross = np.empty((m, n))
    factors = np.empty((m if with_gradients else 0, n))
    cross_kernel(points, posterior.points, covariance, cross, factors)
    cross *= amplitude
    factors *= amplitude
    weights = posterior.solved_targets - mean * posterior.solved_ones
    means = np.dot(cross, weights)  # line 4: k_*^T alpha
    explained = np.dot(cross, posterior.solved_ones)
    white = np.dot(cross, posterior.whitening)  # line 5: v = L \ k_*
    prior_variance = amplitude * (1.0 + covariance.shared_noise / amplitude)
    for i in range(m):
        index, unexplained = selected[i], 1.0 - explained[i]
        own = prior_variance
        for k in range(n):
            own -= white[i, k] * white[i, k]  # line 6: k_** - v^T v
        own = posterior.scale * max(own, _SMALLEST_SHARE * amplitude)
        moments.means[index] = mean + means[i]
        # Eq. 2.41: the unknown mean adds R^T variance R with R = 1 - 1^T A^-1 k_*.
        moments.variances[index] = own + variance * unexplained * unexplained + noise
    if not with_gradients:
        return
    # Derivatives of the variance and of the mean by entries of `cross`, times gradient factors.
    of_variance = np.dot(white, posterior.whitening.T)
    for i in range(m):
        unexplained = variance * (1.0 - explained[i])
        for k in range(n):
            of_variance[i, k] = -2.0 * (
                posterior.scale * of_variance[i, k] + unexplained * posterior.solved_ones[k]
            )
            of_variance[i, k] *= factors[i, k]
            factors[i, k] *= weights[k]
    of_mean = factors
    # The sums over k of s_ik (x_ij - x_kj), as two matrix products.
    mean_sums = np.dot(of_mean, posterior.points)
    variance_sums = np.dot(of_variance, posterior.points)
    for i in range(m):
        index = selected[i]
        mean_total, variance_total = of_mean[i].sum(), of_variance[i].sum()
        for j in range(d):
            precision = 0.0 if covariance.categorical[j] else covariance.precisions[j]
            x = points[i, j]
            moments.mean_gradients[index, j] = precision * (x * mean_total - mean_sums[i, j])
            moments.variance_gradients[index, j] = precision * (
                x * variance_total - variance_sums[i, j]
            )
