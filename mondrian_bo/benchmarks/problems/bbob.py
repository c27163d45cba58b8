"""The functions of COCO's suite ``bbob``, whose instance is given by the seed of a run.

Other modules of problems take from here how COCO's functions are evaluated.

N. Hansen, S. Finck, R. Ros, A. Auger. Real-Parameter Black-Box Optimization Benchmarking 2009:
Noiseless Functions Definitions. INRIA research report RR-6829, 2009. The functions are evaluated by
PyPI's package ``coco-experiment``, module ``cocoex``.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import chdir
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from mondrian_bo.benchmarks.problems.base import USUAL_BUDGET, Objective, Problem
from mondrian_bo.benchmarks.problems.synthetic import box
from mondrian_bo.shared.array_types import FloatArray

__all__ = [
    "BBOB_FUNCTIONS",
    "BBOB_NAMES",
    "COCO_BOUND",
    "COCO_PRECISION",
    "DIMENSIONS",
    "UNSEEN_FUNCTIONS",
    "BbobFunction",
    "first_instance",
    "loaded",
    "minimiser",
    "regret",
]

DIMENSIONS = (2, 5, 10, 20, 40)
"""Dimensions of the suite; COCO has 3 too."""

COCO_BOUND = 5.0
"""Half the edge of the search space: COCO's region of interest."""

COCO_PRECISION = 1e-8
"""COCO's final target: a regret up to it counts as solved, and in logarithms as the target."""

BBOB_NAMES = (
    *("sphere", "ellipsoid", "Rastrigin", "Bueche-Rastrigin", "linear slope", "attractive sector"),
    *("step ellipsoid", "Rosenbrock", "rotated Rosenbrock", "rotated ellipsoid", "discus"),
    *("bent cigar", "sharp ridge", "different powers", "rotated Rastrigin", "Weierstrass"),
    *("Schaffer F7", "ill-conditioned Schaffer F7", "Griewank-Rosenbrock", "Schwefel"),
    *("Gallagher, 101 peaks", "Gallagher, 21 peaks", "Katsuura", "Lunacek bi-Rastrigin"),
)
"""Names of functions 1 to 24."""

_TUNED_IN = 5
"""The dimension in which defaults were chosen with functions of this suite."""

_FIRST_UNSEEN = 101
"""The first instance of the suite ``bbob_unseen``; development may use those up to 100."""


@dataclass(frozen=True, kw_only=True)
class BbobFunction(Problem):
    """A function of a suite of COCO in one dimension; a run's seed chooses the instance.

    Values are regrets: COCO's value minus the value at the minimiser of the instance.

    Attributes
    ----------
    number : int
        COCO's number of the function.
    suite : str
        COCO's name of the suite.
    first : int
        The instance of seed 0; seed s has instance ``first + s``.
    """

    number: int
    suite: str = "bbob"
    first: int = 1

    def instance(self, seed: int) -> Objective:
        """Return the regret of the instance of a run's seed."""
        return regret(self.suite, self.number, len(self.space), self.first + seed)


@cache
def regret(suite: str, number: int, dimension: int, instance: int) -> Objective:
    """Return the regret of COCO's problem as a function of the parameters."""
    problems, problem = loaded(suite, number, dimension, instance)
    names = [f"x{i + 1}" for i in range(dimension)]
    optimum = problem(minimiser(suite, number, dimension, instance))

    def evaluate(params: Mapping[str, Any]) -> float:
        # The suite must stay alive with its problem.
        assert problems is not None
        return float(problem(np.array([params[name] for name in names])) - optimum)

    return evaluate


def loaded(suite: str, number: int, dimension: int, instance: int) -> tuple[Any, Any]:
    """Return a new suite of COCO with one problem, and the problem; `number` counts from 1."""
    import cocoex

    problems = cocoex.Suite(
        suite, f"instances:{instance}", f"dimensions:{dimension} function_indices:{number}"
    )
    (problem,) = (problems[index] for index in range(len(problems)))
    return problems, problem


def minimiser(suite: str, number: int, dimension: int, instance: int) -> FloatArray:
    """Return the minimiser of a problem; see :func:`loaded`."""
    problems, problem = loaded(suite, number, dimension, instance)
    with TemporaryDirectory() as folder, chdir(folder):
        # COCO tells its minimiser only in a file of the working directory.
        problem._best_parameter("print")
        (file,) = Path().iterdir()
        x: FloatArray = np.loadtxt(file)
    del problems
    return x


def first_instance(suite: str, number: int, dimension: int, first: int = 1) -> Objective:
    """Return the regret of the instance of seed 0; COCO is loaded when it is called."""
    return lambda params: regret(suite, number, dimension, first)(params)


BBOB_FUNCTIONS: tuple[BbobFunction, ...] = tuple(
    BbobFunction(
        name=f"bbob_f{number}_d{dimension}",
        space=box(-COCO_BOUND, COCO_BOUND, dimension),
        function=first_instance("bbob", number, dimension),
        optimum=0.0,
        budget=USUAL_BUDGET,
        group=f"bbob, {dimension} inputs",
        half="development" if dimension == _TUNED_IN else "held-out",
        tolerance=COCO_PRECISION,
        description=name,
        requires=("cocoex",),
        number=number,
    )
    for dimension in DIMENSIONS
    for number, name in enumerate(BBOB_NAMES, start=1)
)
"""All functions in all dimensions."""

UNSEEN_FUNCTIONS: tuple[BbobFunction, ...] = tuple(
    replace(
        function,
        name=function.name.replace("bbob", "unseen"),
        function=first_instance("bbob", function.number, len(function.space), _FIRST_UNSEEN),
        group=f"{function.group}, unseen instances",
        half="held-out",
        first=_FIRST_UNSEEN,
    )
    for function in BBOB_FUNCTIONS
)
"""The same functions with instances from 101 on. No default of the library was chosen with them."""
