"""The transform of objective values for modelling: robust, power-transformed, standardised."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.stats import yeojohnson, yeojohnson_llf

from mondrian_bo.array_types import FloatArray

_WORST = 100.0
"""Values worse than the median by more than this many interquartile ranges count as that bad."""

_BEST = 1e24
"""Values better than the median by more interquartile ranges than this count as that good: their
powers are finite."""

_POWERS = (-4.0, 6.0)
"""Range of the Yeo-Johnson parameter; 1 is the identity."""

_SHRINK = 0.25
"""Values are multiplied by this power of two first, so that differences of any two are finite."""


class OutcomeTransform:
    """A monotone map of objective values to a scale that a surrogate models well.

    Infinities become the best or worst finite value (better or worse than those if they are all
    equal), very bad outliers are cut off, and a Yeo-Johnson power transform with its
    parameter fitted by maximum likelihood makes the values as Gaussian as it can; they end up with
    mean 0 and standard deviation 1. A constant objective is 0.

    Parameters
    ----------
    values : float64 array of shape (n,)
        Values to fit to, n >= 1; larger is better. Infinities are allowed, NaN is not.
    power : bool, default=True
        Whether to apply the power transform.
    """

    def __init__(self, values: FloatArray, power: bool = True) -> None:
        finite = values[np.isfinite(values)] * _SHRINK
        if len(finite) == 0:
            finite = np.zeros(1)
        lower, self._centre, upper = (float(q) for q in np.percentile(finite, (25.0, 50.0, 75.0)))
        self._spread = upper - lower if upper > lower else float(np.ptp(finite))
        # In interquartile ranges from the median, like all that is called scaled.
        self._worst, self._best = 0.0, 0.0
        self._power = 1.0
        self._mean, self._std = 0.0, 1.0
        if self._spread > 0.0:
            with np.errstate(over="ignore"):
                ends = (np.array([finite.min(), finite.max()]) - self._centre) / self._spread
            self._worst, self._best = max(float(ends[0]), -_WORST), min(float(ends[1]), _BEST)
        elif (values != values[0]).any():
            # Infinities are worse or better than the one number there is.
            self._spread = 1.0
            self._worst = -1.0 if values.min() == -np.inf else 0.0
            self._best = 1.0 if values.max() == np.inf else 0.0
        if self._spread > 0.0:
            scaled = self._scaled(values)
            if power:
                self._power = _most_likely_power(scaled)
            powered = yeojohnson(scaled, self._power)
            self._mean, self._std = float(powered.mean()), float(powered.std())

    def __call__(self, values: FloatArray) -> FloatArray:
        """Return transformed values; a new best one lies beyond all that was fitted."""
        if self._spread == 0.0 or self._std == 0.0:
            return np.zeros(len(values))
        powered = yeojohnson(self._scaled(values), self._power)
        return np.asarray((powered - self._mean) / self._std)

    def inverse(self, transformed: FloatArray) -> FloatArray:
        """Return the objective values of transformed ones; cut-off values come back as the cut.

        What lies outside the range of the fitted values by more than its width comes back as if by
        its width: the inverse of the power would go to infinity.
        """
        if self._spread == 0.0 or self._std == 0.0:
            return np.full(np.shape(transformed), self._centre / _SHRINK)
        scaled = _inverse_yeojohnson(transformed * self._std + self._mean, self._power)
        width = self._best - self._worst
        scaled = np.clip(scaled, self._worst - width, self._best + width)
        with np.errstate(over="ignore"):
            values = (self._centre + self._spread * scaled) / _SHRINK
        largest = np.finfo(np.float64).max
        return np.asarray(np.clip(values, -largest, largest))

    def _scaled(self, values: FloatArray) -> FloatArray:
        with np.errstate(over="ignore"):
            scaled = (values * _SHRINK - self._centre) / self._spread
        scaled = np.where(np.isposinf(values), self._best, scaled)
        return np.asarray(np.clip(scaled, self._worst, _BEST))


def _most_likely_power(scaled: FloatArray) -> float:
    def loss(power: float) -> float:
        return -float(yeojohnson_llf(power, scaled))

    result = minimize_scalar(loss, bounds=_POWERS, method="bounded")
    return float(result.x) if np.isfinite(result.fun) else 1.0


def _inverse_yeojohnson(powered: FloatArray, power: float) -> FloatArray:
    """Invert the transform; values beyond its range are its limits' preimages."""
    positive = powered >= 0.0
    size = np.abs(powered)
    exponent = np.where(positive, power, 2.0 - power)
    with np.errstate(all="ignore"):
        base = np.maximum(1.0 + exponent * size, np.finfo(np.float64).tiny)
        grown = np.where(
            np.abs(exponent) < 1e-12, np.expm1(size), np.power(base, 1.0 / exponent) - 1.0
        )
    return np.where(positive, grown, -grown)
