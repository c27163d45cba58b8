"""Scales of the features: what turns data of any range into rates of cuts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mondrian_bo.array_types import FloatArray
from mondrian_bo.trees.tree import lie_within

_BLOCK = 1024
_SMALLEST_EXTENT = np.finfo(np.float64).tiny
_FARTHEST = 1e100


def scaled(points: FloatArray, rates: FloatArray) -> FloatArray:
    """Return points times rates, (n, d), clipped where squared distances do not overflow yet."""
    with np.errstate(over="ignore"):
        return np.asarray(np.clip(points * rates, -_FARTHEST, _FARTHEST))


class Scales:
    """Rate weights of the dimensions: feature weights over the range of the data seen so far.

    That is the pre-processing to [0, 1] of Lakshminarayanan2016, done online.

    Parameters
    ----------
    n_dimensions : int
        Dimension d of the points.
    bounds : tuple of two float64 arrays of shape (d,), or None, default=None
        Lower and upper ends of the dimensions; None follows the range of the data.
    feature_weights : float64 array of shape (d,) or None, default=None
        Further weights of the dimensions' split rates; None is all ones.
    """

    def __init__(
        self,
        n_dimensions: int,
        bounds: tuple[FloatArray, FloatArray] | None = None,
        feature_weights: FloatArray | None = None,
    ) -> None:
        self.feature_weights = np.ones(n_dimensions) if feature_weights is None else feature_weights
        self._fixed = bounds is not None
        self._range = np.full((2, n_dimensions), [[np.inf], [-np.inf]])
        if bounds is not None:
            self._range[0], self._range[1] = bounds
        # Rates, and the arrays, never written to, that they were computed from.
        self._latest: tuple[FloatArray, FloatArray, FloatArray] | None = None

    @property
    def rates(self) -> FloatArray:
        """Rate weights of the dimensions, shape (d,); not to be written to."""
        return np.asarray(self._latest_row[0])

    @property
    def _latest_row(self) -> FloatArray:
        """The rates as the row of a matrix, shape (1, d)."""
        latest = self._latest
        if latest is None or latest[0] is not self._range or latest[1] is not self.feature_weights:
            rates = self._rates(self._range[None])
            self._latest = latest = self._range, self.feature_weights, rates
        return latest[2]

    @property
    def total_weight(self) -> float:
        """Sum of the weights of the features that vary: the rate at which the unit cube is cut."""
        varies = self._range[1] - self._range[0] > _SMALLEST_EXTENT
        return float(np.sum(self.feature_weights[varies]))

    def follow(self, points: NDArray[np.floating]) -> FloatArray:
        """Widen the ranges by new points, shape (S, m, d); return the rates after each of them.

        Returns
        -------
        float64 array of shape (1 or m, d)
            One row where all points lie within the range that is known.
        """
        starts, rates = self.follow_changes(points)
        if len(rates) == 1:
            return rates
        return np.repeat(rates, np.diff(starts, append=points.shape[1]), axis=0)

    def follow_changes(self, points: NDArray[np.floating]) -> tuple[list[int], FloatArray]:
        """Do as `follow`, and return the rates where they change: of many points, few are extreme.

        Returns
        -------
        tuple of list of k int and float64 array of shape (k, d)
            The points from which on rates count, the first of which is 0, and the rates.
        """
        # Learning sample by sample, nearly all calls find the ranges as they were.
        if self._fixed or lie_within(points, self._range):
            return [0], self._latest_row
        starts, ranges = [0], [self._range]
        for first in range(0, points.shape[1], _BLOCK):
            block = points[:, first : first + _BLOCK]
            if lie_within(block, self._range):
                continue
            after = self._after(block)
            before = np.concatenate([self._range[None], after[:-1]])
            for i in np.flatnonzero((after != before).any(axis=(1, 2))).tolist():
                starts.append(first + i)
                ranges.append(after[i].copy())  # or all others would be kept with it
            self._range = after[-1].copy()
        # The first point may itself have changed the ranges.
        skipped = int(starts[1] == 0)
        return starts[skipped:], self._rates(np.stack(ranges[skipped:]))

    def _after(self, points: NDArray[np.floating]) -> FloatArray:
        """Return the ranges of the data after each new point, shape (m, 2, d)."""
        lowest = np.minimum.accumulate(points.min(axis=0), axis=0)
        highest = np.maximum.accumulate(points.max(axis=0), axis=0)
        return np.stack(
            [np.minimum(lowest, self._range[0]), np.maximum(highest, self._range[1])], axis=1
        )

    def _rates(self, ranges: FloatArray) -> FloatArray:
        extent = ranges[:, 1] - ranges[:, 0]
        # A constant dimension keeps its unit, as in scikit-learn's MinMaxScaler, and so does one
        # with an extent whose inverse overflows.
        return np.asarray(self.feature_weights / np.where(extent > _SMALLEST_EXTENT, extent, 1.0))
