"""A fidelity: the parameter that says how exact, and how expensive, a trial is."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from mondrian_bo.search_space import Categorical, Float, Int, SearchSpace
from mondrian_bo.shared.argument_checks import is_number
from mondrian_bo.shared.array_types import BoolArray, FloatArray

FidelityChoice: TypeAlias = str | Mapping[str, float]
"""Values of the parameter `fidelity`: a name, or a name with its target."""

_LEAST_COST = 0.01
"""Smallest cost without data, as a share of the cost at the target; our choice. A fidelity of 0,
such as the first of [0, 1], would cost nothing."""

_N_LEVELS = 8
"""Number of fidelities below the target that are compared, evenly spaced in the parameter, and as
many in the logarithm of the cost; our choice."""

SAME_FIDELITY = 1e-9
"""Largest difference of equal fidelities in sides of the unit cube: above rounding errors. Values
of fine grids differ by less: for them it is half the distance to the nearest value."""


class Fidelity:
    """The fidelity of a space, and its target.

    Parameters
    ----------
    space : SearchSpace
        The space.
    fidelity : str or mapping of str to float
        Name of a numeric parameter; its target is the upper end of its range. Or a name and the
        target.

    Attributes
    ----------
    name : str
        The parameter.
    target : int or float
        Its value in the trials that count.
    column : int
        Its column in rows.
    unit : float
        The target as an entry of rows.
    levels : float64 array of shape (k,)
        Other fidelities as entries of rows, the one farthest from the target first.

    Raises
    ------
    TypeError, ValueError
        If `fidelity` is not as described, or the target is not a value of the parameter.
    KeyError
        If the space has no parameter of the name.
    """

    def __init__(self, space: SearchSpace, fidelity: FidelityChoice) -> None:
        self.name, target = check_fidelity(fidelity)
        if self.name not in space:
            raise KeyError(f"`fidelity`: unknown parameter {self.name!r}; known: {space.names}.")
        parameter = space[self.name]
        if isinstance(parameter, Categorical):
            raise ValueError(f"`fidelity` must be numeric, and {self.name!r} is categorical.")
        self.target: float = parameter.high if target is None else target
        try:
            self.unit = parameter.to_unit(self.target)
        except (TypeError, ValueError) as error:
            raise type(error)(f"`fidelity`: the target of {self.name!r} {error}") from None
        self._tolerance = min(SAME_FIDELITY, 0.5 * _gap(parameter, self.target))
        self.column = space.names.index(self.name)
        # Fidelities are on one side of the target: above it only if it is the lower end.
        far = parameter.low if self.target > parameter.low else parameter.high
        first = parameter.to_unit(far)
        evenly = np.linspace(first, self.unit, 257)
        if 0 < parameter.n_values <= len(evenly):
            evenly = np.array(
                [parameter.to_unit(parameter.from_unit(one)) for one in evenly.tolist()]
            )
        evenly = np.unique(evenly)
        costs = [
            _proportional(parameter.from_unit(one), self.target, far) for one in evenly.tolist()
        ]
        self._units, self._log_costs = evenly, np.log(costs)
        wanted = np.linspace(self._log_costs.min(), 0.0, _N_LEVELS + 1)
        nearest = np.abs(self._log_costs[:, None] - wanted).argmin(axis=0)
        spaced = np.linspace(0, len(evenly) - 1, _N_LEVELS + 1).round().astype(int)
        levels = evenly[np.unique(np.concatenate([nearest, spaced]))]
        distances = np.abs(levels - self.unit)
        self.levels: FloatArray = levels[np.argsort(-distances)][
            : np.sum(distances > SAME_FIDELITY)
        ]

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore; pickles of earlier versions lack what is added here."""
        self.__dict__.update({"_tolerance": SAME_FIDELITY, **state})

    def is_target(self, rows: FloatArray) -> BoolArray:
        """Whether rows (m, d) are at the target, or have no fidelity; shape (m,)."""
        entries = rows[:, self.column]
        return np.asarray(np.isnan(entries) | (np.abs(entries - self.unit) <= self._tolerance))

    def at(self, rows: FloatArray, unit: float | FloatArray) -> FloatArray:
        """Return rows (m, d) at other fidelities, unless they have none."""
        moved = rows.copy()
        here = moved[:, self.column]
        moved[:, self.column] = np.where(np.isnan(here), here, unit)
        return moved

    def log_costs(self, rows: FloatArray) -> FloatArray:
        """Return the logarithm of the costs of rows if these are proportional, shape (m,).

        The cost at the target is 1. It is the fidelity divided by the target, or the inverse if the
        target is the lower end; where zero or negative numbers occur, the share of the way to the
        target.
        """
        entries = np.where(np.isnan(rows[:, self.column]), self.unit, rows[:, self.column])
        return np.interp(entries, self._units, self._log_costs)


def turn_of(number: int) -> int:
    """Return which kind of fidelity a first trial has, by its number from 0 on.

    It is 1 for every second trial, which is at the cheapest fidelity, 2 for every second one of the
    others, which is at a medium one, and 4 or more for the rest, which are at the target.
    """
    return (number + 1) & -(number + 1)


def check_fidelity(fidelity: FidelityChoice) -> tuple[str, float | None]:
    """Return the name of a fidelity and its target, None for the upper end.

    Raises
    ------
    TypeError, ValueError
        If it is not a name, or a mapping with one name and a finite target.
    """
    if isinstance(fidelity, str):
        if not fidelity:
            raise ValueError("`fidelity` must be the name of a parameter, got ''.")
        return fidelity, None
    if not isinstance(fidelity, Mapping) or not all(isinstance(name, str) for name in fidelity):
        raise TypeError(f"`fidelity` must be a name, or a name with a target, got {fidelity!r}.")
    if len(fidelity) != 1:
        raise ValueError(f"`fidelity` must have exactly one name, got {fidelity!r}.")
    ((name, target),) = fidelity.items()
    if not is_number(target):
        raise TypeError(f"`fidelity`: the target of {name!r} must be a number, got {target!r}.")
    if not math.isfinite(target):
        raise ValueError(f"`fidelity`: the target of {name!r} must be finite, got {target!r}.")
    return name, target


def _gap(parameter: Float | Int, value: float) -> float:
    """Return the distance in entries of rows from a value to the nearest other one of a grid.

    Infinite if there is no grid or no other value.
    """
    if parameter.n_values < 2:
        return math.inf
    if isinstance(parameter, Float) or not parameter.log:
        return 1.0 / parameter.n_values
    unit, number = parameter.to_unit(value), int(value)
    beside = [one for one in (number - 1, number + 1) if parameter.low <= one <= parameter.high]
    return min(abs(parameter.to_unit(one) - unit) for one in beside)


def _proportional(value: float, target: float, far: float) -> float:
    """Return the cost of a value, as a share of that of the target, without data."""
    if min(value, target, far) > 0.0:
        share = value / target if target >= far else target / value
    else:
        share = abs(value - far) / abs(target - far) if target != far else 1.0
    return min(max(share, _LEAST_COST), 1.0)
