"""Models whose logarithmic parameters are searched on a linear scale.

Who does not know the scale of a learning rate or a penalty often leaves out ``log=True``. These are
the problems of the suite ``default`` that train models, with all logarithmic ranges made linear.
"""

from __future__ import annotations

from dataclasses import replace

from mondrian_bo.benchmarks.problems.base import Problem
from mondrian_bo.benchmarks.problems.larger_learning import LARGER_LEARNING_PROBLEMS
from mondrian_bo.benchmarks.problems.learning import LEARNING_PROBLEMS
from mondrian_bo.search_space import Categorical, SearchSpace

__all__ = ["LINEAR_SCALE_PROBLEMS"]

_BUDGET = 60
"""Trials per run, our choice."""


def _on_linear_scale(problem: Problem) -> Problem:
    space = {
        name: one if isinstance(one, Categorical) else replace(one, log=False)
        for name, one in problem.space.items()
    }
    return replace(
        problem,
        name=problem.name.replace("real_", "linear_"),
        space=SearchSpace(space),
        budget=_BUDGET,
        group="linear scales",
        half="held-out",
        description=f"{problem.description}, on linear scales",
    )


LINEAR_SCALE_PROBLEMS: tuple[Problem, ...] = tuple(
    _on_linear_scale(problem) for problem in (*LEARNING_PROBLEMS, *LARGER_LEARNING_PROBLEMS)
)
"""The problems of the suite ``linear_scales``."""
