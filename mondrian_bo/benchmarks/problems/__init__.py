"""The registry of benchmark problems and the suites they form."""

from __future__ import annotations

from pathlib import Path

from mondrian_bo.benchmarks.problems.base import Problem, suggest
from mondrian_bo.benchmarks.problems.synthetic import SYNTHETIC_PROBLEMS
from mondrian_bo.benchmarks.problems.tabular import TABULAR_PROBLEMS, tabular_problem

__all__ = ["SUITES", "Problem", "get_problem", "problem_names", "suggest"]

SUITES: dict[str, tuple[str, ...]] = {
    "paper": ("branin", "hartmann6", "svm_grid", "lda_grid"),
    "quality": ("branin", "hartmann6", "branin10", "svm_grid", "lda_grid", "conditional"),
}

_SYNTHETIC = {problem.name: problem for problem in SYNTHETIC_PROBLEMS}


def problem_names() -> tuple[str, ...]:
    """Return the names `get_problem` knows."""
    return (*_SYNTHETIC, *TABULAR_PROBLEMS)


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
    if name in _SYNTHETIC:
        return _SYNTHETIC[name]
    if name in TABULAR_PROBLEMS:
        return tabular_problem(name, tables)
    raise ValueError(f"unknown problem {name!r}; known: {', '.join(problem_names())}")
