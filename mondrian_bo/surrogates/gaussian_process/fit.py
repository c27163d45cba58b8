"""Maximum a posteriori (MAP) estimates of the hyper-parameters of Gaussian processes.

The likelihood is the marginal likelihood of Rasmussen2006, section 5.4.1. The parameter vector
`theta` holds the logarithms of the precisions and of the amplitude, the log of the noise above the
smallest noise and, where inputs repeat, the log odds of the shared part of the noise.
"""

from __future__ import annotations

import math
from typing import NamedTuple, TypeAlias

import numpy as np
from numba import njit
from scipy.linalg import lapack

from mondrian_bo.shared.array_types import BoolArray, FloatArray, IntArray
from mondrian_bo.shared.blas_threads import single_threaded_blas
from mondrian_bo.shared.projected_lbfgs import Changes, minimise_in_box
from mondrian_bo.surrogates.gaussian_process.covariance import (
    Covariance,
    factorise,
    kernel_matrix,
    precision_gradient,
)

_LOG_BOUNDS = (math.log(1e-4), math.log(1e4))
"""Bounds of log precisions (lengthscales from 0.01 to 100) and of the log amplitude: beyond them
the likelihood is flat for scaled features and standardised targets."""

_LOG_NOISE_BOUNDS = (math.log(1e-9), math.log(1e2))
"""Bounds of the log of the noise above the smallest noise, in variances of the targets."""

_LOG_ODDS_BOUNDS = (-math.log(1e8), math.log(1e8))
"""Bounds of the log odds of the shared part of the noise: shares of 1e-8 and 1 - 1e-8."""

_SMALLEST_NOISE = {0.5: 1e-2, 2.5: 1e-6}
"""Smallest noise by smoothness, in variances of the targets. 1e-6 keeps matrices positive definite.
A process of smoothness 1/2 can explain all noise as function, so it gets a larger one."""

_SMALLEST_INDEPENDENT_NOISE = 1e-7
"""Smallest noise that targets at equal inputs do not share, in variances of the targets: it keeps
matrices positive definite where all of these targets are equal."""

_INITIAL_NOISE = 1e-4
"""Noise at the start of a fit, in variances of the targets: that of nearly exact observations."""

_INITIAL_NOISE_WITH_DUPLICATES = 0.5
"""Least noise at the start where inputs repeat: from less, the fit ends at short lengthscales that
explain the shared noise."""

_FEW_CATEGORICAL = 3
"""Largest number of categorical features whose precisions have the mode 1, our choice. Different
choices are one unit apart: with many such features and lengthscales of 1, no two points would be
similar, and no choice that the best point lacks would be promising."""

_REJECTED_LOSS = 1e10
"""Loss where a covariance matrix has no Cholesky factor: larger than any that is reached."""

_NO_DUPLICATES: IntArray = np.empty((0, 2), dtype=np.int64)
"""No pairs of equal points."""


LeafData: TypeAlias = (
    tuple[FloatArray, FloatArray] | tuple[FloatArray, FloatArray, FloatArray | None]
)
"""Points of a leaf, shape (n, d), their targets, shape (n,), and the known variances of the noise
of each target beside that which is fitted, shape (n,); without these, or with None, there is none.
"""


class Prior(NamedTuple):
    """Prior distribution of the hyper-parameters, for targets of variance 1.

    Searches use :data:`OPTIMIZER_PRIOR` and regressors :data:`REGRESSION_PRIOR`. The defaults of
    `precision`, `amplitude` and `noise` are those of Optuna's GPSampler, except for more than three
    categorical features.

    Attributes
    ----------
    precision : float or tuple of two floats
        Of each inverse squared lengthscale p. A float c is a density proportional to
        ``exp(-c (m/p + p/m))``. The mode m is 1 and, of categorical features, falls with their
        number beyond three. A tuple is the shape and rate of a gamma density, which gives
        irrelevant features (p near 0) more probability.
    amplitude : tuple of two floats
        Shape and rate of a gamma density of the variance of a process.
    noise : tuple of two floats
        Shape and rate of a gamma density of the variance of the noise.
    mean_variance : float
        Prior variance of the mean of a leaf, whose prior mean is 0; positive.
    smoothness : tuple of float
        Candidates for the smoothness of the Matern kernel: 0.5, 2.5 or both.
    noise_share : tuple of two floats or None
        Exponents a and b of a density proportional to ``s^a (1 - s)^b`` of the share s of the
        noise that targets at equal inputs have in common. None fixes s = 0.
    """

    precision: float | tuple[float, float] = 0.1
    amplitude: tuple[float, float] = (2.0, 1.0)
    noise: tuple[float, float] = (1.1, 30.0)
    mean_variance: float = 1e-4
    smoothness: tuple[float, ...] = (2.5,)
    noise_share: tuple[float, float] | None = None


