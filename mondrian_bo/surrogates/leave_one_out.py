"""Hyper-parameters of the hierarchical Gaussian by the forest's leave-one-out density."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, minimize, minimize_scalar

from mondrian_bo.surrogates.gaussian_forest import GaussianForest
from mondrian_bo.trees.gaussian import Hyperparameters
from mondrian_bo.trees.leave_one_out import leave_one_out

FloatArray = NDArray[np.float64]

_FACTOR = 100.0
"""gamma_2 lies within such a factor of the heuristic, which follows the scale of the inputs."""

_NOISE_BOUNDS = (1.0 / 2000.0, 2.0)
_AMPLITUDE_BOUNDS = (1e-3, 1e3)
_EVALUATIONS = 40


class Learnt(NamedTuple):
    """Hyper-parameters and what their choice was judged by.

    Attributes
    ----------
    hyperparameters : Hyperparameters
        gamma_2 and the noise.
    gamma_1 : float
        Scale of the variances.
    log_density : float
        Sum of the log densities of the labels given all others.
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
    At most 40 evaluations by the method of Nelder and Mead, each of one upward and one downward
    sweep over all trees, O(T n). For each the best gamma_1 is found by a bounded search.
    """
    means = np.empty((forest.n_trees, forest.n_points))
    variances = np.empty_like(means)
    centre = math.log(heuristic.gamma_2)
    bounds = np.array(
        [
            [centre - math.log(_FACTOR), centre + math.log(_FACTOR)],
            [math.log(bound) for bound in _NOISE_BOUNDS],
        ]
    )

    def evaluate(logs: FloatArray) -> Learnt:
        hyperparameters = Hyperparameters(math.exp(logs[0]), math.exp(logs[1]))
        forest.set_hyperparameters(hyperparameters)
        leave_one_out(
            forest.trees,
            forest.values,
            forest.targets,
            mean_prior,
            hyperparameters.noise,
            means,
            variances,
        )
        gamma_1, log_density = _best_gamma_1(
            forest.targets - means.mean(axis=0), variances.mean(axis=0), means.var(axis=0), variance
        )
        return Learnt(hyperparameters, gamma_1, log_density)

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
    return evaluate(best.x)


def _best_gamma_1(
    errors: FloatArray, shares: FloatArray, spread: FloatArray, variance: float
) -> tuple[float, float]:
    """Return gamma_1 and the density, where variances are ``gamma_1 shares + spread``."""

    def loss(log_factor: float) -> float:
        total = math.exp(log_factor) * variance * shares + spread
        terms = np.log(2.0 * math.pi * total) + errors**2 / total
        return 0.5 * float(terms.sum())

    low, high = (math.log(bound) for bound in _AMPLITUDE_BOUNDS)
    found = minimize_scalar(loss, bounds=(low, high), method="bounded", options={"xatol": 1e-3})
    return math.exp(found.x) * variance, -float(found.fun)
