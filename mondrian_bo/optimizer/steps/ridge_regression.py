"""Weighted Bayesian linear regression with one prior variance, which the evidence chooses."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from mondrian_bo.shared.array_types import FloatArray

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
    correlation : float
        Rank correlation of the targets and these predictions.
    """

    vectors: FloatArray
    location: FloatArray
    deviations: FloatArray
    left_out: FloatArray
    correlation: float

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

    def fit(self, scales: FloatArray, ranks: FloatArray) -> RidgeFit:
        """Return the posterior on the scale on which left-out targets are ranked best.

        Parameters
        ----------
        scales : float64 array of shape (s, n)
            The targets on each scale.
        ranks : float64 array of shape (n,)
            Their ranks, the same on all scales (see :func:`ranks_of`).
        """
        data = self._rotated, self._values, self._determinants, self._weights, self._roots
        return RidgeFit(self._vectors, *_fit_best(data, scales, ranks))


@njit(cache=True, nogil=True, error_model="numpy")
def _fit_best(data, scales, ranks):  # type: ignore[no-untyped-def]
    """Fit to the targets on each scale; return what :class:`RidgeFit` has beside the vectors.

    `data` are those of :func:`_fit`.
    """
    n, p = data[0].shape
    best = np.empty(p), np.empty(p), np.empty(n), -math.inf
    for k in range(len(scales)):
        location, deviations, left_out = np.empty(p), np.empty(p), np.empty(n)
        _fit(data, scales[k], location, deviations, left_out)
        correlation = correlation_of(ranks_of(left_out), ranks)
        if k == 0 or correlation > best[3]:
            best = location, deviations, left_out, correlation
    return best


@njit(cache=True, nogil=True)
def ranks_of(values):  # type: ignore[no-untyped-def]
    """Return the ranks of values, from 0, shape (n,); equal ones share their mean."""
    n = len(values)
    # Shell's sort: numba takes more than a second to compile `numpy.argsort`.
    order = np.arange(n)
    gap = n // 2
    while gap > 0:
        for i in range(gap, n):
            index, k = order[i], i
            while k >= gap and values[order[k - gap]] > values[index]:
                order[k] = order[k - gap]
                k -= gap
            order[k] = index
        gap //= 2
    ranks, first = np.empty(n), 0
    while first < n:
        end = first + 1
        while end < n and values[order[end]] == values[order[first]]:
            end += 1
        for i in range(first, end):
            ranks[order[i]] = 0.5 * (first + end - 1)
        first = end
    return ranks


@njit(cache=True, nogil=True)
def correlation_of(one, other):  # type: ignore[no-untyped-def]
    """Return the correlation of two arrays of shape (n,), 0 if one is constant."""
    n = len(one)
    one_mean, other_mean = 0.0, 0.0
    for i in range(n):
        one_mean += one[i]
        other_mean += other[i]
    # The mean of ranks is exact, as their sum is: so equal correlations are equal numbers.
    one_mean /= n
    other_mean /= n
    product, one_square, other_square = 0.0, 0.0, 0.0
    for i in range(n):
        one_gap, other_gap = one[i] - one_mean, other[i] - other_mean
        product += one_gap * other_gap
        one_square += one_gap * one_gap
        other_square += other_gap * other_gap
    size = math.sqrt(one_square * other_square)
    return product / size if size > 0.0 else 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def _fit(data, targets, location, deviations, left_out):  # type: ignore[no-untyped-def]
    """Write the posterior given targets on one scale, and left-out predictions.

    Parameters
    ----------
    data : tuple of five float64 arrays
        Centred features along the principal directions, times the roots of weights, (n, p). Squares
        of their lengths, (p,). For each ratio of variances, minus twice the part of the log
        evidence without targets, (r,). Weights of sum 1, and their roots, (n,).
    targets : float64 array of shape (n,)
        The targets.
    location, deviations, left_out : float64 arrays of shapes (p,), (p,) and (n,)
        Results, see :class:`RidgeFit`.
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
    # In units of the precision of the noise.
    precisions = np.empty(p)
    for k in range(p):
        precisions[k] = values[k] + _RIDGES[chosen] / n
        location[k] /= precisions[k]
        deviations[k] = math.sqrt(noise / (n - 1) / precisions[k])
    for i in range(n):
        explained, leverage = 0.0, weights[i]
        for k in range(p):
            explained += rotated[i, k] * location[k]
            leverage += rotated[i, k] * rotated[i, k] / precisions[k]
        error = targets[i] - middle - explained / roots[i]
        left_out[i] = targets[i] - error / max(1.0 - leverage, _LEAST_FREEDOM)
