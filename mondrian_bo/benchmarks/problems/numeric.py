"""The numeric problems of the default suite, which every seed shifts to another place."""

from __future__ import annotations

from dataclasses import replace

from mondrian_bo.benchmarks.problems import functions
from mondrian_bo.benchmarks.problems.base import Half, Problem
from mondrian_bo.benchmarks.problems.synthetic import BRANIN_SPACE, box, of_vector
from mondrian_bo.search_space import Float, SearchSpace

__all__ = ["NUMERIC_PROBLEMS"]

_SHIFT = 0.1
"""Largest shift as a share of the range: it keeps every minimiser in its box."""

_BUDGET = 200
"""Trials per run, the usual length of a study."""

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

_BRANIN = Problem(
    name="shifted_branin",
    space=BRANIN_SPACE,
    function=of_vector(functions.branin, 2),
    optimum=functions.BRANIN_MINIMUM,
    budget=_BUDGET,
    group="smooth numeric",
    shift=_SHIFT,
    description="Branin, three equal minima",
)
_HARTMANN6 = Problem(
    name="shifted_hartmann6",
    space=box(0, 1, 6),
    function=of_vector(functions.hartmann6, 6),
    optimum=functions.HARTMANN6_MINIMUM,
    budget=_BUDGET,
    group="smooth numeric",
    shift=_SHIFT,
    description="Hartmann function of six inputs, a second basin 0.12 above",
)
_ACKLEY5 = Problem(
    name="shifted_ackley5",
    space=box(-5, 10, 5),
    function=of_vector(functions.ackley, 5),
    optimum=0.0,
    budget=_BUDGET,
    group="rugged numeric",
    tolerance=0.01,
    shift=_SHIFT,
    description="Ackley function, ripples around a narrow hole",
)

_SMOOTH = (
    _BRANIN,
    Problem(
        name="shifted_hartmann3",
        space=box(0, 1, 3),
        function=of_vector(functions.hartmann3, 3),
        optimum=functions.HARTMANN3_MINIMUM,
        budget=_BUDGET,
        group="smooth numeric",
        half="held-out",
        shift=_SHIFT,
        description="Hartmann function of three inputs",
    ),
    _HARTMANN6,
    Problem(
        name="shifted_rosenbrock4",
        space=box(-5, 10, 4),
        function=of_vector(functions.rosenbrock, 4),
        optimum=0.0,
        budget=_BUDGET,
        group="smooth numeric",
        half="held-out",
        tolerance=0.1,
        shift=_SHIFT,
        description="Rosenbrock function, a flat bent valley between steep walls",
    ),
)

_RUGGED = (
    _ACKLEY5,
    Problem(
        name="shifted_levy10",
        space=box(-10, 10, 10),
        function=of_vector(functions.levy, 10),
        optimum=0.0,
        budget=_BUDGET,
        group="rugged numeric",
        tolerance=0.1,
        shift=_SHIFT,
        description="Levy function of ten inputs",
    ),
    Problem(
        name="shifted_michalewicz5",
        space=box(0, 3.141592653589793, 5),
        function=of_vector(functions.michalewicz, 5),
        optimum=functions.MICHALEWICZ5_MINIMUM,
        budget=_BUDGET,
        group="rugged numeric",
        half="held-out",
        tolerance=0.01,
        shift=_SHIFT,
        description="Michalewicz function, narrow valleys on a plain",
    ),
    Problem(
        name="shifted_griewank6",
        space=box(-600, 600, 6),
        function=of_vector(functions.griewank, 6),
        optimum=0.0,
        budget=_BUDGET,
        group="rugged numeric",
        half="held-out",
        tolerance=0.1,
        shift=_SHIFT,
        description="Griewank function, a bowl with ripples",
    ),
    Problem(
        name="shifted_styblinski_tang6",
        space=box(-5, 5, 6),
        function=of_vector(functions.styblinski_tang, 6),
        optimum=6 * functions.STYBLINSKI_TANG_MINIMUM,
        budget=_BUDGET,
        group="rugged numeric",
        half="held-out",
        tolerance=0.1,
        shift=_SHIFT,
        description="Styblinski-Tang function, 64 basins",
    ),
)

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
_NOISY = (
    _BRANIN_NOISY,
    replace(_BRANIN_HEAVY, half="held-out"),
    replace(_HARTMANN6_NOISY, half="held-out"),
    _HARTMANN6_HEAVY,
    replace(_ACKLEY5_NOISY, half="held-out"),
    _ACKLEY5_HEAVY,
)

NUMERIC_PROBLEMS: tuple[Problem, ...] = (*_SMOOTH, *_RUGGED, *_IRRELEVANT, *_NOISY)
