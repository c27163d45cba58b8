"""New nodes of a tree, their cuts, and the boxes of those that have one."""

from __future__ import annotations

import numpy as np
from numba import njit

from mondrian_bo.trees.compiling import INNER
from mondrian_bo.trees.tree import FIRST_POINT, LEFT, LOWER, N_BOXES, N_NODES, NONE, UPPER


@njit(**INNER)
def add_leaf(tree, parent, lifetime):  # type: ignore[no-untyped-def]
    """Append an empty leaf and return it; `parent` is an int64, to be compiled for one type."""
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
def set_cut(tree, node, dimension, threshold, time):  # type: ignore[no-untyped-def]
    """Let a node be cut at a location and a time; both are rounded down, if to float32.

    So no point changes sides, for those of the tree are float32 too, no child's time comes before
    its parent's, and none is infinite.
    """
    tree.dimension[node] = dimension
    tree.threshold[node] = threshold
    if tree.threshold[node] > threshold:
        tree.threshold[node] = np.nextafter(tree.threshold[node], np.float32(-np.inf))
    tree.split_time[node] = time
    if tree.split_time[node] > time:
        tree.split_time[node] = np.nextafter(tree.split_time[node], np.float32(-np.inf))


@njit(**INNER)
def add_box(tree, node):  # type: ignore[no-untyped-def]
    """Give a node an empty box and return its row."""
    row = tree.counters[N_BOXES]
    tree.counters[N_BOXES] += 1
    tree.row[node] = row
    # Whole rows would be shorter to write, and much longer to compile.
    for d in range(tree.box.shape[2]):
        tree.box[row, LOWER, d] = np.inf
        tree.box[row, UPPER, d] = -np.inf
    return row


@njit(**INNER)
def widen(box, x):  # type: ignore[no-untyped-def]
    """Let a box hold x."""
    for d in range(len(x)):
        box[LOWER, d] = min(box[LOWER, d], x[d])
        box[UPPER, d] = max(box[UPPER, d], x[d])
