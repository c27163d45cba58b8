"""Studies of several samplers that grow by random trials, and by trials whose time is measured."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from typing import TypeAlias

import optuna
from optuna.samplers import BaseSampler, RandomSampler

from mondrian_bo.benchmarks.suites.speed.clock import Cost, in_turns, timed

__all__ = ["GrowingStudies", "Objective", "floats", "step"]

Objective: TypeAlias = Callable[[optuna.Trial], float | Sequence[float]]
"""An objective of no cost, or several."""


_N_FIRST = 2
"""Trials after random ones that are not measured."""


class GrowingStudies:
    """The studies of the compared samplers, with the same random trials.

    Parameters
    ----------
    samplers : sequence of BaseSampler
        The samplers.
    objective : callable
        The objective of all studies.
    storage : str, storage or None, default=None
        Where the studies are stored; None is in memory.
    n_objectives : int, default=1
        Number of values of the objective, all minimised.

    Attributes
    ----------
    studies : list of Study
        A study for each sampler.
    """

    def __init__(
        self,
        samplers: Sequence[BaseSampler],
        objective: Objective,
        storage: str | optuna.storages.BaseStorage | None = None,
        *,
        n_objectives: int = 1,
    ) -> None:
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._objective = objective
        new_study = partial(optuna.create_study, directions=["minimize"] * n_objectives)
        self._random = new_study(sampler=RandomSampler(seed=0))
        self.studies = [new_study(storage=storage, sampler=sampler) for sampler in samplers]
        self._n_trials = 0

    def fill(self, n_trials: int, n_turns: int) -> None:
        """Add random trials, so that the first study has `n_trials` trials after `n_turns` turns.

        Each sampler then suggests two more trials: samplers read the random trials when they are
        first asked, and arrays of trials get room for more at the next trial.
        """
        n_missing = max(n_trials - n_turns - self._n_trials, 0)
        self._random.optimize(self._objective, n_trials=n_missing)
        drawn = self._random.get_trials(deepcopy=False)
        for study in self.studies:
            study.add_trials(drawn[len(drawn) - n_missing :])
            for _ in range(_N_FIRST):
                step(study, self._objective)
        self._n_trials += n_missing + _N_FIRST
        gc.collect()

    def take_turns(self, n_turns: int, n_first: int = 1) -> list[list[Cost]]:
        """Let the samplers suggest trials in turns, and return each one's costs in seconds.

        The first sampler suggests `n_first` trials in each turn, the others one.
        """
        programs = [partial(timed, partial(step, one, self._objective)) for one in self.studies]
        costs = in_turns([programs[0]] * (n_first - 1) + programs, n_turns)
        self._n_trials += n_turns * n_first
        return [list(chain(*costs[:n_first])), *costs[n_first:]]


def step(study: optuna.Study, objective: Objective) -> None:
    """Ask for a trial, evaluate it and tell its value."""
    trial = study.ask()
    study.tell(trial, objective(trial))


def floats(trial: optuna.Trial, n_parameters: int) -> float:
    """Return the value of a quadratic function of float parameters."""
    values = [trial.suggest_float(f"x{i}", 0.0, 1.0) for i in range(n_parameters)]
    return sum((i + 1) * (x - 0.3) ** 2 for i, x in enumerate(values))
