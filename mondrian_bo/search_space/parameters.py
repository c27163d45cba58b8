"""The numeric parameters of a search space, and the arithmetic of their encoding on [0, 1].

Bounds, logs, steps and the reduction of ``high`` follow ``optuna.distributions``, so that every
value decoded here is one that Optuna's distribution of the same arguments contains.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from functools import cached_property
from numbers import Integral, Real
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from mondrian_bo.search_space.categorical import Categorical
from mondrian_bo.search_space.conditions import Condition, check_condition
from mondrian_bo.shared.array_types import FloatArray

MAX_VECTOR_CELLS = 2**40
"""Largest grid that vectorised float64 arithmetic handles: up to this many cells it finds the cell
of a cell's own middle on both scales. No model tells finer grids from a continuum."""

_STEP_TOLERANCE = 1e-6
"""Distance from a grid, in steps, at which a value still counts as on it. Optuna tolerates 1e-8, by
an expression that rounds differently; this takes every value that Optuna takes."""


@dataclass(frozen=True)
class Float:
    """A real parameter, continuous or on a grid.

    Parameters
    ----------
    low, high : float
        Inclusive finite bounds, ``low <= high``. With a step, ``high`` is reduced to the largest
        value of the form ``low + i * step``.
    log : bool, default=False
        Whether the parameter is uniform in the logarithm; needs ``low > 0`` and no step.
    step : float or None, default=None
        Distance between the values of a grid that starts at ``low``; None is continuous.
    condition : Condition or None, default=None
        When the parameter is active; None is always.

    Raises
    ------
    TypeError
        If an argument is of the wrong type.
    ValueError
        If the bounds, the log or the step contradict the above, or ``high - low`` overflows.
    """

    low: float
    high: float
    _: KW_ONLY
    log: bool = False
    step: float | None = None
    condition: Condition | None = None

    def __post_init__(self) -> None:
        low, high = _real(self.low, "Float", "low"), _real(self.high, "Float", "high")
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)
        _check_numeric(self, "positive")
        if not math.isfinite(high - low):
            raise ValueError(f"Float: `high - low` must be finite, got {low=}, {high=}.")
        if self.step is None:
            return
        if self.log:
            raise ValueError(f"Float: `step` must be None when `log` is True, got {self.step!r}.")
        step = _real(self.step, "Float", "step")
        if step <= 0:
            raise ValueError(f"Float: `step` must be > 0, got {step!r}.")
        object.__setattr__(self, "step", step)
        object.__setattr__(self, "high", largest_grid_value(low, high, step))

    @cached_property
    def n_values(self) -> int:
        """Number of distinct values; 0 when there is a continuum of them."""
        if self.low == self.high:
            return 1
        if self.step is None:
            return 0
        return n_grid_values(self.low, self.high, self.step)

    def index(self, value: object) -> int:
        """Return the place of a value on the grid.

        Parameters
        ----------
        value : float
            The value.

        Returns
        -------
        int
            From 0 to ``n_values - 1``.

        Raises
        ------
        TypeError
            If the value is not a number.
        ValueError
            If it is out of range or off the grid, or if the parameter has no grid.
        """
        number = self._checked(value)
        if not self.n_values:
            raise ValueError("A continuous Float has no grid.")
        if self.step is None:
            return 0
        index = min(round((number - self.low) / self.step), self.n_values - 1)
        rounding = 4.0 * math.ulp(max(abs(self.low), abs(self.high)))
        if abs(number - self._value(index)) > _STEP_TOLERANCE * self.step + rounding:
            raise _off_grid(self, value)
        return index

    def to_unit(self, value: object) -> float:
        """Return the position of a value.

        Parameters
        ----------
        value : float
            The value.

        Returns
        -------
        float
            In [0, 1]; with a grid, the middle of the value's cell.

        Raises
        ------
        TypeError, ValueError
            If the value is no number, out of range or off the grid.
        """
        if self.n_values:
            return cell_centre(self.index(value), self.n_values)
        number = self._checked(value)
        if self.log:
            unit = _log_ratio(number, self.low) / _log_ratio(self.high, self.low)
        else:
            unit = (number - self.low) / (self.high - self.low)
        return min(unit, 1.0)

    def from_unit(self, unit: float) -> float:
        """Return the value at a position.

        Parameters
        ----------
        unit : float
            Position in [0, 1].

        Returns
        -------
        float
            The value; it is on the grid if there is one.
        """
        if self.n_values:
            return self._value(cell(unit, self.n_values))
        # Measured from the nearer bound, so that both bounds are decoded exactly.
        near_low = unit <= 0.5
        start, share = (self.low, unit) if near_low else (self.high, unit - 1.0)
        if self.log:
            # In binary digits, the whole ones added to the exponent: the factor itself overflows
            # when the bounds are more than 308 decades apart, and next to the subnormal numbers
            # a product rounded on the way would keep few digits.
            digits = share * _log_ratio(self.high, self.low) / math.log(2.0)
            whole = round(digits)
            mantissa, exponent = math.frexp(start)
            number = math.ldexp(mantissa * 2.0 ** (digits - whole), exponent + whole)
        else:
            number = start + share * (self.high - self.low)
        return min(max(number, self.low), self.high)

    def from_units(self, units: FloatArray) -> list[float]:
        """Return the values at positions, as `from_unit` does.

        Parameters
        ----------
        units : float64 array of shape (m,)
            Positions in [0, 1].

        Returns
        -------
        list of m floats
            The values; at NaN, any value.
        """
        if self.n_values or self.log:
            return [math.nan if unit != unit else self.from_unit(unit) for unit in units.tolist()]
        width = self.high - self.low
        near_low = self.low + units * width
        values = np.where(units <= 0.5, near_low, self.high + (units - 1.0) * width)
        clipped: list[float] = np.minimum(np.maximum(values, self.low), self.high).tolist()
        return clipped

    def _checked(self, value: object) -> float:
        number = _real(value, "Float", "value")
        if not self.low <= number <= self.high:
            raise _out_of_range(self, value)
        return number

    def _value(self, index: int) -> float:
        # `low + index * step` may miss `high` by a rounding error.
        if self.step is None or index == self.n_values - 1:
            return self.high
        return min(self.low + index * self.step, self.high)


