"""The registry of benchmark problems and the suites they form."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from difflib import get_close_matches
from pathlib import Path

from mondrian_bo.benchmarks.problems.accuracies import ACCURACY_PROBLEMS
from mondrian_bo.benchmarks.problems.base import Problem, suggest
from mondrian_bo.benchmarks.problems.bayesmark_tasks import BAYESMARK_PROBLEMS
from mondrian_bo.benchmarks.problems.bbob import BBOB_FUNCTIONS, UNSEEN_FUNCTIONS
from mondrian_bo.benchmarks.problems.categorical import CATEGORICAL_PROBLEMS
from mondrian_bo.benchmarks.problems.coco import BBOB_PROBLEMS
from mondrian_bo.benchmarks.problems.larger_learning import LARGER_LEARNING_PROBLEMS
from mondrian_bo.benchmarks.problems.learning import LEARNING_PROBLEMS
from mondrian_bo.benchmarks.problems.linear_scales import LINEAR_SCALE_PROBLEMS
from mondrian_bo.benchmarks.problems.mixed import MIXED_PROBLEMS
from mondrian_bo.benchmarks.problems.mixint import MIXINT_FUNCTIONS
from mondrian_bo.benchmarks.problems.noisy import NOISY_FUNCTIONS
from mondrian_bo.benchmarks.problems.numeric import NUMERIC_PROBLEMS
from mondrian_bo.benchmarks.problems.outcomes import OutcomeProblem, Outcomes
from mondrian_bo.benchmarks.problems.plateaus import PLATEAU_PROBLEMS
from mondrian_bo.benchmarks.problems.problem_suites import OUTCOME_PROBLEMS, SUITES, Suite
from mondrian_bo.benchmarks.problems.synthetic import SYNTHETIC_PROBLEMS
from mondrian_bo.benchmarks.problems.tabular import TABULAR_PROBLEMS, tabular_problem

__all__ = [
    "SUITES",
    "OutcomeProblem",
    "Outcomes",
    "Problem",
    "Suite",
    "all_problem_names",
    "any_problem",
    "get_problem",
    "installed_problems",
    "outcome_problem",
    "problem_names",
    "suggest",
]

_DECLARED = {
    problem.name: problem
    for problem in (
        *SYNTHETIC_PROBLEMS,
        *NUMERIC_PROBLEMS,
        *MIXED_PROBLEMS,
        *CATEGORICAL_PROBLEMS,
        *PLATEAU_PROBLEMS,
        *LEARNING_PROBLEMS,
        *LARGER_LEARNING_PROBLEMS,
        *LINEAR_SCALE_PROBLEMS,
        *ACCURACY_PROBLEMS,
        *BBOB_FUNCTIONS,
        *UNSEEN_FUNCTIONS,
        *MIXINT_FUNCTIONS,
        *NOISY_FUNCTIONS,
        *BAYESMARK_PROBLEMS,
    )
}
"""Problems with one objective that need no data files of ours, by name."""

_OUTCOME_PROBLEMS = {problem.name: problem for problem in (*OUTCOME_PROBLEMS, *BBOB_PROBLEMS)}
"""Problems that may have several outcomes, by name."""

_REMEDIES = {
    "PIL": "pip install pillow",
    "bayesmark": "python -m mondrian_bo.benchmarks.make_environment bayesmark DIR",
    "cocoex": "pip install 'mondrian-bo[coco]'",
    "matplotlib": "pip install 'mondrian-bo[bench]'",
    "moocore": "pip install 'mondrian-bo[bench]'",
}
"""Commands that install the modules of problems."""

_N_SIMILAR = 5
"""Number of known names in the error for an unknown one."""


def problem_names() -> tuple[str, ...]:
    """Return the names that `get_problem` takes: problems with one objective, no constraint."""
    return (*_DECLARED, *TABULAR_PROBLEMS)


def all_problem_names() -> tuple[str, ...]:
    """Return the names that `any_problem` takes."""
    return (*problem_names(), *_OUTCOME_PROBLEMS)


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
    raise _unknown(name, problem_names())


def outcome_problem(name: str) -> OutcomeProblem:
    """Return a problem with constraints, several objectives, or both, by its name.

    Raises
    ------
    ValueError
        If there is no such problem.
    """
    if name not in _OUTCOME_PROBLEMS:
        raise _unknown(name, _OUTCOME_PROBLEMS)
    return _OUTCOME_PROBLEMS[name]


def any_problem(name: str, tables: Path | None = None) -> Problem | OutcomeProblem:
    """Return a problem of either kind, one of `all_problem_names`; see :func:`get_problem`."""
    if name in _OUTCOME_PROBLEMS:
        return outcome_problem(name)
    if name not in problem_names():
        raise _unknown(name, all_problem_names())
    return get_problem(name, tables)


def installed_problems(names: Iterable[str], notify: Callable[[str], None]) -> list[str]:
    """Return those of some problems whose optional packages are installed, in the given order.

    Names are those that `any_problem` takes, and `notify` gets a sentence for each missing package.

    Raises
    ------
    ValueError
        If a name is unknown, or no problem can be run.
    """
    installed, skipped = [], dict[str, list[str]]()
    for name in names:
        problem = any_problem(name)
        for module in problem.missing:
            skipped.setdefault(module, []).append(name)
        if not problem.missing:
            installed.append(name)
    for module, without in skipped.items():
        names_left_out = ", ".join(without)
        notify(f"skipping problems that need {module} ({_REMEDIES[module]}): {names_left_out}")
    if not installed:
        raise ValueError("none of the problems asked for is installed")
    return installed


def _unknown(name: str, known: Iterable[str]) -> ValueError:
    """Return the error for an unknown problem, which names the most similar ones of hundreds."""
    similar = ", ".join(get_close_matches(name, known, n=_N_SIMILAR, cutoff=0.0))
    return ValueError(
        f"unknown problem {name!r}; similar ones: {similar}; `mondrian-bo bench list` prints all"
    )
