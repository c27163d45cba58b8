"""Thompson sampling."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mondrian_bo.acquisitions.base import Prediction
from mondrian_bo.array_types import FloatArray


@dataclass(frozen=True)
class ThompsonSampling:
    """Score candidates with one function drawn from the surrogate's posterior.

    The optimizer hands it the drawn function as a prediction without uncertainty; given the
    surrogate's own prediction it would be the mean.
    """

    def __call__(self, prediction: Prediction, incumbent: float) -> FloatArray:
        """Return the values of the drawn function, shape (m,); the incumbent does not matter."""
        return np.asarray(prediction.means.mean(axis=0))
