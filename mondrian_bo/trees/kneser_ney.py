"""Class probabilities on a Mondrian tree, by interpolated Kneser-Ney smoothing.

The model is section 4 of B. Lakshminarayanan, D. M. Roy, Y. W. Teh: Mondrian Forests: Efficient
Online Random Forests (NIPS 2014), here Lakshminarayanan2014. Each node has a distribution over the
classes, drawn from a normalised stable process around that of its parent with discount ``d_j =
exp(-gamma (tau_j - tau_parent))``. The root's parent has the uniform distribution. Interpolated
Kneser-Ney smoothing approximates the posterior mean: with c_jk customers of class k in node j, of
whom ``tab_jk = min(c_jk, 1)`` are passed on to the parent,

    G_jk = (c_jk - d_j tab_jk + d_j tab_j. G_parent,k) / c_j.

where a dot stands for the sum over the classes. At leaves c_jk is the total weight of the points of
class k, at internal nodes the sum of the children's tab_k. Counts depend neither on gamma nor on
split times; discounts are computed where they are used. The update for a new point stops at the
first ancestor whose counts it does not change.

A leaf that is not split has the lifetime as its split time. Where that is infinite its discount is
0: inside of the box of a leaf of one class, the tree gives that class probability 1. Points outside
of boxes and the mean over trees soften predictions.

Weights of samples are real numbers. ``tab_jk = min(c_jk, 1)`` holds for them too, so that integer
weights equal repeated samples, and tab_jk is the smaller of 1 and the total weight of class k below
the node.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from mondrian_bo.shared.array_types import FloatArray, IntArray
from mondrian_bo.trees.compiling import COUNTING, INNER, INNER_COUNTING
from mondrian_bo.trees.layout import FIRST_POINT, LEFT, NONE, RIGHT, ROOT
from mondrian_bo.trees.traversal import (
    NEGLIGIBLE_SHARE,
    STACK_DEPTH,
    descend,
    in_chunks,
    split_points,
)
from mondrian_bo.trees.tree import distance_outside, is_leaf
from mondrian_bo.trees.upward import extend_upward, sweep_upward, update_upward

_SMALLEST_PROBABILITY = 1e-300
"""Probability of branching off that counts as none; ratios of smaller numbers overflow."""

_SMALLEST_CHUNK = 16384
"""Smallest number of points predicted at a time: their intermediate results fit into the cache."""


class KneserNey(NamedTuple):
    """Counts of the classes at each node of a tree (a forest has one more leading axis).

    Attributes
    ----------
    counts : float64 array of shape (capacity, K)
        The customers c_jk of each class.
    """

    counts: FloatArray


def empty_counts(n_trees: int, n_classes: int) -> KneserNey:
    """Return the counts of trees without nodes."""
    return KneserNey(np.empty((n_trees, 0, n_classes)))


@njit(**COUNTING)
def counts_at(node_stats, index):  # type: ignore[no-untyped-def]
    """Return the view of one tree's counts."""
    return KneserNey(node_stats.counts[index])


@njit(cache=True, nogil=True)
def _combine(tree, node_stats, node, _):  # type: ignore[no-untyped-def]
    """Compute an internal node's counts from its children's; return whether they changed."""
    counts = node_stats.counts[node]
    one = node_stats.counts[tree.children[node, LEFT]]
    two = node_stats.counts[tree.children[node, RIGHT]]
    changed = False
    for k in range(len(counts)):
        count = min(one[k], 1.0) + min(two[k], 1.0)
        changed |= count != counts[k]
        counts[k] = count
    return changed


@njit(cache=True, nogil=True)
def _refresh_node(tree, node_stats, node, samples):  # type: ignore[no-untyped-def]
    """Compute a node from scratch; children of an internal node must be up to date."""
    if not is_leaf(tree, node):
        _combine(tree, node_stats, node, samples)
        return
    classes, sample_weights = samples
    counts = node_stats.counts[node]
    for k in range(len(counts)):
        counts[k] = 0.0
    point = tree.children[node, FIRST_POINT]
    while point != NONE:
        counts[classes[point]] += sample_weights[point] if len(sample_weights) > 0 else 1.0
        point = tree.next_point[point]


_sweep = sweep_upward(_refresh_node, counts_at)


