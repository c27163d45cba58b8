"""The paths of points through the trees of a forest."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_matrix

from mondrian_bo.shared.array_types import IntArray
from mondrian_bo.surrogates.estimators.locks import reads
from mondrian_bo.trees.layout import N_NODES, NONE
from mondrian_bo.trees.tree import Tree


def node_indicator(arrays: Tree, leaves: IntArray) -> tuple[csr_matrix, IntArray]:
    """Return the nodes on the paths from the roots to given leaves, O(m T depth).

    Parameters
    ----------
    arrays : Tree
        With a leading axis of length T.
    leaves : int64 array of shape (m, T)
        A leaf of each tree for each point.

    Returns
    -------
    indicator : csr_matrix of shape (m, n_nodes)
        1 where the path of the row's point contains the column's node.
    n_nodes_ptr : int64 array of shape (T + 1,)
        Columns ``n_nodes_ptr[t]`` to ``n_nodes_ptr[t + 1]`` are the nodes of tree t.
    """
    offsets = np.concatenate([[0], np.cumsum(arrays.counters[:, N_NODES])])
    rows, columns = [], []
    for t in range(leaves.shape[1]):
        row, node = np.arange(len(leaves)), leaves[:, t]
        while len(node) > 0:
            rows.append(row)
            columns.append(node + offsets[t])
            node = arrays.parent[t][node].astype(np.int64)
            row, node = row[node != NONE], node[node != NONE]
    where = np.concatenate(rows), np.concatenate(columns)
    ones = np.ones(len(where[0]), dtype=np.int64)
    return csr_matrix((ones, where), shape=(len(leaves), offsets[-1])), offsets


class TreePathsMixin:
    """The methods `apply` and `decision_path` of scikit-learn's forests, from `_leaves`."""

    def _leaves(self, X: ArrayLike) -> tuple[Tree, IntArray]:
        """Validate X; return the trees and each row's leaf in each tree, shape (n_samples, T)."""
        raise NotImplementedError

    @reads
    def apply(self, X: ArrayLike) -> IntArray:
        """Return the leaf of each input in each tree.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        ndarray of shape (n_samples, n_estimators)
            Numbers of nodes.
        """
        _, leaves = self._leaves(X)
        return leaves

    @reads
    def decision_path(self, X: ArrayLike) -> tuple[csr_matrix, IntArray]:
        """Return the nodes on the path of each input through each tree.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        indicator : csr_matrix of shape (n_samples, n_nodes)
            1 where the path of the row's input contains the column's node.
        n_nodes_ptr : ndarray of shape (n_estimators + 1,)
            Columns ``n_nodes_ptr[t]`` to ``n_nodes_ptr[t + 1]`` are the nodes of tree t.
        """
        return node_indicator(*self._leaves(X))
