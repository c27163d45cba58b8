"""What a user waits for in a new process: the sampler, and the first model-based suggestion."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import mondrian_bo
from mondrian_bo.benchmarks.harness.threads import one_thread_environment
from mondrian_bo.benchmarks.suites.speed.clock import Cost, in_turns, typical
from mondrian_bo.benchmarks.suites.speed.rows import Limit, Row, time_row

__all__ = ["OURS", "TPE", "FreshCopy", "sampler_row", "startup_rows"]

_PROCESS = "mondrian_bo.benchmarks.suites.speed.startup_process"
"""Module that the measured processes run."""


class Start(NamedTuple):
    """One start of a process.

    Attributes
    ----------
    cost : Cost
        Until it printed its answer.
    marks : dict
        CPU time of the process, in seconds, by the step that it had reached.
    """

    cost: Cost
    marks: dict[str, float]


class FreshCopy:
    """A copy of the package that has never been imported, with an empty cache of compiled code.

    Parameters
    ----------
    directory : Path
        An empty directory.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        source = Path(mondrian_bo.__file__).parent
        shutil.copytree(
            source, directory / source.name, ignore=shutil.ignore_patterns("__pycache__")
        )

        self._environment = one_thread_environment(
            PYTHONPATH=str(directory), NUMBA_CACHE_DIR=str(directory / "numba-cache")
        )
        # An installed package has compiled sources.
        self._environment.pop("PYTHONDONTWRITEBYTECODE", None)

    def run(self, arguments: Sequence[str]) -> Start:
        """Start an interpreter on this copy; the last line it prints is its marks in JSON."""
        started = time.perf_counter()
        with subprocess.Popen(
            [sys.executable, "-W", "ignore", *arguments],
            stdout=subprocess.PIPE,
            text=True,
            cwd=self.directory,
            env=self._environment,
        ) as process:
            assert process.stdout is not None
            line = process.stdout.readline()
            wall = time.perf_counter() - started
        if process.returncode != 0:
            raise RuntimeError(f"{' '.join(arguments)} failed with {process.returncode}")
        marks: dict[str, float] = json.loads(line)
        return Start(Cost(max(marks.values()), wall), marks)

    def first_suggestion(self, sampler: str) -> Start:
        """Start a process and a study, up to the first suggestion of the sampler's model."""
        return self.run(["-m", _PROCESS, sampler])

    def sampler(self, statement: str) -> Start:
        """Start a process that runs a statement, which imports a sampler and constructs it."""
        code = (
            "import json, time; w = time.perf_counter(); "
            f"{statement}; "
            "print(json.dumps([time.process_time(), time.perf_counter() - w]))"
        )
        started = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            cwd=self.directory,
            env=self._environment,
        )
        return Start(Cost(*json.loads(started.stdout)), {})


def startup_rows(
    repeats: int = 5, first_below: float = 30.0, later_below: float = 0.7
) -> list[Row]:
    """Measure the first process after installation, and later ones beside TPE's.

    Parameters
    ----------
    repeats : int, default=5
        How many later processes; the median counts.
    first_below, later_below : float, default=30 and 0.7
        How many seconds we want them to take.

    Returns
    -------
    list of Row
        Rows of the first and of later processes.
    """
    with TemporaryDirectory() as directory:
        copy = FreshCopy(Path(directory))
        # TPE first: what it loads is then in the system's cache of files for both.
        copy.first_suggestion("TPE")
        first = copy.first_suggestion("ours")
        marks: list[dict[str, float]] = []

        def ours() -> Cost:
            start = copy.first_suggestion("ours")
            marks.append(start.marks)
            return start.cost

        costs = in_turns([ours, lambda: copy.first_suggestion("TPE").cost], repeats)
    middle = sorted(marks, key=lambda m: max(m.values()))[len(marks) // 2]
    return [
        time_row(
            "first process after installation, to the first suggestion of the model",
            first.cost,
            limit=Limit("ours", first_below),
            details={"cpu_when_done": first.marks},
        ),
        time_row(
            "later process, to the first suggestion of the model",
            typical(costs[0]),
            "TPE",
            typical(costs[1]),
            limit=Limit("ours", later_below),
            details={"cpu_when_done": middle},
        ),
    ]


OURS = "from mondrian_bo import MondrianSampler; MondrianSampler()"
"""Statements of the process that constructs our sampler."""

TPE = "import optuna; optuna.samplers.TPESampler()"
"""Statements of the process that it is compared with."""


def sampler_row(repeats: int = 5) -> Row:
    """Measure a process that constructs our sampler, compared with TPE's; the median counts."""
    with TemporaryDirectory() as directory:
        copy = FreshCopy(Path(directory))
        for statement in (OURS, TPE):
            copy.sampler(statement)
        costs = in_turns([lambda: copy.sampler(OURS).cost, lambda: copy.sampler(TPE).cost], repeats)
    return time_row(
        "process that imports and constructs a sampler",
        typical(costs[0]),
        "TPE",
        typical(costs[1]),
        limit=Limit("ratio", 1.0 / 1.5),
    )
