"""Hyper-parameters of the hierarchical Gaussian by the forest's leave-one-out density."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.optimize import Bounds, minimize, minimize_scalar

from mondrian_bo.array_types import FloatArray, IntArray
from mondrian_bo.surrogates.mondrian_forest.forest import GaussianForest
from mondrian_bo.surrogates.shared.parallel import rows_of
from mondrian_bo.trees.hierarchical_gaussian import Hyperparameters
from mondrian_bo.trees.leave_one_out import N_STATE, leave_one_out, restrict_forest

_FACTOR = 100.0
"""gamma_2 lies within such a factor of the heuristic, which follows the scale of the inputs."""

_NOISE_BOUNDS = (1.0 / 2000.0, 2.0)
_LARGEST_AMPLITUDE = 500.0
"""The prior variance of a label is at most so many times the variance of the labels."""

_EVALUATIONS = 40

MOST_LABELS = 5000
"""So many labels tell three numbers as well as all do, see docs/regression.md."""

_FEWEST_TREES = 25
"""So many trees are used with so many labels, and more in proportion with fewer labels."""


class Learnt(NamedTuple):
    """Hyper-parameters and what their choice was judged by.

    Attributes
    ----------
    hyperparameters : Hyperparameters
        gamma_2 and the noise.
    gamma_1 : float
        Scale of the variances.
    log_density : float
        Sum of the log densities of the labels used, each given all others.
    """

    hyperparameters: Hyperparameters
    gamma_1: float
    log_density: float


def learn_hyperparameters(
    forest: GaussianForest,
    mean_prior: float,
    variance: float,
    heuristic: Hyperparameters,
    first: Hyperparameters,
) -> Learnt:
    """Maximise the sum of log densities of labels given all others, and give the forest the result.

    The law of a label is the normal one with the moments of the mixture of trees: a tree alone
    would count its own error of approximation as noise.

    The prior variance of a label is at least the variance of the labels. Labels amid others hardly
    depend on it, and would often have it smaller; but it is what is predicted far from the data.

    Parameters
    ----------
    forest : GaussianForest
        Trees and labels; not empty.
    mean_prior, variance : float
        mu_H, and the variance of the labels, positive.
    heuristic, first : Hyperparameters
        Those of Appendix B, which bound gamma_2, and where to start.

    Notes
    -----
    Of more than 5000 labels only so many are used, drawn at random: the trees restricted to them
    have the same prior. Of more trees than 125,000 over that number only so many are used, too.
    At most 40 evaluations by the method of Nelder and Mead, each of one upward and one downward
    sweep over these trees; for each the best gamma_1 is found by a bounded search. Beside that,
    O(T n) once, to restrict the trees and to refresh the forest's messages.
    """
    kept = _some_of(forest.n_points)
    scale = math.sqrt(variance)
    targets = (forest.targets[kept] - mean_prior) / scale
    some_trees = rows_of(forest.arrays, slice(0, _FEWEST_TREES * MOST_LABELS // len(kept)))
    trees = restrict_forest(some_trees, kept, targets)
    state, moments = np.empty((len(trees.parent), N_STATE)), np.empty((3, len(kept)))
    centre = math.log(heuristic.gamma_2)
    bounds = np.array(
        [
            [centre - math.log(_FACTOR), centre + math.log(_FACTOR)],
            [math.log(bound) for bound in _NOISE_BOUNDS],
        ]
    )

    def evaluate(logs: FloatArray) -> Learnt:
        hyperparameters = Hyperparameters(math.exp(logs[0]), math.exp(logs[1]))
        leave_one_out(trees, targets, *hyperparameters, state, moments)
        mean, share, spread = moments
        least = 1.0 / forest.prior_variance(hyperparameters)
        ratio, log_density = _best_amplitude(targets - mean, share, spread, least)
        return Learnt(hyperparameters, ratio * variance, log_density - len(kept) * math.log(scale))

    def loss(logs: FloatArray) -> float:
        return -evaluate(logs).log_density

    start: FloatArray = np.clip(np.log(np.array(first)), bounds[:, 0], bounds[:, 1])
    simplex = np.array([start, start, start])
    # Towards the middle of the bounds, so that no corner lies outside.
    middle = bounds.mean(axis=1)
    for k in range(2):
        simplex[k + 1, k] += 1.5 if start[k] < middle[k] else -1.5
    best = minimize(
        loss,
        start,
        method="Nelder-Mead",
        bounds=Bounds(bounds[:, 0], bounds[:, 1]),
        options={"maxfev": _EVALUATIONS, "initial_simplex": simplex, "xatol": 0.05, "fatol": 1e-3},
    )
    learnt = evaluate(best.x)
    forest.set_hyperparameters(learnt.hyperparameters)
    return learnt


def _some_of(n_points: int) -> IntArray:
    """Return which points' labels to learn from, the same ones whenever there are so many."""
    if n_points <= MOST_LABELS:
        return np.arange(n_points)
    return np.random.default_rng(0).choice(n_points, MOST_LABELS, replace=False)


def _best_amplitude(
    errors: FloatArray, shares: FloatArray, spread: FloatArray, least: float
) -> tuple[float, float]:
    """Return the factor and the density, where variances are ``factor shares + spread``."""

    def loss(log_factor: float) -> float:
        total = math.exp(log_factor) * shares + spread
        terms = np.log(2.0 * math.pi * total) + errors**2 / total
        return 0.5 * float(terms.sum())

    low, high = math.log(least), math.log(_LARGEST_AMPLITUDE * least)
    found = minimize_scalar(loss, bounds=(low, high), method="bounded", options={"xatol": 1e-3})
    return math.exp(found.x), -float(found.fun)
