"""Class probabilities on a Mondrian tree, by interpolated Kneser-Ney smoothing.

This is the label model of B. Lakshminarayanan, D. M. Roy, Y. W. Teh: Mondrian Forests: Efficient
Online Random Forests (NIPS 2014), section 4: each node has a distribution over the classes, drawn
from a normalised stable process around that of its parent with discount ``d_j = exp(-gamma (tau_j -
tau_parent))``; the root's parent has the uniform distribution. The posterior mean is approximated
by interpolated Kneser-Ney: with c_jk customers of class k in node j, of whom ``tab_jk =
min(c_jk, 1)`` are passed on to the parent,

    G_jk = (c_jk - d_j tab_jk + d_j tab_j. G_parent,k) / c_j.

where a dot stands for the sum over the classes. At leaves c_jk is the weight of the labels k, at
inner nodes the sum of the children's tab_k. So counts depend neither on gamma nor on split times,
discounts are computed where they are used, and a new label stops climbing at the first ancestor
whose customers it does not change: soon, if others of its class are near.

A leaf that is not to be split has the lifetime as its split time. Where that is infinite its
discount is 0: inside the box of a leaf of one class the tree is sure of it. That is the model; what
softens predictions are points outside of boxes, and the mean over trees.

Weights of samples are real: ``tab_jk = min(c_jk, 1)`` all the same, so that whole weights equal
repeated samples, and in every node ``tab_jk`` is the smaller of 1 and the total weight of class k.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from mondrian_bo.array_types import FloatArray
from mondrian_bo.trees.compiling import COUNTING
from mondrian_bo.trees.growth import extend_tree
from mondrian_bo.trees.tree import (
    FIRST_POINT,
    LEFT,
    N_NODES,
    NONE,
    RIGHT,
    ROOT,
    distance_outside,
    is_leaf,
    preorder,
    tree_at,
)

_NEGLIGIBLE = 1e-16
_SMALLEST_CHUNK = 16384


class KneserNey(NamedTuple):
    """What each node of a tree knows about the classes (a forest has one more leading axis).

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
def counts_at(values, index):  # type: ignore[no-untyped-def]
    """Return the view of one tree's counts."""
    return KneserNey(values.counts[index])


@njit(cache=True, nogil=True)
def _combine(tree, values, node):  # type: ignore[no-untyped-def]
    """Compute an inner node's counts from its children's; return whether they have changed."""
    counts = values.counts[node]
    one = values.counts[tree.children[node, LEFT]]
    two = values.counts[tree.children[node, RIGHT]]
    changed = False
    for k in range(len(counts)):
        count = min(one[k], 1.0) + min(two[k], 1.0)
        changed |= count != counts[k]
        counts[k] = count
    return changed


@njit(cache=True, nogil=True)
def _refresh_node(tree, values, classes, importance, node):  # type: ignore[no-untyped-def]
    """Compute a node from scratch; children of an inner node must be up to date."""
    if not is_leaf(tree, node):
        _combine(tree, values, node)
        return
    counts = values.counts[node]
    for k in range(len(counts)):
        counts[k] = 0.0
    point = tree.children[node, FIRST_POINT]
    while point != NONE:
        counts[classes[point]] += importance[point] if len(importance) > 0 else 1.0
        point = tree.next_point[point]


@njit(cache=True, nogil=True)
def refresh_counts(forest, values, classes, importance):  # type: ignore[no-untyped-def]
    """Compute the counts of every node of every tree: one upward sweep, O(n K) a tree.

    Parameters
    ----------
    forest, values : Tree, KneserNey
        With a leading axis of length T.
    classes : int32 array of shape (n,)
        The numbers of the points' classes.
    importance : float64 array of shape (n,)
        Positive weights of the samples; empty if all are 1.
    """
    for t in range(len(forest.counters)):
        tree, own = tree_at(forest, t), counts_at(values, t)
        nodes = np.empty(tree.counters[N_NODES], dtype=np.int32)
        preorder(tree, nodes)
        for k in range(len(nodes) - 1, -1, -1):
            _refresh_node(tree, own, classes, importance, nodes[k])


@njit(cache=True, nogil=True)
def _update_after(tree, values, classes, importance, point, node, first_new):  # type: ignore[no-untyped-def]
    """Bring the counts up to date after `extend_tree` returned `node`."""
    for new in range(tree.counters[N_NODES] - 1, first_new - 1, -1):
        _refresh_node(tree, values, classes, importance, new)
    if node < first_new:
        if is_leaf(tree, node):
            weight = importance[point] if len(importance) > 0 else 1.0
            values.counts[node, classes[point]] += weight
        else:
            _combine(tree, values, node)
    node = tree.parent[node]
    while node != NONE and _combine(tree, values, node):
        node = tree.parent[node]


@njit(cache=True, nogil=True)
def extend_counts(  # type: ignore[no-untyped-def]
    forest,
    values,
    points,
    classes,
    importance,
    start,
    end,
    rates,
    min_samples_split,
    lifetime,
):
    """Insert the stored points start..end-1 into every tree and count their labels.

    O((d + K) log n) a point and tree for balanced trees; blocks that a second class opens are
    sampled anew. Blocks of one class are not split.

    Parameters
    ----------
    forest, values : Tree, KneserNey
        With a leading axis of length T and room for ``2 * end`` nodes.
    points : float64 array of shape (1 or T, n, d)
        Stored points; one row per tree where trees see the points differently.
    classes, importance
        See :func:`refresh_counts`.
    start, end : int
        Which points to insert, in this order.
    rates : float64 array of shape (1 or end - start, d)
        Rate weights of the dimensions, for all points or for each.
    min_samples_split, lifetime : int, float
        See :mod:`mondrian_bo.trees.growth`.
    """
    for t in range(len(forest.counters)):
        tree, own = tree_at(forest, t), counts_at(values, t)
        own_points = points[t if len(points) > 1 else 0]
        for point in range(start, end):
            first_new = tree.counters[N_NODES]
            row = rates[point - start if len(rates) > 1 else 0]
            node = extend_tree(tree, own_points, point, row, min_samples_split, classes, lifetime)
            _update_after(tree, own, classes, importance, point, node, first_new)


