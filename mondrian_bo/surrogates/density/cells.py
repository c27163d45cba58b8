"""Mondrian partitions of a box, which do not depend on the data in it.

Every node has a random stream of its own, made from that of its parent. So a tree is one fixed
sample of the Mondrian process on the box: data and lifetime only decide how much of it is grown,
and a tree grown to a shorter lifetime is the same tree, pruned.

A tree keeps no boxes: 2 d numbers for each node would be most of its memory. While it grows
breadth-first, the cells that wait for their split have boxes. They are disjoint and have points, so
that there are at most n of them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from mondrian_bo.shared.array_types import FloatArray
from mondrian_bo.surrogates.shared.scales import divisors
from mondrian_bo.trees.growth import choose_dimension, draw_location
from mondrian_bo.trees.layout import (
    FIRST_POINT,
    LEFT,
    LOWER,
    N_BOXES,
    N_NODES,
    NONE,
    RIGHT,
    ROOT,
    UPPER,
)
from mondrian_bo.trees.memory import resized
from mondrian_bo.trees.random import exponential, mix
from mondrian_bo.trees.tree import (
    CAPACITY_FACTOR,
    Tree,
    add_leaf,
    empty_forest,
    link_point,
    nodes_used,
    set_split,
    tree_at,
    with_node_capacity,
    with_point_capacity,
)

_LEFT_STREAM, _RIGHT_STREAM = np.uint64(1), np.uint64(2)
"""What is added to the random stream of a node to make those of its children; any two numbers."""

_LEAST_CAPACITY = 64
"""Number of nodes that there is room for at first, at least."""


class Extent(NamedTuple):
    """How far trees are grown.

    Attributes
    ----------
    box : float64 array of shape (2, d)
        Lower and upper corner of what is divided.
    rates : float64 array of shape (d,)
        Split rates of the dimensions.
    lifetime : float
        No cell is split at this time or later.
    min_size : int
        Cells with fewer points are not split; 0 splits all.
    """

    box: FloatArray
    rates: FloatArray
    lifetime: float
    min_size: int


class NodeState(NamedTuple):
    """What growing trees know of their nodes beside the arrays of :class:`Tree`.

    Attributes
    ----------
    keys : uint64 array of shape (T, capacity)
        Random stream of each node; that of the root is given.
    fractions : float64 array of shape (T, capacity)
        Share of each node in the volume of its parent; 1 at the root.
    """

    keys: NDArray[np.uint64]
    fractions: FloatArray


class Partitions(NamedTuple):
    """Mondrian partitions of a box.

    Attributes
    ----------
    trees : Tree
        The trees, with a leading axis and without boxes: `row` says nothing. `size` holds the
        numbers of points, and `split_time` of leaves the lifetime to which trees have been grown.
    fractions : float64 array of shape (T, capacity)
        Share of each node in the volume of its parent; 1 at the root.
    next_split : float
        Time of the first split that the lifetime excludes; infinity if there is none.
    """

    trees: Tree
    fractions: FloatArray
    next_split: float


@njit(cache=True, nogil=True)
def _give_box(tree, node, box):  # type: ignore[no-untyped-def]
    """Copy a box into the row after the latest one, or from the first row on again."""
    row = tree.counters[N_BOXES] % len(tree.box)
    tree.counters[N_BOXES] += 1
    tree.row[node] = row
    for d in range(box.shape[1]):
        tree.box[row, LOWER, d] = box[LOWER, d]
        tree.box[row, UPPER, d] = box[UPPER, d]
    return row


@njit(cache=True, nogil=True)
def _split(tree, state, node, points, extent, stream, widths):  # type: ignore[no-untyped-def]
    """Split a cell if its time comes before the lifetime, and share out its points.

    Returns the time of the split if it comes later, and infinity otherwise.
    """
    box = tree.box[tree.row[node]]
    rate = 0.0
    for d in range(len(widths)):
        widths[d] = extent.rates[d] * (box[UPPER, d] - box[LOWER, d])
        rate += widths[d]
    if not rate > 0.0:
        return np.inf
    stream[0] = state.keys[node]
    parent = tree.parent[node]
    time = tree.split_time[parent] if parent != NONE else 0.0
    time += exponential(stream) / rate
    dimension = choose_dimension(stream, widths, rate)
    low, high = box[LOWER, dimension], box[UPPER, dimension]
    threshold = draw_location(stream, low, high)
    if not low < threshold:
        # No floating point number divides the cell.
        return np.inf
    if not time < extent.lifetime:
        return time
    member = tree.children[node, FIRST_POINT]
    left = add_leaf(tree, np.int64(node), extent.lifetime)
    right = add_leaf(tree, np.int64(node), extent.lifetime)
    state.keys[left] = mix(stream[0] + _LEFT_STREAM)
    state.keys[right] = mix(stream[0] + _RIGHT_STREAM)
    state.fractions[left] = (threshold - low) / (high - low)
    state.fractions[right] = (high - threshold) / (high - low)
    tree.children[node, LEFT], tree.children[node, RIGHT] = left, right
    set_split(tree, node, dimension, threshold, time)
    while member != NONE:
        following = tree.next_point[member]
        link_point(tree, left if points[member, dimension] <= threshold else right, member)
        member = following
    if tree.size[left] >= extent.min_size:
        tree.box[_give_box(tree, left, box), UPPER, dimension] = threshold
    if tree.size[right] >= extent.min_size:
        tree.box[_give_box(tree, right, box), LOWER, dimension] = threshold
    return np.inf


@njit(cache=True, nogil=True)
def grow_cells(forest, states, progress, following, points, extent):  # type: ignore[no-untyped-def]
    """Grow trees breadth-first until they are done or their arrays are full.

    Parameters
    ----------
    forest : Tree
        The arrays of all trees, with boxes of all cells that wait for their split at a time.
    states : NodeState
        More of all nodes.
    progress : int64 array of shape (T,)
        The next node to look at, 0 at first; updated.
    following : float64 array of shape (T,)
        Time of the first split that the lifetime excludes, infinity at first; updated.
    points : float64 array of shape (n, d)
        Points in the box.
    extent : Extent
        What is grown.

    Returns
    -------
    bool
        Whether all trees are done.
    """
    stream = np.empty(1, dtype=np.uint64)
    widths = np.empty(points.shape[1])
    done = True
    for t in range(len(progress)):
        tree = tree_at(forest, t)
        state = NodeState(states.keys[t], states.fractions[t])
        if tree.counters[N_NODES] == 0:
            root = add_leaf(tree, np.int64(NONE), extent.lifetime)
            state.fractions[root] = 1.0
            _give_box(tree, root, extent.box)
            tree.counters[ROOT] = root
            for point in range(len(points)):
                link_point(tree, root, point)
        node = progress[t]
        while node < tree.counters[N_NODES]:
            if tree.counters[N_NODES] + 2 > len(tree.parent):
                done = False
                break
            if tree.size[node] >= extent.min_size:
                time = _split(tree, state, node, points, extent, stream, widths)
                following[t] = min(following[t], time)
            node += 1
        progress[t] = node
    return done


def grow_partitions(
    streams: NDArray[np.uint64],
    points: FloatArray,
    box: FloatArray,
    lifetime: float,
    *,
    min_size: int,
) -> Partitions:
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
    min_size : int
        Cells with fewer points are not split. With 0 the number of cells is that of the whole
        partition, ``(1 + lifetime)^d`` on average for a cube.

    Returns
    -------
    Partitions
        The trees.
    """
    n_trees, n_dimensions = len(streams), points.shape[1]
    forest: Any = with_point_capacity(empty_forest(streams, n_dimensions), len(points))
    extent = Extent(box, 1.0 / divisors(box[1] - box[0]), lifetime, min_size)
    progress = np.zeros(n_trees, dtype=np.int64)
    following = np.full(n_trees, np.inf)
    capacity = max(_LEAST_CAPACITY, 2 * len(points))
    keys = np.zeros((n_trees, capacity), dtype=np.uint64)
    keys[:, 0] = streams[:, 0]
    states = NodeState(keys, np.zeros((n_trees, capacity)))
    forest = with_node_capacity(forest, capacity)
    # At most n cells with points wait at a time; two more boxes are those of new children.
    n_boxes = len(points) + 2
    while True:
        forest = forest._replace(box=resized(forest.box, 1, n_boxes if min_size > 0 else capacity))
        if grow_cells(forest, states, progress, following, points, extent):
            break
        capacity = int(CAPACITY_FACTOR * capacity)
        states = NodeState(
            resized(states.keys, 1, capacity), resized(states.fractions, 1, capacity)
        )
        forest = with_node_capacity(forest, capacity)
    used = nodes_used(forest)
    forest = with_node_capacity(forest, used)._replace(box=forest.box[:, :0].copy())
    fractions = resized(states.fractions, 1, used)
    return Partitions(forest, fractions, float(following.min()))


