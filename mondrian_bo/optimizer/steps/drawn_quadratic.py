"""A quadratic that is drawn from the posterior of a local model, and its maximum in a box."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

from mondrian_bo.shared.array_types import FloatArray, IntArray

_SWEEPS = 1000
"""Largest number of rounds of coordinate ascent, our choice: along an oblique valley it is slow."""

_STILL = 1e-9
"""Largest move of a coordinate, in units, in the last round of the ascent."""

_OUTSIDE = 1e3
"""Penalty of the score for each unit of distance outside the box, in sums of coefficients."""


@dataclass(frozen=True)
class DrawnQuadratic:
    """A quadratic function of the numeric columns, plus a level for each choice, within a box.

    Attributes
    ----------
    centre : float64 array of shape (d,)
        The incumbent.
    numeric : int array of shape (k,)
        Columns of the quadratic.
    turn, axes : float64 arrays of shape (k, k)
        The product of offsets from the centre in these columns and `turn` gives the units. Rows of
        `axes`, its inverse, are the directions of the quadratic, each as long as its unit.
    slopes : float64 array of shape (k,)
        Coefficients of the directions.
    curvatures : float64 array of shape (k, k)
        Symmetric matrix of the coefficients of products.
    levels : dict of int to dict of float to float
        For each categorical column the choices that were seen, with their coefficients.
    low, high : float64 arrays of shape (k,)
        Ends of the box in units from the centre.
    """

    centre: FloatArray
    numeric: IntArray
    turn: FloatArray
    axes: FloatArray
    slopes: FloatArray
    curvatures: FloatArray
    levels: dict[int, dict[float, float]]
    low: FloatArray
    high: FloatArray

    def __call__(self, rows: FloatArray) -> FloatArray:
        """Return scores of rows, shape (m,): the values, less a penalty outside of the box."""
        units = self._units(rows)
        values = self._values(units)
        outside = np.maximum(units - self.high, self.low - units).clip(0.0).sum(axis=1)
        outside += (np.isnan(rows) != np.isnan(self.centre)).sum(axis=1)
        for j, levels in self.levels.items():
            level = np.full(len(rows), np.nan)
            for choice, value in levels.items():
                level[rows[:, j] == choice] = value
            unseen = np.isnan(level)
            values += np.where(unseen, 0.0, level)
            outside += unseen
        size = np.abs(self.slopes).sum() + np.abs(self.curvatures).sum()
        return np.asarray(values - _OUTSIDE * (1.0 + size) * outside)

    def values(self, rows: FloatArray) -> FloatArray:
        """Return values of rows, shape (m,), less that of the centre, also outside of the box.

        Choices count for nothing.
        """
        return self._values(self._units(rows))

    def climb(self, rows: FloatArray) -> FloatArray:
        """Return rows after coordinate ascent within the box: a copy of `rows`, (m, d)."""
        units = np.clip(self._units(rows), self.low, self.high)
        _ascend(units, self.slopes, self.curvatures, self.low, self.high)
        moved = rows.copy()
        kept = np.isnan(rows[:, self.numeric])
        ends = self.centre[self.numeric] + units @ self.axes
        moved[:, self.numeric] = np.where(kept, np.nan, ends)
        return moved

    def _values(self, units: FloatArray) -> FloatArray:
        return np.asarray(units @ self.slopes + ((units @ self.curvatures) * units).sum(axis=1))

    def _units(self, rows: FloatArray) -> FloatArray:
        offsets = rows[:, self.numeric] - self.centre[self.numeric]
        offsets[np.isnan(offsets)] = 0.0
        return np.asarray(offsets @ self.turn)


@njit(cache=True, nogil=True)
def _ascend(units, slopes, curvatures, low, high):  # type: ignore[no-untyped-def]
    """Move each row of `units` to the best place along each coordinate in turn, in sweeps."""
    for i in range(units.shape[0]):
        for _ in range(_SWEEPS):
            largest = 0.0
            for j in range(units.shape[1]):
                bend = 2.0 * curvatures[j, j]
                slope = slopes[j]
                for k in range(units.shape[1]):
                    if k != j:
                        slope += 2.0 * curvatures[j, k] * units[i, k]
                if bend < 0.0:
                    best = min(max(-slope / bend, low[j]), high[j])
                else:
                    gain = (slope + 0.5 * bend * (low[j] + high[j])) * (high[j] - low[j])
                    best = high[j] if gain > 0.0 else low[j]
                largest = max(largest, abs(best - units[i, j]))
                units[i, j] = best
            if largest <= _STILL:
                break
