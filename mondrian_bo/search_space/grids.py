"""Arithmetic of grids: k values share [0, 1], each at the middle of a cell of its own."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from mondrian_bo.array_types import FloatArray

# Up to this many cells, vectorised float64 arithmetic finds the cell of a cell's own middle on
# both scales. No model tells finer grids from a continuum.
MAX_VECTOR_CELLS = 2**40


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
