"""What a search needs of its model, with one objective or several."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol

import numpy as np

from mondrian_bo.acquisitions.base import Acquisition, Score, ScoreGradients
from mondrian_bo.optimizer.models.outcome_model import OutcomeModel
from mondrian_bo.shared.array_types import FloatArray


class SearchModel(Protocol):
    """A model of all objectives. It learns new trials when it is next used.

    :class:`mondrian_bo.optimizer.models.outcome_model.OutcomeModel` has one objective, and
    :class:`mondrian_bo.optimizer.pareto.pareto_model.ParetoModel` several.
    """

    @property
    def models(self) -> tuple[OutcomeModel, ...]:
        """One model for each objective."""
        ...

    def learn(self) -> None:
        """Learn the trials told since the last call."""
        ...

    @property
    def n_smooth_components(self) -> int:
        """Number of components of predictions with gradients; 0 without gradients."""
        ...

    def score(
        self, acquisition: Acquisition, rng: np.random.Generator
    ) -> tuple[Score, ScoreGradients | None]:
        """Return the score of candidates and, where the model has them, its gradients."""
        ...

    def outcome_moments(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return means and standard deviations in the units of the values.

        Both have shape (m,), or (m, K) with several objectives.
        """
        ...

    def imputing(self, rows: FloatArray, rng: np.random.Generator) -> AbstractContextManager[None]:
        """Impute running trials with drawn values inside a ``with`` block."""
        ...

    def forget(self) -> None:
        """Let all models learn their trials again when they are used next."""
        ...
