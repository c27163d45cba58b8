"""Test functions with known optima."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mondrian_bo.benchmarks.problems.base import Problem
from mondrian_bo.search_space import Categorical, Condition, Float, Int, SearchSpace

__all__ = ["SYNTHETIC_PROBLEMS"]

_HARTMANN_ALPHA = np.array([1.0, 1.2, 3.0, 3.2])
_HARTMANN3_A = np.array([[3.0, 10, 30], [0.1, 10, 35], [3.0, 10, 30], [0.1, 10, 35]])
_HARTMANN3_P = np.array(
    [
        [0.3689, 0.1170, 0.2673],
        [0.4699, 0.4387, 0.7470],
        [0.1091, 0.8732, 0.5547],
        [0.0381, 0.5743, 0.8828],
    ]
)
_HARTMANN6_A = np.array(
    [
        [10, 3, 17, 3.5, 1.7, 8],
        [0.05, 10, 17, 0.1, 8, 14],
        [3, 3.5, 1.7, 10, 17, 8],
        [17, 8, 0.05, 10, 0.1, 14],
    ]
)
_HARTMANN6_P = np.array(
    [
        [0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886],
        [0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991],
        [0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650],
        [0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381],
    ]
)


def _branin(params: Mapping[str, Any]) -> float:
    x1, x2 = params["x1"], params["x2"]
    valley = x2 - 5.1 / (4 * np.pi**2) * x1**2 + 5 / np.pi * x1 - 6
    return float(valley**2 + 10 * (1 - 1 / (8 * np.pi)) * np.cos(x1) + 10)


def _hartmann(params: Mapping[str, Any], a: NDArray[np.float64], p: NDArray[np.float64]) -> float:
    x = np.array([params[f"x{i + 1}"] for i in range(a.shape[1])])
    return float(-_HARTMANN_ALPHA @ np.exp(-np.sum(a * (x - p) ** 2, axis=1)))


def _conditional(params: Mapping[str, Any]) -> float:
    # The bowls under a and b are wide and soon polished; the best one, under d, is the narrowest.
    branch = params["c"]
    if branch in ("a", "b"):
        x, log_y = params["x"], np.log10(params["y"])
        if branch == "a":
            return float(0.05 + 0.5 * (x - 0.3) ** 2 + 0.02 * (log_y + 3) ** 2)
        return float(0.10 + 0.2 * (x - 0.8) ** 2 + 0.01 * log_y**2)
    k, z = params["k"], params["z"]
    if branch == "c":
        return float(0.02 + ((k - 5) / 20) ** 2 + (z + 0.5) ** 2)
    return float(4 * ((k - 13) / 20) ** 2 + 2 * (z - 0.3) ** 2)


_BRANIN = Problem(
    name="branin",
    space=SearchSpace({"x1": Float(-5, 10), "x2": Float(0, 15)}),
    function=_branin,
    optimum=10 / (8 * np.pi),
    budget=200,
    description="three equal minima in the plane",
)

_CONDITIONAL_SPACE = SearchSpace(
    {
        "c": Categorical(("a", "b", "c", "d")),
        "x": Float(0, 1, condition=Condition("c", ("a", "b"))),
        "y": Float(1e-5, 10, log=True, condition=Condition("c", ("a", "b"))),
        "k": Int(1, 20, condition=Condition("c", ("c", "d"))),
        "z": Float(-1, 1, condition=Condition("c", ("c", "d"))),
    }
)

SYNTHETIC_PROBLEMS: tuple[Problem, ...] = (
    _BRANIN,
    replace(
        _BRANIN,
        name="branin10",
        space=SearchSpace({**_BRANIN.space, **{f"x{i}": Float(0, 1) for i in range(3, 11)}}),
        description="Branin among eight inputs that do nothing",
    ),
    replace(
        _BRANIN,
        name="branin_noisy",
        noise=1.0,
        tolerance=0.1,
        description="Branin seen through Gaussian noise of standard deviation 1",
    ),
    Problem(
        name="hartmann3",
        space=SearchSpace({f"x{i}": Float(0, 1) for i in range(1, 4)}),
        function=lambda params: _hartmann(params, _HARTMANN3_A, _HARTMANN3_P),
        optimum=-3.862779787,
        budget=100,
        description="Hartmann function of three inputs",
    ),
    Problem(
        name="hartmann6",
        space=SearchSpace({f"x{i}": Float(0, 1) for i in range(1, 7)}),
        function=lambda params: _hartmann(params, _HARTMANN6_A, _HARTMANN6_P),
        optimum=-3.322368011,
        budget=200,
        description="Hartmann function of six inputs; a second basin ends at -3.2032",
    ),
    Problem(
        name="conditional",
        space=_CONDITIONAL_SPACE,
        function=_conditional,
        optimum=0.0,
        budget=200,
        description="four bowls, one per choice of c, each with inputs of its own",
    ),
)
