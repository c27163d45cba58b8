"""The arrays of a Mondrian tree and of a forest, and the basic operations on them.

A tree (T, delta, xi, tau) of Lakshminarayanan2016, section 2.2, is a NamedTuple of arrays with one
entry or row per node. Nodes are numbered in the order of their creation;
:mod:`mondrian_bo.trees.numbering` can renumber them. A forest is the same NamedTuple with one more
leading axis, over trees; :func:`tree_at` returns the view of one tree. Numba compiles a function of
such a tuple once and caches it on disk.

The operations are: memory for nodes, boxes and points; adding nodes and setting their splits; boxes
and distances from them; the way of one point down a tree. :mod:`mondrian_bo.trees.growth` grows
trees with them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from mondrian_bo.shared.array_types import FloatArray, IntArray
from mondrian_bo.trees.compiling import COUNTING, INNER
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

CAPACITY_FACTOR = 1.25
"""Factor by which capacity grows: unused memory stays below 25 % of what is used."""


class Tree(NamedTuple):
    """Arrays of one tree (shapes below), or of a forest (one more leading axis of length T).

    Attributes
    ----------
    parent : int32 array of shape (capacity,)
        Parent of each node; ``NONE`` at the root.
    children : int32 array of shape (capacity, 2)
        Left and right child. At leaves ``NONE`` and the first point of the leaf (``NONE`` if it has
        no points); ``next_point`` links the others. In full trees that are aggregated, the number
        of the leaf's last point instead (:mod:`mondrian_bo.trees.recycling`).
    dimension : int16 array of shape (capacity,), int32 if d needs it
        Split dimension delta_j. ``NONE`` at leaves, ``PAUSED`` at paused ones (see
        :mod:`mondrian_bo.trees.growth`).
    threshold : float64 or float32 array of shape (capacity,)
        Split location xi_j: ``x[dimension] <= threshold`` goes left.
    split_time : float64 or float32 array of shape (capacity,)
        tau_j, larger than the parent's, or equal within float32; the lifetime at leaves.
    row : int32 array of shape (capacity,)
        Index of each node's box in `box`. ``NONE`` at a leaf of one point, whose box is that point,
        and at some leaves of one class (see :mod:`mondrian_bo.trees.growth`).
    box : float64 or float32 array of shape (box_capacity, 2, d)
        Lower and upper corner of the data in a node's block, B_j^x. Trees restricted to n points
        have fewer than n boxes. In trees that are not restricted to the data
        (:mod:`mondrian_bo.trees.unrestricted_growth`) it is the node's cell, and box j belongs to
        node j.
    size : int32 array of shape (capacity,)
        Number of data points in each block.
    next_point : int32 array of shape (point_capacity,)
        The next point of the same leaf, or ``NONE``.
    points : float64 or float32 array of shape (point_capacity, d)
        The points as the tree sees them. In a forest, shape (1 or T, point_capacity, d): 1 if all
        trees see the same points. Empty where all nodes have boxes and no function reads points.
    counters : int64 array of shape (3,)
        Number of nodes, the root, and the number of boxes.
    stream : uint64 array of shape (1,)
        State of the tree's random stream.
    """

    parent: NDArray[np.int32]
    children: NDArray[np.int32]
    dimension: NDArray[np.signedinteger]
    threshold: NDArray[np.floating]
    split_time: NDArray[np.floating]
    row: NDArray[np.int32]
    box: FloatArray
    size: NDArray[np.int32]
    next_point: NDArray[np.int32]
    points: FloatArray
    counters: IntArray
    stream: NDArray[np.uint64]


NODE_FIELDS = (
    "parent",
    "children",
    "dimension",
    "threshold",
    "split_time",
    "row",
    "size",
)
"""Fields of :class:`Tree` with one entry per node."""


def empty_forest(
    streams: NDArray[np.uint64], n_dimensions: int, dtype: type[np.floating[Any]] = np.float64
) -> Tree:
    """Return a forest whose trees have no nodes and no capacity.

    Parameters
    ----------
    streams : uint64 array of shape (T, 1)
        Random streams, see :func:`mondrian_bo.trees.random.make_streams`.
    n_dimensions : int
        Dimension d of the points.
    dtype : type, default=numpy.float64
        Floating point type of points, boxes, split locations and split times.
    """
    n_trees = len(streams)
    dimension_type = np.int16 if n_dimensions <= np.iinfo(np.int16).max else np.int32
    counters = np.zeros((n_trees, 3), dtype=np.int64)
    counters[:, ROOT] = NONE
    return Tree(
        parent=np.empty((n_trees, 0), dtype=np.int32),
        children=np.empty((n_trees, 0, 2), dtype=np.int32),
        dimension=np.empty((n_trees, 0), dtype=dimension_type),
        threshold=np.empty((n_trees, 0), dtype=dtype),
        split_time=np.empty((n_trees, 0), dtype=dtype),
        row=np.empty((n_trees, 0), dtype=np.int32),
        box=np.empty((n_trees, 0, 2, n_dimensions), dtype=dtype),
        size=np.empty((n_trees, 0), dtype=np.int32),
        next_point=np.empty((n_trees, 0), dtype=np.int32),
        points=np.empty((1, 0, n_dimensions), dtype=dtype),
        counters=counters,
        stream=streams.copy(),
    )


def with_node_capacity(forest: Tree, capacity: int) -> Tree:
    """Return the forest with a capacity of exactly `capacity` nodes per tree."""
    used = nodes_used(forest)
    fields: dict[str, Any] = {
        name: resized(getattr(forest, name), 1, capacity, used) for name in NODE_FIELDS
    }
    return forest._replace(**fields)


def nodes_used(forest: Tree) -> int:
    """Return the number of nodes of the largest tree."""
    return int(forest.counters[:, N_NODES].max())


def with_box_capacity(forest: Tree, capacity: int) -> Tree:
    """Return the forest with a capacity of exactly `capacity` boxes per tree."""
    used = int(forest.counters[:, N_BOXES].max())
    return forest._replace(box=resized(forest.box, 1, capacity, used))


def with_point_capacity(forest: Tree, capacity: int) -> Tree:
    """Return the forest with a capacity of exactly `capacity` linked points.

    The coordinates in `points` stay as they are.
    """
    return forest._replace(next_point=resized(forest.next_point, 1, capacity))


def view_of(forest: Tree, index: int) -> Tree:
    """Return the view of one tree of a forest; for Python code (:func:`tree_at` is compiled)."""
    shared = len(forest.points) == 1
    fields: dict[str, Any] = {
        name: field[index] for name, field in forest._asdict().items() if name != "points"
    }
    return Tree(**fields, points=forest.points[0 if shared else index])


@njit(**COUNTING)
def tree_at(forest, index):  # type: ignore[no-untyped-def]
    """Return the view of one tree of a forest."""
    return Tree(
        forest.parent[index],
        forest.children[index],
        forest.dimension[index],
        forest.threshold[index],
        forest.split_time[index],
        forest.row[index],
        forest.box[index],
        forest.size[index],
        forest.next_point[index],
        forest.points[index if len(forest.points) > 1 else 0],
        forest.counters[index],
        forest.stream[index],
    )


# One node -----------------------------------------------------------------------------------------


@njit(cache=True, nogil=True)
def is_leaf(tree, node):  # type: ignore[no-untyped-def]
    """Whether the node has no children."""
    return tree.children[node, LEFT] == NONE


@njit(cache=True, nogil=True)
def sibling(tree, node):  # type: ignore[no-untyped-def]
    """Return the other child of the node's parent (the node must not be the root)."""
    pair = tree.children[tree.parent[node]]
    return pair[RIGHT] if pair[LEFT] == node else pair[LEFT]


