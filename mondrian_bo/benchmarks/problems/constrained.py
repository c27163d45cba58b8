"""One objective with constraints: test functions from the literature."""

from __future__ import annotations

import math

import numpy as np

from mondrian_bo.array_types import FloatArray
from mondrian_bo.benchmarks.problems.functions import HARTMANN6_MINIMUM, ackley, hartmann6
from mondrian_bo.benchmarks.problems.outcomes import OutcomeProblem, Outcomes, of_point
from mondrian_bo.benchmarks.problems.synthetic import box

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


_PLANE, _HARTMANN_BOX, _ACKLEY_BOX = box(0, 1, 2), box(0, 1, 6), box(-5, 10, 10)

CONSTRAINED_PROBLEMS: tuple[OutcomeProblem, ...] = (
    OutcomeProblem(
        name="gramacy",
        space=_PLANE,
        function=of_point(_gramacy, _PLANE),
        n_constraints=2,
        worst=2.0,  # the largest value in the box
        optimum=_GRAMACY_MINIMUM,
        group="constrained",
        description="linear objective, a sinusoidal and a quadratic constraint",
    ),
    OutcomeProblem(
        name="constrained_hartmann6",
        space=_HARTMANN_BOX,
        function=of_point(_hartmann, _HARTMANN_BOX),
        n_constraints=1,
        worst=0.0,  # the supremum of the function
        optimum=HARTMANN6_MINIMUM,
        group="constrained",
        half="held-out",
        description="Hartmann function of six inputs within the unit ball",
    ),
    OutcomeProblem(
        name="constrained_ackley10",
        space=_ACKLEY_BOX,
        function=of_point(_ackley, _ACKLEY_BOX),
        n_constraints=2,
        worst=20 + math.e,  # a bound of the function
        optimum=0.0,
        tolerance=0.1,
        group="constrained",
        half="held-out",
        description="Ackley function of ten inputs within a half-ball that random search misses",
    ),
)
"""Test functions of one objective under constraints."""
