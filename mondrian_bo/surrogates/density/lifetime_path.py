"""How a density changes with the lifetime (Balog2016thesis, section 4.1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from mondrian_bo.shared.array_types import FloatArray
from mondrian_bo.surrogates.shared.lifetimes import PiecewiseByLifetime, check_criterion

Criterion = Literal["validation", "leave_one_out"]
"""Which log-likelihood chooses the lifetime: of validation data, or leave-one-out."""


@dataclass(frozen=True)
class DensityLifetimePath(PiecewiseByLifetime):
    """Log-likelihoods at all lifetimes.

    Values are constant from ``lifetimes[i]`` until before ``lifetimes[i + 1]``, and from the last
    lifetime until `max_lifetime`.

    Attributes
    ----------
    lifetimes : float64 array of shape (k,)
        0, and the times of all splits, in increasing order.
    max_lifetime : float
        The lifetime that the trees were grown to.
    training : float64 array of shape (k,)
        Mean log density of the training points.
    leave_one_out : float64 array of shape (k,)
        Mean over training points of the log density given the other points, in the same box.
    validation : float64 array of shape (k,)
        Mean log density of the validation points; NaN without any, -inf if one is outside of the
        box.
    """

    lifetimes: FloatArray
    max_lifetime: float
    training: FloatArray
    leave_one_out: FloatArray
    validation: FloatArray

    def best_lifetime(self, criterion: Criterion = "leave_one_out") -> float:
        """Return the middle of the interval of lifetimes with the largest likelihood.

        Raises
        ------
        ValueError
            If the path does not have the criterion.
        """
        check_criterion(criterion, get_args(Criterion))
        values = getattr(self, criterion)
        if criterion == "validation" and np.isnan(values).all():
            raise ValueError("the path was computed without validation points")
        return self._middle(int(np.argmax(values)))
