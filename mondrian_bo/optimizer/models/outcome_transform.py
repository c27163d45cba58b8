"""The transform of an outcome's values: robust, power-transformed, standardised."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mondrian_bo.shared.array_types import FloatArray
from mondrian_bo.shared.float_range import SHRINK, TINY
from mondrian_bo.shared.projected_lbfgs import minimise_in_box

_WORST = 100.0
"""Interquartile ranges below the median at which values are clipped: our choice, so that a
diverged trial does not flatten the differences between the others."""

_BEST = 1e24
"""Interquartile ranges above the median at which values are clipped: their 6th powers (`_POWERS`)
stay finite."""

_POWERS = (-4.0, 6.0)
"""Range of the Yeo-Johnson parameter, our choice, around 1, the identity."""

_ITERATIONS = 100
"""Largest number of steps of the search for the power, our choice: it takes about ten."""

_LEAST_VARIANCE = TINY
"""Smallest variance. Those below it count as 0: their logarithms lose precision."""


class OutcomeTransform:
    """A monotone map of objective values to a scale that a surrogate models well.

    Infinities become the best or worst finite value. If all finite values are equal, infinities
    count as better or worse than them. Very bad outliers are clipped. A Yeo-Johnson power
    transform, fitted by maximum likelihood, makes the values nearly Gaussian. They are then
    standardised to mean 0 and standard deviation 1. A constant objective is 0.

    Parameters
    ----------
    values : float64 array of shape (n,)
        Values to fit to, n >= 1; larger is better. Infinities are allowed, NaN is not.
    power : bool, default=True
        Whether to apply the power transform.
    """

    def __init__(self, values: FloatArray, power: bool = True) -> None:
        finite = values[np.isfinite(values)] * SHRINK
        if len(finite) == 0:
            finite = np.zeros(1)
        lower, self._centre, upper = (float(q) for q in np.percentile(finite, (25.0, 50.0, 75.0)))
        # The interquartile range of the values, or their full range.
        self._range = upper - lower if upper > lower else float(np.ptp(finite))
        # Scaled values are interquartile ranges from the median, here and below.
        self._worst, self._best = 0.0, 0.0
        self._power = 1.0
        self._mean, self._std = 0.0, 1.0
        if self._range > 0.0:
            with np.errstate(over="ignore"):
                ends = (np.array([finite.min(), finite.max()]) - self._centre) / self._range
            self._worst, self._best = max(float(ends[0]), -_WORST), min(float(ends[1]), _BEST)
        elif (values != values[0]).any():
            # All finite values are equal; infinities are worse or better than them.
            self._range = 1.0
            self._worst = -1.0 if values.min() == -np.inf else 0.0
            self._best = 1.0 if values.max() == np.inf else 0.0
        if self._range > 0.0:
            scaled = self._scaled(values)
            if power:
                self._power = _most_likely_power(scaled)
            powered = _yeo_johnson(scaled, self._power)
            self._mean, self._std = float(powered.mean()), float(powered.std())

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore; in pickles of earlier versions the range has another name."""
        names = {"_spread": "_range"}
        self.__dict__.update({names.get(name, name): one for name, one in state.items()})

    def __call__(self, values: FloatArray) -> FloatArray:
        """Return transformed values; a value better than all fitted ones is not clipped to them."""
        if self._range == 0.0 or self._std == 0.0:
            return np.zeros(len(values))
        powered = _yeo_johnson(self._scaled(values), self._power)
        return np.asarray((powered - self._mean) / self._std)

    @property
    def is_linear(self) -> bool:
        """Whether there is no power transform: values are only clipped and standardised."""
        return self._power == 1.0

    def log_slopes(self, values: FloatArray) -> FloatArray:
        """Return the logarithms of the derivatives at values.

        Clipped values have the slope at the bound, and those of a constant objective the slope 0.
        """
        if self._range == 0.0 or self._std == 0.0:
            return np.full(len(values), -np.inf)
        scaled = self._scaled(values)
        # The logarithm of the quotient of the range and the factor might overflow.
        slopes = math.log(SHRINK) - math.log(self._range) - math.log(self._std)
        return np.asarray(slopes + (self._power - 1.0) * np.sign(scaled) * np.log1p(np.abs(scaled)))

    def inverse(self, transformed: FloatArray) -> FloatArray:
        """Return the objective values of transformed ones; clipped values come back as the bound.

        Results are clipped to the range of the fitted values, extended by its width on both sides,
        because the inverse of the power goes to infinity.
        """
        if self._range == 0.0 or self._std == 0.0:
            return np.full(np.shape(transformed), self._centre / SHRINK)
        scaled = _inverse_yeojohnson(transformed * self._std + self._mean, self._power)
        width = self._best - self._worst
        scaled = np.clip(scaled, self._worst - width, self._best + width)
        with np.errstate(over="ignore"):
            values = (self._centre + self._range * scaled) / SHRINK
        largest = np.finfo(np.float64).max
        return np.asarray(np.clip(values, -largest, largest))

    def _scaled(self, values: FloatArray) -> FloatArray:
        with np.errstate(over="ignore"):
            scaled = (values * SHRINK - self._centre) / self._range
        scaled[values == np.inf] = self._best
        # In a third of the time of `numpy.clip`.
        return np.asarray(np.minimum(np.maximum(scaled, self._worst), _BEST))


