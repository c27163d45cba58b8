"""The hierarchical Gaussian on a Mondrian tree: exact messages, updated online.

This is the model of Lakshminarayanan2016, section 3. All variances are in units of gamma_1: the
paper's phi_j is here ``sigmoid(gamma_2 tau_j) - sigmoid(gamma_2 tau_parent)``, and the noise is
``1 / K`` (Appendix B). Posterior means do not depend on gamma_1, variances are proportional to it,
and mu_H enters at the root only.

The upward message of node j (section 3.1) is the likelihood of the targets below j as a function of
mu_j,

    exp(-1/2 (precision (mu_j - location)^2 + residual + log_determinant)).

Combining messages in this form adds non-negative terms, so nothing cancels. The message of j
depends on the subtree of j alone. Inserting a point therefore changes the messages on one path from
leaf to root, and exact inference takes O(log n) per point, where the paper's full sweep takes O(n).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from mondrian_bo.shared.array_types import FloatArray
from mondrian_bo.trees.compiling import COUNTING, INNER
from mondrian_bo.trees.layout import FIRST_POINT, LEFT, NONE, RIGHT, ROOT
from mondrian_bo.trees.tree import is_leaf, tree_at
from mondrian_bo.trees.upward import extend_upward, sweep_upward, update_upward

MEAN, SQUARES = 0, 1
"""Columns of :attr:`Gaussian.moments`."""

PRECISION, LOCATION, RESIDUAL, LOG_DETERMINANT = 0, 1, 2, 3
"""Columns of :attr:`Gaussian.messages`."""


class Gaussian(NamedTuple):
    """Statistics of the targets at each node of a tree (a forest has one more leading axis).

    Attributes
    ----------
    moments : float64 array of shape (capacity, 2)
        Mean of the targets in the block and the sum of their squared deviations from it.
    messages : float64 array of shape (capacity, 4)
        The upward message: precision, location, residual and log-determinant.
    remaining : float64 array of shape (capacity,)
        Prior variance below the node, ``1 - sigmoid(gamma_2 tau_j)``. Its differences are the
        phi_j, with full relative precision deep in the tree.
    """

    moments: FloatArray
    messages: FloatArray
    remaining: FloatArray


class Hyperparameters(NamedTuple):
    """Parameters of the hierarchical Gaussian that messages depend on, as floats.

    Attributes
    ----------
    gamma_2 : float
        Scale of split times in the prior variances phi_j.
    noise : float
        Noise variance in units of gamma_1, 1/K in Appendix B of Lakshminarayanan2016.
    """

    gamma_2: float
    noise: float


def empty_gaussian(n_trees: int) -> Gaussian:
    """Return the statistics of trees without nodes."""
    return Gaussian(
        np.empty((n_trees, 0, 2)),
        np.empty((n_trees, 0, 4)),
        np.empty((n_trees, 0)),
    )


@njit(**COUNTING)
def gaussian_at(node_stats, index):  # type: ignore[no-untyped-def]
    """Return the view of one tree's statistics."""
    return Gaussian(
        node_stats.moments[index], node_stats.messages[index], node_stats.remaining[index]
    )


@njit(cache=True, nogil=True)
def remaining_variance(gamma_2, time):  # type: ignore[no-untyped-def]
    """Return ``1 - sigmoid(gamma_2 * time)``: the prior variance after a time."""
    # The bound keeps exp finite.
    return 1.0 / (1.0 + math.exp(min(gamma_2 * time, 700.0))) if time < np.inf else 0.0


@njit(**INNER)
def _set_leaf_message(tree, node_stats, leaf, noise):  # type: ignore[no-untyped-def]
    """Compute a leaf's message from its moments: the product of (1) over its targets."""
    count = tree.size[leaf]
    message = node_stats.messages[leaf]
    message[PRECISION] = count / noise
    message[LOCATION] = node_stats.moments[leaf, MEAN]
    message[RESIDUAL] = node_stats.moments[leaf, SQUARES] / noise
    message[LOG_DETERMINANT] = count * math.log(noise)


