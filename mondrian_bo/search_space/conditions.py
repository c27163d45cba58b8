"""Conditions: parameters that exist only for some values of another."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mondrian_bo.search_space.grids import MAX_VECTOR_CELLS

if TYPE_CHECKING:
    from mondrian_bo.search_space.parameters import Parameter


@dataclass(frozen=True)
class Condition:
    """When a parameter exists: its parent is active and takes one of some values.

    Parameters
    ----------
    parent : str
        Name of the parameter this one depends on.
    values : tuple
        Values of the parent, at least one and without duplicates, for which the child is active.

    Raises
    ------
    TypeError
        If ``parent`` is not a string or ``values`` is not a sequence.
    ValueError
        If ``values`` is empty or holds duplicates.
    """

    parent: str
    values: tuple[object, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.parent, str):
            raise TypeError(f"Condition: `parent` must be a string, got {self.parent!r}.")
        object.__setattr__(self, "values", distinct_values(self.values, "Condition", "values"))


class Link(NamedTuple):
    """A condition in terms of columns.

    Attributes
    ----------
    child, parent : int
        Columns of the two parameters.
    cells : ndarray of float64, shape (k,)
        Grid indices of the parent's values that activate the child, distinct and sorted.
    """

    child: int
    parent: int
    cells: NDArray[np.float64]


def link_conditions(parameters: Mapping[str, Parameter]) -> tuple[Link, ...]:
    """Check the conditions of a space and translate them.

    Parameters
    ----------
    parameters : mapping of str to Parameter
        The space; the order of the names is the order of the columns.

    Returns
    -------
    tuple of Link
        One for each conditional parameter, those of parents before those of their children.

    Raises
    ------
    ValueError
        If a condition names an unknown parent, a value the parent cannot take or a parent without
        a grid of at most 2**40 values, or is part of a cycle.
    """
    columns = {name: j for j, name in enumerate(parameters)}
    waiting = {name: p.condition for name, p in parameters.items() if p.condition is not None}
    settled = set(parameters) - set(waiting)
    links: list[Link] = []
    for name, condition in waiting.items():
        if condition.parent not in parameters:
            raise ValueError(f"parameter {name!r}: unknown parent {condition.parent!r}.")
    while waiting:
        ready = {name: c for name, c in waiting.items() if c.parent in settled}
        if not ready:
            raise ValueError(f"The conditions of {list(waiting)} depend on each other in a cycle.")
        for name, condition in ready.items():
            cells = _parent_cells(name, condition, parameters[condition.parent])
            links.append(Link(columns[name], columns[condition.parent], cells))
            del waiting[name]
        settled.update(ready)
    return tuple(links)


def _parent_cells(name: str, condition: Condition, parent: Parameter) -> NDArray[np.float64]:
    if not 1 <= parent.n_values <= MAX_VECTOR_CELLS:
        raise ValueError(
            f"parameter {name!r}: parent {condition.parent!r} must be categorical or have a grid "
            f"of at most 2**40 values, got {parent!r}."
        )
    try:
        cells = [parent.index(value) for value in condition.values]
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"parameter {name!r}: parent {condition.parent!r} cannot take all of "
            f"{condition.values}: {error}"
        ) from None
    return np.unique(np.array(cells, dtype=np.float64))


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
    for i, value in enumerate(values):
        if any(type(value) is type(other) and equal_values(value, other) for other in values[:i]):
            raise ValueError(f"{owner}: `{argument}` must be distinct, got {value!r} twice.")
    return tuple(values)


def equal_values(first: object, second: object) -> bool:
    """Whether two values are one choice: equal, or both NaN, as Optuna has it."""
    if first is second or first == second:
        return True
    return (
        isinstance(first, Real)
        and isinstance(second, Real)
        and math.isnan(first)
        and math.isnan(second)
    )
