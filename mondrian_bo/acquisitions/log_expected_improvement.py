"""Logarithm of the expected improvement, without underflow."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import numpy as np

from mondrian_bo.acquisitions.base import (
    ImprovementAcquisition,
    Prediction,
    Usage,
    improvements,
    non_negative,
)
from mondrian_bo.shared.array_types import FloatArray

_LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)
"""Log of the normalising constant of the standard normal density."""

_SERIES_BELOW = -1e3
"""Standardised improvement below which a series is used. It is exact to float64 there, while 1
minus the Mills ratio loses digits as its square."""

_NEAR = (
    (-9.86494403484714822705e-03, 1.0),
    (-6.93858572707181764372e-01, 1.96512716674392571292e01),
    (-1.05586262253232909814e01, 1.37657754143519042600e02),
    (-6.23753324503260060396e01, 4.34565877475229228821e02),
    (-1.62396669462573470355e02, 6.45387271733267880336e02),
    (-1.84605092906711035994e02, 4.29008140027567833386e02),
    (-8.12874355063065934246e01, 1.08635005541779435134e02),
    (-9.81432934416914548592e00, 6.57024977031928170135e00),
    (0.0, -6.04244152148580987438e-02),
)
"""Coefficients of the numerator and the denominator of erfc for 1.25 <= x < 1 / 0.35 in fdlibm (Sun
Microsystems, 1993, s_erf.c)."""

_FAR = (
    (-9.86494292470009928597e-03, 1.0),
    (-7.99283237680523006574e-01, 3.03380607434824582924e01),
    (-1.77579549177547519889e01, 3.25792512996573918826e02),
    (-1.60636384855821916062e02, 1.53672958608443695994e03),
    (-6.37566443368389627722e02, 3.19985821950859553908e03),
    (-1.02509513161107724954e03, 2.55305040643316442583e03),
    (-4.83519191608651397019e02, 4.74528541206955367215e02),
    (0.0, -2.24409524465858183362e01),
)
"""The same for 1 / 0.35 <= x < 28."""


@dataclass(frozen=True)
class LogExpectedImprovement(ImprovementAcquisition):
    """Logarithm of `ExpectedImprovement`, which ranks candidates even where that underflows to 0.

    The level is the incumbent plus the margin. The score is minus infinity only where no component
    can improve: all are point masses at or below the level (or the level is infinite, or beyond
    1e150 standard deviations away).

    Parameters
    ----------
    margin : float, default=0.0
        Improvement that does not count yet, in the units of the prediction; finite and >= 0. In a
        search the unit is one standard deviation of the transformed values.
    optimism : float, default=0.0
        Number of standard deviations that are added to each mean, finite and >= 0. A larger number
        explores more. The sum is a component's upper confidence bound, and the score measures how
        far that lies above the incumbent, on the scale of a logarithm.

    Raises
    ------
    TypeError, ValueError
        If ``margin`` or ``optimism`` is not a number, or is negative, infinite or NaN.

    References
    ----------
    Ament et al. (2023), Unexpected improvements to expected improvement for Bayesian optimization,
    equation (9) and appendix A.1.
    """

    usage: ClassVar[Usage] = Usage(polishes_under_constraints=True, measures_improvement=True)
    optimism: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "optimism", non_negative("optimism", self.optimism))

    def __call__(self, prediction: Prediction, incumbent: float) -> FloatArray:
        """Score candidates; see `Acquisition`."""
        if self.optimism > 0.0:
            prediction = _raised(prediction, self.optimism)
        gain = improvements(prediction, incumbent, self.margin)
        logs = log_gaussian_expected_improvement(gain, prediction.stds)
        if len(logs) == 1:
            return np.asarray(logs[0])
        scores: FloatArray = np.logaddexp.reduce(logs, axis=0) - math.log(len(logs))
        return scores


def _raised(prediction: Prediction, optimism: float) -> Prediction:
    """Return a prediction with standard deviations added to the means."""
    means, stds = prediction
    # An infinite mean comes with an infinite deviation, which must not cancel it.
    return Prediction(means + optimism * np.where(np.isfinite(means), stds, 0.0), stds)


def log_gaussian_expected_improvement(improvement: FloatArray, std: FloatArray) -> FloatArray:
    """Return the logarithm of the expectation of max(N(improvement, std**2), 0).

    Parameters
    ----------
    improvement : float64 array
        Means; may be infinite.
    std : float64 array of the same shape
        Standard deviations, from 0 to infinity.

    Returns
    -------
    float64 array of the same shape
        The logarithms; minus infinity where nothing can improve.
    """
    logs = np.empty(improvement.shape)
    _compiled()(improvement.ravel(), std.ravel(), logs.ravel())
    return logs


@cache
def _compiled() -> Any:
    # Loaded here: a sampler is constructed without numba. The local search scores a few candidates
    # at a time, for which some twenty calls of numpy take five times as long.
    from numba import njit

    return njit(cache=True, nogil=True, error_model="numpy")(_write_logs)


def _write_logs(improvements, stds, result):  # type: ignore[no-untyped-def]
    """Write the logarithms, all arrays of shape (n,). One function: it is compiled when needed."""
    for i in range(len(improvements)):
        improvement, std = improvements[i], stds[i]
        if math.isinf(std) and math.isfinite(improvement):
            result[i] = math.inf
            continue
        if not (std > 0.0 and math.isfinite(std) and math.isfinite(improvement)):
            result[i] = math.log(improvement) if improvement > 0.0 else -math.inf
            continue
        z = improvement / std
        if z >= -1.0:
            # Not std * (density + z * ndtr(z)): z overflows for tiny std, its product with std is
            # the improvement.
            density = math.exp(-0.5 * z * z - _LOG_SQRT_2PI)
            below = 0.5 * math.erfc(-z * math.sqrt(0.5))
            result[i] = math.log(std * density + improvement * below)
            continue
        # h(z) = density(z) + z * ndtr(z) = density(z) * (1 - |z| * Mills ratio)
        inverse = 1.0 / (z * z)
        if z < _SERIES_BELOW:
            shortfall = math.log(inverse) + math.log1p(inverse * (15.0 * inverse - 3.0))
        else:
            # erfcx(x) = exp(x^2) erfc(x) scales the Mills ratio safely. In fdlibm, exp(-x^2) is a
            # factor of erfc.
            x = -z * math.sqrt(0.5)
            inverse = 1.0 / (x * x)
            top, bottom = 0.0, 0.0
            if x < 1.25:
                erfcx = math.exp(x * x) * math.erfc(x)
            elif x < 28.0:
                if x < 1.0 / 0.35:
                    for k in range(len(_NEAR) - 1, -1, -1):
                        top = top * inverse + _NEAR[k][0]
                        bottom = bottom * inverse + _NEAR[k][1]
                else:
                    for k in range(len(_FAR) - 1, -1, -1):
                        top = top * inverse + _FAR[k][0]
                        bottom = bottom * inverse + _FAR[k][1]
                erfcx = math.exp(top / bottom - 0.5625) / x
            else:
                series = 1.0
                for k in range(6, -1, -1):
                    series = 1.0 - (k + 0.5) * inverse * series
                erfcx = series / (x * math.sqrt(math.pi))
            shortfall = math.log1p(z * math.sqrt(0.5 * math.pi) * erfcx)
        result[i] = math.log(std) + (shortfall - 0.5 * z * z - _LOG_SQRT_2PI)
