"""Acquisition under constraints: scores weighted by the probability of feasibility."""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np
from numba import njit

from mondrian_bo.acquisitions.base import Acquisition, Score, ScoreGradients, usage_of
from mondrian_bo.shared.array_types import FloatArray

_LARGEST_SCORE = 1e100
"""Cap of standardised distances from a bound: their squares stay finite."""

_LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)
"""Log of the normalising constant of the standard normal density."""

_SQRT_HALF = math.sqrt(0.5)
"""Factor of the argument of the error function in the normal distribution function."""

_SMALLEST_STD = float(np.finfo(np.float64).tiny)
"""Standard deviation that a point mass counts as."""

_FAR = -30.0
"""Standardised distance below which probabilities are those of a series: soon after, they are too
small for float64."""

_LAST_FACTOR = 13
"""Last factor 1, 3, 5, ... of the series, whose next term is below the precision of float64."""


class Feasibility(Protocol):
    """The probability that constraints hold."""

    @property
    def n_smooth_components(self) -> int:
        """Number of components of predictions with gradients; 0 without gradients."""
        ...

    def log_probability(self, rows: FloatArray) -> FloatArray:
        """Return its logarithm at rows of shape (m, d), shape (m,)."""
        ...

    def gradients(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return its logarithm, shape (m,), and the derivatives of that, shape (m, d)."""
        ...


def constrained(
    acquisition: Acquisition,
    score: Score,
    gradients: ScoreGradients | None,
    feasibility: Feasibility,
    exponent: float = 1.0,
) -> tuple[Score, ScoreGradients | None]:
    """Weight the scores of an acquisition by the probability that candidates are feasible.

    The expected improvement and the probability of improvement are multiplied by the probability
    (equation 5), as an infeasible candidate improves nothing. To every other score the logarithm of
    the probability is added. With the logarithm of the expected improvement, the sum is the
    logarithm of that product. Confidence bounds and drawn functions may be negative, so that a
    product would favour infeasible candidates; there the logarithm is a barrier.

    Parameters
    ----------
    acquisition : Acquisition
        Its `usage` says how scores are combined with the probability.
    score : callable
        Its scores.
    gradients : callable or None
        Its scores and their derivatives.
    feasibility : Feasibility
        The probability.
    exponent : float, default=1.0
        Power of the probability that counts. Above 1, candidates that may be infeasible count less.

    Returns
    -------
    score, gradients : callables
        The weighted scores; no gradients unless both have them.

    References
    ----------
    Gardner et al. (2014), Bayesian optimization with inequality constraints, equation (5).
    """
    multiplies = usage_of(acquisition).multiplies_by_probability

    def weighted(rows: FloatArray) -> FloatArray:
        logs = exponent * feasibility.log_probability(rows)
        return score(rows) * np.exp(logs) if multiplies else score(rows) + logs

    if gradients is None or feasibility.n_smooth_components == 0:
        return weighted, None

    def weighted_gradients(rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        scores, by_rows = gradients(rows)
        logs, log_gradients = feasibility.gradients(rows)
        logs, log_gradients = exponent * logs, exponent * log_gradients
        if not multiplies:
            return scores + logs, by_rows + log_gradients
        probabilities = np.exp(logs)
        by_rows = probabilities[:, None] * (by_rows + scores[:, None] * log_gradients)
        return scores * probabilities, by_rows

    return weighted, weighted_gradients


@njit(cache=True, nogil=True, error_model="numpy")
def log_probabilities_above(means, stds, bound):  # type: ignore[no-untyped-def]
    """Return the log-probability that mixtures of Gaussians are at least a bound, and derivatives.

    Parameters
    ----------
    means, stds : float64 arrays of shape (C, m)
        Moments of C equally weighted components; a standard deviation of 0 is a point mass.
    bound : float
        The bound.

    Returns
    -------
    log_probabilities : float64 array of shape (m,)
        The logarithms, finite: no prediction excludes a candidate altogether.
    by_means, by_stds : float64 arrays of shape (C, m)
        Their derivatives with respect to the moments.
    """
    n_components, m = means.shape
    totals = np.empty(m)
    by_means, by_stds = np.empty((n_components, m)), np.empty((n_components, m))
    scores, logs = np.empty(n_components), np.empty(n_components)
    for i in range(m):
        largest = -np.inf
        for c in range(n_components):
            score = (means[c, i] - bound) / max(stds[c, i], _SMALLEST_STD)
            scores[c] = min(max(score, -_LARGEST_SCORE), _LARGEST_SCORE)
            logs[c] = _log_probability(scores[c])
            largest = max(largest, logs[c])
        total = 0.0
        for c in range(n_components):
            total += math.exp(logs[c] - largest)
        total = largest + math.log(total)
        totals[i] = total - math.log(n_components)
        for c in range(n_components):
            # The density over the probability of a component, times its share of the mixture's.
            z = scores[c]
            if z > _FAR:
                ratio = math.exp(-0.5 * z * z - _LOG_SQRT_2PI - total)
            else:
                # Both logarithms are about z^2 / 2: their difference would have few digits.
                ratio = -z / _mills_series(z) * math.exp(logs[c] - total)
            by_means[c, i] = ratio / max(stds[c, i], _SMALLEST_STD)
            by_stds[c, i] = -scores[c] * by_means[c, i]
    return totals, by_means, by_stds


@njit(cache=True, nogil=True, error_model="numpy")
def log_probability_gradients(moments, bound):  # type: ignore[no-untyped-def]
    """Return the logarithms of :func:`log_probabilities_above` and their derivatives by rows.

    Parameters
    ----------
    moments : tuple of four float64 arrays
        Means and standard deviations, shape (C, m), and their derivatives, shape (C, m, d).
    bound : float
        The bound.

    Returns
    -------
    log_probabilities : float64 array of shape (m,)
        The logarithms.
    gradients : float64 array of shape (m, d)
        Their derivatives.
    """
    means, stds, mean_gradients, std_gradients = moments
    logs, by_means, by_stds = log_probabilities_above(means, stds, bound)
    n_components, m, d = mean_gradients.shape
    gradients = np.zeros((m, d))
    for c in range(n_components):
        for i in range(m):
            for j in range(d):
                gradients[i, j] += by_means[c, i] * mean_gradients[c, i, j]
                gradients[i, j] += by_stds[c, i] * std_gradients[c, i, j]
    return logs, gradients


@njit(cache=True, nogil=True, error_model="numpy")
def _log_probability(z: float) -> float:
    """Return the logarithm of the standard normal distribution function."""
    if z > 0.0:
        return math.log1p(-0.5 * math.erfc(_SQRT_HALF * z))
    if z > _FAR:
        return math.log(0.5 * math.erfc(-_SQRT_HALF * z))
    return -0.5 * z * z - _LOG_SQRT_2PI - math.log(-z) + math.log(_mills_series(z))


@njit(cache=True, nogil=True, error_model="numpy")
def _mills_series(z: float) -> float:
    """Return the Mills ratio at a score below `_FAR`, times the magnitude of the score.

    It is 1 - 1/z^2 + 3/z^4 - 15/z^6 + ..., by Horner's rule.
    """
    inverse, series = 1.0 / (z * z), 1.0
    for factor in range(_LAST_FACTOR, 0, -2):
        series = 1.0 - factor * inverse * series
    return series
