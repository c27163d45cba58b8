"""Scales of the features: what turns data of any range into rates of cuts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

_SMALLEST_EXTENT = np.finfo(np.float64).tiny


class Scales:
    """Rate weights of the dimensions: feature weights over the range of the data seen so far.

    That is the pre-processing to [0, 1] of paper 004, done online.

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

    @property
    def rates(self) -> FloatArray:
        """Rate weights of the dimensions, shape (d,)."""
        return np.asarray(self._rates(self._range[None])[0])

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
        ranges = self._after(points)
        self._range = ranges[-1]
        return self._rates(ranges)

    def _after(self, points: NDArray[np.floating]) -> FloatArray:
        """Return the ranges of the data after each new point, shape (1 or m, 2, d)."""
        if self._fixed:
            return self._range[None]
        lowest, highest = points.min(axis=0), points.max(axis=0)
        if np.all(lowest >= self._range[0]) and np.all(highest <= self._range[1]):
            return self._range[None]
        lowest = np.minimum.accumulate(lowest, axis=0)
        highest = np.maximum.accumulate(highest, axis=0)
        return np.stack(
            [np.minimum(lowest, self._range[0]), np.maximum(highest, self._range[1])], axis=1
        )

    def _rates(self, ranges: FloatArray) -> FloatArray:
        extent = ranges[:, 1] - ranges[:, 0]
        # A constant dimension keeps its unit, as in scikit-learn's MinMaxScaler, and so does one
        # with an extent whose inverse overflows.
        return np.asarray(self.feature_weights / np.where(extent > _SMALLEST_EXTENT, extent, 1.0))
