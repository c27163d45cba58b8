"""Mondrian partitions of a box, which do not depend on the data in it.

Every node has a random stream of its own, made from that of its parent. So a tree is one fixed
sample of the Mondrian process on the box: data and lifetime only decide how much of it is grown,
and a tree grown to a shorter lifetime is the same tree, pruned.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from mondrian_bo.shared.array_types import FloatArray
from mondrian_bo.trees.cells import add_cell
from mondrian_bo.trees.growth import choose_dimension, draw_location
from mondrian_bo.trees.layout import FIRST_POINT, LEFT, LOWER, N_NODES, NONE, RIGHT, ROOT, UPPER
from mondrian_bo.trees.memory import resized
from mondrian_bo.trees.random import exponential, mix
from mondrian_bo.trees.tree import (
    GROWTH,
    Tree,
    empty_forest,
    link_point,
    nodes_used,
    set_split,
    tree_at,
    with_cell_capacity,
    with_point_capacity,
)

_LEFT_STREAM, _RIGHT_STREAM = np.uint64(1), np.uint64(2)
"""What is added to the random stream of a node to make those of its children; any two numbers."""

_LEAST_CAPACITY = 64
"""Number of nodes that there is room for at first, at least."""


@njit(cache=True, nogil=True)
def _add_keyed_cell(tree, keys, parent, cell, key, lifetime):  # type: ignore[no-untyped-def]
    """Append a leaf with a cell and a random stream, and return it."""
    node = add_cell(tree, parent, cell, lifetime)
    keys[node] = key
    return node


@njit(cache=True, nogil=True)
def _split(tree, keys, node, points, rates, lifetime, stream, extents):  # type: ignore[no-untyped-def]
    """Split a cell if its time comes before the lifetime, and share out its points."""
    rate = 0.0
    for d in range(len(extents)):
        extents[d] = rates[d] * (tree.box[node, UPPER, d] - tree.box[node, LOWER, d])
        rate += extents[d]
    if not rate > 0.0:
        return
    stream[0] = keys[node]
    parent = tree.parent[node]
    time = tree.split_time[parent] if parent != NONE else 0.0
    time += exponential(stream) / rate
    if not time < lifetime:
        return
    dimension = choose_dimension(stream, extents, rate)
    low, high = tree.box[node, LOWER, dimension], tree.box[node, UPPER, dimension]
    threshold = draw_location(stream, low, high)
    if not low < threshold:
        # No floating point number divides the cell.
        return
    left = _add_keyed_cell(
        tree, keys, np.int64(node), tree.box[node], mix(stream[0] + _LEFT_STREAM), lifetime
    )
    right = _add_keyed_cell(
        tree, keys, np.int64(node), tree.box[node], mix(stream[0] + _RIGHT_STREAM), lifetime
    )
    tree.box[left, UPPER, dimension] = threshold
    tree.box[right, LOWER, dimension] = threshold
    member = tree.children[node, FIRST_POINT]
    tree.children[node, LEFT], tree.children[node, RIGHT] = left, right
    set_split(tree, node, dimension, threshold, time)
    while member != NONE:
        following = tree.next_point[member]
        link_point(tree, left if points[member, dimension] <= threshold else right, member)
        member = following


@njit(cache=True, nogil=True)
def grow_cells(forest, keys, progress, points, box, rates, lifetime, empty_cells):  # type: ignore[no-untyped-def]
    """Grow trees breadth-first until they are done or their arrays are full.

    Parameters
    ----------
    forest : Tree
        The arrays of all trees.
    keys : uint64 array of shape (T, capacity)
        Random stream of each node; that of the root is given.
    progress : int64 array of shape (T,)
        The next node to look at, 0 at first; updated.
    points : float64 array of shape (n, d)
        Points in the box.
    box : float64 array of shape (2, d)
        Lower and upper corner.
    rates : float64 array of shape (d,)
        Split rates of the dimensions.
    lifetime : float
        No cell is split at this time or later.
    empty_cells : bool
        Whether cells without points are split too.

    Returns
    -------
    bool
        Whether all trees are done.
    """
    stream = np.empty(1, dtype=np.uint64)
    extents = np.empty(points.shape[1])
    done = True
    for t in range(len(progress)):
        tree = tree_at(forest, t)
        if tree.counters[N_NODES] == 0:
            root = _add_keyed_cell(tree, keys[t], np.int64(NONE), box, keys[t, 0], lifetime)
            tree.counters[ROOT] = root
            for point in range(len(points)):
                link_point(tree, root, point)
        node = progress[t]
        while node < tree.counters[N_NODES]:
            if tree.counters[N_NODES] + 2 > len(tree.parent):
                done = False
                break
            if empty_cells or tree.size[node] > 0:
                _split(tree, keys[t], node, points, rates, lifetime, stream, extents)
            node += 1
        progress[t] = node
    return done


def grow_partitions(
    streams: NDArray[np.uint64],
    points: FloatArray,
    box: FloatArray,
    lifetime: float,
    *,
    empty_cells: bool,
) -> Tree:
    """Return Mondrian partitions of a box.

    Parameters
    ----------
    streams : uint64 array of shape (T, 1)
        Random streams of the trees.
    points : float64 array of shape (n, d)
        Points in the box.
    box : float64 array of shape (2, d)
        Lower and upper corner; the unit of time is that of the unit cube.
    lifetime : float
        Lifetime of the Mondrian processes, finite.
    empty_cells : bool
        Whether to split cells without points too. The number of cells is then that of the whole
        partition, ``(1 + lifetime)^d`` on average for a cube.

    Returns
    -------
    Tree
        The trees, with a leading axis; `box` holds the cells, `size` the numbers of points.
    """
    n_trees, n_dimensions = len(streams), points.shape[1]
    forest: Any = with_point_capacity(empty_forest(streams, n_dimensions), len(points))
    rates = 1.0 / (box[1] - box[0])
    progress = np.zeros(n_trees, dtype=np.int64)
    capacity = max(_LEAST_CAPACITY, 2 * len(points))
    keys = np.zeros((n_trees, capacity), dtype=np.uint64)
    keys[:, 0] = streams[:, 0]
    forest = with_cell_capacity(forest, capacity)
    while not grow_cells(forest, keys, progress, points, box, rates, lifetime, empty_cells):
        capacity = int(GROWTH * capacity)
        keys = resized(keys, 1, capacity)
        forest = with_cell_capacity(forest, capacity)
    return with_cell_capacity(forest, nodes_used(forest))
