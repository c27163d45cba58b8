"""Numbering the nodes of a grown tree anew, so that paths are contiguous in memory.

Trees that grow point by point number their nodes in the order of their creation, which scatters
each path over the whole of every array. In preorder a node stands next to its left child, small
subtrees are together, and what walks down the tree finds most of what it needs in the cache. After
a large batch, and whenever a stream has doubled, that is worth a copy of the arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mondrian_bo.trees.tree import (
    N_NODES,
    NODE_FIELDS,
    NONE,
    ROOT,
    Tree,
    preorder,
    view_of,
)


def number_in_preorder(forest: Tree, carried: Sequence[NDArray[Any]] = ()) -> None:
    """Give the nodes and boxes of every tree new numbers, in place.

    Takes O(T n d), and room for one array of one tree meanwhile.

    Parameters
    ----------
    forest : Tree
        With a leading axis of length T.
    carried : sequence of arrays of shape (T, capacity, ...), default=()
        What nodes carry, which moves with them.
    """
    for t in range(len(forest.counters)):
        tree = view_of(forest, t)
        n_nodes = int(tree.counters[N_NODES])
        if n_nodes == 0:
            continue
        nodes = np.empty(n_nodes, dtype=np.int32)
        preorder(tree, nodes)
        order = nodes.astype(np.intp)  # or each use would convert it
        for field in (*(getattr(tree, name) for name in NODE_FIELDS), *(a[t] for a in carried)):
            field[:n_nodes] = field.take(order, axis=0)
        # The last entry is that of NONE.
        number = np.full(n_nodes + 1, NONE, dtype=np.int32)
        number[order] = np.arange(n_nodes, dtype=np.int32)
        for links in (tree.parent[:n_nodes], tree.children[:n_nodes]):
            links[:] = number.take(links, mode="wrap")
        tree.counters[ROOT] = 0
        with_box = np.flatnonzero(tree.row[:n_nodes] != NONE)
        n_boxes = len(with_box)
        tree.box[:n_boxes] = tree.box.take(tree.row[with_box], axis=0)
        tree.row[with_box] = np.arange(n_boxes, dtype=np.int32)