def _most_likely_power(scaled: FloatArray) -> float:
    """Return the maximum likelihood estimate of the power (Yeo and Johnson (2000), eq. 3.1)."""
    logs = np.log1p(np.abs(scaled))
    # The logarithm of the Jacobian is linear in the power.
    log_jacobian = float(np.sum(np.sign(scaled) * logs))

    def loss(theta: FloatArray) -> tuple[float, FloatArray]:
        power = float(theta[0])
        powered = _yeo_johnson(scaled, power)
        deviations = powered - powered.mean()
        variance = float(np.mean(deviations * deviations))
        # A power that makes all values equal has an infinite likelihood, as in scipy.
        if variance < _LEAST_VARIANCE:
            return -math.inf, np.zeros(1)
        value = 0.5 * len(scaled) * math.log(variance) - (power - 1.0) * log_jacobian
        derivatives = _power_derivatives(
            np.abs(powered), logs, np.where(scaled >= 0.0, power, 2.0 - power)
        )
        return value, np.array([float(deviations @ derivatives) / variance - log_jacobian])

    ends = np.array(_POWERS)[:, None]
    found = minimise_in_box(loss, np.ones(1), (ends[0], ends[1]), _ITERATIONS)
    return float(found.x[0]) if math.isfinite(found.value) else 1.0


def _power_derivatives(sizes: FloatArray, logs: FloatArray, exponents: FloatArray) -> FloatArray:
    """Return the derivatives of transformed values with respect to the power.

    The arguments are the absolute values after the transform, the logarithms of 1 plus those
    before it, and their exponents, all of shape (n,).
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        derivatives = (logs * (1.0 + exponents * sizes) - sizes) / exponents
    # Near exponent 0 the difference cancels: the first terms of its series.
    series = logs * logs * (0.5 + exponents * logs / 3.0)
    return np.where(np.abs(exponents) * logs < 1e-5, series, derivatives)


def _yeo_johnson(values: FloatArray, power: float) -> FloatArray:
    """Transform values as `scipy.stats.yeojohnson` does, whose import takes most of a second.

    References
    ----------
    Yeo and Johnson (2000), A new family of power transformations, equation (2.1).
    """
    epsilon = np.finfo(np.float64).eps
    transformed = np.empty(len(values))
    positive = values >= 0.0
    logs = np.log1p(values[positive])
    transformed[positive] = logs if abs(power) < epsilon else np.expm1(power * logs) / power
    logs = np.log1p(-values[~positive])
    rest = 2.0 - power
    transformed[~positive] = -logs if abs(rest) <= epsilon else -np.expm1(rest * logs) / rest
    return transformed


def _inverse_yeojohnson(powered: FloatArray, power: float) -> FloatArray:
    """Invert the transform; values beyond the transform's range count as its limit."""
    positive = powered >= 0.0
    size = np.abs(powered)
    exponent = np.where(positive, power, 2.0 - power)
    with np.errstate(all="ignore"):
        base = np.maximum(1.0 + exponent * size, TINY)
        grown = np.where(
            np.abs(exponent) < 1e-12, np.expm1(size), np.power(base, 1.0 / exponent) - 1.0
        )
    return np.where(positive, grown, -grown)
