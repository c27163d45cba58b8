"""Which arguments count as numbers: truth values do not, though Python has them as integers."""

from __future__ import annotations

from typing import Any, TypeGuard

import numpy as np


def is_integer(value: object) -> TypeGuard[int | np.integer[Any]]:
    """Whether an argument is an integer of Python or numpy."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def is_number(value: object) -> TypeGuard[float]:
    """Whether an argument is a number of Python or numpy."""
    return isinstance(value, float | int | np.number) and not isinstance(value, bool)
