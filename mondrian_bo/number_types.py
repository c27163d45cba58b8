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


def check_count(name: str, value: object, least: int) -> None:
    """Check an argument that must be an integer.

    Raises
    ------
    TypeError, ValueError
        If it is not, or below the least one.
    """
    if not is_integer(value):
        raise TypeError(f"`{name}` must be an integer, got {value!r}.")
    if value < least:
        raise ValueError(f"`{name}` must be at least {least}, got {value!r}.")


def check_number(name: str, value: object) -> None:
    """Check an argument that must be a number.

    Raises
    ------
    TypeError
        If it is not.
    """
    if not is_number(value):
        raise TypeError(f"`{name}` must be a number, got {value!r}.")
