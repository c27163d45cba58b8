"""The logarithm of the expected improvement of one Gaussian, compiled.

The local search scores a few candidates at a time, for which some twenty calls of numpy take ten
times as long as the formula. The module is loaded with the first score: a sampler is constructed
without numba.
"""

from __future__ import annotations

import math

from numba import njit

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
"""Coefficients of the numerator and the denominator for 1.25 <= x < 1 / 0.35 in fdlibm."""

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


@njit(cache=True, nogil=True, error_model="numpy")
def log_expected_improvements(improvements, stds, result):  # type: ignore[no-untyped-def]
    """Write the logarithms of the expectations of max(N(improvement, std**2), 0).

    Parameters
    ----------
    improvements, stds : float64 arrays of shape (n,)
        Means, and standard deviations from 0 to infinity; both may be infinite.
    result : float64 array of shape (n,)
        Result.
    """
    for i in range(len(improvements)):
        result[i] = _log_expectation(improvements[i], stds[i])


@njit(cache=True, nogil=True, error_model="numpy")
def _log_expectation(improvement, std):  # type: ignore[no-untyped-def]
    if math.isinf(std) and math.isfinite(improvement):
        return math.inf
    if not (std > 0.0 and math.isfinite(std) and math.isfinite(improvement)):
        return math.log(improvement) if improvement > 0.0 else -math.inf
    z = improvement / std
    if z < -1.0:
        return math.log(std) + _log_h_tail(z)
    # Not std * (density + z * ndtr(z)): z overflows for tiny std, its product with std is the
    # improvement.
    density = math.exp(-0.5 * z * z - _LOG_SQRT_2PI)
    return math.log(std * density + improvement * 0.5 * math.erfc(-z * math.sqrt(0.5)))


@njit(cache=True, nogil=True, error_model="numpy")
def _log_h_tail(z):  # type: ignore[no-untyped-def]
    """Return the logarithm of h(z) = density(z) + z * ndtr(z), for z < -1."""
    # h(z) = density(z) * (1 - |z| * Mills ratio); erfcx scales the Mills ratio safely.
    if z < _SERIES_BELOW:
        inverse = 1.0 / (z * z)
        shortfall = math.log(inverse) + math.log1p(inverse * (15.0 * inverse - 3.0))
    else:
        shortfall = math.log1p(z * math.sqrt(0.5 * math.pi) * _erfcx(-z * math.sqrt(0.5)))
    return -0.5 * z * z - _LOG_SQRT_2PI + shortfall


@njit(cache=True, nogil=True, error_model="numpy")
def _erfcx(x):  # type: ignore[no-untyped-def]
    """Return exp(x**2) * erfc(x) for x > 0.7.

    Beyond 1.25 it is the factor of exp(-x**2) in the function erfc of fdlibm, a rational function
    (Sun Microsystems, 1993, s_erf.c).
    """
    if x < 1.25:
        return math.exp(x * x) * math.erfc(x)
    inverse = 1.0 / (x * x)
    if x >= 28.0:
        series = 1.0
        for k in range(6, -1, -1):
            series = 1.0 - (k + 0.5) * inverse * series
        return series / (x * math.sqrt(math.pi))
    top, bottom = 0.0, 0.0
    if x < 1.0 / 0.35:
        for k in range(len(_NEAR) - 1, -1, -1):
            top, bottom = top * inverse + _NEAR[k][0], bottom * inverse + _NEAR[k][1]
    else:
        for k in range(len(_FAR) - 1, -1, -1):
            top, bottom = top * inverse + _FAR[k][0], bottom * inverse + _FAR[k][1]
    return math.exp(top / bottom - 0.5625) / x
