"""A former state of an optimizer, to which an interrupted transaction returns."""

from __future__ import annotations

from typing import Any, NamedTuple

from mondrian_bo.optimizer.search.restarts import SearchState


class OptimizerState(NamedTuple):
    """What identifies a former state of a :class:`RowOptimizer`.

    Attributes
    ----------
    search : SearchState
        The trials.
    constraints : tuple or None
        The values of constraints; None without any.
    noise : tuple or None
        The trials with known errors; None without any.
    n_costs : int
        Number of known costs.
    stored : tuple or None
        The tells and pending trials of a :class:`StoredOptimizer`; None without them.
    """

    search: SearchState
    constraints: Any
    noise: Any
    n_costs: int
    stored: Any = None
