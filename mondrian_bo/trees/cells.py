"""Growing Mondrian trees on a given box, not restricted to the data.

See Mourtada2021, Algorithms 1, 2.

Here ``tree.box`` holds the cell of each node, and splits that leave a cell empty are kept: the tree
is the smallest part of one fixed Mondrian partition of the box that separates the data, whatever
the order they arrive in. A cell splits only while it holds two distinct points (of two classes,
where classes are given: it is paused otherwise).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from mondrian_bo.trees.compiling import INNER, INNER_COUNTING
from mondrian_bo.trees.growth import choose_dimension, draw_location
from mondrian_bo.trees.random import exponential
from mondrian_bo.trees.tree import (
    FIRST_POINT,
    LEFT,
    LOWER,
    N_NODES,
    NONE,
    PAUSED,
    RIGHT,
    ROOT,
    UPPER,
    add_box,
    add_leaf,
    set_split,
)


@njit(**INNER)
def start_cells(tree, box):  # type: ignore[no-untyped-def]
    """Give an empty tree its root, a leaf whose cell is `box`, float64 of shape (2, d)."""
    root = _add_cell(tree, np.int64(NONE), box)
    tree.counters[ROOT] = root


@njit(**INNER)
def _add_cell(tree, parent, cell):  # type: ignore[no-untyped-def]
    node = add_leaf(tree, parent, np.inf)
    add_box(tree, node)
    for d in range(cell.shape[1]):
        tree.box[node, LOWER, d] = cell[LOWER, d]
        tree.box[node, UPPER, d] = cell[UPPER, d]
    return node


@njit(**INNER)
def _are_apart(points, one, other, weights):  # type: ignore[no-untyped-def]
    """Whether some cut may come between two points."""
    for d in range(points.shape[1]):
        if points[one, d] != points[other, d] and weights[d] > 0.0:
            return True
    return False


@njit(**INNER)
def must_split(tree, leaf, points, point, weights, classes):  # type: ignore[no-untyped-def]
    """Whether the leaf may not hold a further point next to its own (Algorithm 2, line 3).

    Without classes, the points of a leaf are all the same, as they are in a leaf of several
    classes; a leaf of one class is marked as paused.
    """
    member = tree.children[leaf, FIRST_POINT]
    if member == NONE:
        return False
    if tree.dimension[leaf] != PAUSED:
        return _are_apart(points, member, point, weights)
    if classes[member] == classes[point]:
        return False
    while member != NONE:
        if _are_apart(points, member, point, weights):
            return True
        member = tree.next_point[member]
    return False


@njit(**INNER_COUNTING)
def split_cell(tree, leaf, points, weights, classes):  # type: ignore[no-untyped-def]
    """Split a leaf's cell and share its points (Algorithm 1, lines 2-5); room for two nodes."""
    n_dimensions = points.shape[1]
    extents = np.empty(n_dimensions)
    rate = 0.0
    for d in range(n_dimensions):
        extents[d] = weights[d] * (tree.box[leaf, UPPER, d] - tree.box[leaf, LOWER, d])
        rate += extents[d]
    parent = tree.parent[leaf]
    time = tree.split_time[parent] if parent != NONE else 0.0
    dimension = choose_dimension(tree.stream, extents, rate)
    threshold = draw_location(
        tree.stream, tree.box[leaf, LOWER, dimension], tree.box[leaf, UPPER, dimension]
    )
    set_split(tree, leaf, dimension, threshold, time + exponential(tree.stream) / rate)
    left = _add_cell(tree, leaf, tree.box[leaf])
    right = _add_cell(tree, leaf, tree.box[leaf])
    tree.box[left, UPPER, dimension] = tree.threshold[leaf]
    tree.box[right, LOWER, dimension] = tree.threshold[leaf]
    member = tree.children[leaf, FIRST_POINT]
    tree.children[leaf, LEFT], tree.children[leaf, RIGHT] = left, right
    while member != NONE:
        following = tree.next_point[member]
        side = left if points[member, dimension] <= threshold else right
        join_cell(tree, side, member, classes)
        member = following


@njit(**INNER)
def join_cell(tree, leaf, point, classes):  # type: ignore[no-untyped-def]
    """Add a point to a leaf alone; the sizes of the nodes above are the caller's."""
    head = tree.children[leaf, FIRST_POINT]
    if len(classes) > 0:
        if head == NONE:
            tree.dimension[leaf] = PAUSED
        elif classes[head] != classes[point]:
            tree.dimension[leaf] = NONE
    tree.size[leaf] += 1
    tree.next_point[point] = tree.children[leaf, FIRST_POINT]
    tree.children[leaf, FIRST_POINT] = point


@njit(**INNER)
def has_room(tree):  # type: ignore[no-untyped-def]
    """Whether one more split fits into the arrays."""
    return tree.counters[N_NODES] + 2 <= len(tree.parent)
