"""A fidelity: the parameter that says how exact, and how expensive, a trial is."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from mondrian_bo.array_types import BoolArray, FloatArray, IntArray
from mondrian_bo.search_space import Categorical, RestrictedSpace, SearchSpace
from mondrian_bo.surrogates.shared.growing_array import GrowingArray

FidelityChoice: TypeAlias = str | Mapping[str, float]
"""Values of the parameter `fidelity`: a name, or a name with its target."""

_LEAST_COST = 0.01
"""Smallest cost without data, as a share of the cost at the target; our choice. A fidelity of 0,
such as the first of [0, 1], would cost nothing."""

_N_LEVELS = 8
"""Number of fidelities below the target that are compared, evenly spaced in the parameter, and as
many in the logarithm of the cost; our choice."""

_SAME = 1e-9
"""Largest difference of equal fidelities in sides of the unit cube: above rounding errors."""

_COST_NOISE = 0.1
"""Standard deviation of the logarithm of a cost, our choice: 10 % of the cost."""

_COST_PRIOR = (100.0, 0.5, 0.1, 1.0)
"""Prior standard deviations of the coefficients of the logarithm of the cost: constant, logarithm
of the fidelity, its square, other columns. Our choice: costs are roughly proportional."""


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
        self.levels: FloatArray = levels[np.argsort(-distances)][: np.sum(distances > _SAME)]

    def is_target(self, rows: FloatArray) -> BoolArray:
        """Whether rows (m, d) are at the target, or have no fidelity; shape (m,)."""
        entries = rows[:, self.column]
        return np.asarray(np.isnan(entries) | (np.abs(entries - self.unit) <= _SAME))

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
    if isinstance(target, bool) or not isinstance(target, float | int | np.number):
        raise TypeError(f"`fidelity`: the target of {name!r} must be a number, got {target!r}.")
    if not math.isfinite(target):
        raise ValueError(f"`fidelity`: the target of {name!r} must be finite, got {target!r}.")
    return name, target


def _proportional(value: float, target: float, far: float) -> float:
    """Return the cost of a value, as a share of that of the target, without data."""
    if min(value, target, far) > 0.0:
        share = value / target if target >= far else target / value
    else:
        share = abs(value - far) / abs(target - far) if target != far else 1.0
    return min(max(share, _LEAST_COST), 1.0)


class CostModel:
    """A regression of the logarithm of the cost of trials.

    The logarithm is linear in the numeric columns and the choices, and quadratic in the logarithm
    of the proportional cost (:meth:`Fidelity.log_costs`). Coefficients have a normal prior, in
    which the cost is proportional: without data, it is.

    Parameters
    ----------
    fidelity : Fidelity
        The fidelity.
    n_choices : int64 array of shape (d,)
        Number of choices of categorical columns, 0 for numeric ones.
    """

    def __init__(self, fidelity: Fidelity, n_choices: IntArray) -> None:
        self._fidelity = fidelity
        self._n_choices = n_choices
        self._rows = GrowingArray(len(n_choices))
        self._costs = GrowingArray()
        self._fitted: tuple[int, FloatArray] | None = None

    def __len__(self) -> int:
        """Return the number of known costs."""
        return len(self._costs)

    def tell(self, rows: FloatArray, costs: FloatArray) -> None:
        """Learn costs, shape (m,), of rows (m, d); those that are not positive are not known."""
        known = np.isfinite(costs) & (costs > 0.0)
        self._rows.extend(rows[known])
        self._costs.extend(costs[known])

    def restore(self, n_costs: int) -> None:
        """Forget all but the first costs."""
        self._rows.shorten(n_costs)
        self._costs.shorten(n_costs)
        self._fitted = None

    def log_ratios(self, rows: FloatArray) -> FloatArray:
        """Return the logarithm of costs divided by those of the same rows at the target, (m,)."""
        full = self._fidelity.at(rows, self._fidelity.unit)
        return np.asarray((self._features(rows) - self._features(full)) @ self._coefficients)

    def predict(self, rows: FloatArray) -> FloatArray:
        """Return the predicted (median) costs of rows, shape (m,)."""
        return np.asarray(np.exp(self._features(rows) @ self._coefficients))

    @property
    def _coefficients(self) -> FloatArray:
        n = len(self._costs)
        if self._fitted is None or self._fitted[0] != n:
            features = self._features(self._rows.rows)
            k = features.shape[1]
            constant, slope, curvature, others = _COST_PRIOR
            deviations = np.full(k, others)
            deviations[:3] = constant, slope, curvature
            mean = np.zeros(k)
            mean[1] = 1.0
            precision = np.diag(1.0 / deviations**2) + features.T @ features / _COST_NOISE**2
            residuals = np.log(self._costs.rows) - features @ mean
            found = mean + np.linalg.solve(precision, features.T @ residuals / _COST_NOISE**2)
            self._fitted = n, found
        return self._fitted[1]

    def _features(self, rows: FloatArray) -> FloatArray:
        size = self._fidelity.log_costs(rows)
        columns = [np.ones(len(rows)), size, size * size]
        for j, n_choices in enumerate(self._n_choices.tolist()):
            if j == self._fidelity.column:
                continue
            entries = rows[:, j]
            if n_choices == 0:
                columns.append(np.where(np.isnan(entries), 0.0, entries - 0.5))
            else:
                columns.extend((entries == choice).astype(float) for choice in range(n_choices))
        return np.column_stack(columns)


class TargetSpace(RestrictedSpace):
    """The part of a space that is at the target fidelity.

    Parameters
    ----------
    space : SearchSpace
        The space, or a part of it.
    fidelity : Fidelity
        The fidelity of the space.
    """

    def __init__(self, space: SearchSpace, fidelity: Fidelity) -> None:
        self._whole, self._fidelity = space, fidelity
        fixed: Mapping[str, Any] = {}
        inequalities: tuple[Any, ...] = ()
        if isinstance(space, RestrictedSpace):
            fixed, inequalities = space.fixed, space.inequalities
        super().__init__(space, {**fixed, fidelity.name: fidelity.target}, inequalities)
        parameter: Any = space[fidelity.name]
        single = replace(parameter, low=fidelity.target, high=fidelity.target)
        self._single: SearchSpace | None = None
        try:
            self._single = SearchSpace({**self, fidelity.name: single})
        except ValueError:
            # The condition of another parameter names a value that is not the target.
            return
        # No search moves along a column with a single value.
        self.grid_sizes = self._single.grid_sizes

    def __reduce__(self) -> tuple[type[SearchSpace], tuple[object, ...]]:  # type: ignore[override]
        return type(self), (self._whole, self._fidelity)

    @cached_property
    def cardinality(self) -> float:
        """Number of distinct points at the target; see :attr:`SearchSpace.cardinality`."""
        return math.inf if self._single is None else self._single.cardinality

    def enumerate_rows(self) -> FloatArray:
        """List all distinct rows of a finite part; see :meth:`RestrictedSpace.enumerate_rows`."""
        if self._single is None:
            return super().enumerate_rows()
        return self._within(self._fidelity.at(self._single.enumerate_rows(), self._fidelity.unit))