REGRESSION_PRIOR = Prior(
    precision=(1.1, 0.1),
    amplitude=(2.0, 0.5),
    noise=(2.0, 1.0),
    mean_variance=1.0,
    smoothness=(0.5, 2.5),
    noise_share=(1.0, 5.0),
)
"""Prior of the regressors. Regression data have more noise, rougher functions and more irrelevant
features than objectives of an optimisation, and inputs that repeat."""

OPTIMIZER_PRIOR = Prior(mean_variance=10.0, amplitude=(1.0, 0.0))
"""Prior of the searches: that of GPSampler on lengthscales and noise. The density of the amplitude
is constant and the variance of the mean is large, so that both follow the values alone."""


class Estimate(NamedTuple):
    """Hyper-parameters, from which a later fit may start.

    Attributes
    ----------
    covariance : Covariance
        The hyper-parameters.
    changes : tuple of pairs of float64 arrays
        What their fit knows of the curvature, see `Minimum`.
    loss : float
        Negative log posterior density of their fit, but for a constant; infinite before a fit.
    """

    covariance: Covariance
    changes: Changes = ()
    loss: float = math.inf


def initial_estimates(categorical: BoolArray, prior: Prior) -> list[Estimate]:
    """Return the start of a fit for each smoothness.

    Precisions are at the mode of their prior, or 1 if that is a gamma density. The amplitude is 1,
    and there is little noise.
    """
    is_gamma = isinstance(prior.precision, tuple)
    precisions = np.ones(len(categorical)) if is_gamma else _precision_modes(categorical)
    return [
        Estimate(
            Covariance(
                precisions,
                1.0,
                max(_INITIAL_NOISE, 2.0 * _SMALLEST_NOISE[nu]),
                categorical,
                smoothness=nu,
            )
        )
        for nu in prior.smoothness
    ]


def fit_hyperparameters(
    leaves: list[LeafData],
    initial: list[Estimate],
    prior: Prior,
    max_iterations: int,
) -> list[Estimate]:
    """Maximise the posterior density of the hyper-parameters, for each smoothness.

    The log posterior is the sum of the leaves' log marginal likelihoods and the log prior.

    Parameters
    ----------
    leaves : list of LeafData
        Leaves with independent processes, of n_k points.
    initial : list of Estimate
        Start of the maximisation for each smoothness.
    prior : Prior
        The prior.
    max_iterations : int
        Iterations of L-BFGS for each smoothness, each of O(sum of n_k^3).

    Returns
    -------
    list of Estimate
        The maximum for each smoothness, in descending order of the posterior density.
    """
    with single_threaded_blas():
        found = [_maximise_posterior(leaves, one, prior, max_iterations) for one in initial]
    return sorted(found, key=lambda estimate: estimate.loss)


def best_estimates(*found: list[Estimate]) -> list[Estimate]:
    """Return the best estimate for each smoothness, of several fits to the same leaves.

    They are in descending order of the posterior density.
    """
    best: dict[float, Estimate] = {}
    for estimate in sorted((one for fit in found for one in fit), key=lambda one: one.loss):
        best.setdefault(estimate.covariance.smoothness, estimate)
    return list(best.values())


def _maximise_posterior(
    leaves: list[LeafData],
    start: Estimate,
    prior: Prior,
    max_iterations: int,
) -> Estimate:
    """Return the maximum for one smoothness."""
    initial = start.covariance
    data = [_leaf_of(points, targets, prior, *noise) for points, targets, *noise in leaves]

    def negative_log_posterior(theta: FloatArray) -> tuple[float, FloatArray]:
        covariance = _covariance_at(theta, initial)
        value, gradient = _log_prior(covariance, prior)
        for leaf in data:
            try:
                leaf_value, leaf_gradient = _log_marginal_likelihood(
                    leaf, covariance, prior.mean_variance
                )
            except np.linalg.LinAlgError:
                return _REJECTED_LOSS, np.zeros(len(theta))
            value += leaf_value
            gradient += leaf_gradient
        return -value, -gradient[: len(theta)]

    varied_noise = initial.noise - _SMALLEST_NOISE[initial.smoothness] + 1e-12
    theta = np.log([*initial.precisions, initial.amplitude, varied_noise])
    bounds = [_LOG_BOUNDS] * (len(theta) - 1) + [_LOG_NOISE_BOUNDS]
    if any(len(leaf.duplicates) for leaf in data):
        if initial.shared_noise == 0.0:
            theta[-1] = max(theta[-1], math.log(_INITIAL_NOISE_WITH_DUPLICATES))
        log_odds = 0.0
        if initial.shared_noise > 0.0:
            # Loaded here and below: few fits have shared noise.
            from scipy.special import logit

            log_odds = logit(_noise_share(initial))
        theta = np.append(theta, log_odds)
        bounds.append(_LOG_ODDS_BOUNDS)
    lower, upper = np.array(bounds).T
    # The share of the noise is one more entry as soon as inputs repeat.
    known = start.changes if all(len(step) == len(theta) for step, _ in start.changes) else ()
    found = minimise_in_box(negative_log_posterior, theta, (lower, upper), max_iterations, known)
    return Estimate(_covariance_at(found.x, initial), found.changes, found.value)


