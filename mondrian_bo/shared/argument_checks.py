"""Checks of arguments: numbers, truth values, functions.

Truth values do not count as numbers, though Python has them as integers.
"""

from __future__ import annotations

from typing import Any, TypeGuard

import numpy as np

_TRUTH_VALUES = (bool, np.bool_)
"""Types of truth values. A union of types would be made anew for each of many answers."""


def is_integer(value: object) -> TypeGuard[int | np.integer[Any]]:
    """Whether an argument is an integer of Python or numpy."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def is_number(value: object) -> TypeGuard[float]:
    """Whether an argument is a number of Python or numpy."""
    return isinstance(value, float | int | np.number) and not isinstance(value, bool)


def is_truth_value(value: object) -> TypeGuard[bool | np.bool_]:
    """Whether an argument is True or False of Python or numpy."""
    return isinstance(value, _TRUTH_VALUES)


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


def check_flag(name: str, value: object) -> None:
    """Check an argument that must be True or False.

    Raises
    ------
    TypeError
        If it is neither.
    """
    if not is_truth_value(value):
        raise TypeError(f"`{name}` must be True or False, got {value!r}.")


def check_callable(name: str, function: object) -> None:
    """Check an argument that must be a function or None.

    Raises
    ------
    TypeError
        If it is not.
    """
    if function is not None and not callable(function):
        raise TypeError(f"`{name}` must be a function or None, got {function!r}.")
