"""Several objectives under constraints: test functions from the literature."""

from __future__ import annotations

import math

import numpy as np

from mondrian_bo.benchmarks.problems.base import Half
from mondrian_bo.benchmarks.problems.fronts import branin_currin, dtlz2
from mondrian_bo.benchmarks.problems.outcomes import (
    Outcomes,
    VectorFunction,
    tabulated,
    two_objectives,
)
from mondrian_bo.benchmarks.problems.synthetic import box
from mondrian_bo.search_space import Float, SearchSpace
from mondrian_bo.shared.array_types import FloatArray

__all__ = ["CONSTRAINED_FRONT_PROBLEMS"]

_C2DTLZ2_RADIUS = 0.2
"""Radius of the balls around the ends and the middle of the front that are feasible."""

_BNH_VOLUME = 6415.0926
"""Hypervolume of the front, x1 = x2 up to 3 and x2 = 3 beyond, by numerical integration."""

_SRN_VOLUME = 35235.805
"""Hypervolume of the front, x1 = -2.5 between the two constraints and along them beyond, by
numerical integration."""

_CONSTR_VOLUME = 85.432670498
"""Hypervolume of the front, 9 x1 + x2 = 6 up to x1 = 2/3 and x2 = 0 beyond; exact."""

_BRANIN_CURRIN_VOLUME = 609.4018
"""Hypervolume on a set of points that closes in on the front; BoTorch's value, found with NSGA-II,
is 608.40."""

_C2DTLZ2_VOLUME = 0.3823335
"""Hypervolume of the three arcs of the front, by numerical integration."""

_MW7_VOLUME = 0.5044047
"""Hypervolume of the front, the unit circle outside of the inner constraint and that constraint
elsewhere, by numerical integration."""


def _bnh(x: FloatArray) -> Outcomes:
    """Evaluate BNH.

    T. T. Binh, U. Korn. MOBES: A Multiobjective Evolution Strategy for Constrained Optimization
    Problems. International Conference on Genetic Algorithms (Mendel), 1997.
    """
    values = (4.0 * float(x @ x), float(np.sum((x - 5.0) ** 2)))
    disc = (x[0] - 5.0) ** 2 + x[1] ** 2 - 25.0
    hole = 7.7 - (x[0] - 8.0) ** 2 - (x[1] + 3.0) ** 2
    return Outcomes(values, (float(disc), float(hole)))


def _srn(x: FloatArray) -> Outcomes:
    """Evaluate SRN.

    N. Srinivas, K. Deb. Multiobjective Optimization Using Nondominated Sorting in Genetic
    Algorithms. Evolutionary Computation 2(3):221-248, 1994. BoTorch 0.18 has another centre of the
    first objective and fourth powers in the first constraint.
    """
    values = (
        float(2.0 + (x[0] - 2.0) ** 2 + (x[1] - 1.0) ** 2),
        float(9.0 * x[0] - (x[1] - 1.0) ** 2),
    )
    return Outcomes(values, (float(x @ x - 225.0), float(x[0] - 3.0 * x[1] + 10.0)))


def _constr(x: FloatArray) -> Outcomes:
    """Evaluate CONSTR.

    K. Deb, A. Pratap, S. Agarwal, T. Meyarivan. A Fast and Elitist Multiobjective Genetic
    Algorithm: NSGA-II. IEEE Transactions on Evolutionary Computation 6(2):182-197, 2002, on
    [0.1, 1] x [0, 5].
    """
    values = (float(x[0]), float((1.0 + x[1]) / x[0]))
    return Outcomes(values, (float(6.0 - 9.0 * x[0] - x[1]), float(1.0 - 9.0 * x[0] + x[1])))


def _constrained_branin_currin(x: FloatArray) -> Outcomes:
    """Evaluate Branin's and Currin's functions within a disc.

    The constraint is that of M. Gelbart, J. Snoek, R. Adams. Bayesian Optimization with Unknown
    Constraints. UAI, 2014; the combination is that of S. Daulton, M. Balandat, E. Bakshy.
    Differentiable Expected Hypervolume Improvement for Parallel Multi-Objective Bayesian
    Optimization. NeurIPS, 2020.
    """
    disc = (15.0 * x[0] - 7.5) ** 2 + (15.0 * x[1] - 7.5) ** 2 - 50.0
    return Outcomes(branin_currin(x), (float(disc),))


