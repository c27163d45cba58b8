"""Hyper-parameters of the processes by maximum a posteriori."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack
from scipy.optimize import minimize

from mondrian_bo.surrogates.gaussian_process.block import Covariance, factorise
from mondrian_bo.surrogates.gaussian_process.kernel import kernel_matrix, precision_gradient
from mondrian_bo.surrogates.gaussian_process.one_thread import one_thread

FloatArray = NDArray[np.float64]

_LOG_BOUNDS = (math.log(1e-4), math.log(1e4))
_SMALLEST_NOISE = {0.5: 1e-2, 2.5: 1e-6}
"""By smoothness: a rough process may take any noise for its own, but where inputs are equal."""


class Prior(NamedTuple):
    """What is believed of the processes before any label, for labels of variance 1.

    The defaults are those of Optuna's GPSampler.

    Attributes
    ----------
    precision : float
        A density proportional to ``exp(-precision (1/p + p))`` of each inverse squared lengthscale.
    amplitude : tuple of two floats
        Shape and rate of a gamma density of the variance of a process.
    noise : tuple of two floats
        Shape and rate of a gamma density of the variance of the noise.
    mean_variance : float
        Variance of the mean of a block of which nothing is known, around 0; positive.
    smoothness : tuple of float
        Of the Matern kernels to choose from: 0.5, 2.5 or both.
    """

    precision: float = 0.1
    amplitude: tuple[float, float] = (2.0, 1.0)
    noise: tuple[float, float] = (1.1, 30.0)
    mean_variance: float = 1e-4
    smoothness: tuple[float, ...] = (2.5,)


REGRESSION_PRIOR = Prior(precision=0.03, noise=(2.0, 1.0), mean_variance=1.0, smoothness=(0.5, 2.5))
"""Regression has more noise and rougher functions than the prior of the optimizer expects."""

FARTHEST = 1e100
"""Scaled coordinates are clipped here, where squared distances do not overflow yet."""


def start(categorical: NDArray[np.bool_], prior: Prior) -> list[Covariance]:
    """Return what a fit starts from: lengthscales 1, amplitude 1, little noise."""
    ones = np.ones(len(categorical))
    return [
        Covariance(ones, 1.0, max(1e-4, 2.0 * _SMALLEST_NOISE[one]), categorical, one)
        for one in prior.smoothness
    ]


def fit(
    blocks: list[tuple[FloatArray, FloatArray]],
    first: list[Covariance],
    prior: Prior,
    max_iterations: int,
) -> list[Covariance]:
    """Maximise the sum of the blocks' log marginal likelihoods and the log prior.

    Parameters
    ----------
    blocks : list of (points, targets)
        Points of shape (n_b, d) and labels of shape (n_b,), whose processes are independent.
    first : list of Covariance
        Where to start, for each smoothness.
    prior : Prior
        The prior.
    max_iterations : int
        Of L-BFGS, for each smoothness; each takes O(sum of n_b^3).

    Returns
    -------
    list of Covariance
        The maximum for each smoothness, the largest first.
    """
    with one_thread():
        found = [_fit(blocks, one, prior, max_iterations) for one in first]
    return [one for _, one in sorted(found, key=lambda pair: pair[0])]


def _fit(
    blocks: list[tuple[FloatArray, FloatArray]],
    first: Covariance,
    prior: Prior,
    max_iterations: int,
) -> tuple[float, Covariance]:
    """Return the least loss, and where."""

    def loss(logs: FloatArray) -> tuple[float, FloatArray]:
        covariance = _from_logs(logs, first)
        value, gradient = _log_prior(covariance, prior)
        for points, targets in blocks:
            try:
                own_value, own_gradient = _log_likelihood(
                    points, targets, covariance, prior.mean_variance
                )
            except np.linalg.LinAlgError:
                return 1e10, np.zeros(len(logs))
            value += own_value
            gradient += own_gradient
        return -value, -gradient

    smallest_noise = _SMALLEST_NOISE[first.smoothness]
    logs = np.log([*first.precisions, first.amplitude, first.noise - smallest_noise + 1e-12])
    bounds = [_LOG_BOUNDS] * (len(logs) - 1) + [(math.log(1e-9), math.log(1e2))]
    logs = np.clip(logs, [low for low, _ in bounds], [high for _, high in bounds])
    result = minimize(
        loss,
        logs,
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options={"maxiter": max_iterations},
    )
    return float(result.fun), _from_logs(result.x, first)


def _from_logs(logs: FloatArray, like: Covariance) -> Covariance:
    values = np.exp(logs)
    noise = float(values[-1]) + _SMALLEST_NOISE[like.smoothness]
    return like._replace(precisions=values[:-2], amplitude=float(values[-2]), noise=noise)


def _log_prior(covariance: Covariance, prior: Prior) -> tuple[float, FloatArray]:
    """Return the log density and its gradient with respect to the logs."""
    precisions = covariance.precisions
    value = -prior.precision * float(np.sum(1.0 / precisions + precisions))
    gradient = np.empty(len(precisions) + 2)
    gradient[:-2] = prior.precision * (1.0 / precisions - precisions)
    for place, number, (shape, rate) in (
        (-2, covariance.amplitude, prior.amplitude),
        (-1, covariance.noise, prior.noise),
    ):
        value += (shape - 1.0) * math.log(number) - rate * number
        gradient[place] = shape - 1.0 - rate * number
    # The smallest noise is no part of what is varied.
    gradient[-1] *= 1.0 - _SMALLEST_NOISE[covariance.smoothness] / covariance.noise
    return value, gradient


def _log_likelihood(
    points: FloatArray, targets: FloatArray, covariance: Covariance, mean_variance: float
) -> tuple[float, FloatArray]:
    """Return a block's log marginal likelihood and its gradient with respect to the logs."""
    n = len(points)
    kernel, slope = np.zeros((n, n)), np.empty((n, n))
    kernel_matrix(
        points,
        covariance.precisions,
        covariance.categorical,
        covariance.smoothness,
        kernel,
        slope,
    )
    matrix = covariance.amplitude * kernel
    matrix[np.diag_indices(n)] += covariance.noise
    matrix += mean_variance
    factor = factorise(matrix)
    solved, _ = lapack.dpotrs(factor, targets, lower=1)
    value = -0.5 * (
        float(targets @ solved)
        + 2.0 * float(np.log(factor.diagonal()).sum())
        + n * math.log(2.0 * math.pi)
    )
    inverse, _ = lapack.dpotri(factor, lower=1)
    # LAPACK gives the lower triangle alone.
    weights = 0.5 * (np.outer(solved, solved) - inverse)
    diagonal = weights.diagonal()
    lower = np.tril(weights, -1)
    gradient = np.empty(len(covariance.precisions) + 2)
    precision_gradient(
        points, covariance.precisions, covariance.categorical, weights, slope, gradient[:-2]
    )
    gradient[:-2] *= covariance.amplitude
    trace = float(diagonal.sum())
    gradient[-2] = covariance.amplitude * (2.0 * float(np.vdot(lower, kernel)) + trace)
    gradient[-1] = (covariance.noise - _SMALLEST_NOISE[covariance.smoothness]) * trace
    return value, gradient
