"""The interface of acquisition functions, and the moments that they share."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np

from mondrian_bo.shared.argument_checks import is_number
from mondrian_bo.shared.array_types import FloatArray

_FEW = 4
"""Largest number of components whose moments compiled code computes, in a tenth of numpy's time. Of
many components numpy is as fast, and the sums of a single candidate have another order."""

Score: TypeAlias = Callable[[FloatArray], FloatArray]
"""Maps rows of shape (m, d) to scores of shape (m,)."""

ScoreGradients: TypeAlias = Callable[[FloatArray], tuple[FloatArray, FloatArray]]
"""Maps rows of shape (m, d) to scores of shape (m,) and their derivatives of shape (m, d)."""


class Prediction(NamedTuple):
    """A mixture of C equally weighted Gaussians at each of m candidates.

    Attributes
    ----------
    means : float64 array of shape (C, m)
        Means of the components, one row per tree. Larger is better.
    stds : float64 array of shape (C, m)
        Their standard deviations, >= 0: 0 is a point mass, infinity is a flat distribution.
    """

    means: FloatArray
    stds: FloatArray


class Usage(NamedTuple):
    """How a search uses an acquisition, which states it in a class attribute `usage`.

    The defaults hold for an acquisition that states nothing.

    Attributes
    ----------
    uses_calibrated_variances : bool, default=True
        Whether the standard deviations it is given are calibrated by how wrong recent predictions
        were.
    samples_function : bool, default=False
        Whether a function drawn from the posterior is the score of candidates.
    multiplies_by_probability : bool, default=False
        Under constraints, whether scores are multiplied by the probability that a candidate is
        feasible. Otherwise its logarithm is added.
    polishes_under_constraints : bool, default=False
        Whether the best candidate under constraints climbs on by a quasi-Newton method. Its cost
        pays where the score is so exact that the best candidate lies right at a bound.
    measures_improvement : bool, default=False
        Whether scores measure the gain over the incumbent. With several objectives the expected
        hypervolume improvement takes the place of such a score.
    """

    uses_calibrated_variances: bool = True
    samples_function: bool = False
    multiplies_by_probability: bool = False
    polishes_under_constraints: bool = False
    measures_improvement: bool = False


@runtime_checkable
class Acquisition(Protocol):
    """A score of candidates: the next trial is the candidate with the largest score.

    Any callable that takes ``(prediction, incumbent)`` and returns an array of scores is one. A
    class attribute `usage` of type `Usage` is optional.
    """

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
        float64 array of shape (m,)
            The scores; may be infinite, never NaN.
        """
        ...


def usage_of(acquisition: Acquisition) -> Usage:
    """Return how a search uses an acquisition, which may state nothing."""
    usage: Usage = getattr(acquisition, "usage", Usage())
    return usage


def checked(acquisition: Acquisition) -> Acquisition:
    """Return an acquisition that checks the scores of a user's acquisition.

    It raises a TypeError if the scores are no array of numbers, and a ValueError if there is not
    one score for each candidate, or one is NaN. Acquisitions of this package are returned
    unchanged.
    """
    if type(acquisition).__module__.startswith(__package__):
        return acquisition

    def score(prediction: Prediction, incumbent: float) -> FloatArray:
        scores: object = acquisition(prediction, incumbent)
        if not isinstance(scores, np.ndarray) or scores.dtype.kind not in "fiu":
            raise TypeError(f"{acquisition!r} must return an array of numbers, got {scores!r}.")
        m = prediction.means.shape[1]
        if scores.shape != (m,) or np.isnan(scores).any():
            raise ValueError(
                f"{acquisition!r} must return one score, not NaN, for each of {m} candidates; got "
                f"{scores!r}."
            )
        return scores.astype(np.float64, copy=False)

    return score


def mixture_moments(prediction: Prediction) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation of mixtures of Gaussians.

    Parameters
    ----------
    prediction : Prediction
        The mixtures at m candidates. Infinite means of one candidate must be of one sign.

    Returns
    -------
    mean : float64 array of shape (m,)
        Means of the mixtures.
    std : float64 array of shape (m,)
        Their standard deviations; infinite where the mean is.

    References
    ----------
    Lakshminarayanan2016, equations (4) and (5).
    """
    means, stds = prediction
    if len(means) == 1 and np.isfinite(means).all():
        return means[0], stds[0]
    if len(means) <= _FEW:
        mean, std = np.empty((2, means.shape[1]))
        _compiled()(means, stds, mean, std)
        return mean, std
    # Squares beyond the range of float64 become infinite, without a warning.
    with np.errstate(over="ignore"):
        mean = means.mean(axis=0)
        finite = np.isfinite(mean)
        # The variance within plus the variance between: (4) as printed, a difference of second
        # moments, cancels when the means are large.
        deviations = means - np.where(finite, mean, 0.0)
        variance = (stds * stds + deviations * deviations).mean(axis=0)
    return mean, np.where(finite, np.sqrt(variance), np.inf)


@cache
def _compiled() -> Any:
    # Loaded here: a sampler is constructed without numba.
    from numba import njit

    return njit(cache=True, nogil=True)(_write_moments)


def _write_moments(means, stds, mean, std):  # type: ignore[no-untyped-def]
    """Write the moments of mixtures, as :func:`mixture_moments` computes them, of shape (m,)."""
    n_components = len(means)
    for i in range(len(mean)):
        total = 0.0
        for c in range(n_components):
            total += means[c, i]
        mean[i] = total / n_components
        centre = mean[i] if math.isfinite(mean[i]) else 0.0
        variance = 0.0
        for c in range(n_components):
            deviation = means[c, i] - centre
            variance += stds[c, i] * stds[c, i] + deviation * deviation
        std[i] = math.sqrt(variance / n_components) if math.isfinite(mean[i]) else math.inf


def improvements(prediction: Prediction, incumbent: float, margin: float) -> FloatArray:
    """Distances of the component means above the level, which is the incumbent plus the margin.

    Parameters
    ----------
    prediction : Prediction
        The mixtures at m candidates.
    incumbent : float
        The value to beat; may be infinite.
    margin : float
        What a candidate must add to the incumbent to count as better.

    Returns
    -------
    float64 array of shape (C, m)
        ``means - (incumbent + margin)``; 0 where both are the same infinity.

    Raises
    ------
    ValueError
        If ``incumbent`` is NaN.
    """
    level = float(incumbent) + margin
    if math.isnan(level):
        raise ValueError("`incumbent` must be a number, got NaN.")
    if math.isinf(level):
        # Infinity minus itself would be NaN.
        return np.where(prediction.means == level, 0.0, -level)
    return prediction.means - level


def non_negative(name: str, value: object) -> float:
    """Return the setting of an acquisition that must be finite and at least 0.

    Raises
    ------
    TypeError, ValueError
        If it is not a number, or is negative, infinite or NaN.
    """
    if not is_number(value):
        raise TypeError(f"`{name}` must be a number, got {value!r}.")
    if not 0.0 <= value < math.inf:
        raise ValueError(f"`{name}` must be finite and >= 0, got {value!r}.")
    return float(value)


@dataclass(frozen=True)
class ImprovementAcquisition:
    """Base of the acquisitions that compare a candidate with the incumbent plus a margin.

    Parameters
    ----------
    margin : float, default=0.0
        What a candidate must add to the incumbent, in the units of the prediction.

    Raises
    ------
    TypeError, ValueError
        If ``margin`` is not a number, or is negative, infinite or NaN.
    """

    usage: ClassVar[Usage] = Usage(measures_improvement=True)

    margin: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "margin", non_negative("margin", self.margin))
