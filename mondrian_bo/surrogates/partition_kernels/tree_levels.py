"""Fitted trees as hierarchies of partitions, whatever package grew them."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mondrian_bo.shared.array_types import BoolArray, FloatArray, IntArray
from mondrian_bo.surrogates.shared.growing_forest import GrowingForest
from mondrian_bo.trees.layout import N_NODES, ROOT

_NO_NODE = -1
"""Marks an absent node."""


class Hierarchy(NamedTuple):
    """The nodes of one tree.

    Attributes
    ----------
    parent : int64 array of shape (n_nodes,)
        Parent of each node; -1 at the root.
    level : int64 array of shape (n_nodes,)
        Number of edges from the root.
    split_time : float64 array of shape (n_nodes,) or None
        When each node of a Mondrian tree splits; infinity at leaves. None for other trees.
    """

    parent: IntArray
    level: IntArray
    split_time: FloatArray | None

    def clusters(self, is_split: BoolArray) -> tuple[NDArray[np.int32], int]:
        """Return the cluster of each node if only some nodes split, and their number.

        Parameters
        ----------
        is_split : bool array of shape (n_nodes,)
            Whether a node splits; nodes below one that does not belong to its cluster.

        Returns
        -------
        cluster : int32 array of shape (n_nodes,)
            What the points of each node belong to; nodes that split have none, -1.
        n_clusters : int
            Number of clusters.
        """
        cluster = np.full(len(self.parent), -1, dtype=np.int32)
        order = np.argsort(self.level, kind="stable")
        parents = self.parent[order]
        above = np.concatenate([[0], np.cumsum(np.bincount(self.level))])
        n_clusters = 0
        for start, end in pairwise(above):
            nodes, up = order[start:end], parents[start:end]
            inherited = np.where(up == _NO_NODE, -1, cluster[up])
            new = (inherited < 0) & ~is_split[nodes]
            inherited[new] = n_clusters + np.arange(np.count_nonzero(new))
            cluster[nodes] = inherited
            n_clusters += int(np.count_nonzero(new))
        return cluster, n_clusters


def hierarchies(forest: Any) -> list[Hierarchy]:
    """Return the trees of a fitted forest, of scikit-learn or of this library.

    Raises
    ------
    ValueError
        If the forest has no trees that are known here, or no method `apply` that returns leaves.
    """
    own = _growing_forest(forest)
    if own is not None:
        return [_mondrian_tree(own.arrays, t) for t in range(len(own.arrays.counters))]
    trees = [getattr(tree, "tree_", None) for tree in np.ravel(getattr(forest, "estimators_", []))]
    # Bagging and boosting of any estimators have no leaves, although these may be trees.
    if not trees or any(tree is None for tree in trees) or not hasattr(forest, "apply"):
        raise ValueError(
            "forest must be a forest of scikit-learn or of mondrian_bo, which has trees in "
            f"estimators_ or model_ and a method apply; got {type(forest).__name__}"
        )
    return [_scikit_learn_tree(tree) for tree in trees]


def leaves_of(forest: Any, X: FloatArray) -> IntArray:
    """Return the leaf of each tree that holds each input, shape (n_samples, n_trees)."""
    # Forests know how inputs become points of their trees: AMF subtracts offsets, for example.
    return np.asarray(forest.apply(X)).reshape(len(X), -1).astype(np.int64)


def _growing_forest(forest: Any) -> GrowingForest[Any] | None:
    """Return what holds the trees of a fitted forest of this library; None for other forests."""
    own = getattr(getattr(forest, "model_", None), "forest", None)
    return own if isinstance(own, GrowingForest) else None


def _scikit_learn_tree(tree: Any) -> Hierarchy:
    parent = np.full(tree.node_count, _NO_NODE, dtype=np.int64)
    for children in (tree.children_left, tree.children_right):
        inner = np.flatnonzero(children >= 0)
        parent[children[inner]] = inner
    return Hierarchy(parent, _levels(parent), None)


def _mondrian_tree(trees: Any, t: int) -> Hierarchy:
    n_nodes = int(trees.counters[t, N_NODES])
    parent = trees.parent[t, :n_nodes].astype(np.int64)
    children = trees.children[t, :n_nodes]
    time = np.where(children[:, 0] >= 0, trees.split_time[t, :n_nodes], np.inf)
    parent[trees.counters[t, ROOT]] = _NO_NODE
    return Hierarchy(parent, _levels(parent), time)


def _levels(parent: IntArray) -> IntArray:
    """Return the numbers of edges from the root, O(n_nodes log(height)), by doubling strides."""
    level: IntArray = (parent != _NO_NODE).astype(np.int64)
    ancestor = parent.copy()
    while np.any(ancestor != _NO_NODE):
        inner = np.flatnonzero(ancestor != _NO_NODE)
        level[inner] += level[ancestor[inner]]
        ancestor[inner] = ancestor[ancestor[inner]]
    return level
