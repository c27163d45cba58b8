"""Optuna's ask-and-tell loop: problems run as a study."""

from __future__ import annotations

import time
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
    """

    def __init__(self, sampler: BaseSampler, space: SearchSpace) -> None:
        self._study = optuna.create_study(sampler=sampler)
        self._space = space
        self._trial: optuna.Trial | None = None

    def ask(self) -> tuple[dict[str, Any], float]:
        """Return the next parameters and the seconds they took."""
        started = time.perf_counter()
        self._trial = self._study.ask()
        params = suggest(self._trial, self._space)
        return params, time.perf_counter() - started

    def tell(self, value: float) -> float:
        """Report the value of the latest trial; return the seconds it took."""
        assert self._trial is not None
        started = time.perf_counter()
        self._study.tell(self._trial, value)
        return time.perf_counter() - started
