"""Moments of each target given all others, in every tree with the hierarchical Gaussian.

The nodes that are needed are copied once, in the order of the sweeps and restricted to some of the
points, because the moments are computed for many hyper-parameters. The prior is closed under
marginalisation (Lakshminarayanan2016, section 3), so the restricted trees have the distribution of
those targets.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from mondrian_bo.shared.array_types import FloatArray
from mondrian_bo.trees.compiling import GENERIC, INNER
from mondrian_bo.trees.hierarchical_gaussian import remaining_variance
from mondrian_bo.trees.layout import FIRST_POINT, LEFT, N_NODES, NONE, RIGHT, ROOT
from mondrian_bo.trees.predict import condition
from mondrian_bo.trees.tree import is_leaf, preorder, tree_at

_PRECISION, _LOCATION, _REMAINING = 0, 1, 2
"""Columns of the upward state of a node in :func:`leave_one_out`: its message, and the prior
variance below it."""

_MEAN, _VARIANCE, _GAIN = 0, 1, 2
"""Columns of the downward state of a node.

Mean and variance of mu_j given all targets outside of its subtree; at leaves those of a further
target, and the factor of a target's own deviation.
"""

N_STATE = 6
"""Floats of working memory that :func:`leave_one_out` needs for each node, in both directions."""


class RestrictedForest(NamedTuple):
    """The nodes of all trees that k points need, parents before children, tree after tree.

    Attributes
    ----------
    sibling : int32 array of shape (nodes,)
        The other child of the parent; ``NONE`` at roots. A left child follows its parent.
    parent : int32 array of shape (nodes,)
        ``NONE`` at roots.
    split_time : float64 array of shape (nodes,)
        tau_j.
    size : int32 array of shape (nodes,)
        Number of points at leaves, 0 elsewhere.
    centre : float64 array of shape (nodes,)
        Mean of the targets of leaves.
    node : int32 array of shape (nodes,)
        The number of the node in its tree.
    leaf : int32 array of shape (T, k)
        The leaf of each point in each tree.
    """

    sibling: NDArray[np.int32]
    parent: NDArray[np.int32]
    split_time: FloatArray
    size: NDArray[np.int32]
    centre: FloatArray
    node: NDArray[np.int32]
    leaf: NDArray[np.int32]


@njit(cache=True, nogil=True)
def restrict_forest(forest, kept, targets):  # type: ignore[no-untyped-def]
    """Return the trees restricted to some points, O(T n).

    Parameters
    ----------
    forest : Tree
        With a leading axis of length T; not empty.
    kept : int64 array of shape (k,)
        Points that are kept, at least one.
    targets : float64 array of shape (k,)
        Their targets.

    Returns
    -------
    RestrictedForest
    """
    n_trees, n_kept = len(forest.counters), len(kept)
    rank = np.full(forest.next_point.shape[1], NONE)
    for which in range(n_kept):
        rank[kept[which]] = which
    # A tree of k points has at most k leaves, and no more nodes than the whole tree.
    capacity = 0
    for t in range(n_trees):
        capacity += min(2 * n_kept - 1, forest.counters[t, N_NODES])
    new = RestrictedForest(
        np.empty(capacity, dtype=np.int32),
        np.empty(capacity, dtype=np.int32),
        np.empty(capacity),
        np.zeros(capacity, dtype=np.int32),
        np.zeros(capacity),
        np.empty(capacity, dtype=np.int32),
        np.empty((n_trees, n_kept), dtype=np.int32),
    )
    end = 0
    for t in range(n_trees):
        tree = tree_at(forest, t)
        end = _copy_tree(tree, _count_kept(tree, rank), rank, targets, new, t, end)
    return RestrictedForest(
        new.sibling[:end],
        new.parent[:end],
        new.split_time[:end],
        new.size[:end],
        new.centre[:end],
        new.node[:end],
        new.leaf,
    )


# Numba writes the code of these parts into the caller, where it would compile them a second time.
@njit(**GENERIC)
def _count_kept(tree, rank):  # type: ignore[no-untyped-def]
    """Return the number of kept points below each node, of those with a rank."""
    nodes = np.empty(tree.counters[N_NODES], dtype=np.int32)
    preorder(tree, nodes)
    n_kept = np.zeros(len(nodes), dtype=np.int32)
    for k in range(len(nodes) - 1, -1, -1):
        node = nodes[k]
        if is_leaf(tree, node):
            point = tree.children[node, FIRST_POINT]
            while point != NONE:
                n_kept[node] += rank[point] != NONE
                point = tree.next_point[point]
        if tree.parent[node] != NONE:
            n_kept[tree.parent[node]] += n_kept[node]
    return n_kept


@njit(**GENERIC)
def _copy_tree(tree, n_kept, rank, targets, new, t, end):  # type: ignore[no-untyped-def]
    """Write tree t to the entries of a :class:`RestrictedForest` from `end` on; return the next.

    `n_kept` has the result of :func:`_count_kept`.
    """
    # Nodes that wait, with the new numbers of their parent and, of right children, left sibling.
    waiting = [(np.int64(tree.counters[ROOT]), np.int64(NONE), np.int64(NONE))]
    while len(waiting) > 0:
        node, above, left = waiting.pop()
        # A node with kept points on one side only is left out.
        while not is_leaf(tree, node):
            one, two = tree.children[node, LEFT], tree.children[node, RIGHT]
            if n_kept[one] > 0 and n_kept[two] > 0:
                break
            node = np.int64(one if n_kept[one] > 0 else two)
        new.parent[end], new.sibling[end], new.node[end] = above, left, node
        new.split_time[end] = tree.split_time[node]
        if left != NONE:
            new.sibling[left] = end
        if is_leaf(tree, node):
            _copy_leaf(tree, node, rank, targets, new, t, end)
        else:
            # The left child is the next one.
            one, two = tree.children[node, LEFT], tree.children[node, RIGHT]
            waiting.append((np.int64(two), np.int64(end), np.int64(end + 1)))
            waiting.append((np.int64(one), np.int64(end), np.int64(NONE)))
        end += 1
    return end


@njit(**GENERIC)
def _copy_leaf(tree, leaf, rank, targets, new, t, number):  # type: ignore[no-untyped-def]
    """Write the kept points of a leaf of tree t, whose new number is given."""
    point = tree.children[leaf, FIRST_POINT]
    while point != NONE:
        which = rank[point]
        if which != NONE:
            new.leaf[t, which] = number
            new.size[number] += 1
            new.centre[number] += (targets[which] - new.centre[number]) / new.size[number]
        point = tree.next_point[point]


@njit(cache=True, nogil=True)
def leave_one_out(forest, targets, hyperparameters, state, moments):  # type: ignore[no-untyped-def]
    """Write the moments of each target given all others: an upward and a downward sweep.

    Parameters
    ----------
    forest : RestrictedForest
        The trees.
    targets : float64 array of shape (k,)
        The targets that `forest` was made with, minus mu_H.
    hyperparameters : Hyperparameters
        Parameters of the messages.
    state : float64 array of shape (nodes, N_STATE)
        Working memory.
    moments : float64 array of shape (3, k)
        Results: the mean over trees of the means; the mean over trees of the variances, in units of
        gamma_1 and with the noise; and the variance of the means between trees.
    """
    gamma_2, noise = hyperparameters
    sibling, parent = forest.sibling, forest.parent
    up, down = state[:, :3], state[:, 3:]
    for node in range(len(parent) - 1, -1, -1):
        remaining = remaining_variance(gamma_2, forest.split_time[node])
        up[node, _REMAINING] = remaining
        if forest.size[node] > 0:
            up[node, _PRECISION] = forest.size[node] / noise
            up[node, _LOCATION] = forest.centre[node]
            continue
        left, right = node + 1, np.int64(sibling[node + 1])
        # The children keep their messages about this node instead of those about themselves.
        for child in (left, right):
            step = remaining - up[child, _REMAINING]
            up[child, _PRECISION] /= 1.0 + step * up[child, _PRECISION]
        precision = up[left, _PRECISION] + up[right, _PRECISION]
        weight = up[right, _PRECISION] / precision
        up[node, _PRECISION] = precision
        up[node, _LOCATION] = up[left, _LOCATION] + weight * (
            up[right, _LOCATION] - up[left, _LOCATION]
        )
    for node in range(len(parent)):
        above, other = parent[node], sibling[node]
        if above == NONE:
            mean, variance = 0.0, 0.5 - up[node, _REMAINING]
        else:
            mean, variance = condition(
                down[above, _MEAN],
                down[above, _VARIANCE],
                up[other, _LOCATION],
                up[other, _PRECISION],
            )
            variance += up[above, _REMAINING] - up[node, _REMAINING]
        if forest.size[node] > 0:
            # The other targets of the leaf have the mean centre + (centre - target) / others. Their
            # precision is 0 where there are none.
            others = forest.size[node] - 1
            down[node, _GAIN] = variance / (noise + variance * others)
            mean, variance = condition(mean, variance, up[node, _LOCATION], others / noise)
            variance += noise
        down[node, _MEAN], down[node, _VARIANCE] = mean, variance
    # Loops in place of array expressions, which compile for two seconds longer.
    for row in range(3):
        for which in range(len(targets)):
            moments[row, which] = 0.0
    for t in range(len(forest.leaf)):
        for which in range(len(targets)):
            leaf = forest.leaf[t, which]
            own = down[leaf]
            mean = own[_MEAN] + own[_GAIN] * (up[leaf, _LOCATION] - targets[which])
            record_moments(moments, which, t, mean, own[_VARIANCE])
    for which in range(len(targets)):
        moments[2, which] /= len(forest.leaf)


@njit(**INNER)
def record_moments(moments, which, t, mean, variance):  # type: ignore[no-untyped-def]
    """Add the moments of a target in tree t to the means and the variance over trees (Welford).

    The variance of the means is their sum of squared deviations until all trees are added.
    """
    change = mean - moments[0, which]
    moments[0, which] += change / (t + 1)
    moments[1, which] += (variance - moments[1, which]) / (t + 1)
    moments[2, which] += change * (mean - moments[0, which])
