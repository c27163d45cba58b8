"""Logarithm of the expected improvement of a hypervolume, for independent Gaussian objectives."""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
from numba import njit

from mondrian_bo.acquisitions.pareto import BoxDecomposition
from mondrian_bo.shared.array_types import FloatArray, IntArray
from mondrian_bo.shared.exponential import exp_below_zero

_SQRT_HALF = math.sqrt(0.5)
"""Factor of the argument of the error function in the normal distribution function."""

_INVERSE_SQRT_2PI = 1.0 / math.sqrt(2.0 * math.pi)
"""Normalising constant of the standard normal density."""

_TAIL = -1.0
"""Standardised improvement below which probabilities are taken from `_tail`: where a density minus
a probability would cancel digits."""

_FAR = 1e100
"""Standardised distance beyond which all are the same: densities are 0 in float64."""

_LEAST_EXPONENT = -700.0
"""Exponent below which an exponential is taken as 0: subnormal numbers are slow."""

_LEAST_PRODUCT = 1e-300
"""Smallest product of the shares of all objectives. Smaller ones are 0, for the same reason."""

_SAFE = 1e25
"""Factor between that and the sums of products that are accepted: what is left out is a share
below the precision of float64."""

_NEGLIGIBLE = 45.0
"""Natural logarithm of the share of a score below which a box is left out: a thousand of them are
less than the precision of float64."""

_Scored: TypeAlias = tuple[FloatArray, FloatArray, FloatArray]
"""Scores, and their derivatives by means and by standard deviations."""


def log_expected_hypervolume_improvement(
    means: FloatArray, stds: FloatArray, boxes: BoxDecomposition
) -> FloatArray:
    """Score candidates by the volume that each is expected to add to what a front dominates.

    With e(a) = E[max(y - a, 0)], which has the closed form of expected improvement, the expectation
    is the sum over boxes of the products over objectives of e(lower) - e(upper).

    Parameters
    ----------
    means : float64 array of shape (m, K) or (C, m, K)
        Means of the K objectives at m candidates, in units of the front; finite. Larger is better.
        With C components, each objective is a mixture with equal weights, such as that of a forest.
    stds : float64 array of the same shape
        Standard deviations, finite and >= 0; 0 is a point mass.
    boxes : BoxDecomposition
        The region that counts, of :func:`mondrian_bo.acquisitions.pareto.decompose`.

    Returns
    -------
    float64 array of shape (m,)
        Logarithms of the expectations. They are finite however unlikely an improvement is, and
        minus infinity where it is impossible (point masses), or where an objective is 1e150
        standard deviations below the reference or the front, or a moment is NaN.

    Raises
    ------
    ValueError
        If shapes do not fit.

    Notes
    -----
    O(m K (C c + b)) for c coordinates and b boxes. Objectives are independent given the inputs.

    References
    ----------
    Emmerich, Deutz and Klinkenberg (2011), Hypervolume-based expected improvement: monotonicity
    properties and exact computation, section 4; Yang, Emmerich, Deutz and Baeck (2019), Efficient
    computation of expected hypervolume improvement using box decomposition algorithms, section 4,
    for the boxes; Ament et al. (2023), Unexpected improvements to expected improvement for Bayesian
    optimization, for the logarithms.
    """
    means, stds = _as_components(means, stds, boxes)
    return _scores(means, stds, *boxes)


def log_expected_hypervolume_improvement_gradient(
    means: FloatArray, stds: FloatArray, boxes: BoxDecomposition
) -> _Scored:
    """Score candidates, with the derivatives by every mean and standard deviation.

    Parameters
    ----------
    means, stds, boxes
        As in :func:`log_expected_hypervolume_improvement`.

    Returns
    -------
    scores : float64 array of shape (m,)
        The scores.
    d_means, d_stds : float64 arrays of the shape of ``means``
        Their derivatives. Those of point masses are one-sided, and all are 0 where the score is
        minus infinity.

    Raises
    ------
    ValueError
        If shapes do not fit.

    References
    ----------
    As of the scores. Daulton, Balandat and Bakshy (2020), Differentiable expected hypervolume
    improvement for parallel multi-objective Bayesian optimization, show what gradients gain.
    """
    components, spreads = _as_components(means, stds, boxes)
    scores, d_means, d_stds = _scores_and_derivatives(components, spreads, *boxes)
    shape = np.shape(means)
    return scores, d_means.reshape(shape), d_stds.reshape(shape)


