"""Outcomes that are predicted and have no other role."""

from __future__ import annotations

from mondrian_bo.optimizer.models.known_noise import KnownNoise
from mondrian_bo.optimizer.models.outcome_model import OutcomeModel
from mondrian_bo.optimizer.models.outcome_models import OutcomeModels
from mondrian_bo.shared.array_types import FloatArray


class TrackedMetrics:
    """Outcomes that are predicted and have no other role, with known errors.

    Parameters
    ----------
    models : OutcomeModels
        Empty models.
    """

    def __init__(self, models: OutcomeModels) -> None:
        self._models = models
        own = self._outcome_models
        self._noise = KnownNoise(models.tell, models.outcome_moments, models=own)

    def __len__(self) -> int:
        """Return the number of outcomes."""
        return len(self._models)

    def _outcome_models(self) -> list[OutcomeModel]:
        return self._models.models

    def tell_rows(self, rows: FloatArray, values: FloatArray, errors: FloatArray) -> None:
        """Report trials; the arguments are those of :meth:`KnownNoise.tell`."""
        self._noise.tell(rows, values, errors)

    def forget(self) -> None:
        """Let all models learn their trials again when they are used next."""
        self._models.forget()

    def predict_rows(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Predict means and standard deviations without noise, both of shape (m, k).

        NaN for metrics without a known value.
        """
        mean, std = self._models.outcome_moments(rows)
        return mean, self._noise.total_std(std)
