"""Hyper-parameters of the processes by maximum a posteriori."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack
from scipy.optimize import minimize
from scipy.special import expit, logit

from mondrian_bo.array_types import BoolArray, FloatArray, IntArray
from mondrian_bo.surrogates.gaussian_process.covariance import Covariance, factorise
from mondrian_bo.surrogates.gaussian_process.kernel import kernel_matrix, precision_gradient
from mondrian_bo.surrogates.shared.threads import single_threaded_blas

_LOG_BOUNDS = (math.log(1e-4), math.log(1e4))
_SMALLEST_NOISE = {0.5: 1e-2, 2.5: 1e-6}
"""By smoothness: a rough process may take any noise for its own, but where inputs are equal."""
_SMALLEST_OWN_NOISE = 1e-7
"""So much of the noise labels never share, even where all that have equal inputs are equal."""
_FIRST_NOISE = 0.5
_LOG_ODDS_BOUNDS = (-math.log(1e8), math.log(1e8))
_NO_TWINS: IntArray = np.empty((0, 2), dtype=np.int64)


class Prior(NamedTuple):
    """What is believed of the processes before any label, for labels of variance 1.

    The defaults are those of Optuna's GPSampler.

    Attributes
    ----------
    precision : float or tuple of two floats
        Of each inverse squared lengthscale p: c of a density proportional to ``exp(-c (1/p + p))``,
        or shape and rate of a gamma density, which hardly minds p next to 0: irrelevant features.
    amplitude : tuple of two floats
        Shape and rate of a gamma density of the variance of a process.
    noise : tuple of two floats
        Shape and rate of a gamma density of the variance of the noise.
    mean_variance : float
        Variance of the mean of a block of which nothing is known, around 0; positive.
    smoothness : tuple of float
        Of the Matern kernels to choose from: 0.5, 2.5 or both.
    shared : tuple of two floats or None
        Numbers a and b of a density proportional to ``s^a (1 - s)^b`` of the share of the noise
        that equal inputs have in common, where there are any; None is no share.
    """

    precision: float | tuple[float, float] = 0.1
    amplitude: tuple[float, float] = (2.0, 1.0)
    noise: tuple[float, float] = (1.1, 30.0)
    mean_variance: float = 1e-4
    smoothness: tuple[float, ...] = (2.5,)
    shared: tuple[float, float] | None = None


REGRESSION_PRIOR = Prior(
    precision=(1.1, 0.1),
    amplitude=(2.0, 0.5),
    noise=(2.0, 1.0),
    mean_variance=1.0,
    smoothness=(0.5, 2.5),
    shared=(1.0, 5.0),
)
"""Regression has more noise, rougher functions and more irrelevant features than the prior of the
optimizer expects, and inputs that repeat."""


def start(categorical: BoolArray, prior: Prior) -> list[Covariance]:
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
    with single_threaded_blas():
        found = [_fit(blocks, one, prior, max_iterations) for one in first]
    return [one for _, one in sorted(found, key=lambda pair: pair[0])]


def _fit(
    blocks: list[tuple[FloatArray, FloatArray]],
    first: Covariance,
    prior: Prior,
    max_iterations: int,
) -> tuple[float, Covariance]:
    """Return the least loss, and where."""
    twins = [_twins(points) if prior.shared else _NO_TWINS for points, _ in blocks]

    def loss(logs: FloatArray) -> tuple[float, FloatArray]:
        covariance = _from_logs(logs, first)
        value, gradient = _log_prior(covariance, prior)
        for (points, targets), pairs in zip(blocks, twins, strict=True):
            try:
                own_value, own_gradient = _log_likelihood(
                    points, targets, covariance, prior.mean_variance, pairs
                )
            except np.linalg.LinAlgError:
                return 1e10, np.zeros(len(logs))
            value += own_value
            gradient += own_gradient
        return -value, -gradient[: len(logs)]

    smallest_noise = _SMALLEST_NOISE[first.smoothness]
    logs = np.log([*first.precisions, first.amplitude, first.noise - smallest_noise + 1e-12])
    bounds = [_LOG_BOUNDS] * (len(logs) - 1) + [(math.log(1e-9), math.log(1e2))]
    if any(len(pairs) for pairs in twins):
        if first.shared == 0.0:
            # From little noise the fit would take short lengthscales for what equal inputs share.
            logs[-1] = max(logs[-1], math.log(_FIRST_NOISE))
        logs = np.append(logs, logit(_share(first)) if first.shared > 0.0 else 0.0)
        bounds.append(_LOG_ODDS_BOUNDS)
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
    d = len(like.precisions)
    values = np.exp(logs[: d + 2])
    noise = float(values[d + 1]) + _SMALLEST_NOISE[like.smoothness]
    share = _share(like) if len(logs) == d + 2 else float(expit(logs[d + 2]))
    shared = share * (noise - _SMALLEST_OWN_NOISE)
    return like._replace(
        precisions=values[:d], amplitude=float(values[d]), noise=noise, shared=shared
    )


def _share(covariance: Covariance) -> float:
    """Return how much of the noise is shared, between 0 and 1."""
    return covariance.shared / (covariance.noise - _SMALLEST_OWN_NOISE)


def _twins(points: FloatArray) -> IntArray:
    """Return the pairs of equal points, the later one first, shape (k, 2)."""
    _, groups = np.unique(points, axis=0, return_inverse=True)
    groups = groups.ravel()
    order = np.argsort(groups, kind="stable")
    found = [_NO_TWINS]
    for step in range(1, len(points)):
        same = groups[order[step:]] == groups[order[:-step]]
        if not same.any():
            break
        found.append(np.stack([order[step:][same], order[:-step][same]], axis=1))
    return np.concatenate(found)


def _log_prior(covariance: Covariance, prior: Prior) -> tuple[float, FloatArray]:
    """Return the log density and its gradient with respect to the logs."""
    precisions = covariance.precisions
    d = len(precisions)
    gradient = np.zeros(d + 3)
    if isinstance(prior.precision, tuple):
        shape, rate = prior.precision
        value = float(np.sum((shape - 1.0) * np.log(precisions) - rate * precisions))
        gradient[:d] = shape - 1.0 - rate * precisions
    else:
        value = -prior.precision * float(np.sum(1.0 / precisions + precisions))
        gradient[:d] = prior.precision * (1.0 / precisions - precisions)
    for place, number, (shape, rate) in (
        (d, covariance.amplitude, prior.amplitude),
        (d + 1, covariance.noise, prior.noise),
    ):
        value += (shape - 1.0) * math.log(number) - rate * number
        gradient[place] = shape - 1.0 - rate * number
    # The smallest noise is no part of what is varied.
    gradient[d + 1] *= 1.0 - _SMALLEST_NOISE[covariance.smoothness] / covariance.noise
    if prior.shared is not None and covariance.shared > 0.0:
        one, two = prior.shared
        share = _share(covariance)
        value += one * math.log(share) + two * math.log1p(-share)
        gradient[d + 2] = one - (one + two) * share
    return value, gradient


def _log_likelihood(
    points: FloatArray,
    targets: FloatArray,
    covariance: Covariance,
    mean_variance: float,
    twins: IntArray,
) -> tuple[float, FloatArray]:
    """Return a block's log marginal likelihood and its gradient with respect to the logs."""
    n = len(points)
    kernel, slope = np.zeros((n, n)), np.empty((n, n))
    kernel_matrix(
        points,
        covariance.precisions,
        covariance.categorical,
        covariance.smoothness,
        1.0,
        kernel,
        slope,
    )
    matrix = covariance.amplitude * kernel
    matrix[np.diag_indices(n)] += covariance.noise
    matrix[twins[:, 0], twins[:, 1]] += covariance.shared
    matrix += mean_variance
    factor = factorise(matrix)
    solved, _ = lapack.dpotrs(factor, targets, lower=1)
    value = -0.5 * (
        float(targets @ solved)
        + 2.0 * float(np.log(factor.diagonal()).sum())
        + n * math.log(2.0 * math.pi)
    )
    inverse, _ = lapack.dpotri(factor, lower=1, overwrite_c=1)
    # LAPACK gives the lower triangle alone.
    weights = np.outer(solved, solved)
    weights -= inverse
    weights *= 0.5
    trace = float(weights.diagonal().sum())
    d = len(covariance.precisions)
    gradient = np.empty(d + 3)
    precision_gradient(
        points, covariance.precisions, covariance.categorical, weights, slope, gradient[:d]
    )
    gradient[:d] *= covariance.amplitude
    # The kernel is 1 on the diagonal, and nothing has been written above it.
    np.fill_diagonal(kernel, 0.0)
    gradient[d] = covariance.amplitude * (2.0 * float(np.vdot(weights, kernel)) + trace)
    of_twins = 2.0 * float(weights[twins[:, 0], twins[:, 1]].sum())
    varied = covariance.noise - _SMALLEST_NOISE[covariance.smoothness]
    share = _share(covariance)
    gradient[d + 1] = varied * (trace + share * of_twins)
    gradient[d + 2] = covariance.shared * (1.0 - share) * of_twins
    return value, gradient
