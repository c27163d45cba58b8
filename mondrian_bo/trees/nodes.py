"""New nodes of a tree, and the boxes of those that have one."""

from __future__ import annotations

import numpy as np
from numba import njit

from mondrian_bo.trees.compiling import INNER
from mondrian_bo.trees.tree import LEFT, LOWER, N_BOXES, N_NODES, NONE, RIGHT, UPPER


@njit(**INNER)
def add_leaf(tree, parent, lifetime):  # type: ignore[no-untyped-def]
    """Append an empty leaf and return it; `parent` is an int64, to be compiled for one type."""
    node = tree.counters[N_NODES]
    tree.counters[N_NODES] += 1
    tree.parent[node] = parent
    tree.children[node, LEFT] = NONE
    tree.children[node, RIGHT] = NONE
    tree.dimension[node] = NONE
    tree.threshold[node] = 0.0
    tree.split_time[node] = lifetime
    tree.row[node] = NONE
    tree.size[node] = 0
    tree.first_point[node] = NONE
    return node


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
