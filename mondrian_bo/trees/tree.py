"""The arrays of a Mondrian tree and of a forest.

A tree (T, delta, xi, tau) of Lakshminarayanan2016, section 2.2, is a NamedTuple of arrays, one
entry or row per node; nodes are numbered in the order of their creation
(:mod:`mondrian_bo.trees.numbering` may number them anew). A forest is the same NamedTuple with one
more leading axis, over trees; :func:`tree_at` is the view of one tree. Numba compiles functions of
such tuples once and caches them on disk.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from mondrian_bo.array_types import FloatArray, IntArray
from mondrian_bo.trees.compiling import COUNTING, INNER
from mondrian_bo.trees.memory import resized

NONE = -1
"""Marks an absent node, child or point."""

PAUSED = -2
"""Marks, as the dimension of its split, a leaf that is not to be split yet."""

LEFT, RIGHT = 0, 1
FIRST_POINT = RIGHT
"""Entry of a leaf's :attr:`Tree.children`: the head of the chain of its points."""

LOWER, UPPER = 0, 1

N_NODES, ROOT, N_BOXES = 0, 1, 2
"""Entries of :attr:`Tree.counters`."""

GROWTH = 1.25
"""Capacity grows by this factor: memory stays within 25 % of what is used."""


class Tree(NamedTuple):
    """Arrays of one tree (shapes below), or of a forest (one more leading axis of length T).

    Attributes
    ----------
    parent : int32 array of shape (capacity,)
        Parent of each node; ``NONE`` at the root.
    children : int32 array of shape (capacity, 2)
        Left and right child. At leaves ``NONE`` and the first of the points, from which
        ``next_point`` goes on to the others, or ``NONE``.
    dimension : int16 array of shape (capacity,), int32 if d needs it
        Split dimension delta_j; at leaves ``NONE``, or ``PAUSED`` (see
        :mod:`mondrian_bo.trees.mondrian`).
    threshold : float64 or float32 array of shape (capacity,)
        Split location xi_j: ``x[dimension] <= threshold`` goes left.
    split_time : float64 or float32 array of shape (capacity,)
        tau_j, larger than the parent's, or equal within float32; the lifetime at leaves.
    row : int32 array of shape (capacity,)
        Where each node's box is in `box`; ``NONE`` at a leaf of one point, which is its own box,
        and at some leaves of one class (see :mod:`mondrian_bo.trees.mondrian`).
    box : float64 or float32 array of shape (box_capacity, 2, d)
        Lower and upper corner of the data in a node's block, B_j^x; of its cell where partitions
        are not restricted to the data (:mod:`mondrian_bo.trees.cells`): there all nodes have boxes,
        in their order. Trees restricted to n points have fewer than n boxes.
    size : int32 array of shape (capacity,)
        Number of data points in each block.
    next_point : int32 array of shape (point_capacity,)
        The next point of the same leaf, or ``NONE``.
    points : float64 or float32 array of shape (point_capacity, d)
        The points as the tree sees them. In a forest of shape (1 or T, point_capacity, d), 1 if all
        trees see the same. Empty where all nodes have boxes and nobody asks for points.
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
"""Fields of :class:`Tree` with an entry per node."""


def empty_forest(
    streams: NDArray[np.uint64], n_dimensions: int, precision: type[np.floating[Any]] = np.float64
) -> Tree:
    """Return a forest of trees without nodes, with room for none.

    Parameters
    ----------
    streams : uint64 array of shape (T, 1)
        Random streams, see :func:`mondrian_bo.trees.random.make_streams`.
    n_dimensions : int
        Dimension d of the points.
    precision : type, default=numpy.float64
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
        threshold=np.empty((n_trees, 0), dtype=precision),
        split_time=np.empty((n_trees, 0), dtype=precision),
        row=np.empty((n_trees, 0), dtype=np.int32),
        box=np.empty((n_trees, 0, 2, n_dimensions), dtype=precision),
        size=np.empty((n_trees, 0), dtype=np.int32),
        next_point=np.empty((n_trees, 0), dtype=np.int32),
        points=np.empty((1, 0, n_dimensions), dtype=precision),
        counters=counters,
        stream=streams.copy(),
    )


def with_node_capacity(forest: Tree, capacity: int) -> Tree:
    """Return the forest with room for exactly `capacity` nodes a tree."""
    used = nodes_used(forest)
    fields: dict[str, Any] = {
        name: resized(getattr(forest, name), 1, capacity, used) for name in NODE_FIELDS
    }
    return forest._replace(**fields)


def nodes_used(forest: Tree) -> int:
    """Return how many nodes the largest tree has."""
    return int(forest.counters[:, N_NODES].max())


