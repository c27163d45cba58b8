"""One objective with constraints: test functions from the literature."""

from __future__ import annotations

import math

import numpy as np

from mondrian_bo.benchmarks.problems.base import Half
from mondrian_bo.benchmarks.problems.functions import HARTMANN6_MINIMUM, ackley, hartmann6
from mondrian_bo.benchmarks.problems.outcomes import (
    Outcomes,
    VectorFunction,
    tabulated,
    vector_problem,
)
from mondrian_bo.benchmarks.problems.synthetic import box
from mondrian_bo.search_space import SearchSpace
from mondrian_bo.shared.array_types import FloatArray

__all__ = ["CONSTRAINED_PROBLEMS"]

_GRAMACY_MINIMUM = 0.59978805
"""Smallest feasible value of Gramacy's problem, at (0.1951, 0.4047), found numerically; 0.5998 in
the paper."""


def _gramacy(x: FloatArray) -> Outcomes:
    """Evaluate the toy problem of Gramacy et al. (2016).

    R. B. Gramacy et al. Modeling an Augmented Lagrangian for Blackbox Constrained Optimization.
    Technometrics 58(1):1-11, 2016: a linear objective, a sinusoidal and a quadratic
    constraint on [0, 1]^2.
    """
    wave = 1.5 - x[0] - 2 * x[1] - 0.5 * math.sin(2 * math.pi * (x[0] ** 2 - 2 * x[1]))
    return Outcomes((float(x[0] + x[1]),), (float(wave), float(x @ x - 1.5)))


def _hartmann(x: FloatArray) -> Outcomes:
    """Evaluate Hartmann's function within the unit ball.

    B. Letham, B. Karrer, G. Ottoni, E. Bakshy. Constrained Bayesian Optimization with Noisy
    Experiments. Bayesian Analysis 14(2):495-519, 2019. The unconstrained minimiser has norm 0.946,
    so it is feasible.
    """
    return Outcomes((hartmann6(x),), (float(np.linalg.norm(x)) - 1.0,))


def _ackley(x: FloatArray) -> Outcomes:
    """Evaluate Ackley's function within a half-ball.

    D. Eriksson, M. Poloczek. Scalable Constrained Bayesian Optimization. AISTATS, 2021
    (SCBO): sum(x) <= 0 and |x| <= 5 on [-5, 10]^10. The minimiser, the origin, is on the
    boundary of the first constraint, and 4 of 100,000 random points are in the ball.
    """
    return Outcomes((ackley(x),), (float(x.sum()), float(np.linalg.norm(x)) - 5.0))


_COLUMNS = ("space", "function", "n_constraints", "worst", "optimum", "tolerance", "half")
"""Arguments of `vector_problem` in the table."""

_FUNCTIONS: dict[str, tuple[SearchSpace, VectorFunction, int, float, float, float, Half]] = {
    "gramacy": (box(0, 1, 2), _gramacy, 2, 2.0, _GRAMACY_MINIMUM, 1e-3, "development"),
    "constrained_hartmann6": (
        box(0, 1, 6),
        _hartmann,
        1,
        0.0,
        HARTMANN6_MINIMUM,
        1e-3,
        "held-out",
    ),
    "constrained_ackley10": (box(-5, 10, 10), _ackley, 2, 20 + math.e, 0.0, 0.1, "held-out"),
}
"""Space, function, number of constraints, a bound of the objective in the space, optimum, tolerance
and half of each problem."""

_DESCRIPTIONS = {
    "gramacy": "linear objective, a sinusoidal and a quadratic constraint",
    "constrained_hartmann6": "Hartmann function of six inputs within the unit ball",
    "constrained_ackley10": "Ackley function of ten inputs within a half-ball that random search "
    "misses",
}
"""One line on each problem, for listings."""

CONSTRAINED_PROBLEMS = tabulated(vector_problem, _COLUMNS, _FUNCTIONS, _DESCRIPTIONS, "constrained")
"""Test functions of one objective under constraints."""
