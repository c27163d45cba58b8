"""What a new process costs: the first one after installation, which compiles, and later ones."""

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
from mondrian_bo.benchmarks.speed.clock import Cost, in_turns, typical
from mondrian_bo.benchmarks.speed.rows import Limit, Row, time_row
from mondrian_bo.benchmarks.speed.threads import one_thread_environment

__all__ = ["FreshCopy", "import_row", "startup_rows"]

_PROCESS = "mondrian_bo.benchmarks.speed.startup_process"


class Start(NamedTuple):
    """One start of a process.

    Attributes
    ----------
    cost : Cost
        Until it printed its answer.
    marks : dict
        CPU time of the process when it had reached this and that.
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

    def run(self, arguments: Sequence[str]) -> Start:
        """Start an interpreter on this copy; the last line it prints is its marks in JSON."""
        environment = one_thread_environment(
            PYTHONPATH=str(self.directory), NUMBA_CACHE_DIR=str(self.directory / "numba-cache")
        )
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        started = time.perf_counter()
        with subprocess.Popen(
            [sys.executable, "-W", "ignore", *arguments],
            stdout=subprocess.PIPE,
            text=True,
            cwd=self.directory,
            env=environment,
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

    def imports(self, module: str) -> Start:
        """Start a process that imports a module; only the import is counted."""
        code = (
            "import json, time; t, w = time.process_time(), time.perf_counter(); "
            f"import {module}; "
            "print(json.dumps([time.process_time() - t, time.perf_counter() - w]))"
        )
        started = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            cwd=self.directory,
            env=one_thread_environment(PYTHONPATH=str(self.directory)),
        )
        return Start(Cost(*json.loads(started.stdout)), {})


def startup_rows(
    repeats: int = 5, first_below: float = 30.0, later_below: float = 2.0
) -> list[Row]:
    """Measure the first process after installation, and later ones beside TPE's.

    Parameters
    ----------
    repeats : int, default=5
        How many later processes; the median counts.
    first_below, later_below : float, default=30 and 2
        How many seconds we want them to take.
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


def import_row(repeats: int = 5) -> Row:
    """Measure ``import mondrian_bo`` beside ``import optuna``; the median counts."""
    with TemporaryDirectory() as directory:
        copy = FreshCopy(Path(directory))
        for module in ("mondrian_bo", "optuna"):
            copy.imports(module)
        costs = in_turns(
            [
                lambda: copy.imports("mondrian_bo").cost,
                lambda: copy.imports("optuna").cost,
            ],
            repeats,
        )
    return time_row(
        "import mondrian_bo",
        typical(costs[0]).in_milliseconds(),
        "import optuna",
        typical(costs[1]).in_milliseconds(),
        unit="ms",
        limit=Limit("ratio", 1.0),
    )