def with_box_capacity(forest: Tree, capacity: int) -> Tree:
    """Return the forest with room for exactly `capacity` boxes a tree."""
    used = int(forest.counters[:, N_BOXES].max())
    return forest._replace(box=resized(forest.box, 1, capacity, used))


def with_cell_capacity(forest: Tree, capacity: int) -> Tree:
    """Return the forest with room for exactly `capacity` nodes a tree, all of which have boxes."""
    return with_box_capacity(with_node_capacity(forest, capacity), capacity)


def with_point_capacity(forest: Tree, capacity: int) -> Tree:
    """Return the forest with room for exactly `capacity` points, the points themselves apart."""
    return forest._replace(next_point=resized(forest.next_point, 1, capacity))


def view_of(forest: Tree, index: int) -> Tree:
    """Do as :func:`tree_at`, in Python."""
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


@njit(cache=True, nogil=True, fastmath={"reassoc", "nsz", "nnan"})
def extent_outside(lower, upper, weights, points, point):  # type: ignore[no-untyped-def]
    """Return eta_j(x): the weighted L1 distance of a point from a box (Algorithm 5, line 5).

    The order of the sum is left to the compiler, which then uses vector instructions.
    """
    total = 0.0
    nothing = lower.dtype.type(0.0)
    for d in range(points.shape[1]):
        x = points[point, d]
        # At most one is positive; in the points' precision, of which vectors hold more.
        total += weights[d] * max(max(x - upper[d], lower[d] - x), nothing)
    return total


@njit(inline="always")
def corners(tree, node):  # type: ignore[no-untyped-def]
    """Return the lower and upper corner of a node's box; a leaf of one point is its own.

    Numba writes it out where it is called: functions that only borrow call none that return arrays.
    """
    row = tree.row[node]
    if row == NONE:
        member = tree.points[tree.children[node, FIRST_POINT]]
        return member, member
    return tree.box[row, LOWER], tree.box[row, UPPER]


@njit(cache=True, nogil=True)
def distance_outside(tree, node, weights, points, point):  # type: ignore[no-untyped-def]
    """Return eta_j(x) for a node's box; a leaf of one point is its own."""
    lower, upper = corners(tree, node)
    return extent_outside(lower, upper, weights, points, point)


@njit(**INNER)
def distances_outside(tree, node, weights, points, order, start, end, result):  # type: ignore[no-untyped-def]
    """Write the distance of each point order[start:end] from a node's box to the same places.

    Nothing waits for a distance meanwhile, so that several are computed at a time.
    """
    lower, upper = corners(tree, node)
    for i in range(start, end):
        result[i] = extent_outside(lower, upper, weights, points, order[i])


@njit(cache=True, nogil=True)
def leaves_of(forest, points, leaves):  # type: ignore[no-untyped-def]
    """Write the leaf that holds each point in each tree into `leaves`, shape (n, T)."""
    for t in range(len(forest.counters)):
        tree = tree_at(forest, t)
        own = points[t if len(points) > 1 else 0]
        for i in range(own.shape[0]):
            node = tree.counters[ROOT]
            while not is_leaf(tree, node):
                node = child_towards(tree, node, own[i])
            leaves[i, t] = node


@njit(cache=True, nogil=True)
def preorder(tree, nodes):  # type: ignore[no-untyped-def]
    """Write all nodes, parents before children, into `nodes`, an array of length n_nodes."""
    # The tail of the same array serves as the stack: what is pending never overlaps what is done,
    # as their numbers add up to at most the number of nodes.
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


@njit(cache=True, nogil=True)
def touched_by(tree, x, room, chain, nodes, points):  # type: ignore[no-untyped-def]
    """List what the insertion of x may change: entries of node arrays and of `next_point`.

    Parameters
    ----------
    tree : Tree
        The tree before the insertion.
    x : float64 array of shape (d,)
        The point.
    room : int
        How many nodes the insertion may add.
    chain : int
        How many points of a leaf the insertion may link anew.
    nodes, points : int64 arrays
        Results.

    Returns
    -------
    tuple of int
        The numbers of nodes and points found; when `nodes` is too short it holds only a part.
    """
    n_nodes = 0
    n_points = 0
    node = tree.counters[ROOT]
    while node != NONE:
        if n_nodes < len(nodes):
            nodes[n_nodes] = node
        n_nodes += 1
        if is_leaf(tree, node):
            point = tree.children[node, FIRST_POINT]
            while point != NONE and n_points < chain:
                points[n_points] = point
                n_points += 1
                point = tree.next_point[point]
            break
        node = child_towards(tree, node, x)
    for k in range(room):
        if n_nodes < len(nodes):
            nodes[n_nodes] = tree.counters[N_NODES] + k
        n_nodes += 1
    return n_nodes, n_points
