"""Records training curves: ``python -m mondrian_bo.benchmarks.suites.curves.record --out DIR``."""

from __future__ import annotations

import argparse
import json
import platform
import time
import warnings
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import islice, product
from pathlib import Path
from typing import NamedTuple

import numpy as np
from tqdm import tqdm

from mondrian_bo.benchmarks.suites.curves.tasks import TASKS, Task
from mondrian_bo.shared.array_types import FloatArray

__all__ = ["Recording", "main", "record"]


class Recording(NamedTuple):
    """The curves of a task over its grid.

    Attributes
    ----------
    curves : float16 array of shape (n, steps)
        The reports of each setting, in the order of the grid's product. Half precision resolves
        0.05 % of a value, and keeps the file small.
    seconds : float32 array of shape (n,)
        CPU time of a complete training.
    """

    curves: FloatArray
    seconds: FloatArray


def record(task: Task, name: str = "") -> Recording:
    """Train with every setting of a grid.

    Parameters
    ----------
    task : Task
        What to train.
    name : str, default=""
        Label of the progress bar.

    Returns
    -------
    Recording
        The curves.
    """
    grid = list(product(*task.levels.values()))
    curves, seconds = np.full((len(grid), task.n_steps), np.nan), np.zeros(len(grid))
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for i, values in enumerate(tqdm(grid, desc=name)):
            settings = dict(zip(task.levels, values, strict=True))
            started = time.process_time()
            curves[i] = list(islice(task.train(settings), task.n_steps))
            seconds[i] = time.process_time() - started
        return Recording(curves.astype(np.float16), seconds.astype(np.float32))


def main() -> None:
    """Record the tasks named on the command line, all by default."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", nargs="+", default=list(TASKS), choices=TASKS)
    parser.add_argument("--out", type=Path, required=True, help="directory of the files")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name in arguments.tasks:
        recording = record(TASKS[name], name)
        np.savez_compressed(arguments.out / f"{name}.npz", **recording._asdict())
        module = "mondrian_bo.benchmarks.suites.curves.record"
        facts = {
            "command": f"python -m {module} --tasks {name} --out DIR",
            "date": datetime.now(UTC).date().isoformat(),
            "versions": {
                "python": platform.python_version(),
                **{package: version(package) for package in ("numpy", "scikit-learn", "scipy")},
            },
            "settings": len(recording.curves),
            "steps": TASKS[name].n_steps,
            "total_seconds": round(float(recording.seconds.sum()), 1),
        }
        (arguments.out / f"{name}.json").write_text(json.dumps(facts, indent=2) + "\n")


if __name__ == "__main__":
    main()
