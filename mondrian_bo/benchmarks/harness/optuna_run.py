"""Optuna's ask-and-tell loop: problems run as a study."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import optuna
from optuna.samplers import BaseSampler

from mondrian_bo.benchmarks.problems import suggest
from mondrian_bo.search_space import SearchSpace

__all__ = ["OptunaRun"]


class OptunaRun:
    """One study, which is asked for trials of a problem and told their values.

    Parameters
    ----------
    sampler : BaseSampler
        The sampler that suggests.
    space : SearchSpace
        The problem's parameters.
    n_objectives : int, default=1
        Number of objectives, all minimised.
    """

    def __init__(self, sampler: BaseSampler, space: SearchSpace, n_objectives: int = 1) -> None:
        self._study = optuna.create_study(sampler=sampler, directions=["minimize"] * n_objectives)
        self._space = space
        self._running: dict[int, optuna.Trial] = {}

    def ask(self) -> tuple[dict[str, Any], float]:
        """Return the next parameters and the seconds they took; the first trial has number 0."""
        started = time.perf_counter()
        trial = self._study.ask()
        self._running[trial.number] = trial
        params = suggest(trial, self._space)
        return params, time.perf_counter() - started

    def tell(
        self, number: int, values: float | Sequence[float], constraints: Sequence[float] = ()
    ) -> float:
        """Report the outcomes of a running trial; return the seconds it took."""
        started = time.perf_counter()
        trial = self._running.pop(number)
        for i, constraint in enumerate(constraints):
            trial.set_constraint(f"c{i + 1}", constraint)
        self._study.tell(trial, values)
        return time.perf_counter() - started
