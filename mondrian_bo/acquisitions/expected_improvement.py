"""Expected improvement."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mondrian_bo.acquisitions.base import ImprovementAcquisition, Prediction, Usage, improvements
from mondrian_bo.shared.array_types import FloatArray


@dataclass(frozen=True)
class ExpectedImprovement(ImprovementAcquisition):
    """Expectation of the amount by which a candidate beats the incumbent: E[max(y - level, 0)].

    The level is the incumbent plus the margin. The score is exact for the mixture: the average over
    the components of the Gaussian closed form.

    Parameters
    ----------
    margin : float, default=0.0
        Improvement that does not count yet, in the units of the prediction; finite and >= 0. In a
        search the unit is one standard deviation of the transformed values. A larger margin
        explores more.

    Raises
    ------
    TypeError, ValueError
        If ``margin`` is not a number, or is negative, infinite or NaN.

    References
    ----------
    Jones, Schonlau and Welch (1998), Efficient global optimization of expensive black-box
    functions, equation (15).
    """

    usage: ClassVar[Usage] = Usage(multiplies_by_probability=True, measures_improvement=True)

    def __call__(self, prediction: Prediction, incumbent: float) -> FloatArray:
        """Score candidates; see `Acquisition`. The scores are >= 0."""
        gain = improvements(prediction, incumbent, self.margin)
        scores: FloatArray = gaussian_expected_improvement(gain, prediction.stds).mean(0)
        return scores


def gaussian_expected_improvement(improvement: FloatArray, std: FloatArray) -> FloatArray:
    """Return the expectation of max(N(improvement, std**2), 0).

    Parameters
    ----------
    improvement : float64 array
        Means; may be infinite.
    std : float64 array of the same shape
        Standard deviations, from 0 to infinity.

    Returns
    -------
    float64 array of the same shape
        The expectations, >= 0.
    """
    # Loaded here: a sampler is constructed without scipy.
    from scipy.special import ndtr

    # Not std * (density + z * ndtr(z)): z overflows for tiny std, its product with std is the
    # improvement.
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        z = improvement / std
        density = np.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
        expectation = np.maximum(std * density + improvement * ndtr(z), 0.0)
    regular = (std > 0.0) & np.isfinite(std) & np.isfinite(improvement)
    if regular.all():
        return expectation
    flat = np.isinf(std) & np.isfinite(improvement)
    limit = np.where(flat, np.inf, np.maximum(improvement, 0.0))
    return np.where(regular, expectation, limit)
