"""The order in which trials are asked for and told: one by one, in batches, or by workers."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

__all__ = ["Schedule"]

_SLOWEST = 100.0
"""Ratio of the longest to the shortest run time of simulated workers: our choice."""


@dataclass(frozen=True)
class Schedule:
    """When trials are asked for and told.

    Attributes
    ----------
    batch : int
        Trials that are asked for before the first of them is told; then all of them are told.
    workers : int
        Trials that run at any time, with random run times; another one is asked for as soon as one
        is told. With 1, `batch` alone decides the order.
    """

    batch: int = 1
    workers: int = 1

    def __post_init__(self) -> None:
        for name in ("batch", "workers"):
            number = getattr(self, name)
            if not isinstance(number, int) or number < 1:
                raise ValueError(f"`{name}` must be an integer >= 1, got {number!r}")
        if self.batch > 1 and self.workers > 1:
            raise ValueError("a sampler runs in batches or with workers, not both")

    def steps(self, n_trials: int, seed: int) -> Iterator[tuple[bool, int]]:
        """Yield whether a trial is asked for (or told), and its number from 0.

        Parameters
        ----------
        n_trials : int
            How many trials.
        seed : int
            Seed of the run times, which are log-uniform and equal for all samplers.

        Yields
        ------
        is_asked : bool
            Whether the trial is asked for, and not told.
        number : int
            The trial, from 0.
        """
        if self.workers == 1:
            for start in range(0, n_trials, self.batch):
                numbers = range(start, min(start + self.batch, n_trials))
                yield from ((True, number) for number in numbers)
                yield from ((False, number) for number in numbers)
            return
        seconds = _SLOWEST ** np.random.default_rng(seed).random(n_trials)
        running: list[tuple[float, int]] = []
        now = 0.0
        for number in range(n_trials):
            if len(running) == self.workers:
                now, ended = heapq.heappop(running)
                yield False, ended
            yield True, number
            heapq.heappush(running, (now + float(seconds[number]), number))
        while running:
            yield False, heapq.heappop(running)[1]
