"""Weighted Bayesian linear regression with one prior variance, which the evidence chooses."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mondrian_bo.array_types import FloatArray

_RIDGES = 10.0 ** np.linspace(-12.0, 2.0, 29)
"""Ratios of the noise variance to the prior variance among which the evidence chooses."""

_LEAST_NOISE = 1e-12
"""Smallest noise variance, in units of the variance of the targets: above rounding errors."""

_LEAST_FREEDOM = 1e-9
"""Smallest share of a target that the others determine: above rounding errors."""


class RidgeFit(NamedTuple):
    """The posterior of the coefficients of a ridge regression, a normal distribution.

    Attributes
    ----------
    mean : float64 array of shape (p,)
        Its mean.
    factor : float64 array of shape (p, p)
        A matrix whose product with its transpose is the covariance.
    left_out : float64 array of shape (n,)
        Predictions of the targets, each given all others.
    """

    mean: FloatArray
    factor: FloatArray
    left_out: FloatArray


class RidgeRegression:
    """Weighted Bayesian linear regression with an intercept and one prior variance.

    The noise variance of a target is in inverse proportion to its weight, the intercept has a flat
    prior, and the other coefficients have one prior variance. It maximises the evidence, as does
    the noise variance.

    Parameters
    ----------
    features : float64 array of shape (n, p)
        Features without the intercept.
    weights : float64 array of shape (n,)
        Positive weights; only their ratios matter.
    """

    def __init__(self, features: FloatArray, weights: FloatArray) -> None:
        self._weights = weights / weights.sum()
        self._roots = np.sqrt(self._weights)
        centred = (features - self._weights @ features) * self._roots[:, None]
        values, self._vectors = np.linalg.eigh(centred.T @ centred)
        self._values = np.maximum(values, 0.0)
        self._rotated = centred @ self._vectors

    def fit(self, targets: FloatArray) -> RidgeFit:
        """Return the posterior given targets of shape (n,)."""
        n = len(targets)
        weighted = (targets - self._weights @ targets) * self._roots
        projected = self._rotated.T @ weighted
        total = weighted @ weighted
        # The ratios are those of a target of average weight, 1 / n.
        explained = (projected**2 / (self._values + _RIDGES[:, None] / n)).sum(axis=1)
        noise = np.maximum(total - explained, _LEAST_NOISE * total)
        determinants = np.log1p(n * self._values / _RIDGES[:, None]).sum(axis=1)
        chosen = int(np.argmin((n - 1) * np.log(noise) + determinants))
        precisions = self._values + _RIDGES[chosen] / n
        leverages = (self._rotated**2 / precisions).sum(axis=1) + self._weights
        errors = (weighted - self._rotated @ (projected / precisions)) / self._roots
        return RidgeFit(
            self._vectors @ (projected / precisions),
            np.sqrt(noise[chosen] / (n - 1)) * self._vectors / np.sqrt(precisions),
            targets - errors / np.maximum(1.0 - leverages, _LEAST_FREEDOM),
        )
