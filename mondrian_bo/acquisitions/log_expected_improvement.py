"""Logarithm of the expected improvement, without underflow."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mondrian_bo.acquisitions.base import (
    ImprovementAcquisition,
    Prediction,
    Usage,
    improvements,
)
from mondrian_bo.acquisitions.expected_improvement import gaussian_expected_improvement
from mondrian_bo.array_types import FloatArray

_LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)
"""Log of the normalising constant of the standard normal density."""


_SERIES_BELOW = -1e3
"""Standardised improvement below which a series is used. It is exact to float64 there, while 1
minus the Mills ratio loses digits as its square."""


@dataclass(frozen=True)
class LogExpectedImprovement(ImprovementAcquisition):
    """Logarithm of `ExpectedImprovement`, which ranks candidates even where that underflows to 0.

    Minus infinity only where no component can improve: all are point masses at or below the target
    (or the target is infinite, or beyond 1e150 standard deviations away).

    Parameters
    ----------
    margin : float, default 0.0
        Improvement that counts for nothing, in the units of the prediction; finite and >= 0.

    References
    ----------
    Ament et al. (2023), Unexpected improvements to expected improvement for Bayesian optimization,
    equation (9) and appendix A.1.
    """

    usage: ClassVar[Usage] = Usage(polishes_under_constraints=True)

    def __call__(self, prediction: Prediction, incumbent: float) -> FloatArray:
        """Score candidates; see `Acquisition`."""
        gain = improvements(prediction, incumbent, self.margin)
        logs = log_gaussian_expected_improvement(gain, prediction.stds)
        scores: FloatArray = np.logaddexp.reduce(logs, axis=0) - math.log(len(logs))
        return scores


def log_gaussian_expected_improvement(improvement: FloatArray, std: FloatArray) -> FloatArray:
    """Return the logarithm of :func:`gaussian_expected_improvement`, of the same arguments."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        z = improvement / std
        # False where z is NaN: there, as above the tail, the expectation itself is safe. It is 0 or
        # NaN where the deviation is infinite.
        tail = (z < -1.0) & (std > 0.0)
        logs = np.empty_like(z)
        # A few candidates are often all on one side, and to score none takes as long.
        if tail.any():
            logs[tail] = np.log(std[tail]) + _log_h_tail(z[tail])
        if not tail.all():
            body = ~tail
            logs[body] = np.log(gaussian_expected_improvement(improvement[body], std[body]))
    return logs


def _log_h_tail(z: FloatArray) -> FloatArray:
    """Return the logarithm of h(z) = density(z) + z * ndtr(z), for z < -1."""
    # Loaded here: a sampler is constructed without scipy.
    from scipy.special import erfcx

    square = z * z
    # h(z) = density(z) * (1 - |z| * Mills ratio); erfcx scales the Mills ratio safely.
    mills = -z * math.sqrt(0.5 * math.pi) * erfcx(z * -math.sqrt(0.5))
    shortfall = np.log1p(-mills)
    far = z < _SERIES_BELOW
    if far.any():
        inverse = 1.0 / square[far]
        shortfall[far] = np.log(inverse) + np.log1p(inverse * (15.0 * inverse - 3.0))
    return -0.5 * square - _LOG_SQRT_2PI + shortfall
