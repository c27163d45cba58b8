"""Thompson sampling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mondrian_bo.acquisitions.base import Prediction, Usage
from mondrian_bo.shared.array_types import FloatArray


@dataclass(frozen=True)
class ThompsonSampling:
    """Score candidates with one function drawn from the surrogate's posterior.

    The optimizer draws that function and takes its values as scores. Called with a prediction, the
    acquisition returns its mean.
    """

    usage: ClassVar[Usage] = Usage(samples_function=True)

    def __call__(self, prediction: Prediction, incumbent: float) -> FloatArray:
        """Return the means of the mixtures, shape (m,); the incumbent is not used."""
        return np.asarray(prediction.means.mean(axis=0))
