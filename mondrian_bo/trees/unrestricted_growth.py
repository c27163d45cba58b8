"""Growing Mondrian trees on a given box, not restricted to the data (Mourtada2021).

Here ``tree.box`` holds the cell of each node, and splits that leave a cell empty are kept. The tree
is the smallest part of one fixed Mondrian partition of the box that separates the data. It does not
depend on the order of the data. A cell splits only while it holds two distinct points. If classes
are given, a cell whose points are all of one class is paused.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from mondrian_bo.trees.compiling import INNER, INNER_COUNTING
from mondrian_bo.trees.growth import choose_dimension, draw_location
from mondrian_bo.trees.layout import (
    FIRST_POINT,
    LEFT,
    LOWER,
    NONE,
    PAUSED,
    RIGHT,
    ROOT,
    UPPER,
)
from mondrian_bo.trees.random import exponential
from mondrian_bo.trees.tree import add_box, add_leaf, link_point, set_split


@njit(**INNER)
def start_cells(tree, box):  # type: ignore[no-untyped-def]
    """Give an empty tree its root, a leaf whose cell is `box`, float64 of shape (2, d)."""
    root = add_cell(tree, np.int64(NONE), box)
    tree.counters[ROOT] = root


@njit(**INNER)
def add_cell(tree, parent, cell):  # type: ignore[no-untyped-def]
    """Append an empty leaf with a cell and return it; `parent` is an int64."""
    node = add_leaf(tree, parent, np.inf)
    add_box(tree, node)
    for d in range(cell.shape[1]):
        tree.box[node, LOWER, d] = cell[LOWER, d]
        tree.box[node, UPPER, d] = cell[UPPER, d]
    return node


@njit(**INNER)
def _are_apart(points, one, other, rates):  # type: ignore[no-untyped-def]
    """Whether a split can separate two points."""
    for d in range(points.shape[1]):
        if points[one, d] != points[other, d] and rates[d] > 0.0:
            return True
    return False


@njit(**INNER)
def must_split(tree, leaf, points, point, rates, classes):  # type: ignore[no-untyped-def]
    """Whether a leaf must split before it gets a further point (Algorithm 2, line 3).

    All points of a leaf are equal, unless it is paused: a leaf of one class.
    """
    member = tree.children[leaf, FIRST_POINT]
    if member == NONE:
        return False
    if tree.dimension[leaf] != PAUSED:
        return _are_apart(points, member, point, rates)
    if classes[member] == classes[point]:
        return False
    while member != NONE:
        if _are_apart(points, member, point, rates):
            return True
        member = tree.next_point[member]
    return False


@njit(**INNER_COUNTING)
def split_cell(tree, leaf, points, rates, classes):  # type: ignore[no-untyped-def]
    """Split a leaf's cell and share its points (Algorithm 1, lines 2-5).

    The tree has room for two more nodes.
    """
    n_dimensions = points.shape[1]
    extents = np.empty(n_dimensions)
    rate = 0.0
    for d in range(n_dimensions):
        extents[d] = rates[d] * (tree.box[leaf, UPPER, d] - tree.box[leaf, LOWER, d])
        rate += extents[d]
    parent = tree.parent[leaf]
    time = tree.split_time[parent] if parent != NONE else 0.0
    dimension = choose_dimension(tree.stream, extents, rate)  # Algorithm 1, line 3
    threshold = draw_location(  # line 4
        tree.stream, tree.box[leaf, LOWER, dimension], tree.box[leaf, UPPER, dimension]
    )
    time += exponential(tree.stream) / rate  # line 2
    set_split(tree, leaf, dimension, threshold, time)
    left = add_cell(tree, leaf, tree.box[leaf])
    right = add_cell(tree, leaf, tree.box[leaf])
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
    """Add a point to a leaf; the caller updates the sizes of the nodes above."""
    head = tree.children[leaf, FIRST_POINT]
    if len(classes) > 0:
        if head == NONE:
            tree.dimension[leaf] = PAUSED
        elif classes[head] != classes[point]:
            tree.dimension[leaf] = NONE
    link_point(tree, leaf, point)
