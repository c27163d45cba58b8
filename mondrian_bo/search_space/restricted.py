"""Part of a search space: some parameters fixed, linear constraints between others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from mondrian_bo.search_space.categorical import Categorical
from mondrian_bo.search_space.parameters import Parameter
from mondrian_bo.search_space.space import SearchSpace
from mondrian_bo.shared.array_types import BoolArray, FloatArray

_TOLERANCE = 1e-12
"""Share of a sum's largest absolute value by which it may exceed its bound: above rounding errors
of about 1e-16, and far below differences that matter to a user."""

_N_DRAWN = 2048
"""Number of Sobol points, a power of two, among which feasible anchors are looked for."""

_N_ANCHORS = 256
"""Largest number of anchors: each infeasible row is compared with all of them."""

_N_CORNERS = 32
"""Number of random directions whose extreme feasible point is found, an integer program each."""

_BISECTIONS = 30
"""Halvings of the way to the boundary: to 1e-9 of it."""

_GOLDEN = 0.6180339887498949
"""Inverse of the golden ratio: its multiples modulo 1 are evenly distributed at every length."""

_N_PASSES = 4
"""Passes over the constraints that narrow the ranges of their parameters, our choice: with several
constraints, each may narrow what another one allows."""

_ROUNDING = 1e-9
"""Share of a range's end by which it is widened: above the rounding errors of its computation."""

_STRIDE = 97
"""Step through the anchors from row to row, a prime: neighbouring rows get unrelated anchors."""


@dataclass(frozen=True)
class LinearInequality:
    """A constraint: the weighted sum of some numeric parameters is at most a bound.

    It holds wherever one of its parameters is inactive.

    Parameters
    ----------
    weights : mapping of str to float
        Weights by parameter name, at least one.
    bound : float
        The largest value that the sum may take.
    """

    weights: Mapping[str, float] = field(hash=False)
    bound: float


