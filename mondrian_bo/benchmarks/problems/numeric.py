"""The numeric problems of the default suite, which every seed moves to another place."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from mondrian_bo.benchmarks.problems import functions
from mondrian_bo.benchmarks.problems.base import Half, Problem
from mondrian_bo.benchmarks.problems.near_bounds import NEAR_BOUNDS_PROBLEMS
from mondrian_bo.benchmarks.problems.synthetic import BRANIN_SPACE, box, of_vector
from mondrian_bo.search_space import Float, SearchSpace
from mondrian_bo.shared.array_types import FloatArray

__all__ = ["NUMERIC_PROBLEMS"]

_SHIFT = 0.1
"""Largest shift as a share of the range: it keeps every minimiser in its box."""

_BRANIN_RANGE = 307.7
"""Largest minus smallest value of Branin's function in its box, the unit of its noise."""

_HARTMANN6_RANGE = 3.322
"""Largest minus smallest value of Hartmann's function of six inputs in its box."""

_ACKLEY5_RANGE = 19.4
"""Largest minus smallest value of Ackley's function of five inputs in its box, rounded."""

_NOISE = 0.1
"""Scale of the noise as a share of the range of values."""

_HEAVY_TAILS = 2.0
"""Degrees of freedom of heavy-tailed noise, whose variance is infinite: some trials are far off."""

_FUNCTIONS: dict[str, tuple[SearchSpace, Callable[[FloatArray], float], float, Half, float]] = {
    "branin": (BRANIN_SPACE, functions.branin, functions.BRANIN_MINIMUM, "development", 1e-3),
    "hartmann3": (box(0, 1, 3), functions.hartmann3, functions.HARTMANN3_MINIMUM, "held-out", 1e-3),
    "hartmann6": (
        box(0, 1, 6),
        functions.hartmann6,
        functions.HARTMANN6_MINIMUM,
        "development",
        1e-3,
    ),
    "rosenbrock4": (box(-5, 10, 4), functions.rosenbrock, 0.0, "held-out", 0.1),
    "ackley5": (box(-5, 10, 5), functions.ackley, 0.0, "development", 0.01),
    "levy10": (box(-10, 10, 10), functions.levy, 0.0, "development", 0.1),
    "michalewicz5": (
        box(0, math.pi, 5),
        functions.michalewicz,
        functions.MICHALEWICZ5_MINIMUM,
        "held-out",
        0.01,
    ),
    "griewank6": (box(-600, 600, 6), functions.griewank, 0.0, "held-out", 0.1),
    "styblinski_tang6": (
        box(-5, 5, 6),
        functions.styblinski_tang,
        6 * functions.STYBLINSKI_TANG_MINIMUM,
        "held-out",
        0.1,
    ),
}
"""Space, function of a vector, optimum, half and tolerance of each problem."""

_DESCRIPTIONS = {
    "branin": "Branin, three equal minima",
    "hartmann3": "Hartmann function of three inputs",
    "hartmann6": "Hartmann function of six inputs, a second basin 0.12 above",
    "rosenbrock4": "Rosenbrock function, a flat bent valley between steep walls",
    "ackley5": "Ackley function, ripples around a narrow hole",
    "levy10": "Levy function of ten inputs",
    "michalewicz5": "Michalewicz function, narrow valleys on a plain",
    "griewank6": "Griewank function, a bowl with ripples",
    "styblinski_tang6": "Styblinski-Tang function, 64 basins",
}
"""One line on each function, for listings."""


def _shifted(name: str, group: str) -> Problem:
    space, function, optimum, half, tolerance = _FUNCTIONS[name]
    return Problem(
        name=f"shifted_{name}",
        space=space,
        function=of_vector(function, len(space)),
        optimum=optimum,
        group=group,
        half=half,
        tolerance=tolerance,
        shift=_SHIFT,
        description=_DESCRIPTIONS[name],
    )


_SMOOTH = tuple(
    _shifted(name, "smooth numeric") for name in ("branin", "hartmann3", "hartmann6", "rosenbrock4")
)
"""Smooth functions."""

_RUGGED = tuple(
    _shifted(name, "rugged numeric")
    for name in ("ackley5", "levy10", "michalewicz5", "griewank6", "styblinski_tang6")
)
"""Functions with many local minima or kinks."""

_BRANIN, _HARTMANN6, _ACKLEY5 = _SMOOTH[0], _SMOOTH[2], _RUGGED[0]
"""The functions that also have variants with noise or irrelevant inputs."""

_IRRELEVANT_HALVES: tuple[tuple[int, Half], ...] = ((10, "development"), (25, "held-out"))
"""Number of parameters and half of each variant of Branin's function with irrelevant inputs."""

_IRRELEVANT = tuple(
    replace(
        _BRANIN,
        name=f"shifted_branin{d}",
        space=SearchSpace({**BRANIN_SPACE, **{f"x{i}": Float(0, 1) for i in range(3, d + 1)}}),
        group="irrelevant inputs",
        half=half,
        description=f"Branin among {d - 2} inputs that do nothing",
    )
    for d, half in _IRRELEVANT_HALVES
)
"""Branin's function with inputs that it ignores."""


def _noisy(problem: Problem, value_range: float, tolerance: float) -> tuple[Problem, Problem]:
    """Return the variants with Gaussian and with heavy-tailed noise."""
    common = replace(problem, group="noisy", noise=_NOISE * value_range, tolerance=tolerance)
    gaussian = replace(
        common,
        name=f"{problem.name}_noisy",
        description=f"{problem.description}; Gaussian noise of 10 % of the range",
    )
    heavy = replace(
        common,
        name=f"{problem.name}_heavy",
        noise_freedom=_HEAVY_TAILS,
        description=f"{problem.description}; noise with heavy tails, 10 % of the range",
    )
    return gaussian, heavy


_BRANIN_NOISY, _BRANIN_HEAVY = _noisy(_BRANIN, _BRANIN_RANGE, 1.0)
_HARTMANN6_NOISY, _HARTMANN6_HEAVY = _noisy(_HARTMANN6, _HARTMANN6_RANGE, 0.1)
_ACKLEY5_NOISY, _ACKLEY5_HEAVY = _noisy(_ACKLEY5, _ACKLEY5_RANGE, 1.0)
"""Variants with Gaussian and heavy-tailed noise; the last argument is the tolerance, our choice."""

_NOISY = (
    _BRANIN_NOISY,
    replace(_BRANIN_HEAVY, half="held-out"),
    replace(_HARTMANN6_NOISY, half="held-out"),
    _HARTMANN6_HEAVY,
    replace(_ACKLEY5_NOISY, half="held-out"),
    _ACKLEY5_HEAVY,
)
"""Functions whose values have Gaussian or heavy-tailed noise."""

NUMERIC_PROBLEMS: tuple[Problem, ...] = (
    *_SMOOTH,
    *_RUGGED,
    *_IRRELEVANT,
    *_NOISY,
    *NEAR_BOUNDS_PROBLEMS,
)
"""All problems with numeric parameters only."""
