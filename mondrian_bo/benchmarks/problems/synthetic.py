"""The test functions of the papers, without shifts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from mondrian_bo.benchmarks.problems import functions
from mondrian_bo.benchmarks.problems.base import Objective, Problem
from mondrian_bo.search_space import Float, SearchSpace
from mondrian_bo.shared.array_types import FloatArray

__all__ = ["BRANIN_SPACE", "SYNTHETIC_PROBLEMS", "box", "of_vector"]


def box(low: float, high: float, n_dimensions: int) -> SearchSpace:
    """Return the space of ``x1``, ``x2``, ... with common bounds."""
    return SearchSpace({f"x{i + 1}": Float(low, high) for i in range(n_dimensions)})


def of_vector(function: Callable[[FloatArray], float], n_dimensions: int) -> Objective:
    """Return the objective over ``x1``, ``x2``, ... that evaluates a function of a vector."""
    names = [f"x{i + 1}" for i in range(n_dimensions)]

    def objective(params: Mapping[str, Any]) -> float:
        return function(np.array([params[name] for name in names]))

    return objective


BRANIN_SPACE = SearchSpace({"x1": Float(-5, 10), "x2": Float(0, 15)})
"""The usual box of Branin's function."""

_BRANIN = Problem(
    name="branin",
    space=BRANIN_SPACE,
    function=of_vector(functions.branin, 2),
    optimum=functions.BRANIN_MINIMUM,
    budget=200,
    group="smooth numeric",
    description="three equal minima in the plane",
)
"""Branin's function on its usual box."""


def _hartmann(
    function: Callable[[FloatArray], float],
    n_dimensions: int,
    optimum: float,
    budget: int,
    inputs: str,
) -> Problem:
    return Problem(
        name=f"hartmann{n_dimensions}",
        space=box(0, 1, n_dimensions),
        function=of_vector(function, n_dimensions),
        optimum=optimum,
        budget=budget,
        group="smooth numeric",
        description=f"Hartmann function of {inputs}",
    )


SYNTHETIC_PROBLEMS: tuple[Problem, ...] = (
    _BRANIN,
    replace(
        _BRANIN,
        name="branin10",
        space=SearchSpace({**BRANIN_SPACE, **{f"x{i}": Float(0, 1) for i in range(3, 11)}}),
        group="irrelevant inputs",
        description="Branin among eight inputs that do nothing",
    ),
    replace(
        _BRANIN,
        name="branin_noisy",
        group="noisy",
        noise=1.0,
        tolerance=0.1,
        description="Branin seen through Gaussian noise of standard deviation 1",
    ),
    _hartmann(functions.hartmann3, 3, functions.HARTMANN3_MINIMUM, 100, "three inputs"),
    _hartmann(
        functions.hartmann6,
        6,
        functions.HARTMANN6_MINIMUM,
        200,
        "six inputs; a second basin ends at -3.2032",
    ),
)
"""Test functions in their usual boxes, with and without noise or irrelevant inputs."""
