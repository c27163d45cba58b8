"""The Mondrian trees of a Gaussian process forest: leaves with models, joined by their means.

They are grown when a second leaf is needed, and this module is loaded then.
"""

from __future__ import annotations

import numpy as np

from mondrian_bo.shared.array_types import FloatArray, IntArray
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
        members.sort()  # not in compiled code, where a sort compiles for half a second
        return members

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

    def leaf_means(self, tree: int, leaves: IntArray) -> FloatArray:
        """Return posterior means and variances of the means of leaves, shape (k, 2).

        The prior mean is 0, and the variances are in units of gamma_1.
        """
        found = np.empty((len(leaves), 2))
        leaf_means(self.arrays, self.node_stats, tree, leaves, 0.0, found)
        return found