def _covariance_at(theta: FloatArray, like: Covariance) -> Covariance:
    """Return the covariance with parameters `theta`; all else is as in `like`."""
    d = len(like.precisions)
    values = np.exp(theta[: d + 2])
    noise = float(values[d + 1]) + _SMALLEST_NOISE[like.smoothness]
    if len(theta) == d + 2:
        share = _noise_share(like)
    else:
        from scipy.special import expit

        share = float(expit(theta[d + 2]))
    shared_noise = share * (noise - _SMALLEST_INDEPENDENT_NOISE)
    return like._replace(
        precisions=values[:d], amplitude=float(values[d]), noise=noise, shared_noise=shared_noise
    )


def _noise_share(covariance: Covariance) -> float:
    """Return the share of the noise that targets at equal inputs have in common, in [0, 1]."""
    return covariance.shared_noise / (covariance.noise - _SMALLEST_INDEPENDENT_NOISE)


def _duplicates(points: FloatArray) -> IntArray:
    """Return the pairs of equal points, the later one first, shape (k, 2)."""
    _, groups = np.unique(points, axis=0, return_inverse=True)
    groups = groups.ravel()
    order = np.argsort(groups, kind="stable")
    pairs = [_NO_DUPLICATES]
    for step in range(1, len(points)):
        same = groups[order[step:]] == groups[order[:-step]]
        if not same.any():
            break
        pairs.append(np.stack([order[step:][same], order[:-step][same]], axis=1))
    return np.concatenate(pairs)


def _log_prior(covariance: Covariance, prior: Prior) -> tuple[float, FloatArray]:
    """Return the log prior density and its gradient with respect to `theta`, shape (d + 3,).

    The density is that of the hyper-parameters themselves, without the Jacobian of `theta`, and
    lacks its normalising constant.
    """
    precisions = covariance.precisions
    d = len(precisions)
    gradient = np.zeros(d + 3)
    if isinstance(prior.precision, tuple):
        shape, rate = prior.precision
        value = float(np.sum((shape - 1.0) * np.log(precisions) - rate * precisions))
        gradient[:d] = shape - 1.0 - rate * precisions
    else:
        modes = _precision_modes(covariance.categorical)
        value = -prior.precision * float(np.sum(modes / precisions + precisions / modes))
        gradient[:d] = prior.precision * (modes / precisions - precisions / modes)
    for index, number, (shape, rate) in (
        (d, covariance.amplitude, prior.amplitude),
        (d + 1, covariance.noise, prior.noise),
    ):
        value += (shape - 1.0) * math.log(number) - rate * number
        gradient[index] = shape - 1.0 - rate * number
    # theta is the log of the noise above the smallest noise.
    gradient[d + 1] *= 1.0 - _SMALLEST_NOISE[covariance.smoothness] / covariance.noise
    if prior.noise_share is not None and covariance.shared_noise > 0.0:
        a, b = prior.noise_share
        share = _noise_share(covariance)
        value += a * math.log(share) + b * math.log1p(-share)
        gradient[d + 2] = a - (a + b) * share
    return value, gradient


def _precision_modes(categorical: BoolArray) -> FloatArray:
    """Return the modes of the densities of precisions with a float as `Prior.precision`, (d,)."""
    n_categorical = max(int(categorical.sum()), _FEW_CATEGORICAL)
    return np.where(categorical, _FEW_CATEGORICAL / n_categorical, 1.0)


class _Leaf(NamedTuple):
    """The data of a leaf, and room for what a likelihood needs: new arrays would take longer.

    Attributes
    ----------
    points, targets, known_noise
        See :data:`LeafData`.
    duplicates : int64 array of shape (k, 2)
        Pairs of equal points, as far as they may share noise.
    kernel, factors, matrix, weights : float64 arrays of shape (n, n)
        The room. Upper triangles are 0.
    """

    points: FloatArray
    targets: FloatArray
    known_noise: FloatArray | None
    duplicates: IntArray
    kernel: FloatArray
    factors: FloatArray
    matrix: FloatArray
    weights: FloatArray


