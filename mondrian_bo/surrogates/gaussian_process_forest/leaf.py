"""A Gaussian process on the points of one block."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.linalg import lapack

from mondrian_bo.array_types import FloatArray, IntArray
from mondrian_bo.surrogates.gaussian_process.covariance import Covariance, factorise
from mondrian_bo.surrogates.gaussian_process_forest.predict import Moments, Posterior, predict_leaf


class GaussianProcessLeaf:
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
        Variance of the noise that its labels do not share.

    Notes
    -----
    O(n^3), and n^2 numbers are kept; predictions take O(n^2) each.
    """

    def __init__(
        self,
        points: FloatArray,
        targets: FloatArray,
        covariance: Covariance,
        scale_strength: float = math.inf,
    ) -> None:
        self._covariance = covariance
        factor = factorise(covariance.of_labels(points))
        log_determinant = 2.0 * float(np.log(factor.diagonal()).sum())
        sides = np.stack([np.ones(len(points)), targets], axis=1)
        solved, _ = lapack.dpotrs(factor, sides, lower=1)
        ones, solved_targets = np.ascontiguousarray(solved.T)
        precision = float(ones.sum())
        self.location = float(ones @ targets) / precision
        centred = targets - self.location
        residual = max(float(centred @ (solved_targets - self.location * ones)), 0.0)
        n = len(points)
        scale = 1.0
        if scale_strength < math.inf:
            scale = (scale_strength + residual) / (scale_strength + n)
        self.precision = precision / scale
        self.residual = residual / scale
        self.log_determinant = log_determinant + n * math.log(scale)
        self.noise = covariance.own_noise * scale
        inverse, _ = lapack.dtrtri(factor, lower=1, overwrite_c=1)
        self._posterior = Posterior(points, inverse.T, ones, solved_targets, scale)

    def predict(
        self,
        rows: FloatArray,
        places: IntArray,
        mean: float,
        variance: float,
        moments: Moments,
        labels: bool = False,
    ) -> None:
        """Predict where the mean has a known law given all labels.

        Parameters
        ----------
        rows : float64 array of shape (m, d)
            Points.
        places : int64 array of shape (k,)
            Which of them to predict.
        mean, variance : float
            Posterior of the block's mean.
        moments : Moments
            Where to write the predictions, and their gradients if it has room for them.
        labels : bool, default=False
            Whether variances include the noise.
        """
        covariance = self._covariance
        predict_leaf(
            self._posterior,
            covariance.precisions,
            covariance.amplitude,
            covariance.categorical,
            covariance.smoothness,
            covariance.peak,
            mean,
            variance,
            self.noise if labels else 0.0,
            rows,
            places,
            moments,
        )

    def leave_one_out(self, mean: float, variance: float) -> tuple[FloatArray, FloatArray]:
        """Compare each label with what all others say of it.

        Parameters
        ----------
        mean, variance : float
            Posterior of the block's mean given all labels.

        Returns
        -------
        residuals, variances : float64 arrays of shape (n,)
            Labels minus their means given all others, and their variances given these.
        """
        _, whitening, ones, targets, scale = self._posterior
        # With the uncertain mean as part of the covariance, a term of rank one.
        precisions = (whitening * whitening).sum(axis=1) - variance / scale * ones * ones
        return (targets - mean * ones) / precisions, scale / precisions

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
        points, whitening, ones, targets, scale = self._posterior
        size = math.sqrt(scale * self._covariance.amplitude)
        noise = math.sqrt(self.noise)
        at_points = size * features(points) + noise * rng.standard_normal(len(points))
        weights = targets - mean * ones - whitening @ (at_points @ whitening)

        def function(rows: FloatArray) -> FloatArray:
            cross = self._covariance.between(rows, points)
            return np.asarray(mean + size * features(rows) + cross @ weights)

        return function


def log_evidence(block: GaussianProcessLeaf, n_points: int, mean: float, variance: float) -> float:
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