def _c2dtlz2(x: FloatArray) -> Outcomes:
    """Evaluate C2-DTLZ2 with two objectives, whose front has three pieces.

    H. Jain, K. Deb. An Evolutionary Many-Objective Optimization Algorithm Using Reference-Point
    Based Nondominated Sorting Approach, Part II. IEEE Transactions on Evolutionary Computation
    18(4):602-622, 2014. Objectives in the balls of radius 0.2 are feasible;
    BoTorch's middle ball is larger by a factor of sqrt(2).
    """
    f = np.array(dtlz2(x, 2))
    centres = np.array([[1.0, 0.0], [0.0, 1.0], [math.sqrt(0.5), math.sqrt(0.5)]])
    distances = np.sum((f - centres) ** 2, axis=1)
    return Outcomes((float(f[0]), float(f[1])), (float(distances.min()) - _C2DTLZ2_RADIUS**2,))


def _mw7(x: FloatArray) -> Outcomes:
    """Evaluate MW7, whose front is cut by its constraints.

    Z. Ma, Y. Wang. Evolutionary Constrained Multiobjective Optimization: Test Suite Construction
    and Performance Comparisons. IEEE Transactions on Evolutionary Computation 23(6):972-986, 2019.
    """
    g = 1.0 + 2.0 * float(np.sum((x[1:] + (x[:-1] - 0.5) ** 2 - 1.0) ** 2))
    values = (g * float(x[0]), g * math.sqrt(max(1.0 - float(x[0]) ** 2, 0.0)))
    angle = math.atan2(values[1], values[0])
    square = values[0] ** 2 + values[1] ** 2
    outer = 1.2 + 0.4 * math.sin(4.0 * angle) ** 16
    inner = 1.15 - 0.2 * math.sin(4.0 * angle) ** 8
    return Outcomes(values, (square - outer**2, inner**2 - square))


_BNH_BOX = SearchSpace({"x1": Float(0, 5), "x2": Float(0, 3)})
"""Published box of the problem of Binh and Korn."""

_CONSTR_BOX = SearchSpace({"x1": Float(0.1, 1), "x2": Float(0, 5)})
"""Published box of the problem CONSTR."""

_COLUMNS = ("space", "function", "volume", "n_constraints", "reference", "tolerance", "half")
"""Arguments of `two_objectives` in the table."""

_FRONTS: dict[
    str, tuple[SearchSpace, VectorFunction, float, int, tuple[float, float], float, Half]
] = {
    "bnh": (_BNH_BOX, _bnh, _BNH_VOLUME, 2, (149.6, 54.6), 60.0, "development"),
    "srn": (box(-20, 20, 2), _srn, _SRN_VOLUME, 2, (244.0, 25.0), 300.0, "held-out"),
    "constr": (_CONSTR_BOX, _constr, _CONSTR_VOLUME, 2, (10.0, 10.0), 0.1, "held-out"),
    "constrained_branin_currin": (
        box(0, 1, 2),
        _constrained_branin_currin,
        _BRANIN_CURRIN_VOLUME,
        1,
        (80.0, 12.0),
        6.0,
        "development",
    ),
    "c2dtlz2": (box(0, 1, 4), _c2dtlz2, _C2DTLZ2_VOLUME, 1, (1.1, 1.1), 0.02, "held-out"),
    "mw7": (box(0, 1, 4), _mw7, _MW7_VOLUME, 2, (1.2, 1.2), 0.02, "development"),
}
"""Space, function, hypervolume, number of constraints, reference point, tolerance and half of each
problem. The first two reference points are the nadir of the front plus a tenth of its extent, the
others are BoTorch's."""

_DESCRIPTIONS = {
    "bnh": "BNH, two bowls within a disc and outside of another",
    "srn": "SRN, a straight front within a disc and a half-plane",
    "constr": "CONSTR, one part of the front is a constraint",
    "constrained_branin_currin": "Branin and Currin functions within a disc",
    "c2dtlz2": "C2-DTLZ2 with four inputs, front in three pieces",
    "mw7": "MW7 with four inputs, front partly on a constraint",
}
"""One line on each problem, for listings."""

CONSTRAINED_FRONT_PROBLEMS = tabulated(
    two_objectives, _COLUMNS, _FRONTS, _DESCRIPTIONS, "constrained fronts"
)
"""Test functions of two objectives under constraints."""
