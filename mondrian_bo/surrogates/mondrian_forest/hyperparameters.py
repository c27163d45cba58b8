"""Hyper-parameters of the hierarchical Gaussian by the forest's leave-one-out density."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import Bounds, minimize, minimize_scalar

from mondrian_bo.shared.array_types import FloatArray, IntArray
from mondrian_bo.surrogates.mondrian_forest.forest import GaussianForest
from mondrian_bo.surrogates.shared.parallel import trees_of
from mondrian_bo.trees.hierarchical_gaussian import Hyperparameters
from mondrian_bo.trees.leave_one_out import N_STATE, leave_one_out, restrict_forest

_FACTOR = 100.0
"""Largest ratio of gamma_2 to the heuristic of Appendix B, and of the heuristic to gamma_2.

Without unit; our choice, not measured: the search starts at the heuristic and is local.
"""

NOISE_BOUNDS = (1.0 / 2000.0, 2.0)
"""Bounds of the noise variance in units of gamma_1.

The heuristic of Lakshminarayanan2016, Appendix B, is between 1/2000 and 1/2. The upper bound is our
choice, not measured: for targets that are mostly noise.
"""

_LARGEST_AMPLITUDE = 500.0
"""Largest ratio of a target's prior variance to the smallest one that the search allows.

Without unit; our choice, not measured: the search needs an upper end of its bracket.
"""

_EVALUATIONS = 40
"""Largest number of evaluations of the density: our choice, not measured; it bounds the cost."""

MOST_TARGETS = 5000
"""Largest number of targets used, our choice.

It bounds the cost: with 20,000 targets RMSE and NLPD change little (docs/appendix/regression.md).
"""

_FEWEST_TREES = 25
"""Largest number of trees used with `MOST_TARGETS` targets, our choice, not measured.

