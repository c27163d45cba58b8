"""Leaves that carry models of their own, joined by the hierarchical Gaussian.

A leaf's model of its targets, if it has a constant mean, is one Gaussian message about that mean.
:mod:`mondrian_bo.trees.hierarchical_gaussian` has the form of messages. The joint posterior of all
leaf means stays exact, at O(depth) for each leaf that changes.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from mondrian_bo.trees.hierarchical_gaussian import (
    combine,
    gaussian_at,
    remaining_variance,
)
from mondrian_bo.trees.layout import FIRST_POINT, NONE
from mondrian_bo.trees.predict import message_down, posterior_of
from mondrian_bo.trees.random import hashed_normal
from mondrian_bo.trees.tree import is_leaf, tree_at


@njit(cache=True, nogil=True)
def members_of(forest, index, leaf, points):  # type: ignore[no-untyped-def]
    """Write the points of a leaf of one tree into `points`, in any order.

    Parameters
    ----------
    forest : Tree
        With a leading axis of length T.
    index, leaf : int
        The tree and its leaf.
    points : int64 array of shape (size of the leaf,)
        Result.
    """
    point = forest.children[index, leaf, FIRST_POINT]
    for k in range(len(points)):
        points[k] = point
        point = forest.next_point[index, point]


@njit(cache=True, nogil=True)
def all_leaves(forest, index, leaves):  # type: ignore[no-untyped-def]
    """Write the leaves of one tree into `leaves` and return their number.

    `leaves` is an array with an entry per node of the tree.
    """
    tree = tree_at(forest, index)
    n_found = 0
    for node in range(len(leaves)):
        if is_leaf(tree, node):
            leaves[n_found] = node
            n_found += 1
    return n_found


@njit(cache=True, nogil=True)
def set_messages(forest, node_stats, index, leaves, messages, gamma_2):  # type: ignore[no-untyped-def]
    """Set the messages of leaves of one tree and update all nodes above them.

    Parameters
    ----------
    forest, node_stats
        See :func:`mondrian_bo.trees.hierarchical_gaussian.refresh_messages`.
    index : int
        The tree.
    leaves : int64 array of shape (k,)
        Leaves whose models have changed. All leaves that never had a message must be among them.
    messages : float64 array of shape (k, 4)
        Their messages, in units of gamma_1.
    gamma_2 : float
        Hyper-parameter of the hierarchy.
    """
    tree, own = tree_at(forest, index), gaussian_at(node_stats, index)
    for k in range(len(leaves)):
        for j in range(messages.shape[1]):
            own.messages[leaves[k], j] = messages[k, j]
    for k in range(len(leaves)):
        # Nodes that lie above several of the leaves are final only after the last of them.
        node = tree.parent[leaves[k]]
        while node != NONE:
            own.remaining[node] = remaining_variance(gamma_2, tree.split_time[node])
            combine(tree, own, node)
            node = tree.parent[node]


@njit(cache=True, nogil=True)
def _path_to(tree, leaf):  # type: ignore[no-untyped-def]
    """Return the nodes from the root to a leaf."""
    length, node = 0, leaf
    while node != NONE:
        length += 1
        node = tree.parent[node]
    path = np.empty(length, dtype=np.int64)
    node = leaf
    for step in range(length - 1, -1, -1):
        path[step] = node
        node = tree.parent[node]
    return path


@njit(cache=True, nogil=True)
def leaf_means(forest, node_stats, index, leaves, mean_prior, result):  # type: ignore[no-untyped-def]
    """Write the posterior of the means of some leaves of one tree.

    Parameters
    ----------
    forest, node_stats, index
        As in :func:`set_messages`.
    leaves : int64 array of shape (k,)
        The leaves.
    mean_prior : float
        mu_H.
    result : float64 array of shape (k, 2)
        Results: means, and variances in units of gamma_1.
    """
    tree, own = tree_at(forest, index), gaussian_at(node_stats, index)
    for k in range(len(leaves)):
        path = _path_to(tree, leaves[k])
        mean, variance = mean_prior, 0.0
        for node in path:
            mean, variance = message_down(tree, own, node, mean, variance)
        result[k, 0], result[k, 1] = posterior_of(own, leaves[k], mean, variance)


@njit(cache=True, nogil=True)
def draw_leaf_mean(forest, node_stats, index, leaf, mean_prior, gamma_1, key):  # type: ignore[no-untyped-def]
    """Return a leaf's mean in one joint draw of all means of a tree from their posterior.

    The means are drawn from the root down, with numbers that are fixed functions of `key` and the
    node, so further calls with the same key evaluate the same draw. `mean_prior` and `gamma_1` are
    hyper-parameters, the rest is as in :func:`set_messages`.
    """
    tree, own = tree_at(forest, index), gaussian_at(node_stats, index)
    mean, parent_remaining = mean_prior, 0.5
    for node in _path_to(tree, leaf):
        mean, variance = posterior_of(own, node, mean, parent_remaining - own.remaining[node])
        mean += math.sqrt(gamma_1 * variance) * hashed_normal(key, node)
        parent_remaining = own.remaining[node]
    return mean
