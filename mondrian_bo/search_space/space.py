"""The search space: parameter values <-> rows of the unit cube."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mondrian_bo.search_space.categorical import Categorical
from mondrian_bo.search_space.links import Family, families, link_conditions
from mondrian_bo.search_space.parameters import (
    MAX_VECTOR_CELLS,
    Float,
    Int,
    Parameter,
    log_cell_centres,
    log_cells,
)
from mondrian_bo.shared.array_types import BoolArray, FloatArray, IntArray


class SearchSpace(Mapping[str, Parameter]):
    """An immutable, ordered mapping of names to parameters, encoded as rows of the unit cube.

    In a row of shape (d,), float64, a numeric parameter is in [0, 1]: a continuous one runs from
    ``low`` at 0 to ``high`` at 1, linearly or in the logarithm; a grid of k values divides [0, 1]
    into k cells and each value sits in the middle of its cell (equal cells; for integers with
    ``log``, cells of one unit on the logarithmic scale). A parameter with a single value sits at
    0.5. A categorical parameter is the index of its choice: 0, 1, ... An inactive parameter is
    NaN.

    Parameters
    ----------
    parameters : mapping of str to Float, Int or Categorical
        At least one. The order of the mapping is the order of the columns.

    Attributes
    ----------
    names : tuple of str
        The columns.
    parameters : tuple of Float, Int or Categorical
        Their parameters, in the same order.
    n_dimensions : int
        Number of parameters, d.
    n_choices : int64 array of shape (d,)
        Number of choices of the categorical parameters, 0 for the others. Read-only.
    grid_sizes : int64 array of shape (d,)
        Number of distinct values, 0 when continuous; at most 2**63 - 1. Read-only.
    is_categorical : bool array of shape (d,)
        Which parameters are categorical. Read-only.

    Raises
    ------
    TypeError
        If ``parameters`` is not a mapping of strings to parameters.
    ValueError
        If it is empty, or if a condition names an unknown parent, a value the parent cannot take,
        a parent without a grid of at most 2**40 values, or is part of a cycle.
    """

    names: tuple[str, ...]
    parameters: tuple[Parameter, ...]
    n_dimensions: int
    n_choices: IntArray
    grid_sizes: IntArray
    is_categorical: BoolArray

    _limits: Mapping[int, range] = MappingProxyType({})
    """Cells of some columns that a part of the space is limited to."""

    def __init__(self, parameters: Mapping[str, Parameter]) -> None:
        self._parameters = _checked(parameters)
        self.names = tuple(self._parameters)
        self.parameters = members = tuple(self._parameters.values())
        self.n_dimensions = len(self.names)
        sizes = [parameter.n_values for parameter in members]
        self.is_categorical = np.array([isinstance(p, Categorical) for p in members])
        self.grid_sizes = np.array([min(size, 2**63 - 1) for size in sizes], dtype=np.int64)
        self.n_choices = np.where(self.is_categorical, self.grid_sizes, 0)
        for shared in (self.is_categorical, self.grid_sizes, self.n_choices):
            shared.flags.writeable = False

        self._column_of = {name: j for j, name in enumerate(self.names)}
        self._links = link_conditions(self._parameters)
        self._families = families(self._links)
        self._upper = np.where(self.is_categorical, self.n_choices - 1.0, 1.0)
        self._unconditional = np.array([p.condition is None for p in members])
        is_log = np.array([isinstance(p, Int) and p.log and p.n_values > 1 for p in members])
        is_linear = ~is_log & ~self.is_categorical & (self.grid_sizes > 0)
        self._categorical = np.flatnonzero(self.is_categorical)
        self._linear = np.flatnonzero(is_linear & (self.grid_sizes <= MAX_VECTOR_CELLS))
        self._log = np.flatnonzero(is_log)
        self._sizes = self.grid_sizes.astype(np.float64)
        self._lows = np.array(
            [0.0 if isinstance(p, Categorical) else float(p.low) for p in members]
        )

    def __getitem__(self, name: str) -> Parameter:
        return self._parameters[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._parameters)

    def __len__(self) -> int:
        return len(self._parameters)

    def __eq__(self, other: object) -> bool:
        # Unlike a mapping's, this equality is for spaces alone and minds the order of the columns.
        if not isinstance(other, SearchSpace):
            return NotImplemented
        return list(self._parameters.items()) == list(other._parameters.items())

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[type[SearchSpace], tuple[dict[str, Parameter]]]:
        return type(self), (self._parameters,)

    def __repr__(self) -> str:
        return f"SearchSpace({self._parameters!r})"

    @cached_property
    def linear_ranges(self) -> tuple[tuple[float, float] | None, ...]:
        """Bounds of the continuous parameters that are not logarithmic; None for the others."""
        return tuple(
            (p.low, p.high) if isinstance(p, Float) and not p.n_values and not p.log else None
            for p in self.parameters
        )

    @cached_property
    def cardinality(self) -> float:
        """Number of distinct points, where inactive parameters do not count.

        Infinite if any parameter is continuous; exact up to rounding, and at most the largest
        float64 otherwise.
        """
        if not self.grid_sizes.all():
            return math.inf
        # A continuous parameter whose value is fixed has no grid of its own.
        sizes = [max(parameter.n_values, 1) for parameter in self.parameters]
        for column, limits in self._limits.items():
            sizes[column] = limits.stop - limits.start
        # For each parameter, by cell: the points of the children it activates. Links come parents
        # first.
        branches: list[dict[float, int]] = [{} for _ in sizes]
        for child, parent, cells in reversed(self._links):
            n_points = _n_points(sizes[child], branches[child])
            kept = self._limits.get(parent)
            for cell in cells.tolist():
                if kept is not None and int(cell) not in kept:
                    continue
                branches[parent][cell] = branches[parent].get(cell, 1) * n_points
        roots = np.flatnonzero(self._unconditional).tolist()
        total = math.prod(_n_points(sizes[root], branches[root]) for root in roots)
        return float(min(total, sys.float_info.max))

    def to_unit(self, params: Mapping[str, object]) -> FloatArray:
        """Encode parameter values.

        Parameters
        ----------
        params : mapping of str to object
            Values by name; any may be absent.

        Returns
        -------
        float64 array of shape (d,)
            The row; NaN where the value is absent or the other values make it inactive.

        Raises
        ------
        KeyError
            If a name is not in the space.
        TypeError
            If a value is of the wrong type.
        ValueError
            If a value is out of range, off the grid or not a choice.
        """
        row = np.full(self.n_dimensions, np.nan)
        for name, value in params.items():
            if name not in self._parameters:
                raise KeyError(f"unknown parameter {name!r}; the space has {self.names}.")
            try:
                row[self._column_of[name]] = self._parameters[name].to_unit(value)
            except (TypeError, ValueError) as error:
                raise type(error)(f"parameter {name!r}: {error}") from None
        for family in self._families:
            self._drop_inactive(row[None], family)
        return row

    def from_unit(self, row: ArrayLike) -> dict[str, Any]:
        """Decode a row.

        Parameters
        ----------
        row : array_like of float, shape (d,)
            It is snapped first (see `snap`); entries of inactive parameters are ignored.

        Returns
        -------
        dict of str to object
            The active parameters, in the order of the space: ``float`` and ``int`` within their
            bounds and on their grids, and the choice objects themselves.

        Raises
        ------
        ValueError
            If the shape is wrong, or the entry of an active parameter is NaN.
        """
        given = np.asarray(row, dtype=np.float64)
        if given.shape != (self.n_dimensions,):
            raise ValueError(f"`row` must have shape ({self.n_dimensions},), got {given.shape}.")
        snapped = self.snap(given[None])[0]
        filled = np.isnan(given) & ~np.isnan(snapped)
        if filled.any():
            name = self.names[int(np.argmax(filled))]
            raise ValueError(f"`row` is NaN at parameter {name!r}, which is active.")
        return {
            name: parameter.from_unit(unit)
            for name, parameter, unit in zip(
                self.names, self.parameters, snapped.tolist(), strict=True
            )
            if not math.isnan(unit)
        }

    def decode_snapped(self, rows: FloatArray) -> list[dict[str, Any]]:
        """Decode many snapped rows, without the checks of `from_unit`.

        Parameters
        ----------
        rows : float64 array of shape (m, d)
            Rows as `snap` returns them.

        Returns
        -------
        list of m dicts
            The active parameters of each row, as `from_unit` returns them.
        """
        columns = [one.from_units(rows[:, j]) for j, one in enumerate(self.parameters)]
        decoded = [
            dict(zip(self.names, values, strict=True)) for values in zip(*columns, strict=True)
        ]
        for i, j in np.argwhere(np.isnan(rows)).tolist():
            del decoded[i][self.names[j]]
        return decoded

    def is_complete(self, rows: FloatArray) -> BoolArray:
        """Whether rows have all parameters that are active; shape (m,).

        Parameters
        ----------
        rows : float64 array of shape (m, d)
            Rows; NaN where a parameter is absent.

        Returns
        -------
        bool array of shape (m,)
            Which rows are complete.
        """
        missing = np.isnan(rows)
        if not missing.any():
            return np.ones(len(rows), dtype=bool)
        snapped = self.snap(self.filled(rows))
        return np.asarray(~(missing & ~np.isnan(snapped)).any(axis=1))

    def filled(self, rows: FloatArray) -> FloatArray:
        """Return rows with defaults for NaN.

        Parameters
        ----------
        rows : float64 array of shape (m, d)
            Rows. They are not modified.

        Returns
        -------
        float64 array of shape (m, d)
            The rows, with the first choice or the middle of the range in place of NaN.
        """
        return np.where(np.isnan(rows), np.where(self.is_categorical, 0.0, 0.5), rows)

    def snap(self, rows: ArrayLike) -> FloatArray:
        """Move rows to the nearest points that encode parameter values.

        Entries are clipped to their range and moved to the middle of their cell where the
        parameter has a grid (of up to 2**40 values; finer ones stay as continuous ones do).
        Inactive parameters become NaN. The result is a fixed point.

        Parameters
        ----------
        rows : array_like of float, shape (m, d)
            Not modified. NaN is allowed at conditional parameters; one that turns out to be
            active is filled: 0.5 before snapping if numeric, choice 0 if categorical.

        Returns
        -------
        float64 array of shape (m, d)
            The snapped rows.

        Raises
        ------
        ValueError
            If the shape is wrong, or an entry of an unconditional parameter is NaN.
        """
        given = self._matrix(rows, "rows")
        missing = np.isnan(given)
        if missing.any():
            lost = (missing & self._unconditional).any(axis=0)
            if lost.any():
                names = [self.names[j] for j in np.flatnonzero(lost)]
                raise ValueError(f"`rows` are NaN at {names}, which have no condition.")
            given = self.filled(given)
        snapped = np.clip(given, 0.0, self._upper)
        if self._categorical.size:
            snapped[:, self._categorical] = np.rint(snapped[:, self._categorical])
        if self._linear.size:
            cells = self._cells(snapped, self._linear)
            snapped[:, self._linear] = (cells + 0.5) / self._sizes[self._linear]
        if self._log.size:
            cells = self._cells(snapped, self._log)
            centres = log_cell_centres(cells, self._sizes[self._log], self._lows[self._log])
            within = cells < MAX_VECTOR_CELLS
            snapped[:, self._log] = np.where(within, centres, snapped[:, self._log])
        for family in self._families:
            self._drop_inactive(snapped, family)
        return snapped

    def from_uniform(self, points: ArrayLike) -> FloatArray:
        """Map points of the unit cube, such as a Sobol sequence, to rows.

        Parameters
        ----------
        points : array_like of float, shape (m, d)
            Entries in [0, 1). Uniform ones give every choice and every cell of a grid its share.

        Returns
        -------
        float64 array of shape (m, d)
            Snapped rows.

        Raises
        ------
        ValueError
            As `snap`.
        """
        uniform = self._matrix(points, "points")
        if self._categorical.size:
            choices = np.floor(uniform * self.n_choices)
            uniform = np.where(self.is_categorical, choices, uniform)
        return self.snap(uniform)

    def sample(self, m: int, rng: np.random.Generator) -> FloatArray:
        """Draw rows uniformly.

        Parameters
        ----------
        m : int
            Number of rows.
        rng : numpy.random.Generator
            Source of randomness; m * d numbers are drawn from it.

        Returns
        -------
        float64 array of shape (m, d)
            Snapped rows.
        """
        return self.from_uniform(rng.random((m, self.n_dimensions)))

    def enumerate_rows(self) -> FloatArray:
        """List all distinct rows of a finite space; look at `cardinality` first.

        Returns
        -------
        float64 array of shape (n, d)
            Snapped rows.

        Raises
        ------
        ValueError
            If a parameter is continuous.
        """
        if not self.grid_sizes.all():
            names = [self.names[j] for j in np.flatnonzero(self.grid_sizes == 0)]
            raise ValueError(f"The space is infinite: {names} are continuous.")
        rows = np.full((1, self.n_dimensions), np.nan)
        links = {link.child: link for link in self._links}
        for j in [*np.flatnonzero(self._unconditional).tolist(), *links]:
            active = np.ones(len(rows), dtype=bool)
            if j in links:
                # An inactive parent is NaN, which is in no set.
                active = np.isin(self._parent_cells(rows, links[j].parent), links[j].cells)
            units = self._centres(j)
            repeats = np.where(active, len(units), 1)
            rows = np.repeat(rows, repeats, axis=0)
            rows[np.repeat(active, repeats), j] = np.tile(units, int(active.sum()))
        return rows

    def _matrix(self, rows: ArrayLike, argument: str) -> FloatArray:
        matrix = np.asarray(rows, dtype=np.float64)
        if matrix.ndim != 2 or matrix.shape[1] != self.n_dimensions:
            expected = f"(m, {self.n_dimensions})"
            raise ValueError(f"`{argument}` must have shape {expected}, got {matrix.shape}.")
        return matrix

    def _centres(self, j: int) -> FloatArray:
        """Entries of all values of a parameter with a grid, in order, within its limits."""
        limits = self._limits.get(j, range(self.grid_sizes[j]))
        centres = np.arange(limits.start, limits.stop, dtype=np.float64)
        if j in self._log:
            centres = log_cell_centres(centres, self._sizes[j], self._lows[j])
        elif not self.is_categorical[j]:
            centres = (centres + 0.5) / self._sizes[j]
        return centres

    def _cells(self, rows: FloatArray, columns: NDArray[np.intp]) -> FloatArray:
        """Grid cells of snapped or clipped entries; all columns must be of one kind."""
        units, sizes = rows[:, columns], self._sizes[columns]
        if columns[0] in self._log:
            cells = log_cells(units, sizes, self._lows[columns])
        else:
            cells = np.floor(units * sizes)
        # The upper end of [0, 1] belongs to the last cell.
        bounded: FloatArray = np.minimum(cells, sizes - 1.0)
        return bounded

    def _parent_cells(self, rows: FloatArray, parent: int) -> FloatArray:
        """Grid cells of a parent, NaN where it is inactive; its column must be snapped."""
        if self.is_categorical[parent]:
            return rows[:, parent]
        return self._cells(rows, np.array([parent]))[:, 0]

    def _drop_inactive(self, rows: FloatArray, family: Family) -> None:
        """Write NaN where children of a parent are inactive."""
        cells = self._parent_cells(rows, family.parent)
        places = np.minimum(np.searchsorted(family.cells, cells), len(family.cells) - 1)
        # An inactive parent is NaN, which is equal to no cell.
        places[family.cells[places] != cells] = len(family.cells)
        rows[:, family.children] = np.where(family.active[places], rows[:, family.children], np.nan)


def _n_points(size: int, branches: Mapping[float, int]) -> int:
    return size - len(branches) + sum(branches.values())


def _checked(parameters: Mapping[str, Parameter]) -> dict[str, Parameter]:
    if not isinstance(parameters, Mapping):
        raise TypeError(f"`parameters` must be a mapping, got {parameters!r}.")
    if not parameters:
        raise ValueError("`parameters` must hold at least one parameter, got none.")
    for name, parameter in parameters.items():
        if not isinstance(name, str):
            raise TypeError(f"`parameters` must have strings as keys, got {name!r}.")
        if not isinstance(parameter, Float | Int | Categorical):
            raise TypeError(
                f"parameter {name!r} must be a Float, Int or Categorical, got {parameter!r}."
            )
    return dict(parameters)


def row_gaps(
    rows: FloatArray, others: FloatArray, is_categorical: BoolArray | None = None
) -> FloatArray:
    """Return how far rows are apart in each parameter.

    Parameters
    ----------
    rows, others : float64 arrays of shape (..., d)
        Rows; NaN where a parameter is absent. Their shapes are broadcast.
    is_categorical : bool array of shape (d,) or None, default=None
        Which columns hold categories. None leaves the differences of their indices, which are at
        least 1 between choices.

    Returns
    -------
    float64 array of shape (..., d)
        Absolute differences of numbers, 1 between choices. The gap is 1 where one row alone has
        the parameter, and 0 where none has it.
    """
    gaps = np.abs(rows - others)
    missing = np.isnan(gaps)
    if is_categorical is not None and is_categorical.any():
        gaps[..., is_categorical] = gaps[..., is_categorical] > 0.0
    if missing.any():
        gaps = np.where(missing, np.isnan(rows) != np.isnan(others), gaps)
    return gaps
