"""Probability of improvement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mondrian_bo.acquisitions.base import ImprovementAcquisition, Prediction, Usage, improvements
from mondrian_bo.shared.array_types import FloatArray


@dataclass(frozen=True)
class ProbabilityOfImprovement(ImprovementAcquisition):
    """Probability that a candidate beats the incumbent: P[y > incumbent + margin].

    The score is exact for the mixture: the average over the components. A point mass on the level,
    which is the incumbent plus the margin, does not beat it.

    Parameters
    ----------
    margin : float, default=0.0
        What counts as better, in the units of the prediction; finite and >= 0. In a search the unit
        is one standard deviation of the transformed values. With 0 the score only exploits.

    Raises
    ------
    TypeError, ValueError
        If ``margin`` is not a number, or is negative, infinite or NaN.

    References
    ----------
    Kushner (1964), A new method of locating the maximum point of an arbitrary multipeak curve in
    the presence of noise.
    """

    usage: ClassVar[Usage] = Usage(multiplies_by_probability=True, measures_improvement=True)

    def __call__(self, prediction: Prediction, incumbent: float) -> FloatArray:
        """Score candidates; see `Acquisition`. The scores are in [0, 1]."""
        # Loaded here: a sampler is constructed without scipy.
        from scipy.special import ndtr

        gain = improvements(prediction, incumbent, self.margin)
        regular = (prediction.stds > 0.0) & np.isfinite(gain)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            probability = ndtr(gain / prediction.stds)
        scores: FloatArray = np.where(regular, probability, gain > 0.0).mean(axis=0)
        return scores
