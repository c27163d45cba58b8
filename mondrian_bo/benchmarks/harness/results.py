"""The directory of results: ``<problem>/<sampler>/<seed>.jsonl``, one line per trial."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from mondrian_bo.benchmarks.problems import OutcomeProblem, Problem

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

_PACKAGES = (
    "mondrian-bo",
    "optuna",
    "numpy",
    "scipy",
    "scikit-learn",
    "numba",
    "cmaes",
    "torch",
    "moocore",
    "coco-experiment",
)
"""Packages whose versions are recorded: ours, our requirements, those of other samplers, and those
that evaluate problems."""


_SESSION = frozenset({"started", "machine", "versions"})
"""What each session in ``meta.json`` has."""


@dataclass(frozen=True)
class TrialRecord:
    """One line of a run.

    Attributes
    ----------
    number : int
        The trial, from 0.
    params : dict
        Its active parameters.
    value : float or list of float
        What the sampler was told; a list if there are several objectives.
    exact : float or list of float
        The noise-free value.
    best : float
        Noise-free value of the best trial so far; "best" is judged by `value`. With constraints or
        several objectives, the score so far (`OutcomeProblem`).
    seconds : float
        Wall time of ask and tell, without the objective.
    constraints : list of float
        At most 0 where the constraint holds.
    """

    number: int
    params: dict[str, Any]
    value: float | list[float]
    exact: float | list[float]
    best: float
    seconds: float
    constraints: list[float] = field(default_factory=list)

    @property
    def is_feasible(self) -> bool:
        """Whether every constraint holds."""
        return all(constraint <= 0.0 for constraint in self.constraints)


@dataclass(frozen=True)
class ProblemFacts:
    """The attributes of a problem that reports need; they are saved with its runs.

    Problems are equal if all but their descriptions are.
    """

    name: str
    description: str = field(compare=False)
    group: str
    half: str
    optimum: float | None
    tolerance: float
    n_constraints: int = 0
    reference: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        # JSON has lists instead of tuples.
        object.__setattr__(self, "reference", tuple(self.reference))


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Make an error of a damaged file name the file."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{path} is not what `mondrian-bo bench run` wrote: {error}. Remove it; the command "
            "then writes it again."
        ) from error


def run_path(directory: Path, problem: str, sampler: str, seed: int) -> Path:
    """Return the path of a finished run."""
    # The settings of a sampler may contain characters that a file system refuses.
    return directory / problem / quote(sampler, safe="=, ") / f"{seed}.jsonl"


def run_paths(directory: Path, problem: str) -> Iterator[tuple[str, int, Path]]:
    """Yield sampler, seed and file of the finished runs on a problem, in alphabetical order."""
    for path in sorted((directory / problem).glob("*/*.jsonl")):
        with _named(path):
            seed = int(path.stem)
        yield unquote(path.parent.name), seed, path


def read_run(path: Path) -> list[TrialRecord]:
    """Read the trials of a run; a file that holds none raises a ValueError."""
    with _named(path):
        records = [TrialRecord(**json.loads(line)) for line in path.read_text().splitlines()]
        if not records:
            raise ValueError("it has no trials")
    return records


def facts_of(problem: Problem | OutcomeProblem) -> ProblemFacts:
    """Return the attributes of a problem that reports need."""
    facts = ProblemFacts(
        problem.name,
        problem.description,
        problem.group,
        problem.half,
        problem.optimum,
        problem.tolerance,
    )
    if isinstance(problem, Problem):
        return facts
    return replace(facts, n_constraints=problem.n_constraints, reference=problem.reference)


def record_problem(directory: Path, problem: Problem | OutcomeProblem) -> None:
    """Save the attributes of a problem, or check that the saved ones are equal.

    Parameters
    ----------
    directory : Path
        The directory of the results.
    problem : Problem or OutcomeProblem
        The problem about to be run.

    Raises
    ------
    ValueError
        If the directory holds runs of a different problem of this name, such as another table.
    """
    facts = facts_of(problem)
    path = directory / problem.name / "problem.json"
    if path.exists():
        if _read_facts(path) != facts:
            raise ValueError(
                f"{path.parent} holds runs of another problem called {problem.name} (a different "
                "table, an older version?): choose another directory"
            )
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(asdict(facts), indent=2) + "\n")


def read_facts(directory: Path) -> Iterator[ProblemFacts]:
    """Read the saved problems of a directory, in alphabetical order.

    A folder of runs without a saved problem, or with one of another name, raises a ValueError.
    """
    folders = {path.parent for path in directory.glob("*/problem.json")}
    folders.update(path.parent.parent for path in directory.glob("*/*/*.jsonl"))
    for folder in sorted(folders):
        path = folder / "problem.json"
        if not path.is_file():
            raise ValueError(f"{folder} has runs and no file problem.json, which says of what")
        facts = _read_facts(path)
        if facts.name != folder.name:
            raise ValueError(
                f"{folder} has runs of the problem {facts.name}: the folder must have its name"
            )
        yield facts


def _read_facts(path: Path) -> ProblemFacts:
    with _named(path):
        return ProblemFacts(**json.loads(path.read_text()))


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
    if not path.exists():
        return []
    with _named(path):
        sessions = json.loads(path.read_text())
        if not isinstance(sessions, list):
            raise TypeError("it is no list of sessions")
        for session in sessions:
            if not isinstance(session, dict) or not _SESSION.issubset(session):
                raise TypeError(f"a session needs the entries {', '.join(sorted(_SESSION))}")
        return sessions
