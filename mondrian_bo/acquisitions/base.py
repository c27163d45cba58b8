"""What an acquisition function takes and gives."""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from mondrian_bo.array_types import FloatArray


class Prediction(NamedTuple):
    """A mixture of C equally weighted Gaussians at each of m candidates.

    Attributes
    ----------
    means : ndarray of float64, shape (C, m)
        Means of the components, one row per tree. Larger is better.
    stds : ndarray of float64, shape (C, m)
        Their standard deviations, >= 0: 0 is a point mass, infinity is a flat distribution.
    """

    means: FloatArray
    stds: FloatArray


@runtime_checkable
class Acquisition(Protocol):
    """A score of candidates: the next trial is the candidate with the largest."""

    def __call__(self, prediction: Prediction, incumbent: float) -> FloatArray:
        """Score candidates.

        Parameters
        ----------
        prediction : Prediction
            The mixtures at m candidates.
        incumbent : float
            The value to beat, in the units of the prediction; minus infinity if there is none.

        Returns
        -------
        ndarray of float64, shape (m,)
            The scores; may be infinite, never NaN.
        """
        ...


def mixture_moments(prediction: Prediction) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation of mixtures of Gaussians.

    Parameters
    ----------
    prediction : Prediction
        The mixtures at m candidates. Infinite means of one candidate must be of one sign.

    Returns
    -------
    mean : ndarray of float64, shape (m,)
        Means of the mixtures.
    std : ndarray of float64, shape (m,)
        Their standard deviations; infinite where the mean is.

    References
    ----------
    Lakshminarayanan2016, equations (4) and (5).
    """
    means, stds = prediction
    # Squares beyond the range of float64 are to become infinite in silence.
    with np.errstate(over="ignore"):
        mean = means.mean(axis=0)
        finite = np.isfinite(mean)
        # The variance within plus the variance between: (4) as printed, a difference of second
        # moments, cancels when the means are large.
        deviations = means - np.where(finite, mean, 0.0)
        variance = (stds * stds + deviations * deviations).mean(axis=0)
    return mean, np.where(finite, np.sqrt(variance), np.inf)


def improvements(prediction: Prediction, incumbent: float, margin: float) -> FloatArray:
    """Distances of the component means above the value to beat.

    Parameters
    ----------
    prediction : Prediction
        The mixtures at m candidates.
    incumbent : float
        Best value so far; may be infinite.
    margin : float
        What a candidate must add to it to count as better.

    Returns
    -------
    ndarray of float64, shape (C, m)
        ``means - (incumbent + margin)``; 0 where both are the same infinity.

    Raises
    ------
    ValueError
        If ``incumbent`` is NaN.
    """
    target = float(incumbent) + margin
    if math.isnan(target):
        raise ValueError("`incumbent` must be a number, got NaN.")
    if math.isinf(target):
        # Infinity minus itself would be NaN.
        return np.where(prediction.means == target, 0.0, -target)
    return prediction.means - target


def checked_margin(margin: float) -> float:
    """Return the margin as a float, or refuse it.

    Raises
    ------
    ValueError
        If it is negative, infinite or NaN.
    """
    if not 0 <= margin < math.inf:
        raise ValueError(f"`margin` must be finite and >= 0, got {margin!r}.")
    return float(margin)
