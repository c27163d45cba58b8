"""The suite ``outcomes``: the cost of a suggestion with constraints or several objectives."""

from __future__ import annotations

import math
from argparse import Namespace
from functools import partial
from typing import NamedTuple

import numpy as np
import optuna
from optuna.samplers import BaseSampler, TPESampler
from tqdm import tqdm

from mondrian_bo.benchmarks.harness.threads import one_thread
from mondrian_bo.benchmarks.problems.fronts import dtlz2
from mondrian_bo.benchmarks.suites.speed.clock import mean
from mondrian_bo.benchmarks.suites.speed.growing_studies import GrowingStudies, Objective, floats
from mondrian_bo.benchmarks.suites.speed.rows import Limit, Row, time_row
from mondrian_bo.benchmarks.suites.speed.suite import write_tables
from mondrian_bo.integrations.optuna.sampler import MondrianSampler

__all__ = ["OUTCOMES", "SeveralOutcomes", "measure", "run"]

_FEW, _MANY = 200, 2_000
"""Numbers of trials at which suggestions are measured, the first one beside TPE."""

_TIMED = 0.1
"""Measured part of the trials, the last ones: as models are made anew at each growth by a tenth,
about one such time is among them."""


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


def measure(name: str, n_trials: int, beside: bool = True) -> Row:
    """Measure suggestions in a study, all of whose trials the sampler suggests itself.

    Parameters
    ----------
    name : str
        A key of `OUTCOMES`.
    n_trials : int
        Number of trials at the end.
    beside : bool, default=True
        Whether TPE is measured too, in turns. With many trials and three objectives it takes far
        longer than our sampler.

    Returns
    -------
    Row
        The means over the last tenth of the trials.
    """
    samplers: list[BaseSampler] = [MondrianSampler(seed=0)]
    if beside:
        samplers.append(TPESampler(seed=0))
    objective, n_objectives, below = OUTCOMES[name]
    studies = GrowingStudies(samplers, objective, n_objectives=n_objectives)
    n_timed = math.ceil(_TIMED * n_trials)
    ours, *theirs = (
        mean([cost.in_milliseconds() for cost in one[-n_timed:]])
        for one in studies.take_turns(n_trials)
    )
    return time_row(
        f"ask + tell, 6 floats, {name}, at {n_trials:,} trials",
        ours,
        "TPE" if beside else "",
        theirs[0] if beside else None,
        unit="ms",
        limit=Limit("ours", below if n_trials <= _FEW else 2.0 * below),
    )


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
            measure(name, min(_FEW + 40, many))
        for name in tqdm(OUTCOMES, desc="outcomes"):
            rows.append(measure(name, few))
            rows.append(measure(name, many, beside=False))
    write_tables(rows, arguments.out, "outcomes")
    print((arguments.out / "outcomes.txt").read_text(encoding="utf-8"), end="")