def _as_components(
    means: FloatArray, stds: FloatArray, boxes: BoxDecomposition
) -> tuple[FloatArray, FloatArray]:
    """Return moments of shape (C, m, K), or raise a ValueError."""
    means = np.ascontiguousarray(means, dtype=np.float64)
    stds = np.ascontiguousarray(stds, dtype=np.float64)
    n_objectives = len(boxes.coordinates)
    if means.shape != stds.shape or means.ndim not in (2, 3) or means.shape[-1] != n_objectives:
        raise ValueError(
            f"`means` and `stds` must both be of shape (m, {n_objectives}) or (C, m, "
            f"{n_objectives}), as the boxes have {n_objectives} objectives; got {means.shape} and "
            f"{stds.shape}."
        )
    if means.ndim == 2:
        return means[None], stds[None]
    return means, stds


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def _tail(x: float) -> float:
    """Return E[max(N(-x, 1), 0)] / density(x), or 1 - x times the Mills ratio, for x >= 0.

    It falls from 1.25 to 1/x**2. Times (1 + x)**2 it is a polynomial of degree 25 in
    (x - 5)/(x + 5): the Chebyshev interpolation, computed with 60 digits, whose next coefficients
    are below 1e-16. Written out, as loops over coordinates are vectorised only then.
    """
    s = (x - 5.0) / (x + 5.0)
    p = 1.5294186063516205e-09
    p = p * s - 9.684045797029939e-09
    p = p * s - 2.1184998715660543e-08
    p = p * s + 1.073022959586397e-07
    p = p * s + 1.6601511154204576e-07
    p = p * s - 6.968399656044212e-07
    p = p * s - 9.985214771598005e-07
    p = p * s + 3.9473272317334125e-06
    p = p * s + 4.971636920474042e-06
    p = p * s - 2.3355088213939513e-05
    p = p * s - 1.7203931061125266e-05
    p = p * s + 0.00014692756303243338
    p = p * s - 3.5818170996182e-05
    p = p * s - 0.000852726679260871
    p = p * s + 0.0015767756175029339
    p = p * s + 0.0023283136856683535
    p = p * s - 0.016131705895756486
    p = p * s + 0.03474622704411568
    p = p * s - 0.03186187270803922
    p = p * s - 0.029310982484216187
    p = p * s + 0.15402166231123107
    p = p * s - 0.2735482037622689
    p = p * s + 0.26116700784716246
    p = p * s - 0.028030699627535318
    p = p * s - 0.36872296454501824
    p = p * s + 1.2945411512431624
    return p / ((1.0 + x) * (1.0 + x))


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def _fill_tails(
    means: FloatArray, stds: FloatArray, coordinates: FloatArray, tails: FloatArray
) -> None:
    """Write `_tail` of the standardised distances of a candidate to all coordinates.

    Parameters
    ----------
    means, stds : float64 arrays of shape (C, K)
        Its moments.
    coordinates : float64 array of shape (K, c)
        The coordinates.
    tails : float64 array of shape (C, K, c)
        Is overwritten.
    """
    for component in range(means.shape[0]):
        for k in range(means.shape[1]):
            mean = means[component, k]
            std = stds[component, k]
            for position in range(coordinates.shape[1]):
                x = abs((mean - coordinates[k, position]) / std)
                tails[component, k, position] = _tail(x if x < _FAR else _FAR)


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def _add_improvements(
    mean: float, std: float, coordinates: FloatArray, tails: FloatArray, sums: FloatArray
) -> None:
    """Add E[max(N(mean, std**2) - coordinate, 0)] for each coordinate, in vector instructions.

    Entries are those of :func:`_improvement` to some units of rounding; arrays are of shape (c,).
    """
    if not std > 0.0:
        for position in range(len(coordinates)):
            gain = mean - coordinates[position]
            sums[position] += gain if std == 0.0 and gain > 0.0 else 0.0
        return
    for position in range(len(coordinates)):
        gain = mean - coordinates[position]
        z = gain / std
        density = _INVERSE_SQRT_2PI * exp_below_zero(-0.5 * z * z)
        sums[position] += (gain if gain > 0.0 else 0.0) + std * density * tails[position]