@njit(cache=True, nogil=True)
def refresh_counts(forest, node_stats, classes, sample_weights):  # type: ignore[no-untyped-def]
    """Compute the counts of every node of every tree: one upward sweep, O(n K) per tree.

    Parameters
    ----------
    forest, node_stats : Tree, KneserNey
        With a leading axis of length T.
    classes : int32 array of shape (n,)
        The class of each point, a number below K.
    sample_weights : float64 array of shape (n,)
        Positive weights of the samples; empty if all are 1.
    """
    _sweep(forest, node_stats, (classes, sample_weights))


@njit(cache=True, nogil=True)
def _join(tree, node_stats, leaf, point, samples):  # type: ignore[no-untyped-def]
    """Count the class of a point that has just joined a leaf."""
    classes, sample_weights = samples
    weight = sample_weights[point] if len(sample_weights) > 0 else 1.0
    node_stats.counts[leaf, classes[point]] += weight


_update = update_upward(_refresh_node, _join, _combine)


@njit(cache=True, nogil=True)
def _update_after(tree, node_stats, inserted, samples):  # type: ignore[no-untyped-def]
    """Update the counts after an insertion, see `update_upward`."""
    _update(tree, node_stats, inserted, samples)


_extend = extend_upward(_update_after, counts_at)


@njit(cache=True, nogil=True)
def extend_counts(forest, node_stats, points, classes, sample_weights, start, rates, settings):  # type: ignore[no-untyped-def]
    """Insert stored points into every tree and count their classes.

    O((d + K) log n) per point and tree for balanced trees. A leaf of one class is not split; when a
    point of a second class joins it, its block is sampled.

    Parameters
    ----------
    forest, node_stats : Tree, KneserNey
        With a leading axis of length T and capacity for ``2 * n`` nodes.
    points : float64 array of shape (1 or T, at least n, d)
        Stored points; one row per tree where trees see the points differently.
    classes : int32 array of shape (n,)
        Classes of all points up to the last new one.
    sample_weights
        See :func:`refresh_counts`.
    start, rates, settings
        See :func:`mondrian_bo.trees.hierarchical_gaussian.extend_messages`.
    """
    growth = (start, len(classes), rates, classes, settings)
    samples = (classes, sample_weights)
    _extend(forest, node_stats, points, growth, samples)


@njit(cache=True, nogil=True)
def expected_discount(gamma, rate, span):  # type: ignore[no-untyped-def]
    """Return the mean discount of a node that is inserted at a random time within a span.

    This is the mean of ``exp(-gamma time)`` for an exponential time with the given rate, given that
    the time is less than `span` (Lakshminarayanan2014, Algorithm 8, line 9).

    Parameters
    ----------
    gamma : float
        Speed of the discounts; positive.
    rate : float
        Rate of the time, eta_j(x); positive.
    span : float
        Delta_j, positive, may be infinite.

    Returns
    -------
    tuple of float
        The probability that the time is less than `span`, and the expected discount.
    """
    if span == np.inf:
        return 1.0, 1.0 / (1.0 + gamma / rate)
    probability = -math.expm1(-rate * span)
    if not probability > _SMALLEST_PROBABILITY:
        return 0.0, 1.0
    discount = math.expm1(-(rate + gamma) * span) / math.expm1(-rate * span)
    return probability, discount / (1.0 + gamma / rate)


class _Walk(NamedTuple):
    """Points that go down a tree together, and the distributions at the current node.

    Attributes
    ----------
    order : int64 array of shape (m,)
        The points; ``order[start:end]`` are at the node.
    unstopped : float64 array of shape (m,)
        Probability that each point has not branched off yet, by the points' numbers.
    above, own : float64 arrays of shape (K,)
        The distributions of the node's parent and of the node, G_parent,k and G_jk.
    passed_on : float64 array of shape (K,)
        Shares of the customers of a node inserted above, ``tab_jk / tab_j.``
    """

    order: IntArray
    unstopped: FloatArray
    above: FloatArray
    own: FloatArray
    passed_on: FloatArray


@njit(**INNER)
def _span_above(tree, node):  # type: ignore[no-untyped-def]
    """Return Delta_j, the time between the split of a node and that of its parent."""
    parent = tree.parent[node]
    return tree.split_time[node] - (tree.split_time[parent] if parent != NONE else 0.0)


@njit(**INNER)
def _smooth(node_stats, node, discount, walk):  # type: ignore[no-untyped-def]
    """Write a node's distribution and the shares of the customers that it passes on.

    `discount` is d_j, and the distribution of the parent is ``walk.above``.
    """
    counts, above, own, passed_on = node_stats.counts[node], walk.above, walk.own, walk.passed_on
    customers, tables = 0.0, 0.0  # c_j. and tab_j.
    for k in range(len(own)):
        passed_on[k] = min(counts[k], 1.0)
        customers += counts[k]
        tables += passed_on[k]
    for k in range(len(own)):
        kept = counts[k] - discount * passed_on[k]
        own[k] = (kept + discount * tables * above[k]) / customers  # G_jk
        passed_on[k] /= tables


