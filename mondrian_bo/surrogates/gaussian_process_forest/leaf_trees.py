"""The Mondrian trees of a Gaussian process forest: leaves with models, joined by their means.

They are grown when a second leaf is needed, and this module is loaded then.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from mondrian_bo.array_types import FloatArray, IntArray
from mondrian_bo.surrogates.mondrian_forest.forest import GaussianForest
from mondrian_bo.trees.layout import N_NODES
from mondrian_bo.trees.leaf_models import all_leaves, leaf_means, members_of, set_messages


class LeafTrees(GaussianForest):
    """Mondrian trees with the hierarchical Gaussian, whose leaves have messages of their own.

    Parameters are those of :class:`GaussianForest`.
    """

    def n_nodes(self) -> IntArray:
        """Return the number of nodes of each tree, shape (T,)."""
        return self.arrays.counters[:, N_NODES].copy()

    def nodes_of_leaves(self, tree: int) -> list[int]:
        """Return the leaves of a tree in ascending order."""
        nodes = np.empty(int(self.arrays.counters[tree, N_NODES]), dtype=np.int64)
        leaves: list[int] = nodes[: all_leaves(self.arrays, tree, nodes)].tolist()
        return leaves

    def members(self, tree: int, leaf: int) -> IntArray:
        """Return the indices of the points of a leaf in ascending order."""
        members = np.empty(int(self.arrays.size[tree, leaf]), dtype=np.int64)
        members_of(self.arrays, tree, leaf, members)
        return members

    def grouped_by_leaf(
        self, points: FloatArray
    ) -> Iterator[tuple[int, list[int], list[IntArray]]]:
        """Yield each tree, its leaves that any points are in, and the indices of these points.

        The leaves of all trees are sorted at once: with few points, the number of calls counts.

        Parameters
        ----------
        points : float64 array of shape (S, m, d)
            The points as the trees see them, m >= 1.
        """
        leaves = self.leaves(points)
        m, n_trees = leaves.shape
        keys = (leaves + (leaves.max() + 1) * np.arange(n_trees)).ravel(order="F")
        order = np.argsort(keys, kind="stable")
        ordered = keys[order]
        starts = np.append(0, np.flatnonzero(ordered[1:] != ordered[:-1]) + 1)
        members = np.split(order % m, starts[1:])
        found = leaves.ravel(order="F")[order[starts]].tolist()
        ends = np.searchsorted(starts, m * np.arange(n_trees + 1)).tolist()
        for t, (first, end) in enumerate(pairwise(ends)):
            yield t, found[first:end], members[first:end]

    def set_messages(self, tree: int, leaves: list[int], messages: FloatArray) -> None:
        """Set the messages of leaves, shape (k, 4) in units of gamma_1, and update all above."""
        set_messages(
            self.arrays,
            self.node_stats,
            tree,
            np.array(leaves, dtype=np.int64),
            messages,
            self.hyperparameters.gamma_2,
        )

    def leaf_means(self, tree: int, leaves: list[int]) -> FloatArray:
        """Return posterior means and variances of leaf means, shape (k, 2).

        The prior mean is 0, and the variances are in units of gamma_1.
        """
        found = np.empty((len(leaves), 2))
        leaf_means(self.arrays, self.node_stats, tree, np.array(leaves), 0.0, found)
        return found
