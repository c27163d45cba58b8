"""The calibration of variances: recent errors scale the predicted standard deviations."""

from __future__ import annotations

import math

import numpy as np

from mondrian_bo.shared.array_types import FloatArray

_MEMORY = 20.0
"""Number of latest trials in the average, our choice: enough for a stable mean of squares."""

_LARGEST_SCORE = 3.0
"""Cap of standardised errors, our choice: a single outlier does not widen all predictions."""

_SMALLEST_STD = 1e-9
"""Smallest standard deviation, of transformed values, that errors are divided by."""


class VarianceCalibration:
    """The root mean square of the latest standardised errors of one-step-ahead predictions.

    Attributes
    ----------
    scale : float
        Factor of predicted standard deviations: above 1 if recent errors were larger than
        predicted, below 1 if they were smaller, and 1 before any prediction.
    """

    def __init__(self) -> None:
        self.scale = 1.0
        self._squared_scores, self._weight = 1.0, 1.0

    def update(self, values: FloatArray, means: FloatArray, stds: FloatArray) -> None:
        """Compare new values with their predictions, all arrays of shape (m,)."""
        scores = np.minimum(
            np.abs(values - means) / np.maximum(stds, _SMALLEST_STD), _LARGEST_SCORE
        )
        for score in scores[stds > 0.0]:
            forget = 1.0 - 1.0 / _MEMORY
            self._squared_scores = forget * self._squared_scores + float(score) ** 2
            self._weight = forget * self._weight + 1.0
        self.scale = math.sqrt(self._squared_scores / self._weight)
