"""The suite ``outcomes``: the cost of a suggestion with constraints or several objectives."""

from __future__ import annotations

from argparse import Namespace
from functools import partial
from typing import NamedTuple

import numpy as np
import optuna
from optuna.samplers import TPESampler
from tqdm import tqdm

from mondrian_bo.benchmarks.problems.fronts import dtlz2
from mondrian_bo.benchmarks.speed.clock import mean
from mondrian_bo.benchmarks.speed.growing_studies import GrowingStudies, Objective, floats
from mondrian_bo.benchmarks.speed.rows import Limit, Row, time_row
from mondrian_bo.benchmarks.speed.suite import write_tables
from mondrian_bo.benchmarks.speed.threads import one_thread
from mondrian_bo.integrations.optuna.sampler import MondrianSampler

__all__ = ["OUTCOMES", "SeveralOutcomes", "own_trials", "random_trials", "run"]

_FEW, _MANY = 200, 2_000
"""Trials of a study that the samplers suggest from the start, and of one of which most are random:
two thousand suggestions would take a minute."""

_TIMED = 40
"""Measured trials at the end of a study."""


class SeveralOutcomes(NamedTuple):
    """An objective of no cost with several outcomes.

    Attributes
    ----------
    objective : callable
        Suggests parameters, and returns a value or several.
    n_objectives : int
        Number of values.
    below : float
        Our target for a suggestion at 200 trials, in milliseconds; at 2,000 it is twice that.
    """

    objective: Objective
    n_objectives: int
    below: float


def _constrained(trial: optuna.Trial) -> float:
    value = floats(trial, 6)
    x = np.array([trial.params[f"x{i}"] for i in range(6)])
    trial.set_constraint("sum", float(2.4 - x.sum()))
    trial.set_constraint("wave", float(np.sin(6.0 * x[0]) + x[1] - 1.2))
    trial.set_constraint("ball", float(((x - 0.6) ** 2).sum() - 0.6))
    return value


def _front(trial: optuna.Trial, n_objectives: int) -> tuple[float, ...]:
    x = np.array([trial.suggest_float(f"x{i}", 0.0, 1.0) for i in range(6)])
    return dtlz2(x, n_objectives)


OUTCOMES: dict[str, SeveralOutcomes] = {
    "three constraints": SeveralOutcomes(_constrained, 1, 15.0),
    "two objectives": SeveralOutcomes(partial(_front, n_objectives=2), 2, 15.0),
    "three objectives": SeveralOutcomes(partial(_front, n_objectives=3), 3, 25.0),
}
"""Objectives of six floats, by name. Those with several values are DTLZ2."""


def own_trials(name: str, n_trials: int = _FEW, n_timed: int = _TIMED) -> Row:
    """Measure the last trials of a study, all of which the sampler suggests itself.

    Parameters
    ----------
    name : str
        A key of `OUTCOMES`.
    n_trials, n_timed : int
        Number of trials at the end, and how many of them are measured.

    Returns
    -------
    Row
        The means, compared with TPE.
    """
    costs = _studies(name).take_turns(n_trials)
    ours, theirs = ([cost.in_milliseconds() for cost in one[-n_timed:]] for one in costs)
    limit = Limit("ours", OUTCOMES[name].below)
    what = f"ask + tell, 6 floats, {name}, at {n_trials:,} trials"
    return time_row(what, mean(ours), "TPE", mean(theirs), unit="ms", limit=limit)


def random_trials(name: str, n_trials: int = _MANY, n_timed: int = _TIMED) -> Row:
    """Measure the last trials of a study whose earlier ones are random, as in `own_trials`."""
    studies = _studies(name)
    studies.fill(n_trials, n_timed)
    ours, theirs = ([cost.in_milliseconds() for cost in one] for one in studies.take_turns(n_timed))
    limit = Limit("ours", 2.0 * OUTCOMES[name].below)
    what = f"ask + tell, 6 floats, {name}, at {n_trials:,} trials, most of them random"
    return time_row(what, mean(ours), "TPE", mean(theirs), unit="ms", limit=limit)


def _studies(name: str) -> GrowingStudies:
    samplers = MondrianSampler(seed=0), TPESampler(seed=0)
    objective, n_objectives, _ = OUTCOMES[name]
    return GrowingStudies(samplers, objective, n_objectives=n_objectives)


def run(arguments: Namespace) -> None:
    """Run the suite: ``mondrian-bo bench run --suite outcomes --out DIR``.

    Of the parsed arguments ``out`` and ``trials``, the largest number of trials of a study, count.
    Writes ``outcomes.json``, ``outcomes.md`` and ``outcomes.txt``, and prints the last.
    """
    arguments.out.mkdir(parents=True, exist_ok=True)
    few, many = (min(n, arguments.trials or n) for n in (_FEW, _MANY))
    rows: list[Row] = []
    with one_thread():
        for name in OUTCOMES:
            # Compiled code is loaded, that of trees too.
            random_trials(name, min(many, _FEW + 2 * _TIMED), min(_TIMED, many))
        for name in tqdm(OUTCOMES, desc="outcomes"):
            rows.append(own_trials(name, few, min(_TIMED, few)))
            rows.append(random_trials(name, many, min(_TIMED, many)))
    write_tables(rows, arguments.out, "outcomes")
    print((arguments.out / "outcomes.txt").read_text(encoding="utf-8"), end="")
