"""Problems with categories, integers, ordered levels and conditions; the optimum is always 0."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from mondrian_bo.benchmarks.problems.base import Problem, problem
from mondrian_bo.search_space import Categorical, Condition, Float, Int, SearchSpace

__all__ = ["MIXED_PROBLEMS"]

_PAIR_FLOORS = {
    "a": {"p": 0.4, "q": 0.5, "r": 0.9},
    "b": {"p": 0.8, "q": 0.6, "r": 1.2},
    "c": {"p": 0.5, "q": 0.0, "r": 0.7},
    "d": {"p": 0.9, "q": 0.7, "r": 1.3},
}
"""Value at the bottom of each pair's bowl. Averaged over numeric parameters, ("a", "p") is best;
its bowl is wide and easy to search. The bowl of the best pair, ("c", "q"), is steep, and few of its
points are better. Its neighbours in either category are fairly good, which points to it."""

_STEEP_PAIR = ("c", "q")
"""The pair with the lowest bottom and the steepest bowl."""

_BOWL_CENTRES = {
    "a": np.array([0.42, 0.47, 0.38, 0.52]),
    "b": np.array([0.55, 0.40, 0.60, 0.40]),
    "c": np.array([0.53, 0.57, 0.49, 0.61]),
    "d": np.array([0.35, 0.55, 0.45, 0.45]),
}
"""Centre of the bowl by first category; close together, so that categories share what is learnt."""


def _mixed6(params: Mapping[str, Any]) -> float:
    first, second = params["first"], params["second"]
    x = np.array([params[f"x{i}"] for i in range(1, 5)])
    distance = x - _BOWL_CENTRES[first]
    steepness = 3.0 if (first, second) == _STEEP_PAIR else 1.0
    bowl = distance @ distance + distance[:-1] @ distance[1:]
    return float(_PAIR_FLOORS[first][second] + steepness * bowl)


def _conditional(params: Mapping[str, Any]) -> float:
    # The bowls of a and b are wide and easy to search; the best one, of d, is the narrowest.
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


_CONDITIONAL_SPACE = SearchSpace(
    {
        "c": Categorical(("a", "b", "c", "d")),
        "x": Float(0, 1, condition=Condition("c", ("a", "b"))),
        "y": Float(1e-5, 10, log=True, condition=Condition("c", ("a", "b"))),
        "k": Int(1, 20, condition=Condition("c", ("c", "d"))),
        "z": Float(-1, 1, condition=Condition("c", ("c", "d"))),
    }
)
"""Four branches; two branches share two numbers, the other two share two others."""

_DEEP_TREE_SPACE = SearchSpace(
    {
        "model": Categorical(("line", "net")),
        "rate": Float(1e-4, 1, log=True),
        "penalty": Categorical(("none", "ridge"), condition=Condition("model", ("line",))),
        "strength": Float(1e-3, 1e3, log=True, condition=Condition("penalty", ("ridge",))),
        "layers": Int(1, 3, condition=Condition("model", ("net",))),
        "optimizer": Categorical(("plain", "momentum"), condition=Condition("layers", (2, 3))),
        "decay": Float(0, 1, condition=Condition("optimizer", ("plain",))),
        "momentum": Float(0, 1, condition=Condition("optimizer", ("momentum",))),
        "nesterov": Float(-1, 1, condition=Condition("optimizer", ("momentum",))),
    }
)
"""Conditions three levels deep: model, layers and optimizer."""


def _deep_tree(params: Mapping[str, Any]) -> float:
    log_rate = np.log10(params["rate"])
    if params["model"] == "line":
        value = 0.10 + 0.02 * (log_rate + 1) ** 2
        if params["penalty"] == "ridge":
            return float(value - 0.04 + 0.01 * (np.log10(params["strength"]) - 1) ** 2)
        return float(value)
    if params["layers"] == 1:
        return float(0.15 + 0.05 * (log_rate + 2) ** 2)
    depth = 0.05 if params["layers"] == 3 else 0.0
    if params["optimizer"] == "plain":
        return float(
            0.03 + depth + 0.1 * (log_rate + 1.5) ** 2 + 0.3 * (params["decay"] - 0.2) ** 2
        )
    # A faster rate needs less momentum, so the valley is oblique to the axes.
    momentum = params["momentum"] - 0.7 + 0.2 * (log_rate + 2.5)
    steep = 0.5 * (log_rate + 2.5) ** 2 + 5 * momentum**2 + (params["nesterov"] - 0.4) ** 2
    return float(depth + steep)


_INTEGER_SPACE = SearchSpace(
    {
        "k1": Int(1, 20),
        "k2": Int(1, 1000, log=True),
        "k3": Int(0, 100, step=5),
        "k4": Int(-10, 10),
        "k5": Int(1, 6),
    }
)
"""Integers with linear, logarithmic and stepped ranges."""


def _integer(params: Mapping[str, Any]) -> float:
    u = np.array(
        [
            (params["k1"] - 13) / 20,
            np.log10(params["k2"] / 40) / 3,
            (params["k3"] - 30) / 100,
            (params["k4"] - 4) / 20,
            (params["k5"] - 2) / 6,
        ]
    )
    # A valley oblique to the axes, with ripples that add local minima.
    valley = u @ u + 4 * (u[0] + u[1]) ** 2 + 4 * (u[2] - u[3]) ** 2
    return float(valley + 0.1 * np.sum(1 - np.cos(6 * np.pi * u)))


_ORDINAL_SPACE = SearchSpace(
    {
        "batch": Categorical((8, 16, 32, 64, 128, 256, 512)),
        "width": Categorical((16, 24, 32, 48, 64, 96, 128, 192, 256)),
        "level": Int(0, 11),
        "grade": Int(0, 7),
        "dropout": Categorical((0.0, 0.1, 0.2, 0.3, 0.5, 0.7)),
        "x": Float(0, 1),
    }
)
"""Ordered categories, two scales of unevenly spaced levels, and one number."""

_LEVELS = np.array([0.0, 0.02, 0.05, 0.1, 0.15, 0.25, 0.4, 0.5, 0.6, 0.75, 0.9, 1.0])
"""Quantities that the 12 levels stand for; unevenly spaced, as ordered levels often are."""

_GRADES = np.array([0.0, 0.3, 0.4, 0.45, 0.5, 0.6, 0.8, 1.0])
"""Quantities that the 8 grades stand for, unevenly spaced too."""


def _ordinal(params: Mapping[str, Any]) -> float:
    batch = np.log2(params["batch"] / 64) / 6
    width = np.log2(params["width"] / 96) / 4
    level = _LEVELS[params["level"]] - 0.25
    grade = _GRADES[params["grade"]] - 0.6
    dropout = params["dropout"] - 0.2
    x = params["x"] - 0.35
    bowl = batch**2 + width**2 + level**2 + grade**2 + dropout**2 + x**2
    return float(bowl + 2 * (batch - width) ** 2 + 2 * (level + x) ** 2 + abs(grade * dropout))


_MIXED6_SPACE = SearchSpace(
    {
        "first": Categorical(("a", "b", "c", "d")),
        "second": Categorical(("p", "q", "r")),
        **{f"x{i}": Float(0, 1) for i in range(1, 5)},
    }
)
"""Two categories without order, and four numbers."""


_mixed = partial(problem, optimum=0.0, group="mixed", tolerance=0.01)
"""Makes a development problem with parameters of several kinds."""

_mixed_held_out = partial(_mixed, half="held-out")
"""Makes a held-out problem with parameters of several kinds."""

_conditional_tree = partial(problem, optimum=0.0, group="conditional")
"""Makes a problem with conditional parameters."""

MIXED_PROBLEMS: tuple[Problem, ...] = (
    _mixed(
        "mixed6",
        _MIXED6_SPACE,
        _mixed6,
        "twelve pairs of categories, the right one deceptively steep",
        shift=0.1,
    ),
    _mixed_held_out(
        "integer", _INTEGER_SPACE, _integer, "integers, one on a log scale and one with a step"
    ),
    _mixed_held_out(
        "ordinal", _ORDINAL_SPACE, _ordinal, "ordered levels, given as indices and as choices"
    ),
    _conditional_tree(
        "conditional",
        _CONDITIONAL_SPACE,
        _conditional,
        "four bowls, one per choice of c; a and b share two numbers, c and d two others",
    ),
    _conditional_tree(
        "deep_tree",
        _DEEP_TREE_SPACE,
        _deep_tree,
        "conditions three deep, the best leaf the deepest and narrowest",
        half="held-out",
    ),
)
"""Problems with categorical, integer or conditional parameters."""
