"""Problems of COCO's suites ``bbob``, ``bbob-constrained`` and ``bbob-biobj``, by `cocoex`.

N. Hansen, A. Auger, R. Ros, O. Mersmann, T. Tusar, D. Brockhoff. COCO: A Platform for Comparing
Continuous Optimizers in a Black-Box Setting. Optimization Methods and Software 36(1):114-144, 2021.
PyPI package ``coco-experiment``, module ``cocoex``; constants are from version 2.8.2.

A problem is a function, a dimension and an instance, on [-5, 5]^d. The tables below declare what
reports need, so that problems can be listed and archives reported on without the package.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

import numpy as np

from mondrian_bo.benchmarks.problems.base import Half
from mondrian_bo.benchmarks.problems.bbob import COCO_BOUND, loaded
from mondrian_bo.benchmarks.problems.outcomes import OutcomeFunction, OutcomeProblem, Outcomes
from mondrian_bo.benchmarks.problems.synthetic import box

__all__ = ["BBOB_PROBLEMS", "BIOBJECTIVE_PROBLEMS", "CONSTRAINED_COCO_PROBLEMS"]


@dataclass(frozen=True)
class _Row:
    """A problem of COCO. Further attributes of subclasses are those of :class:`OutcomeProblem`.

    Attributes
    ----------
    function, dimension, instance : int
        COCO's numbers.
    half : {"development", "held-out"}
        Use of the problem.
    description : str
        The function, or the two functions.
    """

    function: int
    dimension: int
    instance: int
    half: Half
    description: str


@dataclass(frozen=True)
class _Constrained(_Row):
    """A row of the constrained problems; `worst` bounds the values of 20,000 random points."""

    n_constraints: int
    optimum: float
    worst: float


@dataclass(frozen=True)
class _Biobjective(_Row):
    """A row of the problems with two objectives; the reference point is COCO's nadir point."""

    reference: tuple[float, float]


@dataclass(frozen=True)
class _Plain(_Row):
    """A row of the problems with one objective; the optimum is the same in all dimensions."""

    optimum: float


_FUNCTIONS = (
    (1, 79.48, "sphere"),
    (2, -209.88, "ellipsoid"),
    (3, -462.09, "Rastrigin"),
    (6, 35.9, "attractive sector"),
    (7, 92.94, "step ellipsoid"),
    (8, 149.15, "Rosenbrock"),
    (10, -54.94, "rotated ellipsoid"),
    (12, -621.11, "bent cigar"),
    (15, 1000.0, "rotated Rastrigin"),
    (17, -16.94, "Schaffer"),
    (20, -546.5, "Schwefel"),
    (21, 40.78, "Gallagher, 101 peaks"),
)
"""Every group of ``bbob``: number, optimum of the first instance, and name of the function."""

_HALVES: tuple[tuple[int, Half], ...] = ((5, "development"), (10, "held-out"))
"""Dimensions. How batches are made was chosen on other instances in five dimensions."""

_PLAIN = tuple(
    _Plain(number, dimension, 1, half, name, optimum)
    for dimension, half in _HALVES
    for number, optimum, name in _FUNCTIONS
)
"""Functions of the suite bbob, in both halves."""

_CONSTRAINED = (
    _Constrained(1, 10, 2, "development", "sphere", 1, 4443.5594176, 1e4),
    _Constrained(2, 5, 1, "held-out", "sphere", 3, -1991.2260032, 500.0),
    _Constrained(9, 10, 1, "development", "ellipsoid", 9, 1520.7861367115547, 1.5e4),
    _Constrained(14, 5, 1, "held-out", "linear function", 3, 950.8639562088882, 2e3),
    _Constrained(20, 5, 2, "development", "rotated ellipsoid", 3, 95.41594809617266, 1.5e4),
    _Constrained(26, 10, 1, "held-out", "discus", 3, 1488.654549753883, 3e4),
    _Constrained(33, 5, 1, "held-out", "bent cigar", 9, 1523.6848975011944, 5e4),
    _Constrained(38, 10, 1, "development", "different powers", 3, 1827.1519738294742, 2e5),
    _Constrained(44, 5, 2, "development", "Rastrigin function", 3, 454.3, 5e3),
    _Constrained(50, 10, 1, "held-out", "rotated Rastrigin function", 3, 259.8, 2e4),
)
"""Every kind of objective of the suite once (the sphere twice), with 1, 3 or 9 constraints, which
1 % to 67 % of random points meet."""

