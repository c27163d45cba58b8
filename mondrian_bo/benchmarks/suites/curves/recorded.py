"""Recorded trainings: the files of the package, and what counts as a good outcome of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from itertools import product

import numpy as np

from mondrian_bo.benchmarks.suites.curves.tasks import TASKS, Outcome
from mondrian_bo.shared.array_types import FloatArray

__all__ = ["TOLERANCE", "Recorded", "load", "outcomes_of"]

TOLERANCE = 0.01
"""A run has arrived when its best outcome is at most this share above the task's best."""


@dataclass(frozen=True)
class Recorded:
    """A recorded task.

    Attributes
    ----------
    name : str
        Key of `TASKS`.
    shape : tuple of int
        Number of levels of each setting.
    curves : float64 array of shape (n, steps)
        Reports of each setting, in the order of the grid's product; NaN where training diverged.
    seconds : float64 array of shape (n,)
        Time of a complete training.
    outcomes : float64 array of shape (n,)
        What a complete training returns, minimised; NaN where it diverged.
    """

    name: str
    shape: tuple[int, ...]
    curves: FloatArray
    seconds: FloatArray
    outcomes: FloatArray

    def setting(self, params: Mapping[str, int]) -> int:
        """Return the number of a setting by its levels."""
        levels = [params[name] for name in TASKS[self.name].levels]
        return int(np.ravel_multi_index(levels, self.shape))

    @property
    def target(self) -> float:
        """The largest outcome with which a run has arrived."""
        return (1.0 + TOLERANCE) * float(np.nanmin(self.outcomes))

    @property
    def rank_target(self) -> float:
        """The outcome of the best hundredth of the settings, or `target` if that is larger."""
        ranked = np.sort(self.outcomes)
        return max(self.target, float(ranked[int(TOLERANCE * len(ranked)) - 1]))


@cache
def load(name: str) -> Recorded:
    """Read a recording of the package."""
    task = TASKS[name]
    file = resources.files("mondrian_bo.benchmarks.suites.curves") / f"{name}.npz"
    with file.open("rb") as stream, np.load(stream) as arrays:
        curves = arrays["curves"].astype(np.float64)
        seconds = arrays["seconds"].astype(np.float64)
    shape = tuple(len(levels) for levels in task.levels.values())
    if len(curves) != len(list(product(*task.levels.values()))):
        raise ValueError(f"the recording of {name} has another grid: record it again")
    return Recorded(name, shape, curves, seconds, outcomes_of(curves, task.outcome))


def outcomes_of(curves: FloatArray, outcome: Outcome) -> FloatArray:
    """Return what trainings return.

    Parameters
    ----------
    curves : float64 array of shape (n, steps)
        Their reports.
    outcome : {"last", "best", "mean"}
        Which summary of a curve.

    Returns
    -------
    float64 array of shape (n,)
        The summaries.
    """
    if outcome == "last":
        return curves[:, -1]
    return np.asarray(curves.mean(axis=1) if outcome == "mean" else curves.min(axis=1))
