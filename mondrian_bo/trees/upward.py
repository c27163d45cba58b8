"""Statistics of nodes that depend on what is below, computed from the leaves upward.

The loops are the same for all statistics. Each function here makes such a loop of compiled
functions that say what one node has.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from mondrian_bo.trees.compiling import GENERIC
from mondrian_bo.trees.growth import extend_tree
from mondrian_bo.trees.layout import N_NODES, NONE
from mondrian_bo.trees.tree import is_leaf, preorder, tree_at


def sweep_upward(refresh: Any, stats_at: Any) -> Any:
    """Make a function that computes the statistics of every node, children before their parents.

    Parameters
    ----------
    refresh : compiled function
        ``refresh(tree, node_stats, node, data)`` computes a node, whose children are up to date.
    stats_at : compiled function
        ``stats_at(node_stats, t)`` returns the view of one tree's statistics.

    Returns
    -------
    compiled function
        ``sweep(forest, node_stats, data)``: the trees and their statistics, with a leading axis of
        length T, and what `refresh` needs.
    """

    @njit(**GENERIC)
    def sweep(forest, node_stats, data):  # type: ignore[no-untyped-def]
        for t in range(len(forest.counters)):
            tree, own = tree_at(forest, t), stats_at(node_stats, t)
            nodes = np.empty(tree.counters[N_NODES], dtype=np.int32)
            preorder(tree, nodes)
            for k in range(len(nodes) - 1, -1, -1):
                refresh(tree, own, nodes[k], data)

    return sweep


def update_upward(refresh: Any, join: Any, combine: Any) -> Any:
    """Make a function that updates the statistics of one tree after a point was inserted into it.

    Parameters
    ----------
    refresh : compiled function
        See :func:`sweep_upward`.
    join : compiled function
        ``join(tree, node_stats, leaf, point, data)`` updates a leaf that the point has joined.
    combine : compiled function
        ``combine(tree, node_stats, node, data)`` computes an internal node from its children, and
        returns whether it may have changed; if not, nothing above changes.

    Returns
    -------
    compiled function
        ``update(tree, node_stats, inserted, data)``. `inserted` is the point, the node that
        :func:`mondrian_bo.trees.growth.extend_tree` returned, and the first new node.
    """

    @njit(**GENERIC)
    def update(tree, node_stats, inserted, data):  # type: ignore[no-untyped-def]
        point, node, first_new = inserted
        for new in range(tree.counters[N_NODES] - 1, first_new - 1, -1):
            refresh(tree, node_stats, new, data)
        if node < first_new:
            if is_leaf(tree, node):
                join(tree, node_stats, node, point, data)
            else:
                refresh(tree, node_stats, node, data)
        node = tree.parent[node]
        while node != NONE and combine(tree, node_stats, node, data):
            node = tree.parent[node]

    return update


def extend_upward(update: Any, stats_at: Any) -> Any:
    """Make a function that inserts stored points into every tree and updates what is above them.

    Parameters
    ----------
    update : compiled function
        Updates one tree, see :func:`update_upward`.
    stats_at : compiled function
        See :func:`sweep_upward`.

    Returns
    -------
    compiled function
        ``extend(forest, node_stats, points, growth, data)``. The trees and their statistics have
        room for the new nodes. `points` has the stored points, shape (1 or T, at least n, d), with
        one row per tree where trees see the points differently. `growth` is the first new point and
        the end of the new ones; their split rates, of shape (1 or number of new points, d); the
        classes of all points, empty if there are none; and GrowthSettings.
    """

    @njit(**GENERIC)
    def extend(forest, node_stats, points, growth, data):  # type: ignore[no-untyped-def]
        start, end, rates, classes, settings = growth
        for t in range(len(forest.counters)):
            tree, own = tree_at(forest, t), stats_at(node_stats, t)
            own_points = points[t if len(points) > 1 else 0]
            for point in range(start, end):
                first_new = tree.counters[N_NODES]
                own_rates = rates[point - start if len(rates) > 1 else 0]
                node = extend_tree(tree, own_points, point, own_rates, classes, settings)
                update(tree, own, (point, node, first_new), data)

    return extend