@njit(cache=True, nogil=True, error_model="numpy")
def _improvement(gain: float, std: float, tail: float) -> float:
    """Return E[max(N(gain, std**2), 0)]; 0 where it is close to underflow."""
    improvement = max(gain, 0.0) if std >= 0.0 else 0.0
    if std > 0.0:
        z = gain / std
        exponent = -0.5 * z * z
        if exponent > _LEAST_EXPONENT:
            # What is below the bound adds to a mean above it.
            improvement += std * (_INVERSE_SQRT_2PI * math.exp(exponent)) * tail
    return improvement


@njit(cache=True, nogil=True, error_model="numpy")
def _log_improvement(gain: float, std: float, tail: float) -> float:
    """Return the logarithm of E[max(N(gain, std**2), 0)]."""
    improvement = _improvement(gain, std, tail)
    if improvement > 0.0:
        return math.log(improvement)
    if std == 0.0:
        return -np.inf
    z = gain / std
    return math.log(std * (_INVERSE_SQRT_2PI * tail)) - 0.5 * z * z


@njit(cache=True, nogil=True, error_model="numpy")
def _log_improvement_derivatives(gain: float, std: float, tail: float) -> tuple[float, float]:
    """Return the derivatives of :func:`_log_improvement` by gain and standard deviation."""
    z = gain / std
    if z < _TAIL:
        return (1.0 - tail) / (-gain * tail), 1.0 / (std * tail)
    if std == 0.0 or z > _FAR:
        return 1.0 / gain if gain > 0.0 else 0.0, 0.0
    density = _INVERSE_SQRT_2PI * math.exp(-0.5 * z * z)
    probability = 0.5 * math.erfc(-_SQRT_HALF * z)
    scaled = std * (density * tail + max(z, 0.0))
    return probability / scaled, density / scaled


@njit(cache=True, nogil=True, error_model="numpy")
def _scores(
    means: FloatArray, stds: FloatArray, coordinates: FloatArray, lower: IntArray, upper: IntArray
) -> FloatArray:
    """Return the scores, with logarithms only where products might underflow."""
    n_components, n_rows, n_objectives = means.shape
    n_coordinates = coordinates.shape[1]
    tails = np.empty((n_components, n_objectives, n_coordinates))
    # The improvements on each coordinate, as shares of that on the reference.
    shares = np.empty(coordinates.shape)
    logs = np.empty(coordinates.shape)
    scores = np.empty(n_rows)
    least_share = _LEAST_PRODUCT ** (1.0 / n_objectives)
    for row in range(n_rows):
        _fill_tails(means[:, row], stds[:, row], coordinates, tails)
        log_scale = 0.0
        for k in range(n_objectives):
            shares[k] = 0.0
            for component in range(n_components):
                moments = means[component, row, k], stds[component, row, k]
                _add_improvements(*moments, coordinates[k], tails[component, k], shares[k])
            scale = shares[k, 0]
            log_scale += math.log(scale / n_components) if scale > 0.0 else 0.0
            for position in range(n_coordinates):
                share = shares[k, position] / scale if scale > 0.0 else 0.0
                shares[k, position] = share if share > least_share else 0.0
        # The region above a lower corner is never dominated. So the expectation is at least the
        # product of the improvements on it, and the differences cancel no digits that count.
        expectation = 0.0
        for box in range(len(lower)):
            product = 1.0
            for k in range(n_objectives):
                product *= shares[k, lower[box, k]] - shares[k, upper[box, k]]
            expectation += product
        if expectation > least_share * _SAFE:
            scores[row] = math.log(expectation) + log_scale
            continue
        _log_improvements(means[:, row], stds[:, row], coordinates, tails, logs)
        least = _log_least(logs, lower)
        total = 0.0
        for box in range(len(lower)):
            product = _weight(logs, lower, box, least)
            if product > 0.0:
                for k in range(n_objectives):
                    product *= _share(logs[k, lower[box, k]], logs[k, upper[box, k]])
            total += product
        scores[row] = least + math.log(total) if total > 0.0 else -np.inf
    return scores


