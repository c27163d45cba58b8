"""Weighted Bayesian linear regression with one prior variance, which the evidence chooses."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

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
    vectors : float64 array of shape (p, p)
        Columns are the principal directions of the coefficients, along which they are independent.
    location, deviations : float64 arrays of shape (p,)
        Mean and standard deviations along these directions.
    left_out : float64 array of shape (n,)
        Predictions of the targets, each given all others.
    """

    vectors: FloatArray
    location: FloatArray
    deviations: FloatArray
    left_out: FloatArray

    @property
    def mean(self) -> FloatArray:
        """The mean of the coefficients, shape (p,)."""
        return self.vectors @ self.location

    @property
    def factor(self) -> FloatArray:
        """A matrix of shape (p, p) whose product with its transpose is the covariance."""
        return self.vectors * self.deviations


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
        # The ratios of variances are those of a target of average weight, 1 / n.
        n = len(weights)
        self._determinants = np.log1p(n * self._values / _RIDGES[:, None]).sum(axis=1)

    def fit(self, targets: FloatArray) -> RidgeFit:
        """Return the posterior given targets of shape (n,)."""
        n, p = self._rotated.shape
        location, precisions, left_out = np.empty(p), np.empty(p), np.empty(n)
        data = self._rotated, self._values, self._determinants, self._weights, self._roots
        noise = _fit(data, targets, location, precisions, left_out)
        return RidgeFit(self._vectors, location, np.sqrt(noise / precisions), left_out)


@njit(cache=True, nogil=True, error_model="numpy")
def _fit(data, targets, location, precisions, left_out):  # type: ignore[no-untyped-def]
    """Write a posterior and left-out predictions, and return the noise variance.

    Parameters
    ----------
    data : tuple of five float64 arrays
        Centred features along the principal directions, times the roots of weights, (n, p). Squares
        of their lengths, (p,). For each ratio of variances, minus twice the part of the log
        evidence without targets, (r,). Weights of sum 1, and their roots, (n,).
    targets : float64 array of shape (n,)
        The targets.
    location, precisions : float64 arrays of shape (p,)
        Results: means along the directions, and precisions in those of the noise.
    left_out : float64 array of shape (n,)
        Result.

    Returns
    -------
    float
        Noise variance of a target of weight 1.
    """
    rotated, values, determinants, weights, roots = data
    n, p = rotated.shape
    middle = 0.0
    for i in range(n):
        middle += weights[i] * targets[i]
    total = 0.0
    for k in range(p):
        location[k] = 0.0
    for i in range(n):
        weighted = (targets[i] - middle) * roots[i]
        total += weighted * weighted
        for k in range(p):
            location[k] += rotated[i, k] * weighted
    chosen, noise, least = 0, math.nan, math.inf
    for r in range(len(_RIDGES)):
        left = total
        for k in range(p):
            left -= location[k] * location[k] / (values[k] + _RIDGES[r] / n)
        left = max(left, _LEAST_NOISE * total)
        loss = (n - 1) * math.log(left) + determinants[r]
        if loss < least:
            chosen, noise, least = r, left, loss
    for k in range(p):
        precisions[k] = values[k] + _RIDGES[chosen] / n
        location[k] /= precisions[k]
    for i in range(n):
        explained, leverage = 0.0, weights[i]
        for k in range(p):
            explained += rotated[i, k] * location[k]
            leverage += rotated[i, k] * rotated[i, k] / precisions[k]
        error = targets[i] - middle - explained / roots[i]
        left_out[i] = targets[i] - error / max(1.0 - leverage, _LEAST_FREEDOM)
    return noise / (n - 1)