@njit(cache=True, nogil=True)
def child_towards(tree, node, x):  # type: ignore[no-untyped-def]
    """Return the child of an internal node whose half-space holds x."""
    side = LEFT if x[tree.dimension[node]] <= tree.threshold[node] else RIGHT
    return tree.children[node, side]


@njit(**INNER)
def add_leaf(tree, parent, lifetime):  # type: ignore[no-untyped-def]
    """Append an empty leaf and return it.

    `parent` must be an int64, so that the function is compiled for one type.
    """
    node = tree.counters[N_NODES]
    tree.counters[N_NODES] += 1
    tree.parent[node] = parent
    tree.children[node, LEFT] = NONE
    tree.children[node, FIRST_POINT] = NONE
    tree.dimension[node] = NONE
    tree.threshold[node] = 0.0
    tree.split_time[node] = lifetime
    tree.row[node] = NONE
    tree.size[node] = 0
    return node


@njit(**INNER)
def set_split(tree, node, dimension, threshold, time):  # type: ignore[no-untyped-def]
    """Set a node's split: dimension, location and time.

    Where the tree is float32, location and time are rounded down. The points are float32 too, so
    none changes sides; no child's time comes before its parent's; and no time becomes infinite.
    """
    tree.dimension[node] = dimension
    tree.threshold[node] = threshold
    if tree.threshold[node] > threshold:
        tree.threshold[node] = np.nextafter(tree.threshold[node], np.float32(-np.inf))
    tree.split_time[node] = time
    if tree.split_time[node] > time:
        tree.split_time[node] = np.nextafter(tree.split_time[node], np.float32(-np.inf))


@njit(**INNER)
def has_room(tree):  # type: ignore[no-untyped-def]
    """Whether one more split fits into the arrays."""
    return tree.counters[N_NODES] + 2 <= len(tree.parent)


@njit(**INNER)
def link_point(tree, leaf, point):  # type: ignore[no-untyped-def]
    """Add a point to the chain of a leaf."""
    tree.size[leaf] += 1
    tree.next_point[point] = tree.children[leaf, FIRST_POINT]
    tree.children[leaf, FIRST_POINT] = point


