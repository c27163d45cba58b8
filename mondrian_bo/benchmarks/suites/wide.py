"""The suite ``wide``: the cost of a suggestion where there are many parameters or choices."""

from __future__ import annotations

from argparse import Namespace
from functools import partial

import optuna
from tqdm import tqdm

from mondrian_bo.benchmarks.harness.threads import one_thread
from mondrian_bo.benchmarks.suites.speed.ask_and_tell import rows_of, studies_of, warm_up
from mondrian_bo.benchmarks.suites.speed.growing_studies import Objective, floats
from mondrian_bo.benchmarks.suites.speed.rows import Row
from mondrian_bo.benchmarks.suites.speed.suite import write_tables

__all__ = ["WIDE_SPACES", "run", "wide_space"]

_WIDE_TRIALS = 220
"""Trials of a study in a wide space. Some of the last 40 need trees, the others do not."""

_WIDE_BELOW = 15.0
"""Our target for a suggestion in a wide space, in milliseconds."""


def _branches(trial: optuna.Trial, n_branches: int) -> float:
    """Return the value of a branch with two parameters of its own."""
    branch = trial.suggest_categorical("branch", range(n_branches))
    x, y = (trial.suggest_float(f"{axis}{branch}", 0.0, 1.0) for axis in "xy")
    return (x - 0.3) ** 2 + (y - 0.7) ** 2 + 0.1 * (branch % 10)


def _own_parameter(trial: optuna.Trial, n_parameters: int) -> float:
    """Return a value that depends on a common parameter and on one that the trial alone has."""
    own = trial.suggest_float(f"x{trial.number % n_parameters}", 0.0, 1.0)
    return (trial.suggest_float("x", 0.0, 1.0) - 0.3) ** 2 + (own - 0.5) ** 2


def _many_choices(trial: optuna.Trial, n_choices: int) -> float:
    choice = trial.suggest_categorical("choice", range(n_choices))
    return 0.01 * (choice % 100) + (trial.suggest_float("x", 0.0, 1.0) - 0.2) ** 2


WIDE_SPACES: dict[str, Objective] = {
    "200 branches": partial(_branches, n_branches=200),
    "2,000 branches": partial(_branches, n_branches=2_000),
    "300 parameters, an own one in each trial": partial(_own_parameter, n_parameters=300),
    "a choice among 5,000": partial(_many_choices, n_choices=5_000),
    "500 floats": partial(floats, n_parameters=500),
}
"""Objectives with many parameters or choices. A trial has few of them, except those of the last."""


def wide_space(
    space: str, n_trials: int = _WIDE_TRIALS, n_timed: int = 40, below: float | None = None
) -> list[Row]:
    """Measure the last trials of a study in one of the `WIDE_SPACES`, all of which are suggested.

    The mean includes the trials' share of the rebuilds. There is one row, compared with TPE.
    """
    costs = studies_of(WIDE_SPACES[space]).take_turns(n_trials)
    name = f"ask + tell, {space}, at {n_trials} trials"
    return rows_of(name, [one[-n_timed:] for one in costs], below)[:1]


def run(arguments: Namespace) -> None:
    """Run the suite ``wide``: ``mondrian-bo bench run --suite wide --out DIR``.

    Writes ``wide.json``, ``wide.md`` and ``wide.txt``, and prints the last.

    Parameters
    ----------
    arguments : argparse.Namespace
        The parsed arguments, of which ``out`` and ``trials`` count: no study has more than
        ``trials`` trials, of which the last 40 are measured.
    """
    arguments.out.mkdir(parents=True, exist_ok=True)
    n_trials = arguments.trials or _WIDE_TRIALS
    rows: list[Row] = []
    # More trials than a leaf has: what needs trees is loaded, too.
    warm_up(n_trials)
    with one_thread():
        for space in tqdm(WIDE_SPACES, desc="wide"):
            rows += wide_space(space, n_trials, below=_WIDE_BELOW)
    write_tables(rows, arguments.out, "wide")
    print((arguments.out / "wide.txt").read_text(encoding="utf-8"), end="")
