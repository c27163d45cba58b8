"""Logarithm of the expected improvement, without underflow."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mondrian_bo.acquisitions.base import (
    ImprovementAcquisition,
    Prediction,
    Usage,
    improvements,
)
from mondrian_bo.array_types import FloatArray


@dataclass(frozen=True)
class LogExpectedImprovement(ImprovementAcquisition):
    """Logarithm of `ExpectedImprovement`, which ranks candidates even where that underflows to 0.

    Minus infinity only where no component can improve: all are point masses at or below the target
    (or the target is infinite, or beyond 1e150 standard deviations away).

    Parameters
    ----------
    margin : float, default 0.0
        Improvement that counts for nothing, in the units of the prediction; finite and >= 0.

    References
    ----------
    Ament et al. (2023), Unexpected improvements to expected improvement for Bayesian optimization,
    equation (9) and appendix A.1.
    """

    usage: ClassVar[Usage] = Usage(polishes_under_constraints=True)

    def __call__(self, prediction: Prediction, incumbent: float) -> FloatArray:
        """Score candidates; see `Acquisition`."""
        gain = improvements(prediction, incumbent, self.margin)
        logs = log_gaussian_expected_improvement(gain, prediction.stds)
        if len(logs) == 1:
            return np.asarray(logs[0])
        scores: FloatArray = np.logaddexp.reduce(logs, axis=0) - math.log(len(logs))
        return scores


def log_gaussian_expected_improvement(improvement: FloatArray, std: FloatArray) -> FloatArray:
    """Return the logarithm of the expectation of max(N(improvement, std**2), 0).

    Parameters
    ----------
    improvement : float64 array
        Means; may be infinite.
    std : float64 array of the same shape
        Standard deviations, from 0 to infinity.

    Returns
    -------
    float64 array of the same shape
        The logarithms; minus infinity where nothing can improve.
    """
    # Loaded here: a sampler is constructed without numba.
    from mondrian_bo.acquisitions.compiled import log_expected_improvements

    logs = np.empty(improvement.shape)
    log_expected_improvements(improvement.ravel(), std.ravel(), logs.ravel())
    return logs
