"""The functions of COCO's suite ``bbob-mixint``, whose instance is given by the seed of a run.

T. Tusar, D. Brockhoff, N. Hansen. Mixed-Integer Benchmark Problems for Single- and Bi-Objective
Optimization. GECCO 2019, pages 718-726. The functions are those of ``bbob``, with a scaled value
and with four fifths of the variables on grids, shifted so that the minimiser lies on the grid.
"""

from __future__ import annotations

from mondrian_bo.benchmarks.problems.base import USUAL_BUDGET
from mondrian_bo.benchmarks.problems.bbob import (
    BBOB_NAMES,
    COCO_BOUND,
    COCO_PRECISION,
    BbobFunction,
    first_instance,
)
from mondrian_bo.search_space import Float, Int, Parameter, SearchSpace

__all__ = ["MIXINT_DIMENSIONS", "MIXINT_FUNCTIONS"]

MIXINT_DIMENSIONS = (5, 10, 20, 40)
"""Dimensions of the suite; COCO has 80 and 160 too."""

_ARITIES = (2, 4, 8, 16)
"""Numbers of values of the integers; each is that of a fifth of the variables."""

_SUITE = "bbob-mixint"
"""COCO's name of the suite."""


def _space(dimension: int) -> SearchSpace:
    """Return integers from 0 with few values, with more values, and then real variables."""
    each = dimension // (len(_ARITIES) + 1)
    parameters: list[Parameter] = [Int(0, arity - 1) for arity in _ARITIES for _ in range(each)]
    parameters += [Float(-COCO_BOUND, COCO_BOUND) for _ in range(dimension - len(parameters))]
    return SearchSpace({f"x{i + 1}": one for i, one in enumerate(parameters)})


MIXINT_FUNCTIONS: tuple[BbobFunction, ...] = tuple(
    BbobFunction(
        name=f"mixint_f{number}_d{dimension}",
        space=_space(dimension),
        function=first_instance(_SUITE, number, dimension),
        optimum=0.0,
        budget=USUAL_BUDGET,
        group=f"{_SUITE}, {dimension} inputs",
        half="held-out",
        tolerance=COCO_PRECISION,
        description=f"{name}, integers: {dimension * 4 // 5} of {dimension}",
        requires=("cocoex",),
        number=number,
        suite=_SUITE,
    )
    for dimension in MIXINT_DIMENSIONS
    for number, name in enumerate(BBOB_NAMES, start=1)
)
"""All functions in all dimensions. No default of the library was chosen with them."""
