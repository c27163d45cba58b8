"""The score of a run on a problem with constraints or several objectives, trial by trial."""

from __future__ import annotations

import math

import numpy as np

from mondrian_bo.benchmarks.problems import OutcomeProblem, Outcomes
from mondrian_bo.shared.array_types import FloatArray

__all__ = ["OutcomeScore"]


class OutcomeScore:
    """The score of the trials so far, as `OutcomeProblem` defines it.

    Parameters
    ----------
    problem : OutcomeProblem
        The problem that the trials evaluate.

    Raises
    ------
    ImportError
        If there are several objectives and moocore, which computes hypervolumes, is not installed.
    """

    def __init__(self, problem: OutcomeProblem) -> None:
        self._reference = np.array(problem.reference)
        self._front = np.empty((0, len(self._reference)))
        self.score = 0.0 if problem.reference else problem.worst

    def update(self, outcomes: Outcomes) -> float:
        """Add a trial and return the score: O(1), or the cost of a hypervolume."""
        if outcomes.is_feasible and not any(map(math.isnan, outcomes.values)):
            if len(self._reference):
                self._extend_front(np.array(outcomes.values))
            else:
                self.score = min(self.score, outcomes.values[0])
        return self.score

    def _extend_front(self, values: FloatArray) -> None:
        from moocore import hypervolume

        is_dominated = np.all(self._front <= values, axis=1).any()
        if is_dominated or not np.all(values < self._reference):
            return
        is_kept = ~np.all(values <= self._front, axis=1)
        self._front = np.vstack([self._front[is_kept], values])
        # Rounding could lower the volume by its last digit.
        self.score = min(self.score, -float(hypervolume(self._front, ref=self._reference)))
