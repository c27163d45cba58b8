"""The directory of results: ``<problem>/<sampler>/<seed>.jsonl``, one line per trial."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from mondrian_bo.benchmarks.problems import Problem

__all__ = [
    "ProblemFacts",
    "TrialRecord",
    "append_session",
    "facts_of",
    "read_facts",
    "read_run",
    "read_sessions",
    "record_problem",
    "run_path",
    "run_paths",
]

_PACKAGES = ("mondrian-bo", "optuna", "numpy", "scipy", "scikit-learn", "numba", "cmaes", "torch")
"""Packages whose versions are recorded: ours, our requirements and those of other samplers."""


@dataclass(frozen=True)
class TrialRecord:
    """One line of a run.

    Attributes
    ----------
    number : int
        The trial, from 0.
    params : dict
        Its active parameters.
    value : float
        What the sampler was told.
    exact : float
        The noise-free value.
    best : float
        Noise-free value of the best trial so far; "best" is judged by `value`.
    seconds : float
        Wall time of ask and tell, without the objective.
    """

    number: int
    params: dict[str, Any]
    value: float
    exact: float
    best: float
    seconds: float


@dataclass(frozen=True)
class ProblemFacts:
    """The attributes of a problem that reports need; they are saved with its runs."""

    name: str
    description: str
    group: str
    half: str
    optimum: float | None
    tolerance: float


def run_path(directory: Path, problem: str, sampler: str, seed: int) -> Path:
    """Return the path of a finished run."""
    # The settings of a sampler may contain characters that a file system refuses.
    return directory / problem / quote(sampler, safe="=, ") / f"{seed}.jsonl"


def run_paths(directory: Path, problem: str) -> Iterator[tuple[str, int, Path]]:
    """Yield sampler, seed and file of the finished runs on a problem, in alphabetical order."""
    for path in sorted((directory / problem).glob("*/*.jsonl")):
        yield unquote(path.parent.name), int(path.stem), path


def read_run(path: Path) -> list[TrialRecord]:
    """Read the trials of a run."""
    return [TrialRecord(**json.loads(line)) for line in path.read_text().splitlines()]


def facts_of(problem: Problem) -> ProblemFacts:
    """Return the attributes of a problem that reports need."""
    return ProblemFacts(
        problem.name,
        problem.description,
        problem.group,
        problem.half,
        problem.optimum,
        problem.tolerance,
    )


def record_problem(directory: Path, problem: Problem) -> None:
    """Save the attributes of a problem, or check that the saved ones are equal.

    Parameters
    ----------
    directory : Path
        The directory of the results.
    problem : Problem
        The problem about to be run.

    Raises
    ------
    ValueError
        If the directory holds runs of a different problem of this name, such as another table.
    """
    facts = facts_of(problem)
    path = directory / problem.name / "problem.json"
    if path.exists():
        if json.loads(path.read_text()) != asdict(facts):
            raise ValueError(
                f"{path.parent} holds runs of another problem called {problem.name} (a different "
                "table, an older version?): choose another directory"
            )
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(asdict(facts), indent=2) + "\n")


def read_facts(directory: Path) -> Iterator[ProblemFacts]:
    """Read the saved problems of a directory, in alphabetical order."""
    for path in sorted(directory.glob("*/problem.json")):
        yield ProblemFacts(**json.loads(path.read_text()))


def append_session(directory: Path) -> None:
    """Add date, machine and package versions to ``meta.json``."""
    versions = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    session = {
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": platform.machine(),
        "versions": versions,
    }
    directory.mkdir(parents=True, exist_ok=True)
    sessions = [*read_sessions(directory), session]
    (directory / "meta.json").write_text(json.dumps(sessions, indent=2) + "\n")


def read_sessions(directory: Path) -> list[dict[str, Any]]:
    """Read ``meta.json``: one entry per session that added runs, oldest first."""
    path = directory / "meta.json"
    return list(json.loads(path.read_text())) if path.exists() else []