@njit(cache=True, nogil=True)
def fill_log_volumes(tree, fractions, volumes):  # type: ignore[no-untyped-def]
    """Compute the logarithm of the share of every node's cell in the volume of the box.

    Parameters
    ----------
    tree : Tree
        The arrays of one tree.
    fractions : float64 array of shape (capacity,)
        Share of each node in the volume of its parent.
    volumes : float64 array of shape (n_nodes,)
        Results.
    """
    # Children come after their parents.
    for node in range(len(volumes)):
        parent = tree.parent[node]
        above = volumes[parent] if parent != NONE else 0.0
        volumes[node] = above + np.log(fractions[node])


@njit(cache=True, nogil=True)
def fill_cells(tree, nodes, cells):  # type: ignore[no-untyped-def]
    """Narrow boxes to the cells of nodes, O(depth) each.

    Parameters
    ----------
    tree : Tree
        The arrays of one tree.
    nodes : int64 array of shape (m,)
        The nodes.
    cells : float64 array of shape (m, 2, d)
        Lower and upper corner of the box of the tree; updated.
    """
    for i in range(len(nodes)):
        node = nodes[i]
        while tree.parent[node] != NONE:
            parent = tree.parent[node]
            d, threshold = tree.dimension[parent], tree.threshold[parent]
            if tree.children[parent, LEFT] == node:
                cells[i, UPPER, d] = min(cells[i, UPPER, d], threshold)
            else:
                cells[i, LOWER, d] = max(cells[i, LOWER, d], threshold)
            node = np.int64(parent)
