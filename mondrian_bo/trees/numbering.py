"""Renumbering the nodes of a grown tree, so that paths are contiguous in memory.

Trees that grow point by point number their nodes in the order of their creation, which scatters
each path over the arrays. In preorder a node stands next to its left child and small subtrees are
together, so a path down the tree finds most of its nodes in the cache. Renumbering copies the
arrays; it pays after a large batch, and whenever a stream has doubled.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mondrian_bo.shared.array_types import AnyArray
from mondrian_bo.trees.layout import LEFT, N_NODES, NONE, ROOT
from mondrian_bo.trees.memory import mapped_zeros
from mondrian_bo.trees.tree import NODE_FIELDS, Tree, nodes_used, preorder, view_of


def number_in_preorder(forest: Tree, carried: Sequence[AnyArray] = ()) -> None:
    """Renumber the nodes and boxes of every tree in preorder, in place.

    Takes O(T n d), and memory for two int32 numbers per node of one tree.

    Parameters
    ----------
    forest : Tree
        With a leading axis of length T.
    carried : sequence of arrays of shape (T, capacity, ...), default=()
        Statistics of the nodes, which move with them.
    """
    largest = nodes_used(forest)
    all_nodes = mapped_zeros((largest,), np.int32)
    numbers = mapped_zeros((largest + 1,), np.int32)
    for t in range(len(forest.counters)):
        tree = view_of(forest, t)
        n_nodes = int(tree.counters[N_NODES])
        if n_nodes == 0:
            continue
        nodes = all_nodes[:n_nodes]
        preorder(tree, nodes)
        for field in (*(getattr(tree, name) for name in NODE_FIELDS), *(a[t] for a in carried)):
            _reorder(field, nodes)
        # The last entry stands for NONE, which is -1.
        number = numbers[: n_nodes + 1]
        number[NONE] = NONE
        number[nodes] = np.arange(n_nodes, dtype=np.int32)
        inner = np.flatnonzero(tree.children[:n_nodes, LEFT] != NONE)
        tree.children[inner] = number[tree.children[inner]]
        tree.parent[:n_nodes] = number[tree.parent[:n_nodes]]
        tree.counters[ROOT] = 0
        with_box = np.flatnonzero(tree.row[:n_nodes] != NONE)
        n_boxes = len(with_box)
        _reorder(tree.box, tree.row[with_box])
        tree.row[with_box] = np.arange(n_boxes, dtype=np.int32)


def _reorder(entries: AnyArray, order: NDArray[np.integer[Any]]) -> None:
    """Replace the first entries of an array by those that `order` lists, in place."""
    # Column by column, which needs less temporary memory: malloc does not return all of it.
    for column in entries.reshape(len(entries), -1).T:
        column[: len(order)] = column[order]
