"""Acquisition functions: scores of candidates from a surrogate's prediction. Larger is better."""

from __future__ import annotations

from typing import Literal, TypeAlias

from mondrian_bo.acquisitions.base import Acquisition, Prediction, Usage, mixture_moments
from mondrian_bo.acquisitions.expected_improvement import ExpectedImprovement
from mondrian_bo.acquisitions.log_expected_improvement import LogExpectedImprovement
from mondrian_bo.acquisitions.probability_of_improvement import ProbabilityOfImprovement
from mondrian_bo.acquisitions.thompson import ThompsonSampling
from mondrian_bo.acquisitions.upper_confidence_bound import UpperConfidenceBound

__all__ = [
    "Acquisition",
    "AcquisitionName",
    "ExpectedImprovement",
    "LogExpectedImprovement",
    "Prediction",
    "ProbabilityOfImprovement",
    "ThompsonSampling",
    "UpperConfidenceBound",
    "Usage",
    "get_acquisition",
    "mixture_moments",
]

AcquisitionName: TypeAlias = Literal["ucb", "ei", "log_ei", "pi", "thompson"]
"""Names of the acquisitions with their defaults."""

_BY_NAME: dict[AcquisitionName, type[Acquisition]] = {
    "ucb": UpperConfidenceBound,
    "ei": ExpectedImprovement,
    "log_ei": LogExpectedImprovement,
    "pi": ProbabilityOfImprovement,
    "thompson": ThompsonSampling,
}
"""Classes of the acquisitions by name."""


def get_acquisition(acquisition: AcquisitionName | Acquisition) -> Acquisition:
    """Return an acquisition function by name, or check one.

    Parameters
    ----------
    acquisition : {"ucb", "ei", "log_ei", "pi", "thompson"} or Acquisition
        A name stands for the function with its defaults; an instance is returned as it is.

    Returns
    -------
    Acquisition
        The function.

    Raises
    ------
    ValueError
        If it is another name, or no instance.
    """
    if isinstance(acquisition, str):
        if acquisition in _BY_NAME:
            return _BY_NAME[acquisition]()
    elif isinstance(acquisition, Acquisition) and not isinstance(acquisition, type):
        return acquisition
    raise ValueError(
        f"`acquisition` must be one of {list(_BY_NAME)} or an Acquisition, or, of a search, "
        f"'auto' or a Portfolio; got {acquisition!r}."
    )
