"""Several objectives without constraints: test functions from the literature.

Reference points are those of BoTorch's test problems (M. Balandat et al. BoTorch: A Framework for
Efficient Monte-Carlo Bayesian Optimization. NeurIPS, 2020), so that hypervolumes compare with
published ones.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mondrian_bo.benchmarks.problems.functions import branin
from mondrian_bo.benchmarks.problems.outcomes import (
    OutcomeProblem,
    Outcomes,
    VectorFunction,
    two_objectives,
    vector_problem,
)
from mondrian_bo.benchmarks.problems.penicillin import PENICILLIN
from mondrian_bo.benchmarks.problems.synthetic import box
from mondrian_bo.shared.array_types import FloatArray

__all__ = ["FRONT_PROBLEMS", "branin_currin", "dtlz2"]

_BRANIN_CURRIN_VOLUME = 59.4063
"""Hypervolume within (18, 6) of a set of points that closes in on the front; BoTorch's value, found
with NSGA-II, is 59.360."""

_ZDT1_VOLUME = 120 + 2 / 3
"""Hypervolume of the front f2 = 1 - sqrt(f1) within (11, 11): 121 minus the area below it."""

_ZDT3_VOLUME = 128.778116
"""Hypervolume of the five pieces of the front within (11, 11), by numerical integration."""

_DTLZ2_REFERENCE = 1.1
"""Each coordinate of the reference point of DTLZ2; the front is part of the unit sphere."""


def branin_currin(x: FloatArray) -> tuple[float, float]:
    """Return Branin's function, rescaled to [0, 1]^2, and Currin's.

    S. Belakaria, A. Deshwal, J. R. Doppa. Max-value Entropy Search for Multi-Objective Bayesian
    Optimization. NeurIPS, 2019. Currin's function is continued to x2 = 0, where its first factor
    is 1.
    """
    factor = 1.0 - math.exp(-0.5 / x[1]) if x[1] > 0.0 else 1.0
    above = 2300 * x[0] ** 3 + 1900 * x[0] ** 2 + 2092 * x[0] + 60
    below = 100 * x[0] ** 3 + 500 * x[0] ** 2 + 4 * x[0] + 20
    return branin(np.array([15 * x[0] - 5, 15 * x[1]])), float(factor * above / below)


def _zdt1(x: FloatArray) -> Outcomes:
    """Evaluate ZDT1, whose front is convex.

    E. Zitzler, K. Deb, L. Thiele. Comparison of Multiobjective Evolutionary Algorithms: Empirical
    Results. Evolutionary Computation 8(2):173-195, 2000, function T1.
    """
    g = 1.0 + 9.0 * float(x[1:].mean())
    return Outcomes((float(x[0]), g * (1.0 - math.sqrt(x[0] / g))))


def _zdt3(x: FloatArray) -> Outcomes:
    """Evaluate ZDT3, whose front has five pieces (Zitzler et al. 2000, function T3).

    BoTorch 0.18 omits the factor g of the second objective; the front is the same.
    """
    g = 1.0 + 9.0 * float(x[1:].mean())
    ratio = float(x[0]) / g
    return Outcomes(
        (float(x[0]), g * (1.0 - math.sqrt(ratio) - ratio * math.sin(10 * math.pi * x[0])))
    )


def dtlz2(x: FloatArray, n_objectives: int) -> tuple[float, ...]:
    """Return the objectives of DTLZ2, whose front is the part of the unit sphere above zero.

    K. Deb, L. Thiele, M. Laumanns, E. Zitzler. Scalable Multi-Objective Optimization Test Problems.
    IEEE Congress on Evolutionary Computation, 2002.
    """
    radius = 1.0 + float(np.sum((x[n_objectives - 1 :] - 0.5) ** 2))
    angles = 0.5 * math.pi * x[: n_objectives - 1]
    values = []
    for i in range(n_objectives):
        last = n_objectives - 1 - i
        value = radius * float(np.prod(np.cos(angles[:last])))
        values.append(value * math.sin(angles[last]) if i else value)
    return tuple(values)


def _dtlz2_volume(n_objectives: int) -> float:
    """Return the hypervolume of DTLZ2's front: the cube without the part of the unit ball in it."""
    ball = math.pi ** (n_objectives / 2) / math.gamma(n_objectives / 2 + 1)
    return float(_DTLZ2_REFERENCE**n_objectives - ball / 2**n_objectives)


def _dtlz2_problem(n_objectives: int) -> OutcomeProblem:
    volume = _dtlz2_volume(n_objectives)
    return vector_problem(
        f"dtlz2_{n_objectives}",
        box(0, 1, 6),
        lambda x: Outcomes(dtlz2(x, n_objectives)),
        n_objectives=n_objectives,
        reference=(_DTLZ2_REFERENCE,) * n_objectives,
        optimum=-volume,
        tolerance=0.02 * volume,
        group="fronts",
        half="held-out" if n_objectives == 3 else "development",
        description=f"DTLZ2 with {n_objectives} objectives, part of a sphere as front",
    )


def _zdt_problem(
    name: str, d: int, function: VectorFunction, volume: float, **attributes: Any
) -> OutcomeProblem:
    return two_objectives(
        name,
        box(0, 1, d),
        function,
        volume,
        reference=(11.0, 11.0),
        tolerance=0.1,
        group="fronts",
        **attributes,
    )


FRONT_PROBLEMS: tuple[OutcomeProblem, ...] = (
    two_objectives(
        "branin_currin",
        box(0, 1, 2),
        lambda x: Outcomes(branin_currin(x)),
        _BRANIN_CURRIN_VOLUME,
        reference=(18.0, 6.0),
        tolerance=0.6,
        group="fronts",
        description="Branin and Currin functions of two inputs",
    ),
    _zdt_problem(
        "zdt1",
        6,
        _zdt1,
        _ZDT1_VOLUME,
        half="held-out",
        description="ZDT1 with six inputs, convex front",
    ),
    _zdt_problem(
        "zdt3", 10, _zdt3, _ZDT3_VOLUME, description="ZDT3 with ten inputs, front in five pieces"
    ),
    *(_dtlz2_problem(n) for n in (2, 3, 4)),
    PENICILLIN,
)
"""Test functions of several objectives."""
