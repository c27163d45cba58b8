"""Conditions: parameters that exist only for some values of another."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real


@dataclass(frozen=True)
class Condition:
    """When a parameter exists: its parent is active and takes one of some values.

    Parameters
    ----------
    parent : str
        Name of the parameter this one depends on.
    values : sequence
        Values of the parent, at least one and without duplicates, for which the child is active.

    Raises
    ------
    TypeError
        If ``parent`` is not a string or ``values`` is not a sequence.
    ValueError
        If ``values`` is empty or holds duplicates.
    """

    parent: str
    values: Sequence[object]

    def __post_init__(self) -> None:
        if not isinstance(self.parent, str):
            raise TypeError(f"Condition: `parent` must be a string, got {self.parent!r}.")
        object.__setattr__(self, "values", distinct_values(self.values, "Condition", "values"))


def check_condition(condition: object, owner: str) -> None:
    """Refuse what is neither a condition nor None with a TypeError that names its owner."""
    if not isinstance(condition, Condition | None):
        raise TypeError(f"{owner}: `condition` must be a Condition or None, got {condition!r}.")


def distinct_values(values: object, owner: str, argument: str) -> tuple[object, ...]:
    """Return the values as a tuple, or refuse them.

    Raises
    ------
    TypeError
        If they are not a sequence; a string is not taken as one.
    ValueError
        If there are none, or two of the same type are equal.
    """
    if not isinstance(values, Sequence) or isinstance(values, str | bytes):
        raise TypeError(f"{owner}: `{argument}` must be a tuple or a list, got {values!r}.")
    if not values:
        raise ValueError(f"{owner}: `{argument}` must hold at least one value, got none.")
    try:
        if len({_key(value) for value in values}) == len(values):
            return tuple(values)
    except TypeError:
        # Some values have no hash, and each is compared with those before.
        pass
    for i, value in enumerate(values):
        if any(type(value) is type(other) and equal_values(value, other) for other in values[:i]):
            raise ValueError(f"{owner}: `{argument}` must be distinct, got {value!r} twice.")
    return tuple(values)


def equal_values(first: object, second: object) -> bool:
    """Whether two values are one choice: equal, or both NaN, as Optuna has it."""
    return first is second or bool(first == second) or (_is_nan(first) and _is_nan(second))


def _key(value: object) -> tuple[type, object]:
    """Return what is equal for equal values of the same type, if it has a hash."""
    return type(value), math.nan if _is_nan(value) else value


def _is_nan(value: object) -> bool:
    # `math.isnan` fails for integers beyond the floats.
    return isinstance(value, Real) and bool(value != value)
