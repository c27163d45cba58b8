"""Acquisition under constraints: scores weighted by the probability of feasibility."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from mondrian_bo.acquisitions.base import Acquisition, Usage
from mondrian_bo.array_types import FloatArray

Score: TypeAlias = Callable[[FloatArray], FloatArray]
"""Maps rows of shape (m, d) to scores of shape (m,)."""


def constrained(acquisition: Acquisition, score: Score, log_probability: Score) -> Score:
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
    log_probability : callable
        The logarithm of the probability, <= 0.

    Returns
    -------
    callable
        The weighted scores.

    References
    ----------
    Gardner et al. (2014), Bayesian optimization with inequality constraints, equation (5).
    """
    usage: Usage = getattr(acquisition, "usage", Usage())
    if usage.multiplies_by_probability:
        return lambda rows: score(rows) * np.exp(log_probability(rows))
    return lambda rows: score(rows) + log_probability(rows)


def log_probability_below(mean: FloatArray, std: FloatArray, bound: float) -> FloatArray:
    """Return the logarithm of the probability that Gaussians are at most a bound.

    Parameters
    ----------
    mean, std : ndarray of float64, shape (m,)
        Moments; a standard deviation of 0 is a point mass.
    bound : float
        The bound.

    Returns
    -------
    ndarray of float64, shape (m,)
        The logarithms, finite: no prediction excludes a candidate altogether.
    """
    # Loaded here: a sampler is constructed without scipy.
    from scipy.special import log_ndtr

    least = np.finfo(np.float64).tiny
    with np.errstate(over="ignore"):
        scores = (bound - mean) / np.maximum(std, least)
    return np.asarray(log_ndtr(np.clip(scores, -1e100, 1e100)))
