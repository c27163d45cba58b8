"""A Gaussian process on the points of one block."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from mondrian_bo.surrogates.gaussian_process.kernel import cross_kernel, point_gradient

FloatArray = NDArray[np.float64]

_LARGEST_JITTER = 1e-2


class Covariance(NamedTuple):
    """Parameters of the processes, shared by all blocks.

    Attributes
    ----------
    precisions : float64 array of shape (d,)
        Inverse squared lengthscales.
    amplitude : float
        Variance of a process.
    noise : float
        Variance of the noise.
    categorical : bool array of shape (d,)
        Which dimensions hold categories.
    """

    precisions: FloatArray
    amplitude: float
    noise: float
    categorical: NDArray[np.bool_]

    def between(self, points: FloatArray, others: FloatArray) -> FloatArray:
        """Return the covariances between two sets of points, shape (m, n), without noise."""
        result = np.empty((len(points), len(others)))
        cross_kernel(points, others, self.precisions, self.categorical, result)
        result *= self.amplitude
        return result

    def slopes(self, points: FloatArray, others: FloatArray, weights: FloatArray) -> FloatArray:
        """Return the derivatives of ``sum_k weights_hik between_ik`` by each point, (h, m, d)."""
        result = np.empty((len(weights), *points.shape))
        point_gradient(points, others, self.precisions, self.categorical, weights, result)
        result *= self.amplitude
        return result


def factorise(matrix: FloatArray) -> FloatArray:
    """Return the lower Cholesky factor of a covariance matrix, which it overwrites.

    The diagonal is raised as little as need be where rounding has made the matrix indefinite.

    Raises
    ------
    numpy.linalg.LinAlgError
        If the matrix holds NaN or infinity, or is no covariance by far.
    """
    jitter = 1e-10 * float(matrix.diagonal().mean())
    largest = _LARGEST_JITTER * float(matrix.diagonal().mean())
    while True:
        factor, info = lapack.dpotrf(matrix, lower=1, clean=1)
        if info == 0:
            return np.asarray(factor)
        if not jitter < largest:
            raise np.linalg.LinAlgError("The covariance matrix is not positive definite.")
        matrix[np.diag_indices(len(matrix))] += jitter
        jitter *= 10.0


class Block:
    """The posterior of a process on some points, as a function of its mean.

    The labels are ``mean + process + noise``. All that depends on the unknown constant mean is kept
    apart, so that the block enters a tree as one Gaussian message about its mean.

    Parameters
    ----------
    points : float64 array of shape (n, d)
        The points, n >= 1.
    targets : float64 array of shape (n,)
        Their labels.
    covariance : Covariance
        The process.
    scale_strength : float, default=inf
        The covariance, noise included, is multiplied by ``(strength + residual) / (strength + n)``,
        as if so many points more had confirmed it.

    Attributes
    ----------
    precision, location : float
        The message: precision of the mean given the labels alone, and where it is centred.
    residual, log_determinant : float
        ``(y - location)' A^-1 (y - location)`` and log det A, of the log marginal likelihood
        ``-1/2 (residual + precision (mean - location)^2 + log_determinant + n log 2 pi)``.
    noise : float
        Variance of the noise of its labels.

    Notes
    -----
    O(n^3); predictions take O(n^2) each.
    """

    def __init__(
        self,
        points: FloatArray,
        targets: FloatArray,
        covariance: Covariance,
        scale_strength: float = math.inf,
    ) -> None:
        self._points = points
        self._covariance = covariance
        matrix = covariance.between(points, points)
        matrix[np.diag_indices(len(matrix))] += covariance.noise
        self._factor = factorise(matrix)
        sides = np.stack([np.ones(len(points)), targets], axis=1)
        solved, _ = lapack.dpotrs(self._factor, sides, lower=1)
        self._ones, self._targets = np.ascontiguousarray(solved.T)
        precision = float(self._ones.sum())
        self.location = float(self._ones @ targets) / precision
        centred = targets - self.location
        residual = max(float(centred @ (self._targets - self.location * self._ones)), 0.0)
        n = len(points)
        self._scale = 1.0
        if scale_strength < math.inf:
            self._scale = (scale_strength + residual) / (scale_strength + n)
        self.precision = precision / self._scale
        self.residual = residual / self._scale
        self.log_determinant = 2.0 * float(np.log(self._factor.diagonal()).sum())
        self.log_determinant += n * math.log(self._scale)
        self.noise = covariance.noise * self._scale

    def predict(
        self, points: FloatArray, mean: float, variance: float
    ) -> tuple[FloatArray, FloatArray]:
        """Predict the function, without noise, where the mean has a known law given all labels.

        Parameters
        ----------
        points : float64 array of shape (m, d)
            Where to predict.
        mean, variance : float
            Posterior of the block's mean.

        Returns
        -------
        means, variances : float64 arrays of shape (m,)
        """
        cross = self._covariance.between(points, self._points)
        means = mean + cross @ (self._targets - mean * self._ones)
        half = self._half(cross)
        left = 1.0 - cross @ self._ones
        variances = self._covariance.amplitude - np.einsum("ki,ki->i", half, half)
        variances = self._scale * np.maximum(variances, self._floor())
        return means, variances + variance * left * left

    def predict_with_slopes(
        self, points: FloatArray, mean: float, variance: float
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Predict as `predict` does, and return the slopes of means and variances, (m, d)."""
        covariance = self._covariance
        cross = covariance.between(points, self._points)
        weights = self._targets - mean * self._ones
        means = mean + cross @ weights
        solved, _ = lapack.dpotrs(self._factor, cross.T, lower=1)
        left = 1.0 - cross @ self._ones
        variances = covariance.amplitude - np.einsum("ik,ki->i", cross, solved)
        variances = self._scale * np.maximum(variances, self._floor()) + variance * left * left
        pull = -2.0 * (self._scale * solved.T + variance * left[:, None] * self._ones)
        slopes = covariance.slopes(
            points, self._points, np.stack([np.broadcast_to(weights, pull.shape), pull])
        )
        return means, variances, slopes[0], slopes[1]

    def draw(
        self, mean: float, features: Callable[[FloatArray], FloatArray], rng: np.random.Generator
    ) -> Callable[[FloatArray], FloatArray]:
        """Draw a function from the posterior, given the block's mean and a draw from the prior.

        Matheron's rule: the prior's function, corrected by what the labels say of it.

        Parameters
        ----------
        mean : float
            The mean.
        features : callable
            A function drawn from the prior of a process of amplitude 1.
        rng : numpy.random.Generator
            Source of the noise.

        References
        ----------
        Wilson et al. (2020), Efficiently sampling functions from Gaussian process posteriors.
        """
        size = math.sqrt(self._scale * self._covariance.amplitude)
        noise = math.sqrt(self.noise)
        at_points = size * features(self._points) + noise * rng.standard_normal(len(self._points))
        correction, _ = lapack.dpotrs(self._factor, at_points, lower=1)
        weights = self._targets - mean * self._ones - correction

        def function(points: FloatArray) -> FloatArray:
            cross = self._covariance.between(points, self._points)
            return np.asarray(mean + size * features(points) + cross @ weights)

        return function

    def _half(self, cross: FloatArray) -> FloatArray:
        solved, _ = lapack.dtrtrs(self._factor, cross.T, lower=1)
        return np.asarray(solved)

    def _floor(self) -> float:
        return 1e-12 * self._covariance.amplitude


def log_evidence(block: Block, n_points: int, mean: float, variance: float) -> float:
    """Return the log marginal likelihood of a block's labels under a Gaussian law of its mean."""
    scale = 1.0 + variance * block.precision
    gap = block.location - mean
    return -0.5 * (
        block.residual
        + block.precision / scale * gap * gap
        + block.log_determinant
        + math.log(scale)
        + n_points * math.log(2.0 * math.pi)
    )