@dataclass(frozen=True)
class Int:
    """An integer parameter.

    Parameters
    ----------
    low, high : int
        Inclusive bounds, ``low <= high``. ``high`` is reduced to the largest value of the form
        ``low + i * step``.
    log : bool, default=False
        Whether the parameter is uniform in the logarithm; needs ``low >= 1`` and ``step == 1``.
    step : int, default=1
        Distance between neighbouring values.
    condition : Condition or None, default=None
        When the parameter is active; None is always.

    Raises
    ------
    TypeError, ValueError
        See :class:`Float`.

    Notes
    -----
    Encoding and decoding invert each other exactly for up to 2**53 values, with ``log`` for up to
    2**40; beyond that a float64 cannot tell neighbours apart.
    """

    low: int
    high: int
    _: KW_ONLY
    log: bool = False
    step: int = 1
    condition: Condition | None = None

    def __post_init__(self) -> None:
        low, high = _integer(self.low, "Int", "low"), _integer(self.high, "Int", "high")
        step = _integer(self.step, "Int", "step")
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)
        object.__setattr__(self, "step", step)
        _check_numeric(self, "at least 1")
        if step <= 0:
            raise ValueError(f"Int: `step` must be > 0, got {step}.")
        if self.log and step != 1:
            raise ValueError(f"Int: `step` must be 1 when `log` is True, got {step}.")
        object.__setattr__(self, "high", low + (high - low) // step * step)

    @cached_property
    def n_values(self) -> int:
        """Number of distinct values."""
        return (self.high - self.low) // self.step + 1

    def index(self, value: object) -> int:
        """Return the place of a value on the grid.

        Parameters
        ----------
        value : int
            The value.

        Returns
        -------
        int
            From 0 to ``n_values - 1``.

        Raises
        ------
        TypeError
            If the value is not an integer (integral floats count as such).
        ValueError
            If it is out of range or off the grid.
        """
        number = _integer(value, "Int", "value")
        if not self.low <= number <= self.high:
            raise _out_of_range(self, value)
        index, remainder = divmod(number - self.low, self.step)
        if remainder:
            raise _off_grid(self, value)
        return index

    def to_unit(self, value: object) -> float:
        """Return the position of a value.

        Parameters
        ----------
        value : int
            The value.

        Returns
        -------
        float
            The middle of the value's cell in [0, 1].

        Raises
        ------
        TypeError, ValueError
            See :meth:`index`.
        """
        if self.log and self.n_values > 1:
            return float(log_cell_centres(self.index(value), float(self.n_values), float(self.low)))
        return cell_centre(self.index(value), self.n_values)

    def from_unit(self, unit: float) -> int:
        """Return the value at a position.

        Parameters
        ----------
        unit : float
            Position in [0, 1].

        Returns
        -------
        int
            The value whose cell holds the position.
        """
        if self.log:
            index = int(log_cells(unit, float(self.n_values), float(self.low)))
        else:
            index = cell(unit, self.n_values)
        return self.low + min(index, self.n_values - 1) * self.step

    def from_units(self, units: FloatArray) -> list[int]:
        """Return the values at positions, as `from_unit` does.

        Parameters
        ----------
        units : float64 array of shape (m,)
            Positions in [0, 1].

        Returns
        -------
        list of m ints
            The values; at NaN, any value.
        """
        return [self.low if unit != unit else self.from_unit(unit) for unit in units.tolist()]


Parameter: TypeAlias = Float | Int | Categorical
"""A parameter of a search space."""


def _out_of_range(parameter: Float | Int, value: object) -> ValueError:
    return ValueError(f"must be in [{parameter.low}, {parameter.high}], got {value!r}.")


def _off_grid(parameter: Float | Int, value: object) -> ValueError:
    return ValueError(f"must be {parameter.low} + i * {parameter.step}, got {value!r}.")


def _log_ratio(larger: float, smaller: float) -> float:
    # log1p keeps neighbouring floats apart; it overflows only where plain logarithms are safe.
    relative = (larger - smaller) / smaller
    if math.isfinite(relative):
        return math.log1p(relative)
    return math.log(larger) - math.log(smaller)


def _check_numeric(parameter: Float | Int, accepted_low: str) -> None:
    owner = type(parameter).__name__
    if not isinstance(parameter.log, bool | np.bool_):
        raise TypeError(f"{owner}: `log` must be a bool, got {parameter.log!r}.")
    low, high = parameter.low, parameter.high
    if low > high:
        raise ValueError(f"{owner}: `low` must be <= `high`, got {low=}, {high=}.")
    if parameter.log and low <= 0:
        raise ValueError(f"{owner}: `low` must be {accepted_low} when `log` is True, got {low}.")
    check_condition(parameter.condition, owner)


def _real(value: object, owner: str, argument: str) -> float:
    # Most values are floats, and a look at the abstract class takes ten times as long.
    if type(value) is float and math.isfinite(value):
        return value
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{owner}: `{argument}` must be a number, got {value!r}.")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueError(f"{owner}: `{argument}` must be finite, got {value!r}.")
    return number


def _integer(value: object, owner: str, argument: str) -> int:
    number = _real(value, owner, argument)
    if isinstance(value, Integral):
        return int(value)
    if not number.is_integer():
        raise TypeError(f"{owner}: `{argument}` must be an integer, got {value!r}.")
    return int(number)


# Grids: k values share [0, 1], each in the middle of a cell of its own ---------------------------


def cell_centre(index: int, size: int) -> float:
    """Middle of a cell among ``size`` equal ones.

    `cell` inverts it exactly for up to 2**53 cells; then a float64 cannot tell neighbours apart.
    """
    centre = (2 * index + 1) / (2 * size)
    # Near 2**53 cells the middle may round up into the next one.
    return centre if cell(centre, size) <= index else math.nextafter(centre, 0.0)


def cell(unit: float, size: int) -> int:
    """Index of the one among ``size`` equal cells that holds ``unit``, which is in [0, 1]."""
    # Exact: in floating point `unit * size` is off by whole cells once there are 2**52 of them.
    numerator, denominator = unit.as_integer_ratio()
    return min(numerator * size // denominator, size - 1)


def log_cell_centres(index: ArrayLike, size: ArrayLike, low: ArrayLike) -> FloatArray:
    """Positions of the integers ``low + index`` among ``size`` of them on a logarithmic scale.

    The scale runs from ``low - 1/2`` to ``low + size - 1/2``. It is computed from the index, not
    from the logarithm of the value, which would lose the cells of a narrow range of large numbers.
    `log_cells` inverts it exactly for up to 2**40 integers.
    """
    base = np.subtract(low, 0.5)
    centres = np.log1p(np.add(index, 0.5) / base) / np.log1p(np.divide(size, base))
    return np.asarray(centres, dtype=np.float64)


def log_cells(unit: ArrayLike, size: ArrayLike, low: ArrayLike) -> FloatArray:
    """Index, from 0 to ``size``, of the cell of `log_cell_centres` that holds ``unit``."""
    base = np.subtract(low, 0.5)
    offset = base * np.expm1(np.multiply(unit, np.log1p(np.divide(size, base))))
    return np.asarray(np.floor(offset), dtype=np.float64)


def largest_grid_value(low: float, high: float, step: float) -> float:
    """Largest ``low + i * step`` up to ``high``, in decimal arithmetic as Optuna does.

    In binary a range of 0.3 would not hold three steps of 0.1.
    """
    exact_low, exact_step = Fraction(repr(low)), Fraction(repr(step))
    n_steps = (Fraction(repr(high)) - exact_low) // exact_step
    # A bound that is itself a rounded grid value stays, however its rounding went.
    overshoot = exact_low + (n_steps + 1) * exact_step - Fraction(high)
    if overshoot <= Fraction(math.ulp(high)) / 2:
        return high
    return float(exact_low + n_steps * exact_step)


def n_grid_values(low: float, high: float, step: float) -> int:
    """Count the values from ``low`` to ``high``, which is one of them."""
    return round((Fraction(repr(high)) - Fraction(repr(low))) / Fraction(repr(step))) + 1
