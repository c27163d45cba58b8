"""Replays recorded trainings to samplers and pruners, on a clock of simulated training time."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
from optuna.pruners import MedianPruner, WilcoxonPruner
from optuna.trial import TrialState

from mondrian_bo.benchmarks.harness.methods import Method, hyperband, mondrian, mondrian_pruner, tpe
from mondrian_bo.benchmarks.suites.curves.recorded import Recorded
from mondrian_bo.benchmarks.suites.curves.tasks import TASKS

__all__ = ["BUDGET", "METHODS", "Replay", "ReplayedTrial", "replay", "replayed_trials"]

BUDGET = 50.0
"""Simulated time of a run, in mean times of a complete training: our choice."""

METHODS: dict[str, Method] = {
    "tpe": Method(tpe, None, "TPE, no pruning"),
    "tpe_hyperband": Method(tpe, hyperband, "TPE, Hyperband"),
    "tpe_median": Method(tpe, lambda _: MedianPruner(), "TPE, median pruning"),
    "tpe_wilcoxon": Method(tpe, lambda _: WilcoxonPruner(), "TPE, Wilcoxon pruning"),
    "tpe_pruner": Method(tpe, mondrian_pruner, "TPE, `MondrianPruner`"),
    "mondrian": Method(mondrian, None, "`MondrianSampler`, no pruning"),
    "mondrian_hyperband": Method(mondrian, hyperband, "`MondrianSampler`, Hyperband"),
    "mondrian_impatient": Method(
        mondrian,
        partial(mondrian_pruner, patience=None),
        "`MondrianSampler`, `MondrianPruner(patience=None)`",
    ),
    "mondrian_pruner": Method(mondrian, mondrian_pruner, "`MondrianSampler`, `MondrianPruner`"),
}
"""The compared methods by name; all have their default settings but where the name says others."""


class ReplayedTrial(NamedTuple):
    """A trial of a run.

    Attributes
    ----------
    setting : int
        Number of its setting.
    n_steps : int
        Number of its reports.
    is_pruned : bool
        Whether it is not complete.
    end : float
        Time of the run at its end, in mean times of a complete training.
    """

    setting: int
    n_steps: int
    is_pruned: bool
    end: float


class Replay(NamedTuple):
    """What a run found, and when.

    Attributes
    ----------
    times : list of float
        When a complete trial improved on all before, in mean times of a complete training.
    outcomes : list of float
        The outcomes of these trials.
    n_complete, n_pruned : int
        Numbers of trials.
    n_lost : int
        Number of pruned trials that would have improved on all complete ones before.
    """

    times: list[float]
    outcomes: list[float]
    n_complete: int
    n_pruned: int
    n_lost: int


def replay(task: Recorded, method: Method, seed: int, budget: float = BUDGET) -> Replay:
    """Run a study on recorded trainings, see :func:`replayed_trials`.

    Only a complete training gives a model, so only complete trials count.

    Parameters
    ----------
    task, method, seed, budget
        As those of that function.

    Returns
    -------
    Replay
        What was found.
    """
    best = np.inf
    times: list[float] = []
    outcomes: list[float] = []
    n_complete = n_pruned = n_lost = 0
    for trial in replayed_trials(task, method, seed, budget):
        outcome = float(task.outcomes[trial.setting])
        if trial.is_pruned:
            n_pruned += 1
            n_lost += outcome < best
            continue
        n_complete += 1
        if outcome < best and trial.end <= budget:
            best = outcome
            times.append(round(trial.end, 4))
            outcomes.append(outcome)
    return Replay(times, outcomes, n_complete, n_pruned, n_lost)


def replayed_trials(
    task: Recorded, method: Method, seed: int, budget: float = BUDGET
) -> Iterator[ReplayedTrial]:
    """Run a study on recorded trainings until it has arrived, or the time is over.

    It also ends after as many trials as there are settings, with which an exhaustive search would
    be done. A training ends as pruned where the pruner says so, and where its report is NaN. Each
    step takes the same part of the recorded time. Time for suggestions does not count.

    Parameters
    ----------
    task : Recorded
        The trainings.
    method : Method
        Sampler and pruner.
    seed : int
        Seed of the sampler.
    budget : float, default=50
        Simulated time, in mean times of a complete training.

    Yields
    ------
    ReplayedTrial
        The trials, one by one.
    """
    n_steps = task.curves.shape[1]
    study = method.new_study(task.name, seed, n_steps)
    names = list(TASKS[task.name].levels)
    step_times = (task.seconds / task.seconds.mean() / n_steps).tolist()
    clock, has_arrived = 0.0, False
    for _ in range(len(task.outcomes)):
        if clock >= budget or has_arrived:
            break
        trial = study.ask()
        for name, n in zip(names, task.shape, strict=True):
            trial.suggest_int(name, 0, n - 1)
        setting = task.setting(trial.params)
        is_pruned = False
        for step in range(n_steps):
            report = float(task.curves[setting, step])
            clock += step_times[setting]
            trial.report(report, step)
            if np.isnan(report) or trial.should_prune():
                is_pruned = True
                break
        outcome = float(task.outcomes[setting])
        if is_pruned:
            study.tell(trial, state=TrialState.PRUNED)
        else:
            study.tell(trial, outcome)
            has_arrived = outcome <= task.target and clock <= budget
        yield ReplayedTrial(setting, step + 1, is_pruned, clock)
