"""Types of arrays in signatures."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]
"""Real numbers: points, targets, rates, messages."""

IntArray: TypeAlias = NDArray[np.int64]
"""Integers: nodes, indices of samples, choices."""

BoolArray: TypeAlias = NDArray[np.bool_]
"""Truth values, such as which dimensions are categorical."""

AnyArray: TypeAlias = NDArray[Any]
"""An array whose type is checked elsewhere, or does not matter."""