With fewer targets there are more trees in proportion, so an evaluation costs the same.
"""


class Learnt(NamedTuple):
    """Hyper-parameters and the objective that they maximise.

    Attributes
    ----------
    hyperparameters : Hyperparameters or LinearHyperparameters
        gamma_2, the noise and further parameters of the messages.
    gamma_1 : float
        Scale of the variances.
    log_density : float
        Sum of the log densities of the targets used, each given all others.
    """

    hyperparameters: Any
    gamma_1: float
    log_density: float


def learn_hyperparameters(
    forest: GaussianForest,
    mean_prior: float,
    variance: float,
    heuristic: Hyperparameters,
    first: Hyperparameters,
) -> Learnt:
    """Maximise the leave-one-out log density of the targets and set the forest's hyper-parameters.

    The distribution of a target is Gaussian, with the moments of the mixture over trees. A single
    tree would count its own error of approximation as noise.

    The prior variance of a target is at least the variance of the targets. The leave-one-out
    density hardly depends on it and often favours less, but it is the variance predicted far from
    the data.

    Parameters
    ----------
    forest : GaussianForest
        Trees and targets; not empty.
    mean_prior, variance : float
        mu_H, and the variance of the targets, positive.
    heuristic, first : Hyperparameters
        Values of Lakshminarayanan2016, Appendix B, which bound gamma_2, and the start.

    Returns
    -------
    Learnt
        The maximum that was found, and its log density.

    Notes
    -----
    At most 5000 targets are used, drawn at random, and the trees are restricted to them: the
    restricted trees have the same prior. With n targets at most 125,000 / n trees are used. The
    method of Nelder and Mead makes at most 40 evaluations, each with one upward and one downward
    sweep over these trees and a bounded search for the best gamma_1. Restricting the trees and
    refreshing the forest's messages takes O(T n), once.
    """
    kept = some_of(forest.n_points, MOST_TARGETS)
    scale = math.sqrt(variance)
    targets = (forest.targets[kept] - mean_prior) / scale
    some_trees = trees_of(forest.arrays, slice(0, _FEWEST_TREES * MOST_TARGETS // len(kept)))
    trees = restrict_forest(some_trees, kept, targets)
    state, moments = np.empty((len(trees.parent), N_STATE)), np.empty((3, len(kept)))

    def evaluate(logs: FloatArray) -> Learnt:
        hyperparameters = Hyperparameters(math.exp(logs[0]), math.exp(logs[1]))
        leave_one_out(trees, targets, hyperparameters, state, moments)
        mean, within, between = moments
        least = 1.0 / forest.prior_variance(hyperparameters)
        ratio, log_density = best_amplitude(targets - mean, within, between, least)
        return Learnt(hyperparameters, ratio * variance, log_density - len(kept) * math.log(scale))

    bounds = np.log([gamma_bounds(heuristic.gamma_2), NOISE_BOUNDS])
    learnt = maximise(evaluate, np.log(np.array(first)), bounds, _EVALUATIONS)
    forest.set_hyperparameters(learnt.hyperparameters)
    return learnt


def gamma_bounds(heuristic: float) -> tuple[float, float]:
    """Return the bounds of gamma_2, given the heuristic."""
    return heuristic / _FACTOR, heuristic * _FACTOR


def maximise(
    evaluate: Callable[[FloatArray], Learnt], first: FloatArray, bounds: FloatArray, most: int
) -> Learnt:
    """Maximise a density over logs of hyper-parameters, by the method of Nelder and Mead.

    Parameters
    ----------
    evaluate : callable
        The density at logs of shape (k,).
    first : float64 array of shape (k,)
        The start, clipped to the bounds.
    bounds : float64 array of shape (k, 2)
        Lower and upper bounds of the logs.
    most : int
        Largest number of evaluations.

    Returns
    -------
    Learnt
        The best evaluation.
    """

    def loss(logs: FloatArray) -> float:
        return -evaluate(logs).log_density

    start: FloatArray = np.clip(first, bounds[:, 0], bounds[:, 1])
    simplex = np.repeat(start[None], len(start) + 1, axis=0)
    # Steps lead towards the middle of the bounds, so that no vertex lies outside.
    middle = bounds.mean(axis=1)
    for k in range(len(start)):
        simplex[k + 1, k] += 1.5 if start[k] < middle[k] else -1.5
    best = minimize(
        loss,
        start,
        method="Nelder-Mead",
        bounds=Bounds(bounds[:, 0], bounds[:, 1]),
        options={"maxfev": most, "initial_simplex": simplex, "xatol": 0.05, "fatol": 1e-3},
    )
    return evaluate(best.x)


def some_of(n_points: int, most: int) -> IntArray:
    """Return the indices of at most `most` targets to learn from, the same for all calls."""
    if n_points <= most:
        return np.arange(n_points)
    return np.random.default_rng(0).choice(n_points, most, replace=False)


def best_amplitude(
    errors: FloatArray, within: FloatArray, between: FloatArray, least: float
) -> tuple[float, float]:
    """Return the factor gamma_1 of the predictive variances that has the largest density.

    Parameters
    ----------
    errors : float64 array of shape (k,)
        Targets minus their leave-one-out means.
    within : float64 array of shape (k,)
        Variances within trees, averaged over trees, in units of gamma_1.
    between : float64 array of shape (k,)
        Variances of the trees' means around their average, in the unit of ``errors**2``. They do
        not depend on gamma_1.
    least : float
        Lower bound of the factor.

    Returns
    -------
    float, float
        The factor, and the sum of the log densities of normal variables with the variances
        ``factor * within + between``.
    """

    def loss(log_factor: float) -> float:
        total = math.exp(log_factor) * within + between
        terms = np.log(2.0 * math.pi * total) + errors**2 / total
        return 0.5 * float(terms.sum())

    low, high = math.log(least), math.log(_LARGEST_AMPLITUDE * least)
    found = minimize_scalar(loss, bounds=(low, high), method="bounded", options={"xatol": 1e-3})
    return math.exp(found.x), -float(found.fun)
