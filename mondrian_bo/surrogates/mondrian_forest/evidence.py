"""Hyper-parameters and lifetime of the hierarchical Gaussian by the evidence of its trees."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import logsumexp

from mondrian_bo.shared.array_types import FloatArray
from mondrian_bo.surrogates.mondrian_forest.forest import GaussianForest
from mondrian_bo.surrogates.mondrian_forest.hyperparameters import (
    NOISE_BOUNDS,
    Learnt,
    gamma_bounds,
    maximise,
)
from mondrian_bo.surrogates.shared.parallel import trees_of
from mondrian_bo.trees.evidence import evidence_terms
from mondrian_bo.trees.hierarchical_gaussian import (
    LOCATION,
    LOG_DETERMINANT,
    PRECISION,
    RESIDUAL,
    Hyperparameters,
    remaining_variance,
)
from mondrian_bo.trees.layout import N_NODES

_EVALUATIONS = 40
"""Largest number of evaluations of a search over gamma_2 and noise: our choice, bounds the cost."""

_LEVELS = tuple(0.5**k for k in range(1, 8))
"""Shares of the nodes that have split by the lifetimes that are compared; our choice."""

_MOST_POINTS = 500_000
"""Points times trees of an evaluation: some 20 ms. Three parameters need no more; our choice."""


def log_evidence(terms: FloatArray, n_points: int, mean_prior: float, gamma_1: float) -> FloatArray:
    """Return the log marginal likelihoods of trees, from the messages of their roots to mu_H."""
    constant = n_points * math.log(2.0 * math.pi * gamma_1)
    squares = _squares(terms, mean_prior) / gamma_1
    return np.asarray(-0.5 * (constant + terms[:, LOG_DETERMINANT] + squares))


def log_mean_exp(values: FloatArray) -> float:
    """Return the log of the mean of exponentials: the evidence of a uniform mixture."""
    return float(logsumexp(values)) - math.log(len(values))


def _squares(terms: FloatArray, mean_prior: float) -> FloatArray:
    """Return the squares of standardised targets in units of gamma_1, summed over each tree."""
    return np.asarray(
        terms[:, RESIDUAL] + terms[:, PRECISION] * (terms[:, LOCATION] - mean_prior) ** 2
    )


def log_evidence_at(
    forest: GaussianForest,
    hyperparameters: Hyperparameters,
    lifetime: float,
    mean_prior: float,
    variance: float,
) -> tuple[FloatArray, float]:
    """Return the log evidence of the first trees at the best common gamma_1, and that gamma_1.

    Given the others, gamma_1 has a closed form: the mean of the squares over points and trees. The
    prior variance of a target is at least the variance of the targets, as it is the one predicted
    far from the data. At most 500,000 points times trees are used.
    """
    n = forest.n_points
    part = slice(0, max(1, _MOST_POINTS // n))
    arrays = trees_of(forest.arrays, part)
    terms = np.empty((len(arrays.parent), 4))
    evidence_terms(arrays, forest.node_stats.moments[part], hyperparameters, lifetime, terms)
    squares = _squares(terms, mean_prior)
    prior = 0.5 - _remaining(hyperparameters.gamma_2, lifetime) + hyperparameters.noise
    gamma_1 = max(float(squares.mean()) / n, variance / prior)
    return log_evidence(terms, n, mean_prior, gamma_1), gamma_1


def learn_by_evidence(
    forest: GaussianForest, mean_prior: float, variance: float, heuristic: Hyperparameters
) -> tuple[Learnt, float]:
    """Maximise the mean over trees of the log evidence over gamma_1, gamma_2, noise and lifetime.

    Parameters
    ----------
    forest : GaussianForest
        Trees and targets; not empty. It is not changed.
    mean_prior, variance : float
        mu_H, and the variance of the targets, positive.
    heuristic : Hyperparameters
        Values of Lakshminarayanan2016, Appendix B: the start, and the middle of the bounds.

    Returns
    -------
    Learnt
        The maximum that was found. Its density is the mean log evidence.
    float
        The lifetime of the trees, or a shorter one with more evidence.

    Notes
    -----
    The search is by Nelder and Mead over gamma_2 and the noise, with the lifetime of the trees.
    Then lifetimes by which shares of 1/2, 1/4, ... of the nodes have split are compared, with the
    prior variance after the lifetime as noise. The search goes on at the best one. It takes at
    most 87 upward sweeps over the trees.
    """
    bounds = np.log([gamma_bounds(heuristic.gamma_2), NOISE_BOUNDS])

    def evaluate(logs: FloatArray, lifetime: float) -> Learnt:
        hyperparameters = Hyperparameters(*np.exp(logs).tolist())
        values, gamma_1 = log_evidence_at(forest, hyperparameters, lifetime, mean_prior, variance)
        return Learnt(hyperparameters, gamma_1, float(values.mean()))

    def search(start: FloatArray, lifetime: float) -> Learnt:
        return maximise(lambda logs: evaluate(logs, lifetime), start, bounds, _EVALUATIONS)

    full = search(np.log(np.array(heuristic)), forest.lifetime)
    best, best_lifetime = full, forest.lifetime
    gamma_2, least = full.hyperparameters
    for lifetime in _lifetimes(forest):
        # What a leaf would vary after the lifetime counts as noise.
        noise = min(least + _remaining(gamma_2, lifetime), NOISE_BOUNDS[1])
        other = evaluate(np.log([gamma_2, noise]), lifetime)
        if other.log_density > best.log_density:
            best, best_lifetime = other, lifetime
    if best_lifetime < forest.lifetime:
        again = search(np.log(np.array(best.hyperparameters)), best_lifetime)
        best = again if again.log_density > best.log_density else best
    return best, best_lifetime


def _remaining(gamma_2: float, lifetime: float) -> float:
    """Return the prior variance after a lifetime, in units of gamma_1."""
    function: Any = remaining_variance  # called in Python, which needs no compilation
    return float(function.py_func(gamma_2, lifetime))


def _lifetimes(forest: GaussianForest) -> list[float]:
    """Return lifetimes by which shares of the splits of the first tree have happened."""
    times = forest.arrays.split_time[0, : forest.arrays.counters[0, N_NODES]]
    times = times[times < forest.lifetime]
    return [float(np.quantile(times, level)) for level in _LEVELS] if len(times) > 0 else []
