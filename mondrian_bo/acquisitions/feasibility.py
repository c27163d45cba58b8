"""Acquisition under constraints: scores weighted by the probability of feasibility."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol, TypeAlias

import numpy as np

from mondrian_bo.acquisitions.base import Acquisition, Usage
from mondrian_bo.array_types import FloatArray

_LARGEST_SCORE = 1e100
"""Cap of standardised distances from a bound: their squares stay finite."""

_LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)
"""Log of the normalising constant of the standard normal density."""

Score: TypeAlias = Callable[[FloatArray], FloatArray]
"""Maps rows of shape (m, d) to scores of shape (m,)."""


Gradients: TypeAlias = Callable[[FloatArray], tuple[FloatArray, FloatArray]]
"""Maps rows of shape (m, d) to scores of shape (m,) and their derivatives of shape (m, d)."""


class Feasibility(Protocol):
    """The probability that constraints hold."""

    @property
    def n_gradients(self) -> int:
        """Number of Gaussians behind a prediction with gradients; 0 if there are none."""
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
    gradients: Gradients | None,
    feasibility: Feasibility,
) -> tuple[Score, Gradients | None]:
    """Weight the scores of an acquisition by the probability that candidates are feasible.

    Expected and probability of improvement are multiplied by it (equation 5). Its logarithm is
    added to all other scores: to the logarithm of the expected improvement, where that is the same,
    and to confidence bounds and drawn functions, where it is a barrier.

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

    Returns
    -------
    score, gradients : callables
        The weighted scores; no gradients unless both have them.

    References
    ----------
    Gardner et al. (2014), Bayesian optimization with inequality constraints, equation (5).
    """
    usage: Usage = getattr(acquisition, "usage", Usage())
    multiplies = usage.multiplies_by_probability

    def weighted(rows: FloatArray) -> FloatArray:
        logs = feasibility.log_probability(rows)
        return score(rows) * np.exp(logs) if multiplies else score(rows) + logs

    if gradients is None or feasibility.n_gradients == 0:
        return weighted, None

    def weighted_gradients(rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        scores, slopes = gradients(rows)
        logs, log_slopes = feasibility.gradients(rows)
        if not multiplies:
            return scores + logs, slopes + log_slopes
        probabilities = np.exp(logs)
        slopes = probabilities[:, None] * (slopes + scores[:, None] * log_slopes)
        return scores * probabilities, slopes

    return weighted, weighted_gradients


def log_probabilities_above(
    means: FloatArray, stds: FloatArray, bound: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the log-probability that mixtures of Gaussians are at least a bound, and derivatives.

    Parameters
    ----------
    means, stds : ndarray of float64, shape (C, m)
        Moments of C equally weighted components; a standard deviation of 0 is a point mass.
    bound : float
        The bound.

    Returns
    -------
    log_probabilities : ndarray of float64, shape (m,)
        The logarithms, finite: no prediction excludes a candidate altogether.
    by_means, by_stds : ndarray of float64, shape (C, m)
        Their derivatives with respect to the moments.
    """
    # Loaded here: a sampler is constructed without scipy.
    from scipy.special import log_ndtr

    stds = np.maximum(stds, np.finfo(np.float64).tiny)
    with np.errstate(over="ignore"):
        scores = np.clip((means - bound) / stds, -_LARGEST_SCORE, _LARGEST_SCORE)
        logs = log_ndtr(scores)
        total = np.logaddexp.reduce(logs, axis=0)
        # The density over the probability of each component, times its share of the mixture's.
        ratios = np.exp(-0.5 * scores * scores - _LOG_SQRT_2PI - total)
        by_means = ratios / stds
    return total - np.log(len(means)), by_means, -scores * by_means