@njit(**INNER)
def collect_leaf(tree, node_stats, targets, leaf):  # type: ignore[no-untyped-def]
    """Compute a leaf's moments from its points, in two passes."""
    total, count = 0.0, 0
    point = tree.children[leaf, FIRST_POINT]
    while point != NONE:
        total += targets[point]
        count += 1
        point = tree.next_point[point]
    mean = total / count
    squares = 0.0
    point = tree.children[leaf, FIRST_POINT]
    while point != NONE:
        squares += (targets[point] - mean) ** 2
        point = tree.next_point[point]
    node_stats.moments[leaf, MEAN] = mean
    node_stats.moments[leaf, SQUARES] = squares


@njit(**INNER)
def join_leaf(tree, node_stats, target, leaf):  # type: ignore[no-untyped-def]
    """Update a leaf's moments with the target of a point that has just joined it (Welford)."""
    moments = node_stats.moments[leaf]
    change = target - moments[MEAN]
    moments[MEAN] += change / tree.size[leaf]
    moments[SQUARES] += change * (target - moments[MEAN])


@njit(**INNER)
def combine_moments(tree, node_stats, node):  # type: ignore[no-untyped-def]
    """Compute an internal node's moments from its children's."""
    left, right = tree.children[node, LEFT], tree.children[node, RIGHT]
    n_left, n_right = tree.size[left], tree.size[right]
    share = n_right / (n_left + n_right)
    gap = node_stats.moments[right, MEAN] - node_stats.moments[left, MEAN]
    node_stats.moments[node, MEAN] = node_stats.moments[left, MEAN] + share * gap
    node_stats.moments[node, SQUARES] = (
        node_stats.moments[left, SQUARES]
        + node_stats.moments[right, SQUARES]
        + n_left * share * gap * gap
    )


@njit(**INNER)
def combine(tree, node_stats, node):  # type: ignore[no-untyped-def]
    """Compute an internal node's moments and message from its children's."""
    combine_moments(tree, node_stats, node)
    left, right = tree.children[node, LEFT], tree.children[node, RIGHT]
    prior = node_stats.remaining[node]
    one, two = node_stats.messages[left], node_stats.messages[right]
    # Each child's message passes through N(mu_child | mu_node, phi_child) (section 3), then the two
    # are multiplied.
    scale_one = 1.0 + (prior - node_stats.remaining[left]) * one[PRECISION]
    scale_two = 1.0 + (prior - node_stats.remaining[right]) * two[PRECISION]
    precision_one = one[PRECISION] / scale_one
    precision_two = two[PRECISION] / scale_two
    precision = precision_one + precision_two
    weight = precision_two / precision
    shift = two[LOCATION] - one[LOCATION]
    message = node_stats.messages[node]
    message[PRECISION] = precision
    message[LOCATION] = one[LOCATION] + weight * shift
    message[RESIDUAL] = one[RESIDUAL] + two[RESIDUAL] + precision_one * weight * shift * shift
    message[LOG_DETERMINANT] = (
        one[LOG_DETERMINANT] + two[LOG_DETERMINANT] + math.log(scale_one * scale_two)
    )


@njit(**INNER)
def _refresh_node(tree, node_stats, node, data):  # type: ignore[no-untyped-def]
    """Compute a node from scratch; children of an internal node must be up to date."""
    targets, hyperparameters = data
    time = tree.split_time[node]
    node_stats.remaining[node] = remaining_variance(hyperparameters.gamma_2, time)
    if is_leaf(tree, node):
        collect_leaf(tree, node_stats, targets, node)
        _set_leaf_message(tree, node_stats, node, hyperparameters.noise)
    else:
        combine(tree, node_stats, node)