_BIOBJECTIVE = (
    _Biobjective(1, 10, 1, "development", "sphere and sphere", (514.87983168, -31.64016832)),
    _Biobjective(
        10, 5, 2, "held-out", "sphere and Gallagher", (-225.15443389752716, 579.7492225167077)
    ),
    _Biobjective(11, 10, 2, "held-out", "ellipsoid twice", (43586046.40580867, 50327942.440471016)),
    _Biobjective(
        16, 5, 3, "development", "ellipsoid and Rastrigin", (19037234.08394039, 517.2327629250631)
    ),
    _Biobjective(28, 5, 1, "held-out", "Rosenbrock twice", (19573.509436330412, 19362.44764522)),
    _Biobjective(
        37, 10, 1, "development", "ridge and Rastrigin", (2647.1833766540412, 807.6137331788549)
    ),
    _Biobjective(
        41, 10, 3, "held-out", "different powers twice", (-100.2701739851683, 33.018593336397636)
    ),
    _Biobjective(
        46, 5, 2, "development", "Rastrigin twice", (268.2294248938746, 145.0980899740001)
    ),
    _Biobjective(50, 10, 2, "held-out", "Schaffer twice", (314.8319872871554, -128.25617793601677)),
    _Biobjective(
        55, 5, 3, "development", "Gallagher twice", (190.95136692058094, -411.1166781866782)
    ),
)
"""Separable, moderate, ill-conditioned, rugged and weakly structured functions and mixtures; within
100 random points some dominate the nadir point."""


_loaded = cache(loaded)
"""COCO's suite and problem, the same ones at every call."""


def _evaluated(suite: str, row: _Row) -> OutcomeFunction:
    names = [f"x{i + 1}" for i in range(row.dimension)]

    def evaluate(params: Mapping[str, Any]) -> Outcomes:
        _, problem = _loaded(suite, row.function, row.dimension, row.instance)
        x = np.array([params[name] for name in names])
        values = np.atleast_1d(problem(x)).tolist()
        constraints = problem.constraint(x).tolist() if problem.number_of_constraints else ()
        return Outcomes(tuple(values), tuple(constraints))

    return evaluate


def _problem(suite: str, row: _Row, **common: Any) -> OutcomeProblem:
    own = asdict(row)
    function, dimension, instance = (own.pop(one) for one in ("function", "dimension", "instance"))
    attributes: dict[str, Any] = {
        "name": f"{suite.replace('-', '_')}_f{function}_d{dimension}_i{instance}",
        "space": box(-COCO_BOUND, COCO_BOUND, dimension),
        "function": _evaluated(suite, row),
        "group": suite,
        "requires": ("cocoex",),
    }
    return OutcomeProblem(**(attributes | own | common))


CONSTRAINED_COCO_PROBLEMS: tuple[OutcomeProblem, ...] = tuple(
    _problem(
        "bbob-constrained",
        row,
        tolerance=1.0,
        description=f"{row.description}, constraints: {row.n_constraints}",
    )
    for row in _CONSTRAINED
)
"""Problems of ``bbob-constrained``."""

BIOBJECTIVE_PROBLEMS: tuple[OutcomeProblem, ...] = tuple(
    _problem("bbob-biobj", row, n_objectives=2, optimum=None, tolerance=0.0) for row in _BIOBJECTIVE
)
"""Problems of ``bbob-biobj``; their optimum is unknown."""

BBOB_PROBLEMS: tuple[OutcomeProblem, ...] = tuple(
    _problem(
        "bbob",
        row,
        worst=np.inf,
        budget=128,
        tolerance=1e-2,
        group=f"bbob, {row.dimension} inputs",
    )
    for row in _PLAIN
)
"""Problems of ``bbob``, with a budget of four batches of 32."""
