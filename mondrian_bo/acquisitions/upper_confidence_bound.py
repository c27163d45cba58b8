"""Upper confidence bound."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from mondrian_bo.acquisitions.base import Prediction, Usage, mixture_moments, non_negative
from mondrian_bo.shared.array_types import FloatArray


@dataclass(frozen=True)
class UpperConfidenceBound:
    """Mean of the mixture plus a multiple of its standard deviation.

    Parameters
    ----------
    kappa : float, default=1.0
        The multiple, finite and >= 0. The paper uses 1.

    Raises
    ------
    TypeError, ValueError
        If ``kappa`` is not a number, or is negative, infinite or NaN.

    References
    ----------
    Lakshminarayanan2016, section 5.3, footnote 7.
    """

    # Late in a search most predictions are of close neighbours of the best trial. Calibration
    # narrows their variances, and a bound with narrow variances would stop exploring.
    usage: ClassVar[Usage] = Usage(uses_calibrated_variances=False)

    kappa: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "kappa", non_negative("kappa", self.kappa))

    def __call__(self, prediction: Prediction, incumbent: float) -> FloatArray:
        """Score candidates; see `Acquisition`. The incumbent is not used."""
        mean, std = mixture_moments(prediction)
        if self.kappa == 0:
            return mean
        # An infinite mean comes with an infinite deviation, which must not cancel it.
        return mean + self.kappa * np.where(np.isfinite(mean), std, 0.0)
