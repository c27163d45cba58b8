"""The scale of targets, of which some or all may be equal."""

from __future__ import annotations

import numpy as np


def is_constant(mean: float, std: float) -> bool:
    """Return whether targets of these moments are equal up to rounding."""
    return not std > 4.0 * np.finfo(np.float64).eps * abs(mean)


def target_scale(mean: float, std: float) -> float:
    """Return the standard deviation of targets, or their magnitude if they are constant."""
    return abs(mean) or 1.0 if is_constant(mean, std) else std