# Boxes and distances ------------------------------------------------------------------------------


@njit(**INNER)
def add_box(tree, node):  # type: ignore[no-untyped-def]
    """Give a node an empty box and return its index."""
    row = tree.counters[N_BOXES]
    tree.counters[N_BOXES] += 1
    tree.row[node] = row
    # Assigning whole rows would be shorter, but takes numba much longer to compile.
    for d in range(tree.box.shape[2]):
        tree.box[row, LOWER, d] = np.inf
        tree.box[row, UPPER, d] = -np.inf
    return row


@njit(**INNER)
def widen(box, x):  # type: ignore[no-untyped-def]
    """Widen a box so that it holds x."""
    for d in range(len(x)):
        box[LOWER, d] = min(box[LOWER, d], x[d])
        box[UPPER, d] = max(box[UPPER, d], x[d])


@njit(inline="always")
def corners(tree, node):  # type: ignore[no-untyped-def]
    """Return the lower and upper corner of a node's box; the box of a lone point is that point.

    ``inline="always"`` because functions compiled with ``BORROWING`` must not call functions that
    return arrays (:mod:`mondrian_bo.trees.compiling`).
    """
    row = tree.row[node]
    if row == NONE:
        member = tree.points[tree.children[node, FIRST_POINT]]
        return member, member
    return tree.box[row, LOWER], tree.box[row, UPPER]


@njit(cache=True, nogil=True, fastmath={"reassoc", "nsz", "nnan"})
def extent_outside(lower, upper, rates, points, point):  # type: ignore[no-untyped-def]
    """Return eta_j(x), the L1 distance of a point from a box, weighted by the split rates.

    Lakshminarayanan2016, Algorithm 5, line 5. The compiler may reorder the sum, so that it can use
    vector instructions.
    """
    total = 0.0
    nothing = lower.dtype.type(0.0)
    for d in range(points.shape[1]):
        x = points[point, d]
        # At most one of the two is positive. They are computed in the precision of the points:
        # vector registers hold twice as many float32.
        total += rates[d] * max(max(x - upper[d], lower[d] - x), nothing)  # Algorithm 5, line 5
    return total


@njit(cache=True, nogil=True)
def distance_outside(tree, node, rates, points, point):  # type: ignore[no-untyped-def]
    """Return eta_j(x), the distance of a point from a node's box."""
    lower, upper = corners(tree, node)
    return extent_outside(lower, upper, rates, points, point)


@njit(**INNER)
def distances_outside(tree, node, rates, points, order, start, end, result):  # type: ignore[no-untyped-def]
    """Write the distance of point order[i] from a node's box into result[i], start <= i < end.

    Distances are independent of each other, so the processor computes several at a time.
    """
    lower, upper = corners(tree, node)
    for i in range(start, end):
        result[i] = extent_outside(lower, upper, rates, points, order[i])


@njit(cache=True, nogil=True)
def lie_within(points, box):  # type: ignore[no-untyped-def]
    """Whether all points, shape (S, n, d), lie in a closed box, shape (2, d); O(S n d).

    For few points it takes a tenth of the time of numpy's minimum and maximum.
    """
    for view in range(points.shape[0]):
        for i in range(points.shape[1]):
            for d in range(points.shape[2]):
                # Written so that NaN fails the comparison.
                if not box[LOWER, d] <= points[view, i, d] <= box[UPPER, d]:
                    return False
    return True


# Paths and orders ---------------------------------------------------------------------------------


@njit(**INNER)
def leaf_holding(tree, x):  # type: ignore[no-untyped-def]
    """Return the leaf whose block holds x."""
    node = tree.counters[ROOT]
    while not is_leaf(tree, node):
        node = child_towards(tree, node, x)
    return node


@njit(cache=True, nogil=True)
def leaves_of(forest, points, leaves):  # type: ignore[no-untyped-def]
    """Write the leaf that holds each point in each tree into `leaves`, shape (n, T)."""
    for t in range(len(forest.counters)):
        tree = tree_at(forest, t)
        own = points[t if len(points) > 1 else 0]
        for i in range(own.shape[0]):
            leaves[i, t] = leaf_holding(tree, own[i])


@njit(cache=True, nogil=True)
def preorder(tree, nodes):  # type: ignore[no-untyped-def]
    """Write all nodes, parents before children, into `nodes`, an array of length n_nodes."""
    # The tail of the array serves as the stack. It never overlaps the head that is done, because
    # done and pending nodes together are at most all nodes.
    top = len(nodes)
    done = 0
    if tree.counters[ROOT] != NONE:
        top -= 1
        nodes[top] = tree.counters[ROOT]
    while top < len(nodes):
        node = nodes[top]
        top += 1
        nodes[done] = node
        done += 1
        if not is_leaf(tree, node):
            top -= 1
            nodes[top] = tree.children[node, RIGHT]
            top -= 1
            nodes[top] = tree.children[node, LEFT]
