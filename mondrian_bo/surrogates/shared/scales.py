"""Split rates of the features from the ranges of the data."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mondrian_bo.shared.array_types import FloatArray
from mondrian_bo.surrogates.shared.growing_forest import GrowingForest
from mondrian_bo.trees.tree import lie_within

_CHUNK = 1024
"""Points whose ranges are computed at a time, which bounds the memory of temporary arrays."""

_SMALLEST_EXTENT = np.finfo(np.float64).tiny
"""Smallest range, in units of the data, that counts as variation: its inverse is finite."""

_FARTHEST = 1e100
"""Bound of scaled coordinates, without unit: squares and sums of them stay below 1e308."""


def varies(extents: FloatArray) -> NDArray[np.bool_]:
    """Return which ranges of features count as variation."""
    return np.asarray(extents > _SMALLEST_EXTENT)


def divisors(extents: FloatArray) -> FloatArray:
    """Return ranges to divide by; 1 where a feature does not vary, as in MinMaxScaler."""
    return np.where(varies(extents), extents, 1.0)


def scaled(points: FloatArray, rates: FloatArray) -> FloatArray:
    """Return points times rates, (n, d), clipped so that squared distances do not overflow."""
    with np.errstate(over="ignore"):
        return np.asarray(np.clip(points * rates, -_FARTHEST, _FARTHEST))


class Scales:
    """Split rates of the dimensions: feature weights over the range of the data seen so far.

    They replace the scaling of the data to [0, 1] in Lakshminarayanan2016, appendix B, which needs
    all data in advance.

    Parameters
    ----------
    n_dimensions : int
        Dimension d of the points.
    bounds : tuple of two float64 arrays of shape (d,), or None, default=None
        Lower and upper ends of the dimensions; None follows the range of the data.
    feature_weights : float64 array of shape (d,) or None, default=None
        Factors of the dimensions' split rates; None is all ones.

    Attributes
    ----------
    is_fixed : bool
        Whether the ranges are given and do not follow the data.
    range : float64 array of shape (2, d)
        Lowest and highest values so far.
    """

    def __init__(
        self,
        n_dimensions: int,
        bounds: tuple[FloatArray, FloatArray] | None = None,
        feature_weights: FloatArray | None = None,
    ) -> None:
        self.feature_weights = np.ones(n_dimensions) if feature_weights is None else feature_weights
        self.is_fixed = bounds is not None
        self.range = np.full((2, n_dimensions), [[np.inf], [-np.inf]])
        if bounds is not None:
            self.range[0], self.range[1] = bounds
        # The ranges and weights (arrays that are never written to) and the rates that follow.
        self._latest: tuple[FloatArray, FloatArray, FloatArray] | None = None

    def lie_outside(self, points: NDArray[np.floating]) -> NDArray[np.bool_]:
        """Return which of the points of shape (S, m, d) lie outside the ranges, shape (m,).

        Dimensions that are never split do not count.
        """
        outside = (points < self.range[0]) | (points > self.range[1])
        return np.asarray((outside & (self.feature_weights > 0.0)).any(axis=(0, 2)))

    @property
    def rates(self) -> FloatArray:
        """Split rates of the dimensions, shape (d,); a read-only array."""
        return np.asarray(self._latest_row[0])

    @property
    def _latest_row(self) -> FloatArray:
        """The rates as a matrix of one row, shape (1, d)."""
        latest = self._latest
        if latest is None or latest[0] is not self.range or latest[1] is not self.feature_weights:
            rates = self._rates(self.range[None])
            self._latest = latest = self.range, self.feature_weights, rates
        return latest[2]

    @property
    def total_rate(self) -> float:
        """Rate of splits of the scaled data: the sum of the weights of features that vary."""
        return float(np.sum(self.feature_weights[varies(self.range[1] - self.range[0])]))

    def follow(self, points: NDArray[np.floating]) -> FloatArray:
        """Extend the ranges by new points of shape (S, m, d) and return the rates after each.

        Returns
        -------
        float64 array of shape (1 or m, d)
            A single row if the rates are the same after all points.
        """
        starts, rates = self.follow_changes(points)
        if len(rates) == 1:
            return rates
        return np.repeat(rates, np.diff(starts, append=points.shape[1]), axis=0)

    def follow_changes(self, points: NDArray[np.floating]) -> tuple[list[int], FloatArray]:
        """Extend the ranges as `follow` does and return the rates only where they change.

        Returns
        -------
        starts : list of k int
            Indices of the points from which on the rates hold; the first is 0.
        rates : float64 array of shape (k, d)
            The rates from each of these points on.
        """
        # Most single samples lie within the ranges, so this case is fast.
        if self.is_fixed or lie_within(points, self.range):
            return [0], self._latest_row
        starts, ranges = [0], [self.range]
        for first in range(0, points.shape[1], _CHUNK):
            chunk = points[:, first : first + _CHUNK]
            if lie_within(chunk, self.range):
                continue
            after = self._after(chunk)
            before = np.concatenate([self.range[None], after[:-1]])
            for i in np.flatnonzero((after != before).any(axis=(1, 2))).tolist():
                starts.append(first + i)
                ranges.append(after[i].copy())  # a view would keep all of `after` in memory
            self.range = after[-1].copy()
        # If the first point changed the ranges, the former rates hold for no point.
        skipped = int(starts[1] == 0)
        return starts[skipped:], self._rates(np.stack(ranges[skipped:]))

    def _after(self, points: NDArray[np.floating]) -> FloatArray:
        """Return the ranges after each new point, shape (m, 2, d)."""
        lowest = np.minimum.accumulate(points.min(axis=0), axis=0)
        highest = np.maximum.accumulate(points.max(axis=0), axis=0)
        return np.stack(
            [np.minimum(lowest, self.range[0]), np.maximum(highest, self.range[1])], axis=1
        )

    def _rates(self, ranges: FloatArray) -> FloatArray:
        return np.asarray(self.feature_weights / divisors(ranges[:, 1] - ranges[:, 0]))


class ScaledForestModel:
    """Base of models whose forest grows at rates that follow the scales of the data.

    Parameters
    ----------
    n_dimensions, bounds, feature_weights
        See :class:`Scales`.
    """

    forest: GrowingForest[Any]

    def __init__(
        self,
        n_dimensions: int,
        bounds: tuple[FloatArray, FloatArray] | None,
        feature_weights: FloatArray | None,
    ) -> None:
        self.scales = Scales(n_dimensions, bounds, feature_weights)
        self._own_weights = self.scales.feature_weights

    @property
    def n_points(self) -> int:
        """Number of points learnt."""
        return self.forest.n_points
