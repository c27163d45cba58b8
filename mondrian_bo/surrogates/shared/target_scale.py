"""The scale of targets, of which some or all may be equal."""

from __future__ import annotations

import numpy as np

from mondrian_bo.shared.array_types import FloatArray


def is_constant(mean: float, std: float) -> bool:
    """Return whether targets of these moments are equal up to rounding.

    Where the targets are known, :func:`deviation_of` tells equal ones from those that differ by
    rounding.
    """
    return not std > 4.0 * np.finfo(np.float64).eps * abs(mean)


def target_scale(mean: float, std: float) -> float:
    """Return the standard deviation of targets, or their magnitude if they are constant."""
    return abs(mean) or 1.0 if is_constant(mean, std) else std


def deviation_of(targets: FloatArray) -> float:
    """Return the standard deviation of targets of shape (n,), n > 0; 0 if they are equal."""
    # The deviation of equal targets from their mean is that of the mean from them, by rounding.
    return float(targets.std()) if targets.min() < targets.max() else 0.0
