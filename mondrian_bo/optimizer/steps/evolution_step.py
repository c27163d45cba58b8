"""A step of an evolution strategy: offspring of the best of the latest trials.

A quadratic around the incumbent does not hold where a function has a kink at its optimum, or bends
along its valley. The best trials still show in which directions a function improves, and how far
apart good points lie. Offspring are normal around a weighted mean of them, with their covariance:
the distribution of CMA-ES (Hansen and Ostermeier (2001), Completely derandomized self-adaptation in
evolution strategies) with the covariance of the present parents alone, as in the estimation of
multivariate normal algorithm (Larranaga and Lozano (2001), Estimation of distribution algorithms).
Only the latest trials are parents, so that the mean can leave a poor basin. A model chooses among
the offspring (Kern, Hansen and Koumoutsakos (2006), Local meta-models for optimization using
evolution strategies).
"""

from __future__ import annotations

import math

import numpy as np

from mondrian_bo.shared.array_types import FloatArray

_WINDOW = 16
"""Number of latest trials for each parameter among which parents are chosen, our choice."""

_PARENTS = 4
"""Number of parents for each parameter, our choice: a quarter, as in an evolution strategy."""

_SCALES = (0.7, 2.0)
"""Smallest and largest factor of the parents' deviations, our choice. The best of some points lie
closer together than all of them, so most factors are above 1. The factor is random, and offspring
of a better one become the next parents."""

_N_OFFSPRING = 10
"""Number of offspring among which a model chooses, our choice."""

_SHARE = 0.05
"""Share of all trials that the better half of the parents is among, our choice. It tells a search
that converges from trials that came from elsewhere, such as random ones: their best are no better
than those before."""


def offspring(rows: FloatArray, values: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Draw offspring of the best of the latest trials, within the unit cube.

    Parameters
    ----------
    rows : float64 array of shape (n, d)
        All trials, the latest last; NaN at inactive parameters.
    values : float64 array of shape (n,)
        Their values, larger is better.
    rng : numpy.random.Generator
        Source of the draws.

    Returns
    -------
    float64 array of shape (10, d) or (0, d)
        The offspring. None of them if there are at most 16 d trials, if a parameter is inactive in
        one of the latest, or if these are no better than those before.
    """
    d = rows.shape[1]
    latest, latest_values = rows[-_WINDOW * d :], values[-_WINDOW * d :]
    nothing = np.empty((0, d))
    if len(rows) <= _WINDOW * d or np.isnan(latest).any():
        return nothing
    best = np.argsort(-latest_values, kind="stable")[: _PARENTS * d]
    n_good = max(len(best), int(_SHARE * len(values)))
    if latest_values[best[len(best) // 2]] < np.partition(values, -n_good)[-n_good]:
        return nothing
    parents = latest[best]
    # The weights of CMA-ES: logarithmic in the rank.
    weights = math.log(len(parents) + 0.5) - np.log(np.arange(1, len(parents) + 1))
    weights /= weights.sum()
    mean = weights @ parents
    factor = np.sqrt(weights)[:, None] * (parents - mean)
    scale = math.exp(rng.uniform(math.log(_SCALES[0]), math.log(_SCALES[1])))
    steps = rng.standard_normal((_N_OFFSPRING, len(parents))) @ factor
    return np.clip(mean + scale * steps, 0.0, 1.0)
