"""Moving many points down a tree together.

At each node the points are divided by its split, so that a node's arrays are loaded once however
many points pass. A caller keeps the points in an array `order`, of which order[start:end] are at
the current node, and a stack of int64, shape (STACK_DEPTH, 3), of waiting nodes with their points
(node, start, end). Other values of a waiting node are in the same row of further arrays.

:mod:`mondrian_bo.trees.aggregation_predict` has its own stack, as it goes left first, in the order
of nodes in memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from mondrian_bo.trees.compiling import GENERIC, INNER
from mondrian_bo.trees.layout import LEFT, N_NODES, RIGHT
from mondrian_bo.trees.tree import tree_at

STACK_DEPTH = 64
"""Rows of a stack, enough for 2**64 points: the larger part of a split waits (log2(m) rows)."""

NEGLIGIBLE_SHARE = 1e-16
"""Share of the weight of a point that is lost when the point stops: below the resolution of float64
at 1."""


def in_chunks(predict: Any, stats_at: Any) -> Any:
    """Make a function that predicts with each tree, some of the points at a time.

    Parameters
    ----------
    predict : compiled function
        ``predict(tree, node_stats, points, settings, where, results)`` predicts some of the points
        with one tree; `where` has the number of the tree, that of the first of the points, and
        their end.
    stats_at : compiled function
        ``stats_at(node_stats, t)`` returns the view of one tree's statistics.

    Returns
    -------
    compiled function
        ``run(forest, node_stats, points, smallest, settings, results)``. The trees and their
        statistics have a leading axis of length T, not 0. `points` has shape (1 or T, m, d), with
        one row per tree where trees see the points differently. `smallest` is the smallest number
        of points at a time, so that their intermediate results fit into the cache.
    """

    @njit(**GENERIC)
    def run(forest, node_stats, points, smallest, settings, results):  # type: ignore[no-untyped-def]
        n_points = points.shape[1]
        for t in range(len(forest.counters)):
            tree, own = tree_at(forest, t), stats_at(node_stats, t)
            own_points = points[t if len(points) > 1 else 0]
            # Fewer points than nodes at a time would load most nodes for a point or two.
            size = max(smallest, 2 * tree.counters[N_NODES])
            for start in range(0, n_points, size):
                end = min(start + size, n_points)
                predict(tree, own, own_points[start:end], settings, (t, start, end), results)

    return run


@njit(**INNER)
def split_points(tree, node, points, order, start, end, scratch):  # type: ignore[no-untyped-def]
    """Reorder order[start:end] so that the left points come first; return the first right index.

    Both sides keep the order of their points. `scratch` is an array of the type of `order` with
    room for ``end - start`` points.
    """
    dimension, threshold = tree.dimension[node], tree.threshold[node]
    middle, n_right = start, 0
    for i in range(start, end):
        point = order[i]
        # Each point is written to both sides: a branch would be mispredicted half of the time.
        order[middle] = point
        scratch[n_right] = point
        # Lakshminarayanan2016, Algorithm 5, line 14
        is_left = points[point, dimension] <= threshold
        middle += is_left
        n_right += not is_left
    for i in range(n_right):
        order[middle + i] = scratch[i]
    return middle


@njit(**INNER)
def descend(tree, node, start, middle, end, stack, pending):  # type: ignore[no-untyped-def]
    """Go on to the child with fewer points; if the other has any, it waits on the stack.

    Returns the next node, its range of points and the number of nodes that wait.
    """
    left, right = np.int64(tree.children[node, LEFT]), np.int64(tree.children[node, RIGHT])
    if middle == end:
        return left, start, end, pending
    if middle == start:
        return right, start, end, pending
    if middle - start <= end - middle:
        stack[pending, 0], stack[pending, 1], stack[pending, 2] = right, middle, end
        return left, start, middle, pending + 1
    stack[pending, 0], stack[pending, 1], stack[pending, 2] = left, start, middle
    return right, middle, end, pending + 1