@njit(cache=True, nogil=True, error_model="numpy")
def _scores_and_derivatives(
    means: FloatArray, stds: FloatArray, coordinates: FloatArray, lower: IntArray, upper: IntArray
) -> _Scored:
    """Return the scores and their derivatives, of the shape of means; all in logarithms."""
    n_components, n_rows, n_objectives = means.shape
    n_coordinates = coordinates.shape[1]
    tails = np.empty((n_components, n_objectives, n_coordinates))
    logs = np.empty(coordinates.shape)
    # Derivatives of the sum over boxes by the logarithms of the improvements on each coordinate.
    slopes = np.empty(coordinates.shape)
    shares = np.empty(n_objectives)
    scores = np.empty(n_rows)
    d_means = np.zeros(means.shape)
    d_stds = np.zeros(means.shape)
    for row in range(n_rows):
        _fill_tails(means[:, row], stds[:, row], coordinates, tails)
        _log_improvements(means[:, row], stds[:, row], coordinates, tails, logs)
        slopes[:] = 0.0
        least = _log_least(logs, lower)
        total = 0.0
        for box in range(len(lower)):
            weight = _weight(logs, lower, box, least)
            if weight == 0.0:
                continue
            product = weight
            for k in range(n_objectives):
                shares[k] = _share(logs[k, lower[box, k]], logs[k, upper[box, k]])
                product *= shares[k]
            total += product
            for k in range(n_objectives):
                others = weight
                for j in range(n_objectives):
                    if j != k:
                        others *= shares[j]
                slopes[k, lower[box, k]] += others
                slopes[k, upper[box, k]] -= others * (1.0 - shares[k])
        if total == 0.0:
            scores[row] = -np.inf
            continue
        scores[row] = least + math.log(total)
        for k in range(n_objectives):
            for position in range(n_coordinates):
                if slopes[k, position] == 0.0:
                    continue
                slope = slopes[k, position] / (total * n_components)
                for component in range(n_components):
                    gain = means[component, row, k] - coordinates[k, position]
                    std = stds[component, row, k]
                    tail = tails[component, k, position]
                    log = _log_improvement(gain, std, tail)
                    part = slope * math.exp(log - logs[k, position])
                    if part == 0.0:
                        continue
                    by_mean, by_std = _log_improvement_derivatives(gain, std, tail)
                    d_means[component, row, k] += part * by_mean
                    d_stds[component, row, k] += part * by_std
    return scores, d_means, d_stds


@njit(cache=True, nogil=True, error_model="numpy")
def _log_improvements(
    means: FloatArray,
    stds: FloatArray,
    coordinates: FloatArray,
    tails: FloatArray,
    logs: FloatArray,
) -> None:
    """Write the logarithms of a candidate's expected improvements to `logs`, of shape (K, c).

    The other arguments are those of :func:`_fill_tails`.
    """
    n_components, n_objectives = means.shape
    for k in range(n_objectives):
        for position in range(coordinates.shape[1]):
            coordinate = coordinates[k, position]
            largest = -np.inf
            total = 0.0
            if coordinate < np.inf:
                for component in range(n_components):
                    log = _log_improvement(
                        means[component, k] - coordinate,
                        stds[component, k],
                        tails[component, k, position],
                    )
                    if log > largest:
                        total = total * math.exp(largest - log) + 1.0 if total > 0.0 else 1.0
                        largest = log
                    elif log > -np.inf:
                        total += math.exp(log - largest)
            if n_components > 1 and total > 0.0:
                largest += math.log(total / n_components)
            logs[k, position] = largest


@njit(cache=True, nogil=True, error_model="numpy")
def _log_least(logs: FloatArray, lower: IntArray) -> float:
    """Return the logarithm of a lower bound of the expectation, which is close to it.

    The region above a lower corner is never dominated, so the expectation is at least the product
    of the improvements on it. The largest of these products is at least the share 1/b of it.
    """
    least = -np.inf
    for box in range(len(lower)):
        log = 0.0
        for k in range(lower.shape[1]):
            log += logs[k, lower[box, k]]
        least = max(least, log)
    return least


@njit(cache=True, nogil=True, error_model="numpy")
def _weight(logs: FloatArray, lower: IntArray, box: int, least: float) -> float:
    """Return the product of the improvements on a lower corner as a share; 0 if negligible."""
    log = 0.0
    for k in range(lower.shape[1]):
        log += logs[k, lower[box, k]]
    return math.exp(log - least) if log > least - _NEGLIGIBLE else 0.0


@njit(cache=True, nogil=True, error_model="numpy")
def _share(log_lower: float, log_upper: float) -> float:
    """Return the share of the improvement on a lower end that is between it and an upper end."""
    if log_upper == -np.inf:
        return 1.0
    return max(-math.expm1(log_upper - log_lower), 0.0)
