"""The cells of the leaves of Mondrian trees: boxes that cover the whole space."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mondrian_bo.shared.array_types import FloatArray, IntArray
from mondrian_bo.trees.layout import LEFT, N_NODES, NONE, RIGHT, ROOT
from mondrian_bo.trees.tree import Tree


class LeafCells(NamedTuple):
    """The leaves of a tree and their cells: ``lower < x <= upper``.

    Attributes
    ----------
    leaves : int64 array of shape (L,)
        Nodes.
    lower, upper : float64 arrays of shape (L, d)
        Corners; infinite where no split bounds the cell.
    """

    leaves: IntArray
    lower: FloatArray
    upper: FloatArray


def leaf_cells(arrays: Tree, tree: int) -> LeafCells:
    """Return the cells of a tree of a forest; O(number of nodes times d)."""
    n_nodes, d = int(arrays.counters[tree, N_NODES]), arrays.points.shape[2]
    lower, upper = np.full((n_nodes, d), -np.inf), np.full((n_nodes, d), np.inf)
    children, leaves = arrays.children[tree], []
    stack = [int(arrays.counters[tree, ROOT])]
    while stack:
        node = stack.pop()
        left, right = int(children[node, LEFT]), int(children[node, RIGHT])
        if left == NONE:
            leaves.append(node)
            continue
        dimension, threshold = arrays.dimension[tree, node], arrays.threshold[tree, node]
        for child in (left, right):
            lower[child], upper[child] = lower[node], upper[node]
            stack.append(child)
        upper[left, dimension] = lower[right, dimension] = threshold
    return LeafCells(np.array(leaves, dtype=np.int64), lower[leaves], upper[leaves])
