"""Conditions in terms of columns: which grid cells of a parent activate a child."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from mondrian_bo.search_space.conditions import Condition
from mondrian_bo.search_space.parameters import MAX_VECTOR_CELLS, Parameter
from mondrian_bo.shared.array_types import BoolArray, FloatArray, IntArray


class Link(NamedTuple):
    """A condition in terms of columns.

    Attributes
    ----------
    child, parent : int
        Columns of the two parameters.
    cells : float64 array of shape (k,)
        Grid indices of the parent's values that activate the child, distinct and sorted.
    """

    child: int
    parent: int
    cells: FloatArray


class Family(NamedTuple):
    """All children of one parent.

    Attributes
    ----------
    parent : int
        Column of the parent.
    children : int array of shape (c,)
        Columns of the children.
    cells : float64 array of shape (k,)
        Grid indices of the parent's values that activate any child, distinct and sorted.
    active : bool array of shape (k + 1, c)
        Which children each of them activates; in the last row none.
    """

    parent: int
    children: IntArray
    cells: FloatArray
    active: BoolArray


def families(links: Sequence[Link]) -> tuple[Family, ...]:
    """Group links by their parent, those of parents before those of their children.

    Parameters
    ----------
    links : sequence of Link
        What :func:`link_conditions` returns.

    Returns
    -------
    tuple of Family
        One for each parent.
    """
    by_parent: dict[int, list[Link]] = {}
    for link in links:
        by_parent.setdefault(link.parent, []).append(link)
    found = []
    for parent, members in by_parent.items():
        cells = np.unique(np.concatenate([link.cells for link in members]))
        active = np.zeros((len(cells) + 1, len(members)), dtype=bool)
        for i, link in enumerate(members):
            active[np.searchsorted(cells, link.cells), i] = True
        found.append(Family(parent, np.array([link.child for link in members]), cells, active))
    return tuple(found)


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
    ordered = set(parameters) - set(waiting)
    links: list[Link] = []
    for name, condition in waiting.items():
        if condition.parent not in parameters:
            raise ValueError(f"parameter {name!r}: unknown parent {condition.parent!r}.")
    while waiting:
        ready = {name: c for name, c in waiting.items() if c.parent in ordered}
        if not ready:
            raise ValueError(f"The conditions of {list(waiting)} depend on each other in a cycle.")
        for name, condition in ready.items():
            cells = _parent_cells(name, condition, parameters[condition.parent])
            links.append(Link(columns[name], columns[condition.parent], cells))
            del waiting[name]
        ordered.update(ready)
    return tuple(links)


def _parent_cells(name: str, condition: Condition, parent: Parameter) -> FloatArray:
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
