"""The registry of benchmark problems and the suites they form."""

from __future__ import annotations

from pathlib import Path

from mondrian_bo.benchmarks.problems.base import Problem, suggest
from mondrian_bo.benchmarks.problems.learning import LEARNING_PROBLEMS
from mondrian_bo.benchmarks.problems.mixed import MIXED_PROBLEMS
from mondrian_bo.benchmarks.problems.numeric import NUMERIC_PROBLEMS
from mondrian_bo.benchmarks.problems.suites import SUITES, Suite
from mondrian_bo.benchmarks.problems.synthetic import SYNTHETIC_PROBLEMS
from mondrian_bo.benchmarks.problems.tabular import TABULAR_PROBLEMS, tabular_problem

__all__ = ["SUITES", "Problem", "Suite", "get_problem", "problem_names", "suggest"]

_DECLARED = {
    problem.name: problem
    for problem in (*SYNTHETIC_PROBLEMS, *NUMERIC_PROBLEMS, *MIXED_PROBLEMS, *LEARNING_PROBLEMS)
}
"""Problems that need no data files, by name."""


def problem_names() -> tuple[str, ...]:
    """Return the names that `get_problem` takes."""
    return (*_DECLARED, *TABULAR_PROBLEMS)


def get_problem(name: str, tables: Path | None = None) -> Problem:
    """Return a problem by its name.

    Parameters
    ----------
    name : str
        One of `problem_names`.
    tables : Path, optional
        Directory of the original tables, for the tabular problems; by default the project's own
        measurements are used.

    Returns
    -------
    Problem
        The problem.

    Raises
    ------
    ValueError
        If there is no problem of that name, or no such table.
    """
    if name in _DECLARED:
        return _DECLARED[name]
    if name in TABULAR_PROBLEMS:
        return tabular_problem(name, tables)
    raise ValueError(f"unknown problem {name!r}; known: {', '.join(problem_names())}")
