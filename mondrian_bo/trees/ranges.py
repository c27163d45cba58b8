"""Ranges of points, in boxes of shape (2, d): the lower and the upper ends of the dimensions."""

from __future__ import annotations

from numba import njit

from mondrian_bo.trees.tree import LOWER, UPPER


@njit(cache=True, nogil=True)
def lie_within(points, box):  # type: ignore[no-untyped-def]
    """Whether all points, of shape (S, n, d), lie in a box, its boundary included; O(S n d).

    Of few points it answers in a tenth of the time that numpy takes for the least and the largest.
    """
    for view in range(points.shape[0]):
        for i in range(points.shape[1]):
            for d in range(points.shape[2]):
                # A NaN, which is not within anything, fails the first comparison.
                if not box[LOWER, d] <= points[view, i, d] <= box[UPPER, d]:
                    return False
    return True
