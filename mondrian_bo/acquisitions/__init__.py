"""Acquisition functions: scores of candidates from a surrogate's prediction. Larger is better."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from mondrian_bo.acquisitions.base import Acquisition, Prediction, Usage, mixture_moments
from mondrian_bo.acquisitions.expected_improvement import ExpectedImprovement
from mondrian_bo.acquisitions.log_expected_improvement import LogExpectedImprovement
from mondrian_bo.acquisitions.probability_of_improvement import ProbabilityOfImprovement
from mondrian_bo.acquisitions.thompson import ThompsonSampling
from mondrian_bo.acquisitions.upper_confidence_bound import UpperConfidenceBound
from mondrian_bo.lazy_names import lazy_names

if TYPE_CHECKING:
    from mondrian_bo.acquisitions.hypervolume_improvement import (
        log_expected_hypervolume_improvement,
        log_expected_hypervolume_improvement_gradient,
    )
    from mondrian_bo.acquisitions.pareto import (
        BoxDecomposition,
        decompose,
        hypervolume,
        non_dominated,
    )

__all__ = [
    "Acquisition",
    "AcquisitionName",
    "BoxDecomposition",
    "ExpectedImprovement",
    "LogExpectedImprovement",
    "Prediction",
    "ProbabilityOfImprovement",
    "ThompsonSampling",
    "UpperConfidenceBound",
    "Usage",
    "decompose",
    "get_acquisition",
    "hypervolume",
    "log_expected_hypervolume_improvement",
    "log_expected_hypervolume_improvement_gradient",
    "mixture_moments",
    "non_dominated",
]

# Compiled functions are imported on first use: a sampler is constructed without numba.
_HOMES = {
    "BoxDecomposition": "mondrian_bo.acquisitions.pareto",
    "decompose": "mondrian_bo.acquisitions.pareto",
    "hypervolume": "mondrian_bo.acquisitions.pareto",
    "log_expected_hypervolume_improvement": "mondrian_bo.acquisitions.hypervolume_improvement",
    "log_expected_hypervolume_improvement_gradient": (
        "mondrian_bo.acquisitions.hypervolume_improvement"
    ),
    "non_dominated": "mondrian_bo.acquisitions.pareto",
}
"""The module that defines each lazy name."""

__getattr__, __dir__ = lazy_names(__name__, _HOMES, __all__)

AcquisitionName: TypeAlias = Literal["ucb", "ei", "log_ei", "pi", "thompson"]
"""Names of the acquisitions with their defaults."""

ACQUISITIONS: dict[AcquisitionName, type[Acquisition]] = {
    "ucb": UpperConfidenceBound,
    "ei": ExpectedImprovement,
    "log_ei": LogExpectedImprovement,
    "pi": ProbabilityOfImprovement,
    "thompson": ThompsonSampling,
}
"""Classes of the library's acquisitions by name."""


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
        if acquisition in ACQUISITIONS:
            return ACQUISITIONS[acquisition]()
    elif isinstance(acquisition, Acquisition) and not isinstance(acquisition, type):
        return acquisition
    raise ValueError(
        f"`acquisition` must be one of {list(ACQUISITIONS)} or an Acquisition, or, of a search, "
        f"'auto' or a Portfolio; got {acquisition!r}."
    )