_sweep = sweep_upward(_refresh_node, gaussian_at)


@njit(cache=True, nogil=True)
def refresh_messages(forest, node_stats, targets, hyperparameters):  # type: ignore[no-untyped-def]
    """Compute the statistics of every node of every tree: one upward sweep, O(n) per tree.

    Needed when the targets or the hyper-parameters change; the trees do not depend on them.

    Parameters
    ----------
    forest, node_stats : Tree, Gaussian
        With a leading axis of length T.
    targets : float64 array of shape (n,)
        Targets of the points.
    hyperparameters : Hyperparameters
        Parameters of the messages.
    """
    _sweep(forest, node_stats, (targets, hyperparameters))


@njit(**INNER)
def _join(tree, node_stats, leaf, point, data):  # type: ignore[no-untyped-def]
    """Update a leaf that a point has just joined."""
    targets, hyperparameters = data
    join_leaf(tree, node_stats, targets[point], leaf)
    _set_leaf_message(tree, node_stats, leaf, hyperparameters.noise)


@njit(**INNER)
def _pass_up(tree, node_stats, node, _):  # type: ignore[no-untyped-def]
    """Compute an internal node from its children; return that it has changed."""
    combine(tree, node_stats, node)
    return True


_update = update_upward(_refresh_node, _join, _pass_up)


@njit(cache=True, nogil=True)
def _update_after(tree, node_stats, inserted, data):  # type: ignore[no-untyped-def]
    """Update the statistics after an insertion, see `update_upward`."""
    _update(tree, node_stats, inserted, data)


_extend = extend_upward(_update_after, gaussian_at)


@njit(cache=True, nogil=True)
def extend_messages(  # type: ignore[no-untyped-def]
    forest, node_stats, points, targets, start, rates, settings, hyperparameters
):
    """Insert stored points into every tree and update the messages on their paths.

    Parameters
    ----------
    forest, node_stats : Tree, Gaussian
        With a leading axis of length T. Each new point needs capacity for
        :func:`mondrian_bo.trees.growth.room_for_insertion` more nodes in each tree.
    points : float64 array of shape (1 or T, at least n, d)
        Stored points; one row per tree where trees see the points differently.
    targets : float64 array of shape (n,)
        Targets of all points up to the last new one.
    start : int
        The first new point; points from `start` to ``n - 1`` are inserted, in this order.
    rates : float64 array of shape (1 or n - start, d)
        Split rate of each dimension, for all new points or for each.
    settings : GrowthSettings
        When blocks are split.
    hyperparameters : Hyperparameters
        Parameters of the messages.
    """
    growth = (start, len(targets), rates, np.empty(0, dtype=np.int32), settings)
    data = (targets, hyperparameters)
    _extend(forest, node_stats, points, growth, data)


@njit(cache=True, nogil=True)
def log_likelihood_terms(forest, node_stats, _, terms):  # type: ignore[no-untyped-def]
    """Write the root's message about mu_H into `terms`, shape (T, 4).

    The unnamed argument has the hyper-parameters, which the messages already contain.

    The log marginal likelihood of a tree is ``-1/2 (n log(2 pi gamma_1) + log_determinant +
    (residual + precision (location - mu_H)^2) / gamma_1)`` with its entries.
    """
    for t in range(len(forest.counters)):
        tree, own = tree_at(forest, t), gaussian_at(node_stats, t)
        root = tree.counters[ROOT]
        message = own.messages[root]
        # The root's parent is at time 0, after which 1 - sigmoid(0) = 1/2 remains.
        scale = 1.0 + (0.5 - own.remaining[root]) * message[PRECISION]
        terms[t, PRECISION] = message[PRECISION] / scale
        terms[t, LOCATION] = message[LOCATION]
        terms[t, RESIDUAL] = message[RESIDUAL]
        terms[t, LOG_DETERMINANT] = message[LOG_DETERMINANT] + math.log(scale)
