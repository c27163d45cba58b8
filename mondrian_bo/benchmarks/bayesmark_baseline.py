"""The baseline of each task of Bayesmark: the losses of random parameters.

``python -m mondrian_bo.benchmarks.bayesmark_baseline --suite bayesmark`` measures the tasks that
the file of the package lacks and adds them to it, a task at a time. The challenge of 2020 has a
baseline of its own, whose best losses are those of optimizers; ours needs random search alone.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from tqdm import tqdm

from mondrian_bo.benchmarks.problems import SUITES, get_problem

__all__ = ["BASELINES", "PREFIX", "Baseline", "baselines", "main", "measure"]

BASELINES = Path(__file__).parent / "problems" / "bayesmark_baseline.json"
"""The measured baselines by name of the task, and how they were measured."""

PREFIX = "bayesmark_"
"""What the name of a problem begins with; the name of the task follows."""

_N_POINTS = 256
"""Random points for a task, our choice: twice the trials of a run."""

_SEED = 20
"""Seed of the random points and of the models, our choice: runs have small seeds."""


class Baseline(NamedTuple):
    """Two losses of random parameters.

    Attributes
    ----------
    clip : float
        The median; its normalised loss is 1.
    best : float
        The smallest; its normalised loss is 0.
    """

    clip: float
    best: float


def baselines(path: Path = BASELINES) -> Mapping[str, Baseline]:
    """Return the baseline of each measured task by its name."""
    tasks = json.loads(path.read_text(encoding="utf-8"))["tasks"]
    return {name: Baseline(*values) for name, values in tasks.items()}


def measure(name: str, n_points: int = _N_POINTS) -> Baseline:
    """Evaluate random points of a task.

    Parameters
    ----------
    name : str
        Name of the problem.
    n_points : int, default=256
        Number of points.

    Returns
    -------
    Baseline
        Median and smallest loss; a failed evaluation counts as infinite.
    """
    problem = get_problem(name)
    space, function = problem.space, problem.instance(_SEED)
    rows = space.sample(n_points, np.random.default_rng(_SEED))
    losses = [function(space.from_unit(row)) for row in rows]
    return Baseline(float(np.median(losses)), float(np.min(losses)))


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the tasks of a suite that the file lacks."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--suite", default="bayesmark_quick", help="which tasks (%(default)s)")
    parser.add_argument("--file", type=Path, default=BASELINES, help="where the baselines are")
    parsed = parser.parse_args(arguments)
    known = dict(baselines(parsed.file)) if parsed.file.exists() else {}
    for problem in tqdm(SUITES[parsed.suite].problems, desc="baselines", unit="task"):
        name = problem.removeprefix(PREFIX)
        if name in known:
            continue
        known[name] = measure(problem)
        content = {
            "columns": list(Baseline._fields),
            "points": _N_POINTS,
            "seed": _SEED,
            "package": "bayesmark 0.0.8",
            "tasks": {one: list(known[one]) for one in sorted(known)},
        }
        parsed.file.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
