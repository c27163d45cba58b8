"""Replays recorded trainings to SMAC's Hyperband, on the clock of the other replays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from mondrian_bo.benchmarks.harness.peer_run import PEERS, smac_parameters
from mondrian_bo.benchmarks.suites.curves.recorded import Recorded, outcomes_of
from mondrian_bo.benchmarks.suites.curves.replay import BUDGET, Replay
from mondrian_bo.benchmarks.suites.curves.tasks import TASKS
from mondrian_bo.search_space import Int, SearchSpace

__all__ = ["SMAC_METHODS", "SmacHyperband", "replay_smac"]


@dataclass(frozen=True)
class SmacHyperband:
    """SMAC's `MultiFidelityFacade`, a method of the suite beside those of Optuna.

    Attributes
    ----------
    description : str
        One line for tables.
    resumes : bool
        Whether a longer training continues the shorter one of the same settings, from a checkpoint.
        Otherwise it starts again, as in SMAC's own example.
    """

    description: str
    resumes: bool


SMAC_METHODS = {
    "smac_hyperband": SmacHyperband("SMAC, Hyperband", resumes=True),
    "smac_hyperband_anew": SmacHyperband("SMAC, Hyperband, no checkpoints", resumes=False),
}
"""The ways to run SMAC by the names that are saved with runs."""


def replay_smac(task: Recorded, method: SmacHyperband, seed: int, budget: float = BUDGET) -> Replay:
    """Run SMAC on recorded trainings until it has arrived, or the time is over.

    SMAC asks for trainings of some number of steps, and later for longer ones of the same settings.
    The value of a training is the task's outcome of its steps. A training that diverges ends with
    its first NaN and counts as a crash. Only complete trainings can arrive, as in :func:`replay`.

    Parameters
    ----------
    task : Recorded
        The trainings.
    method : SmacHyperband
        Whether trainings continue.
    seed : int
        Seed of SMAC.
    budget : float, default=50
        Simulated time, in mean times of a complete training. SMAC knows it, as a number of trials.

    Returns
    -------
    Replay
        What was found. Settings whose training is not complete count as pruned, and those of them
        that are better than the best complete one as lost: before Hyperband completes a training,
        it has started many.

    Raises
    ------
    ValueError
        If SMAC's environment is missing.
    """
    n_steps = task.curves.shape[1]
    names, kind = list(TASKS[task.name].levels), TASKS[task.name].outcome
    space = SearchSpace({name: Int(0, n - 1) for name, n in zip(names, task.shape, strict=True)})
    worker = PEERS["smac"].worker()
    worker.ask(
        "start",
        library="smac_hyperband",
        parameters=list(smac_parameters(space)),
        seed=seed,
        n_steps=n_steps,
        n_complete=budget,
    )
    step_times = (task.seconds / task.seconds.mean() / n_steps).tolist()
    clock, best, number = 0.0, np.inf, 0
    times: list[float] = []
    outcomes: list[float] = []
    steps_done: dict[int, int] = {}
    complete: set[int] = set()
    while clock < budget and best > task.target:
        suggestions: list[tuple[dict[str, Any], int]] = worker.ask("suggest", n=1)
        if not suggestions:
            break
        ((params, n_asked),) = suggestions
        setting = int(np.ravel_multi_index([params[name] for name in names], task.shape))
        curve = task.curves[setting, :n_asked]
        diverged = np.flatnonzero(np.isnan(curve))
        n_run = int(diverged[0]) + 1 if len(diverged) else n_asked
        n_before = steps_done.get(setting, 0) if method.resumes else 0
        clock += step_times[setting] * (n_run - n_before)
        steps_done[setting] = n_run
        value = np.nan if len(diverged) else float(outcomes_of(curve[None], kind)[0])
        worker.ask("observe", number=number, value=value)
        number += 1
        if n_run < n_steps or len(diverged):
            continue
        complete.add(setting)
        outcome = float(task.outcomes[setting])
        if outcome < best and clock <= budget:
            best = outcome
            times.append(round(clock, 4))
            outcomes.append(outcome)
    pruned = [setting for setting in steps_done if setting not in complete]
    n_lost = sum(bool(task.outcomes[setting] < best) for setting in pruned)
    return Replay(times, outcomes, len(complete), len(pruned), n_lost)
