"""Statistics of nodes that depend on what is below, computed from the leaves upward.

The loops are the same for all statistics. What one node has comes from functions that a kernel
gives as arguments.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from mondrian_bo.trees.compiling import GENERIC
from mondrian_bo.trees.growth import extend_tree
from mondrian_bo.trees.layout import N_NODES, NONE
from mondrian_bo.trees.tree import is_leaf, preorder, tree_at


@njit(**GENERIC)
def sweep_upward(refresh, stats_at, forest, node_stats, data):  # type: ignore[no-untyped-def]
    """Compute the statistics of every node of every tree, children before their parents.

    Parameters
    ----------
    refresh : compiled function
        ``refresh(tree, node_stats, node, data)`` computes a node, whose children are up to date.
    stats_at : compiled function
        ``stats_at(node_stats, t)`` returns the view of one tree's statistics.
    forest, node_stats : Tree, NamedTuple of arrays
        With a leading axis of length T.
    data
        What `refresh` needs.
    """
    for t in range(len(forest.counters)):
        tree, own = tree_at(forest, t), stats_at(node_stats, t)
        nodes = np.empty(tree.counters[N_NODES], dtype=np.int32)
        preorder(tree, nodes)
        for k in range(len(nodes) - 1, -1, -1):
            refresh(tree, own, nodes[k], data)


@njit(**GENERIC)
def update_upward(refresh, join, combine, tree, node_stats, inserted, data):  # type: ignore[no-untyped-def]
    """Update the statistics of one tree after a point was inserted into it.

    Parameters
    ----------
    refresh : compiled function
        See :func:`sweep_upward`.
    join : compiled function
        ``join(tree, node_stats, leaf, point, data)`` updates a leaf that the point has joined.
    combine : compiled function
        ``combine(tree, node_stats, node, data)`` computes an internal node from its children, and
        returns whether it may have changed; if not, nothing above changes.
    tree, node_stats : Tree, NamedTuple of arrays
        The tree and its statistics.
    inserted : tuple of int
        The point, the node that :func:`mondrian_bo.trees.growth.extend_tree` returned, and the
        first new node.
    data
        What the functions need.
    """
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


@njit(**GENERIC)
def extend_upward(update, stats_at, forest, node_stats, points, growth, data):  # type: ignore[no-untyped-def]
    """Insert stored points into every tree and update the statistics above them.

    Parameters
    ----------
    update : compiled function
        ``update(tree, node_stats, inserted, data)`` updates one tree, see :func:`update_upward`.
    stats_at : compiled function
        See :func:`sweep_upward`.
    forest, node_stats : Tree, NamedTuple of arrays
        With a leading axis of length T, and room for the new nodes.
    points : float64 array of shape (1 or T, at least n, d)
        Stored points; one row per tree where trees see the points differently.
    growth : tuple
        The first new point and the end of the new ones; their split rates, of shape (1 or number of
        new points, d); the classes of all points, empty if there are none; and GrowthSettings.
    data
        What `update` needs.
    """
    start, end, rates, classes, settings = growth
    for t in range(len(forest.counters)):
        tree, own = tree_at(forest, t), stats_at(node_stats, t)
        own_points = points[t if len(points) > 1 else 0]
        for point in range(start, end):
            first_new = tree.counters[N_NODES]
            own_rates = rates[point - start if len(rates) > 1 else 0]
            node = extend_tree(tree, own_points, point, own_rates, classes, settings)
            update(tree, own, (point, node, first_new), data)