@njit(cache=True, nogil=True)
def expected_discount(gamma, rate, span):  # type: ignore[no-untyped-def]
    """Return the mean discount of a node that is inserted at a random time within a span.

    That is the mean of ``exp(-gamma time)`` for an exponential time with the given rate that is
    known to be less than `span` (Algorithm 8, line 9).

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
    if not probability > 0.0:
        return 0.0, 1.0
    discount = math.expm1(-(rate + gamma) * span) / math.expm1(-rate * span)
    return probability, discount / (1.0 + gamma / rate)


@njit(cache=True, nogil=True)
def _walk_tree(tree, values, points, rates, gamma, result):  # type: ignore[no-untyped-def]
    """Add one tree's probabilities to `result`, walking down the tree with all points together.

    So every node is loaded, and its distribution computed, once, however many points pass.
    """
    n_points, n_classes = result.shape
    order = np.arange(n_points)
    unstopped = np.ones(n_points)
    # The distribution of the parent and the node's own, and the customers' shares in a new node.
    above = np.full(n_classes, 1.0 / n_classes)
    own = np.empty(n_classes)
    passed_on = np.empty(n_classes)
    # The larger part of a split waits on the stack: log2(m) frames suffice.
    stack = np.empty((64, 3), dtype=np.int64)
    stack_above = np.empty((64, n_classes))
    pending = 0
    node, start, end = tree.counters[ROOT], 0, n_points
    while True:
        leaf = is_leaf(tree, node)
        parent = tree.parent[node]
        span = tree.split_time[node] - (tree.split_time[parent] if parent != NONE else 0.0)
        discount = math.exp(-gamma * span)
        customers, tables = 0.0, 0.0
        for k in range(n_classes):
            count = values.counts[node, k]
            passed_on[k] = min(count, 1.0)
            customers += count
            tables += passed_on[k]
        for k in range(n_classes):
            kept = values.counts[node, k] - discount * passed_on[k]
            own[k] = (kept + discount * tables * above[k]) / customers
            passed_on[k] /= tables
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
            elif unstopped[point] > _NEGLIGIBLE:
                order[i], order[inside] = order[inside], point
                inside += 1
        end = inside
        if start == end:
            if pending == 0:
                break
            pending -= 1
            node, start, end = stack[pending]
            for k in range(n_classes):
                above[k] = stack_above[pending, k]
            continue
        for k in range(n_classes):
            above[k] = own[k]
        dimension, threshold = tree.dimension[node], tree.threshold[node]
        middle = start
        for i in range(start, end):
            point = order[i]
            # Without a branch, which would be mispredicted half of the time.
            order[i], order[middle] = order[middle], point
            middle += points[point, dimension] <= threshold
        left, right = tree.children[node, LEFT], tree.children[node, RIGHT]
        if start < middle < end:
            left_smaller = middle - start <= end - middle
            stack[pending, 0] = right if left_smaller else left
            stack[pending, 1] = middle if left_smaller else start
            stack[pending, 2] = end if left_smaller else middle
            for k in range(n_classes):
                stack_above[pending, k] = above[k]
            pending += 1
            node = left if left_smaller else right
            if left_smaller:
                end = middle
            else:
                start = middle
        else:
            node = left if middle == end else right


@njit(cache=True, nogil=True)
def predict_classes(forest, values, points, rates, gamma, result):  # type: ignore[no-untyped-def]
    """Write the sum over trees of the classes' probabilities into `result` (Algorithms 7 and 8).

    A point x outside of the box of a node j is cut off above it with probability ``p = 1 - exp(-
    Delta_j eta_j(x))``, by a new node that has the customers tab_j and a discount whose mean is
    :func:`expected_discount`. That node's distribution gets the share p of what has come down to j;
    the rest goes on, and what reaches the leaf gets the leaf's distribution.
    O((d + K) log n) a point and tree for balanced trees.

    Parameters
    ----------
    forest, values : Tree, KneserNey
        With a leading axis of length T; not empty.
    points : float64 array of shape (1 or T, m, d)
        Where to predict.
    rates : float64 array of shape (d,)
        Rate weights of the dimensions.
    gamma : float
        Speed of the discounts.
    result : float64 array of shape (m, K)
        Result. What it holds for a point does not depend on the others.
    """
    result[:] = 0.0
    n_points = points.shape[1]
    for t in range(len(forest.counters)):
        tree, own = tree_at(forest, t), counts_at(values, t)
        own_points = points[t if len(points) > 1 else 0]
        # Of few points at a time the intermediate results stay in the processor's cache; of too few
        # the nodes would be loaded more often than need be.
        size = max(_SMALLEST_CHUNK, 2 * tree.counters[N_NODES])
        for start in range(0, n_points, size):
            end = min(start + size, n_points)
            _walk_tree(tree, own, own_points[start:end], rates, gamma, result[start:end])