@njit(**INNER)
def _stop_some(tree, node, points, settings, walk, places, result):  # type: ignore[no-untyped-def]
    """Add to the results of the points at a node what stops there; return the end of the others.

    Outside of the node's box a share of a point branches off to a new node (Lakshminarayanan2014,
    Algorithm 8); at a leaf the rest stops. `places` is (start, end) of the points at the node;
    those that go on keep their order.
    """
    (rates, gamma), (start, end) = settings, places
    order, unstopped, above, own, passed_on = walk
    n_classes = len(own)
    leaf, span = is_leaf(tree, node), _span_above(tree, node)
    inside = start
    for i in range(start, end):
        point = order[i]
        rate = distance_outside(tree, node, rates, points, point)
        if rate > 0.0:
            probability, mean_discount = expected_discount(gamma, rate, span)
            share = unstopped[point] * probability
            unstopped[point] -= share
            lent = share * mean_discount
            for k in range(n_classes):
                result[point, k] += (share - lent) * passed_on[k] + lent * above[k]
        if leaf:
            for k in range(n_classes):
                result[point, k] += unstopped[point] * own[k]
        elif unstopped[point] > NEGLIGIBLE_SHARE:
            order[inside] = point
            inside += 1
    return inside


@njit(**INNER_COUNTING)
def _predict_tree(tree, node_stats, points, settings, where, results):  # type: ignore[no-untyped-def]
    """Add one tree's probabilities to the results; all points go down the tree together.

    :func:`mondrian_bo.trees.traversal.in_chunks` has the parameters; `settings` is the pair of the
    rates and gamma.
    """
    _, first, last = where
    result = results[first:last]
    n_points, n_classes = result.shape
    order = np.arange(n_points)
    scratch = np.empty_like(order)
    above = np.full(n_classes, 1.0 / n_classes)  # of the parent of the root
    walk = _Walk(order, np.ones(n_points), above, np.empty(n_classes), np.empty(n_classes))
    # Nodes that wait, and the distribution of the parent of each.
    stack, pending = np.empty((STACK_DEPTH, 3), dtype=np.int64), 0
    stack_above = np.empty((STACK_DEPTH, n_classes))
    node, start, end = np.int64(tree.counters[ROOT]), 0, n_points
    while True:
        discount = math.exp(-settings[1] * _span_above(tree, node))  # d_j
        _smooth(node_stats, node, discount, walk)
        end = _stop_some(tree, node, points, settings, walk, (start, end), result)
        if start == end:
            if pending == 0:
                break
            pending -= 1
            node, start, end = stack[pending]
            for k in range(n_classes):
                walk.above[k] = stack_above[pending, k]
            continue
        for k in range(n_classes):
            walk.above[k] = walk.own[k]
            stack_above[pending, k] = walk.own[k]
        middle = split_points(tree, node, points, order, start, end, scratch)
        node, start, end, pending = descend(tree, node, start, middle, end, stack, pending)


_predict_in_chunks = in_chunks(_predict_tree, counts_at)


@njit(**COUNTING)
def predict_classes(forest, node_stats, points, rates, gamma, result):  # type: ignore[no-untyped-def]
    """Write the sum over trees of the classes' probabilities into `result`.

    Lakshminarayanan2014, Algorithms 7 and 8. A point x outside of the box of node j branches off
    above j with probability ``p = 1 - exp(-Delta_j eta_j(x))``, at a new node that has the
    customers tab_j and a discount whose mean is :func:`expected_discount`. The new node's
    distribution gets the share p of the weight that reaches j, and the rest goes on; what reaches
    the leaf gets the leaf's distribution. O((d + K) log n) per point and tree for balanced trees.

    Parameters
    ----------
    forest, node_stats, points, rates
        See :func:`mondrian_bo.trees.predict.predict_forest`; `node_stats` are KneserNey.
    gamma : float
        Speed of the discounts.
    result : float64 array of shape (m, K)
        Result. The row of a point does not depend on the other points.
    """
    result[:] = 0.0
    _predict_in_chunks(forest, node_stats, points, _SMALLEST_CHUNK, (rates, gamma), result)