class RestrictedSpace(SearchSpace):
    """The points of a space with fixed values that satisfy linear constraints.

    Rows have the same encoding as in the whole space. `snap` moves a row to the nearest point of
    the whole space and sets the fixed values. It then moves a row that violates a constraint to
    the boundary, on the straight line to the nearest anchor. Anchors are feasible points.

    The cardinality counts the points that have the fixed values, in the box that the constraints
    leave. With constraints, it is an upper bound.

    Parameters
    ----------
    space : mapping of str to Parameter
        The whole space.
    fixed : mapping of str to object, optional
        Values that parameters have where they are active.
    inequalities : iterable of LinearInequality, optional
        The constraints.

    Attributes
    ----------
    fixed : dict
        The fixed values, as given.
    inequalities : tuple of LinearInequality
        The constraints, as given.

    Raises
    ------
    KeyError
        If a name is not in the space.
    TypeError, ValueError
        If a value is not one of its parameter, a constraint is on a categorical or logarithmic
        parameter, or no point satisfies the constraints.
    """

    def __init__(
        self,
        space: Mapping[str, Parameter],
        fixed: Mapping[str, object] | None = None,
        inequalities: Iterable[LinearInequality] = (),
    ) -> None:
        super().__init__(space)
        self.fixed = dict(fixed or {})
        self.inequalities = tuple(inequalities)
        self._pinned = np.full(self.n_dimensions, np.nan)
        for name, value in self.fixed.items():
            column = self._column(name)
            try:
                self._pinned[column] = self[name].to_unit(value)
            except (TypeError, ValueError) as error:
                raise type(error)(f"fixed parameter {name!r}: {error}") from None
        self._is_held = ~np.isnan(self._pinned) & (self.grid_sizes == 0)
        # No search moves along a column with a single value.
        self.grid_sizes = np.where(self._is_held, 1, self.grid_sizes)
        names = sorted({name for one in self.inequalities for name in one.weights})
        self._columns = np.array([self._column(name) for name in names], dtype=np.intp)
        shape = (len(self.inequalities), len(names))
        self._weights = np.array(
            [[one.weights.get(name, 0.0) for name in names] for one in self.inequalities]
        ).reshape(shape)
        self._bounds = np.array([one.bound for one in self.inequalities])
        scales = [_linear_scale(name, self[name]) for name in names]
        # A value is offset + width * unit, or offset + width * (cell of the grid).
        self._offsets, self._widths, self._cells_of = np.array(scales).reshape(-1, 3).T
        if names:
            reach = np.abs(self._weights) @ np.maximum(
                np.abs(self._offsets),
                np.abs(self._offsets + self._widths * np.maximum(self._cells_of, 1.0)),
            )
            self._slack = _TOLERANCE * np.maximum(reach, np.abs(self._bounds))
            if not len(self._anchors):
                raise ValueError("No point of the space satisfies the parameter constraints.")
        self._limits = self._narrowed()

    def __reduce__(self) -> tuple[type[SearchSpace], tuple[object, ...]]:  # type: ignore[override]
        return type(self), (dict(self), self.fixed, self.inequalities)

    def contains(self, rows: ArrayLike) -> BoolArray:
        """Whether rows satisfy the linear constraints; shape (m,).

        Parameters
        ----------
        rows : array_like of float, shape (m, d)
            Snapped rows of the whole space.

        Returns
        -------
        bool array of shape (m,)
            Which rows do.
        """
        matrix = self._matrix(rows, "rows")
        if not len(self._columns):
            return np.ones(len(matrix), dtype=bool)
        return self._feasible(matrix[:, self._columns])

    def has_fixed(self, rows: FloatArray) -> BoolArray:
        """Whether rows have the fixed values.

        Parameters
        ----------
        rows : float64 array of shape (m, d)
            Snapped rows of the whole space.

        Returns
        -------
        bool array of shape (m,)
            Which rows do. The value of an inactive parameter does not count.
        """
        is_fixed = (rows == self._pinned) | np.isnan(self._pinned) | np.isnan(rows)
        return np.asarray(is_fixed.all(axis=1))

    def snap(self, rows: ArrayLike) -> FloatArray:
        """Move rows to points of this part of the space.

        Parameters, result and errors are those of :meth:`SearchSpace.snap`.
        """
        snapped = super().snap(self._pin(np.asarray(rows, dtype=np.float64)))
        return self._moved(snapped, np.zeros(len(snapped)))

    def from_uniform(self, points: ArrayLike) -> FloatArray:
        """Map points of the unit cube to rows; infeasible ones are moved into the interior.

        Parameters, result and errors are those of :meth:`SearchSpace.from_uniform`.
        """
        uniform = self._matrix(points, "points")
        if self._categorical.size:
            choices = np.floor(uniform * self.n_choices)
            uniform = np.where(self.is_categorical, choices, uniform)
        snapped = super().snap(self._pin(uniform))
        shares: FloatArray = (np.arange(1, len(snapped) + 1, dtype=np.float64) * _GOLDEN) % 1.0
        return self._moved(snapped, shares)

    def enumerate_rows(self) -> FloatArray:
        """List all distinct rows of a finite part; see :meth:`SearchSpace.enumerate_rows`.

        Returns
        -------
        float64 array of shape (n, d)
            Snapped rows.

        Raises
        ------
        ValueError
            If a parameter is continuous, or nothing is left.
        """
        return self._within(super().enumerate_rows())

    def _within(self, rows: FloatArray) -> FloatArray:
        """Return those of all rows of a space that are in this part; see `enumerate_rows`."""
        rows = rows[self.has_fixed(rows) & self.contains(rows)]
        if not len(rows):
            raise ValueError("No point of the space has the fixed values within the constraints.")
        return np.asarray(rows)

    def _centres(self, j: int) -> FloatArray:
        return super()._centres(j) if np.isnan(self._pinned[j]) else self._pinned[j : j + 1]

    def _narrowed(self) -> dict[int, range]:
        """Return the cells that columns with a grid may have, where these are not all."""
        limits = {}
        for j in np.flatnonzero(~np.isnan(self._pinned)).tolist():
            cell = 0 if self._is_held[j] else int(self._parent_cells(self._pinned[None], j)[0])
            limits[j] = range(cell, cell + 1)
        if not len(self._columns):
            return limits
        grid = self._cells_of > 0.0
        lowest = np.zeros(len(grid))
        highest = np.where(grid, self._cells_of - 1.0, 1.0)
        for k, j in enumerate(self._columns.tolist()):
            if j in limits:
                lowest[k] = highest[k] = limits[j].start if grid[k] else self._pinned[j]
        factors = self._weights * self._widths
        bounds = self._bounds + self._slack - self._weights @ self._offsets
        # An inequality holds where one of its parameters is inactive.
        binds = ~((self._weights != 0.0) & ~self._unconditional[self._columns]).any(axis=1)
        for _ in range(_N_PASSES):
            for own, bound in zip(factors[binds], bounds[binds], strict=True):
                least = np.minimum(own * lowest, own * highest)
                for k in np.flatnonzero(own).tolist():
                    with np.errstate(over="ignore", invalid="ignore"):
                        end = (bound - (least.sum() - least[k])) / own[k]
                    if not np.isfinite(end):
                        continue
                    margin = _ROUNDING * max(abs(end), 1.0)
                    if own[k] > 0.0:
                        end = np.floor(end + margin) if grid[k] else end + margin
                        highest[k] = max(min(highest[k], end), lowest[k])
                    else:
                        end = np.ceil(end - margin) if grid[k] else end - margin
                        lowest[k] = min(max(lowest[k], end), highest[k])
        for k in np.flatnonzero(grid).tolist():
            limits.setdefault(int(self._columns[k]), range(int(lowest[k]), int(highest[k]) + 1))
        return limits

    def _column(self, name: str) -> int:
        if name not in self:
            raise KeyError(f"unknown parameter {name!r}; the space has {self.names}.")
        return self.names.index(name)

    def _pin(self, rows: FloatArray) -> FloatArray:
        return np.asarray(np.where(np.isnan(self._pinned), rows, self._pinned))

    def _moved(self, rows: FloatArray, shares: FloatArray) -> FloatArray:
        """Move infeasible snapped rows to the boundary, and by `shares` of the way to an anchor."""
        wrong = np.flatnonzero(~self.contains(rows))
        if not len(wrong):
            return rows
        start = rows[np.ix_(wrong, self._columns)]
        distances = ((start[:, None, :] - self._anchors[None]) ** 2).sum(axis=2)
        goal = self._anchors[distances.argmin(axis=1)]
        outside, inside = np.zeros(len(wrong)), np.ones(len(wrong))
        for _ in range(_BISECTIONS):
            middle = 0.5 * (outside + inside)
            fine = self._feasible(self._snapped(start + middle[:, None] * (goal - start)))
            inside = np.where(fine, middle, inside)
            outside = np.where(fine, outside, middle)
        boundary = start + inside[:, None] * (goal - start)
        # The way inside leads to any anchor, because the nearest one is often at the boundary.
        inner = self._anchors[(wrong * _STRIDE) % len(self._anchors)]
        moved = self._snapped(boundary + shares[wrong, None] * (inner - boundary))
        # Snapping to a grid may violate the constraint again.
        moved = np.where(self._feasible(moved)[:, None], moved, goal)
        result = rows.copy()
        result[np.ix_(wrong, self._columns)] = moved
        return super().snap(result)

    def _feasible(self, units: FloatArray) -> BoolArray:
        """Whether the constrained columns satisfy all constraints; one with a NaN holds."""
        with np.errstate(invalid="ignore"):
            cells = np.minimum(np.floor(units * self._cells_of), self._cells_of - 1.0)
        steps = np.where(self._cells_of > 0.0, cells, units)
        values = self._offsets + self._widths * steps
        inactive = np.isnan(values)
        sums = np.where(inactive, 0.0, values) @ self._weights.T
        holds = sums <= self._bounds + self._slack
        lacking = (inactive[:, None, :] & (self._weights != 0.0)).any(axis=2)
        return np.asarray((holds | lacking).all(axis=1))

    def _snapped(self, units: FloatArray) -> FloatArray:
        """Move constrained columns to the middle of their cells."""
        clipped = np.clip(units, 0.0, 1.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            cells = np.minimum(np.floor(clipped * self._cells_of), self._cells_of - 1.0)
            centres = (cells + 0.5) / self._cells_of
        pinned = self._pinned[self._columns]
        units = np.where(self._cells_of > 0.0, centres, clipped)
        return np.where(np.isnan(pinned), units, pinned)

    @cached_property
    def _anchors(self) -> FloatArray:
        """Feasible points of the constrained columns, shape (k, number of columns)."""
        # Loaded here: few spaces are restricted, and the import is slow.
        from scipy.stats import qmc

        points = qmc.Sobol(len(self._columns), scramble=False).random(_N_DRAWN)
        points = self._snapped(points)
        found = points[self._feasible(points)][:_N_ANCHORS]
        if len(found) == _N_ANCHORS:
            return np.asarray(found)
        corners = self._corners()
        middle = self._snapped(corners.mean(axis=0)[None]) if len(corners) else corners
        inner = self._snapped(0.5 * (corners + middle))
        more = np.concatenate([found, middle, inner, corners])
        return np.asarray(more[self._feasible(more)])

    def _corners(self) -> FloatArray:
        """Extreme feasible points in some directions, for regions too small for random points."""
        # Loaded here: few spaces are restricted, and the import is slow.
        from scipy.optimize import Bounds, LinearConstraint, milp

        grid = self._cells_of > 0.0
        pinned = self._pinned[self._columns]
        lowest = np.zeros(len(grid))
        highest = np.where(grid, self._cells_of - 1.0, 1.0)
        held = np.where(grid, np.floor(pinned * self._cells_of), pinned)
        lowest = np.where(np.isnan(pinned), lowest, held)
        highest = np.where(np.isnan(pinned), highest, np.minimum(held, highest))
        rule = LinearConstraint(
            self._weights * self._widths, ub=self._bounds - self._weights @ self._offsets
        )
        directions = np.random.default_rng(0).standard_normal((_N_CORNERS, len(grid)))
        corners = []
        for direction in directions / np.maximum(highest, 1.0):
            solved = milp(
                direction,
                integrality=grid.astype(np.int64),
                bounds=Bounds(lowest, highest),
                constraints=rule,
            )
            if solved.x is None:
                break
            # The solver may leave the cube by its tolerance.
            ends = np.clip(solved.x, lowest, highest)
            steps = np.where(grid, np.round(ends), ends)
            with np.errstate(divide="ignore", invalid="ignore"):
                corners.append(np.where(grid, (steps + 0.5) / self._cells_of, steps))
        return np.array(corners).reshape(-1, len(grid))


def _linear_scale(name: str, parameter: Parameter) -> tuple[float, float, float]:
    """Offset, width and number of cells (0 if continuous) of a parameter on a linear scale."""
    if isinstance(parameter, Categorical) or parameter.log:
        raise ValueError(f"Constraints need linear numeric parameters; {name!r} is {parameter!r}.")
    if parameter.n_values == 1:
        return float(parameter.low), 0.0, 1.0
    if parameter.step is None:
        return parameter.low, parameter.high - parameter.low, 0.0
    return float(parameter.low), float(parameter.step), float(parameter.n_values)
