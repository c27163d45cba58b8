"""Measures CPU and wall time, of several programs in turns."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import NamedTuple

__all__ = ["Cost", "best", "in_turns", "mean", "timed", "typical"]


class Cost(NamedTuple):
    """CPU and wall time of one measurement, in seconds.

    Attributes
    ----------
    cpu : float
        CPU time of the process, all threads.
    wall : float
        Wall time.
    """

    cpu: float
    wall: float

    def in_milliseconds(self) -> Cost:
        """Return the same in milliseconds."""
        return Cost(1e3 * self.cpu, 1e3 * self.wall)


def timed(function: Callable[[], object]) -> Cost:
    """Call a function and return its CPU and wall time."""
    wall, cpu = time.perf_counter(), time.process_time()
    function()
    return Cost(time.process_time() - cpu, time.perf_counter() - wall)


def in_turns(programs: Sequence[Callable[[], Cost]], repeats: int) -> list[list[Cost]]:
    """Run programs in turns, so that disturbances of the machine affect all alike.

    Parameters
    ----------
    programs : sequence of callable
        Each returns its cost, without its preparations.
    repeats : int
        Number of rounds; every other round runs in reverse order.

    Returns
    -------
    list of list of Cost
        The costs of each program, one per round.
    """
    costs: list[list[Cost]] = [[] for _ in programs]
    for turn in range(repeats):
        order = range(len(programs))
        for i in order if turn % 2 == 0 else reversed(order):
            costs[i].append(programs[i]())
    return costs


def best(costs: Sequence[Cost]) -> Cost:
    """Return the smallest CPU time and the smallest wall time, as disturbances only add to them."""
    return Cost(min(c.cpu for c in costs), min(c.wall for c in costs))


def typical(costs: Sequence[Cost]) -> Cost:
    """Return the median CPU time and the median wall time."""
    return Cost(median(c.cpu for c in costs), median(c.wall for c in costs))


def mean(costs: Sequence[Cost]) -> Cost:
    """Return the mean CPU time and the mean wall time."""
    return Cost(sum(c.cpu for c in costs) / len(costs), sum(c.wall for c in costs) / len(costs))
