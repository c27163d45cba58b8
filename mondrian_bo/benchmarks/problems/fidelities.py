"""Problems with a fidelity: functions of the literature, and recorded trainings."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Literal, NamedTuple

import numpy as np
from optuna.distributions import BaseDistribution, FloatDistribution, IntDistribution

from mondrian_bo.benchmarks.suites.curves.recorded import load
from mondrian_bo.benchmarks.suites.curves.tasks import TASKS
from mondrian_bo.shared.array_types import FloatArray

__all__ = ["FIDELITY", "PROBLEMS", "FidelityProblem", "get_fidelity_problem"]

FIDELITY = "fidelity"
"""Name of the parameter."""

_FIXED_COST = 0.1
"""Cost at fidelity 0 of the functions with a continuous fidelity, as a share of that at 1: our
choice. Their authors give none."""


class FidelityProblem(NamedTuple):
    """A problem with a fidelity, minimised at the upper end of its range.

    Attributes
    ----------
    space : dict
        The parameters without the fidelity.
    fidelity : FloatDistribution or IntDistribution
        The fidelity.
    reports : callable
        Maps the parameters, the fidelity included, to the values that a trial reports, of which the
        last is its value; NaN where it failed.
    cost : callable
        Maps the parameters to the cost of a trial; it is 1 on average at the target.
    optimum : float
        The smallest value at the target.
    half : {"development", "held-out"}
        Whether defaults may be chosen on it.
    """

    space: dict[str, BaseDistribution]
    fidelity: FloatDistribution | IntDistribution
    reports: Callable[[Mapping[str, Any]], FloatArray]
    cost: Callable[[Mapping[str, Any]], float]
    optimum: float
    half: Literal["development", "held-out"]


def _augmented(
    function: Callable[[FloatArray, float], float],
    bounds: list[tuple[float, float]],
    optimum: float,
    half: Literal["development", "held-out"],
) -> FidelityProblem:
    """Return a problem of a function of a point and a fidelity in [0, 1]."""
    space: dict[str, BaseDistribution] = {
        f"x{i}": FloatDistribution(*ends) for i, ends in enumerate(bounds)
    }

    def reports(params: Mapping[str, Any]) -> FloatArray:
        return np.array([function(np.array([params[name] for name in space]), params[FIDELITY])])

    def cost(params: Mapping[str, Any]) -> float:
        return float(_FIXED_COST + (1.0 - _FIXED_COST) * params[FIDELITY])

    return FidelityProblem(space, FloatDistribution(0.0, 1.0), reports, cost, optimum, half)


def _two_levels(problem: FidelityProblem) -> FidelityProblem:
    """Return a problem with the fidelities 0, at a tenth of the cost, and 1 alone."""
    # The costs 1 and 10 are those of Kandasamy et al. (2016).
    return problem._replace(fidelity=IntDistribution(0, 1))


def branin(x: FloatArray, s: float) -> float:
    """Return the augmented Branin function of Wu et al. (2019), as in BoTorch."""
    b = 5.1 / (4.0 * math.pi**2) - 0.1 * (1.0 - s)
    quadratic = (x[1] - b * x[0] ** 2 + 5.0 / math.pi * x[0] - 6.0) ** 2
    return float(quadratic + 10.0 * (1.0 - 1.0 / (8.0 * math.pi)) * math.cos(x[0]) + 10.0)


_A = np.array(
    [
        [10, 3, 17, 3.5, 1.7, 8],
        [0.05, 10, 17, 0.1, 8, 14],
        [3, 3.5, 1.7, 10, 17, 8],
        [17, 8, 0.05, 10, 0.1, 14],
    ]
)
"""Exponents of the Hartmann function."""

_P = 1e-4 * np.array(
    [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
)
"""Centres of the Hartmann function."""


def hartmann(x: FloatArray, s: float) -> float:
    """Return the augmented Hartmann function of Wu et al. (2019), as in BoTorch."""
    weights = np.array([1.0 - 0.1 * (1.0 - s), 1.2, 3.0, 3.2])
    return float(-weights @ np.exp(-(_A * (x - _P) ** 2).sum(axis=1)))


def rosenbrock(x: FloatArray, s: float) -> float:
    """Return the augmented Rosenbrock function of Wu et al. (2019), with equal fidelities."""
    steep = x[1:] - x[:-1] ** 2 + 0.1 * (1.0 - s)
    flat = x[:-1] - 1.0 + 0.1 * (1.0 - s) ** 2
    return float((100.0 * steep**2 + flat**2).sum())


def _currin_full(x: float, y: float) -> float:
    decay = 1.0 - math.exp(-0.5 / y) if y > 0.0 else 1.0
    above = 2300.0 * x**3 + 1900.0 * x**2 + 2092.0 * x + 60.0
    return decay * above / (100.0 * x**3 + 500.0 * x**2 + 4.0 * x + 20.0)


def currin(x: FloatArray, s: float) -> float:
    """Return the negative of the two functions of Currin et al. in Xiong et al. (2013)."""
    first, second = map(float, x)
    if s == 1:
        return -_currin_full(first, second)
    places = [
        (first + a, max(second + b, 0.0) if b < 0.0 else second + b)
        for a in (0.05, -0.05)
        for b in (0.05, -0.05)
    ]
    return -sum(_currin_full(*place) for place in places) / 4.0


_BOREHOLE = [
    *((0.05, 0.15), (100.0, 50_000.0), (63_070.0, 115_600.0), (990.0, 1110.0)),
    *((63.1, 116.0), (700.0, 820.0), (1120.0, 1680.0), (9855.0, 12_045.0)),
]
"""Ranges of the borehole function: radii, transmissivities, heads, length and conductivity."""


def borehole(x: FloatArray, s: float) -> float:
    """Return the negative of the two borehole functions in Xiong et al. (2013)."""
    radius, influence, upper, upper_head, lower, lower_head, length, conductivity = map(float, x)
    log_ratio = math.log(influence / radius)
    resistance = 2.0 * length * upper / (log_ratio * radius**2 * conductivity) + upper / lower
    factor, offset = (2.0 * math.pi, 1.0) if s == 1 else (5.0, 1.5)
    return -factor * upper * (upper_head - lower_head) / (log_ratio * (offset + resistance))


def _recorded(name: str) -> FidelityProblem:
    """Return recorded trainings of the suite ``curves``, with the number of epochs as fidelity."""
    task, recorded = TASKS[name], load(name)
    n_steps = recorded.curves.shape[1]
    space: dict[str, BaseDistribution] = {
        one: IntDistribution(0, n - 1) for one, n in zip(task.levels, recorded.shape, strict=True)
    }

    def setting(params: Mapping[str, Any]) -> int:
        return int(np.ravel_multi_index([params[one] for one in space], recorded.shape))

    def reports(params: Mapping[str, Any]) -> FloatArray:
        curve = recorded.curves[setting(params), : params[FIDELITY]]
        return np.minimum.accumulate(curve) if task.outcome == "best" else curve

    def cost(params: Mapping[str, Any]) -> float:
        seconds = recorded.seconds[setting(params)] / recorded.seconds.mean()
        return float(seconds * params[FIDELITY] / n_steps)

    fidelity = IntDistribution(1, n_steps, log=True)
    optimum = float(np.nanmin(recorded.outcomes))
    return FidelityProblem(space, fidelity, reports, cost, optimum, task.half)


PROBLEMS: dict[str, Callable[[], FidelityProblem]] = {
    "augmented_branin": lambda: _augmented(
        branin, [(-5.0, 10.0), (0.0, 15.0)], 0.397887, "development"
    ),
    "currin": lambda: _two_levels(_augmented(currin, [(0.0, 1.0)] * 2, -13.798722, "development")),
    "mlp_digits": lambda: _recorded("mlp_digits"),
    "boosting_diabetes": lambda: _recorded("boosting_diabetes"),
    "augmented_hartmann6": lambda: _augmented(hartmann, [(0.0, 1.0)] * 6, -3.322368, "held-out"),
    "augmented_rosenbrock3": lambda: _augmented(rosenbrock, [(-5.0, 10.0)] * 3, 0.0, "held-out"),
    "borehole": lambda: _two_levels(_augmented(borehole, _BOREHOLE, -309.575588, "held-out")),
    "sgd_digits": lambda: _recorded("sgd_digits"),
    "mlp_diabetes": lambda: _recorded("mlp_diabetes"),
    "boosting_cancer": lambda: _recorded("boosting_cancer"),
}
"""The problems by name; made on use, as recordings are read from files."""


@cache
def get_fidelity_problem(name: str) -> FidelityProblem:
    """Return a problem by its name."""
    return PROBLEMS[name]()
