"""The sizes of a stream at which trees over data of unknown range are grown anew."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from mondrian_bo.surrogates.shared.scales import Scales

_FEW = 64
"""Number of points up to which trees are grown anew at every change of the range. Our choice: trees
of so few points are grown in milliseconds."""

_FACTOR = 1.25
"""Factor between the numbers of points at which later changes of the range count. Our choice: the
sizes at which trees are grown anew add up to five times the last one at most."""


class Regrowth:
    """The sizes of a stream at which trees are grown anew, because the range of the data has grown.

    Split rates are in inverse proportion to the range of the data (:class:`Scales`). A split that
    was made while the range was small has the time and place of a higher rate. Trees that are
    grown anew from all points have the distribution of a batch. Up to 64 points that happens at
    every change of the range, later when the number of points has grown by a quarter and the range
    has changed since the trees were grown. The sizes do not depend on how a stream is divided into
    batches. The cost is O(log n) for each point of the stream, on average.

    Parameters
    ----------
    scales : Scales
        The ranges, which this object only reads.
    """

    def __init__(self, scales: Scales) -> None:
        self._scales = scales
        self._range = scales.range
        self._next = 0

    def grown(self, n_points: int) -> None:
        """Record that the trees have been grown, from so many points, at the current range."""
        self._range = self._scales.range
        self._next = math.ceil(_FACTOR * max(n_points, _FEW))

    def until_next(self, points: NDArray[np.floating], n_points: int) -> tuple[int, bool]:
        """Return how many of the new points come before the next decision, and the decision.

        Parameters
        ----------
        points : array of shape (S, m, d)
            New points, m > 0, which the scales do not know yet.
        n_points : int
            Number of points known.

        Returns
        -------
        count : int
            Number of new points to learn first, > 0.
        is_due : bool
            Whether the trees are to be grown anew with these points.
        """
        n_new = points.shape[1]
        if self._scales.is_fixed:
            return n_new, False
        if n_points < _FEW:
            count = min(_FEW - n_points, n_new)
            outside = self._scales.lie_outside(points[:, :count])
            return (int(np.argmax(outside)) + 1, True) if outside.any() else (count, False)
        count = min(n_new, self._next - n_points)
        if n_points + count < self._next:
            return count, False
        self._next = math.ceil(_FACTOR * self._next)
        is_split = self._scales.feature_weights > 0.0
        changed = (self._range != self._scales.range)[:, is_split].any()
        return count, bool(changed or self._scales.lie_outside(points[:, :count]).any())