def _leaf_of(
    points: FloatArray, targets: FloatArray, prior: Prior, known_noise: FloatArray | None = None
) -> _Leaf:
    """Return the data of a leaf with room."""
    duplicates = _duplicates(points) if prior.noise_share else _NO_DUPLICATES
    room = (np.zeros((len(points), len(points))) for _ in range(4))
    return _Leaf(points, targets, known_noise, duplicates, *room)


def _log_marginal_likelihood(
    leaf: _Leaf, covariance: Covariance, mean_variance: float
) -> tuple[float, FloatArray]:
    """Return a leaf's log marginal likelihood and its gradient with respect to `theta`.

    The value follows Rasmussen2006, Algorithm 2.1 and eq. 5.8, the gradient eq. 5.9.
    """
    points, targets, known_noise, duplicates, kernel, factors, matrix, weights = leaf
    n, d = points.shape
    _, amplitude, noise, _, smoothness, shared_noise = covariance
    independent = covariance._replace(shared_noise=0.0) if shared_noise else covariance
    kernel_matrix(points, independent, kernel, factors)
    variances = amplitude, noise, shared_noise, mean_variance
    _write_target_covariances(kernel, variances, duplicates, matrix)
    if known_noise is not None:
        matrix.ravel()[:: n + 1] += known_noise
    # Algorithm 2.1, line 2: L = cholesky(K_y). LAPACK's arrays are transposed, and it overwrites
    # the lower triangle of `matrix` with L, which is an upper triangle to it.
    _, info = lapack.dpotrf(matrix.T, lower=0, clean=0, overwrite_a=1)
    if info != 0:
        _write_target_covariances(kernel, variances, duplicates, matrix)
        if known_noise is not None:
            matrix.ravel()[:: n + 1] += known_noise
        matrix[:] = factorise(matrix)
    alpha, _ = lapack.dpotrs(matrix.T, targets, lower=0)  # line 3: alpha = L^T \ (L \ y)
    value = -0.5 * (  # line 7
        float(targets @ alpha)
        + 2.0 * float(np.log(matrix.diagonal()).sum())
        + n * math.log(2.0 * math.pi)
    )
    # Eq. 5.9: the derivative is tr((alpha alpha^T - K_y^-1) dK_y / dtheta_j) / 2.
    lapack.dpotri(matrix.T, lower=0, overwrite_c=1)  # the lower triangle of K_y^-1
    _write_weights(alpha, matrix, kernel, weights)
    trace = float(weights.diagonal().sum())
    gradient = np.empty(d + 3)
    precision_gradient(points, covariance, weights, factors, gradient[:d])
    gradient[:d] *= amplitude
    # The diagonal of the kernel is 1 and enters through the trace; the upper triangle is 0.
    gradient[d] = amplitude * (2.0 * float(np.vdot(weights, kernel)) + trace)
    of_duplicates, share = 0.0, _noise_share(covariance)
    if len(duplicates):
        of_duplicates = 2.0 * float(weights[duplicates[:, 0], duplicates[:, 1]].sum())
    gradient[d + 1] = (noise - _SMALLEST_NOISE[smoothness]) * (trace + share * of_duplicates)
    gradient[d + 2] = shared_noise * (1.0 - share) * of_duplicates
    return value, gradient


@njit(cache=True, nogil=True)
def _write_target_covariances(kernel, variances, duplicates, matrix):  # type: ignore[no-untyped-def]
    """Write the lower triangle of K_y.

    Parameters
    ----------
    kernel : float64 array of shape (n, n)
        The kernel, of which only the lower triangle is read.
    variances : tuple of four floats
        Of the process, all noise, the part of it that equal points share, and the unknown constant
        mean (eq. 2.40).
    duplicates : int64 array of shape (k, 2)
        Pairs of equal points, the later one first.
    matrix : float64 array of shape (n, n)
        Result; what is above the diagonal stays.
    """
    amplitude, noise, shared_noise, mean_variance = variances
    for i in range(len(kernel)):
        for k in range(i + 1):
            matrix[i, k] = kernel[i, k] * amplitude
        matrix[i, i] += noise
    for pair in range(len(duplicates)):
        matrix[duplicates[pair, 0], duplicates[pair, 1]] += shared_noise
    for i in range(len(kernel)):
        for k in range(i + 1):
            matrix[i, k] += mean_variance


@njit(cache=True, nogil=True)
def _write_weights(alpha, inverse, kernel, weights):  # type: ignore[no-untyped-def]
    """Write the lower triangle of ``(alpha alpha^T - inverse) / 2``; zero the kernel's diagonal."""
    for i in range(len(alpha)):
        half = 0.5 * alpha[i]
        for k in range(i + 1):
            weights[i, k] = half * alpha[k] - 0.5 * inverse[i, k]
        kernel[i, i] = 0.0
