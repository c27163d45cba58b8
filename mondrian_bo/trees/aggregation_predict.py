"""Predictions of aggregated prunings (Mourtada2021, Algorithms 3 and 6).

A prediction walks from the root to the leaf that holds x. At node v the prunings that end there
take their share, w_v over twice the averaged weight of v, of the weight that has come down, and v's
forecast gets it. What remains goes on to the child. This is the recursion of Algorithm 3, line 6,
from the root down: every forecast on the path has a weight, and the prediction is a mixture.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from mondrian_bo.shared.array_types import FloatArray
from mondrian_bo.trees.aggregation_nodes import (
    MASS,
    MEAN,
    REAL,
    aggregation_at,
    mass_of_classes,
    stop_share,
)
from mondrian_bo.trees.compiling import INNER, INNER_COUNTING
from mondrian_bo.trees.layout import LEFT, N_NODES, RIGHT, ROOT
from mondrian_bo.trees.random import hashed_normal, hashed_uniform, hashed_word
from mondrian_bo.trees.traversal import NEGLIGIBLE_SHARE
from mondrian_bo.trees.tree import (
    child_towards,
    distance_outside,
    distances_outside,
    is_leaf,
    tree_at,
)

AT_LEAF, AGGREGATED = 0, 1
"""Whether trees predict with their leaves alone or with all prunings."""

DEPTH = -1
"""Value of `Query.kind` for the depth where prunings end; other values are those of `n_classes`."""

NO_RATES = np.empty(0)
"""Value of `Query.rates` where points follow the existing splits only."""

APART, SUM, SUM_OF_LOGS = 0, 1, 2
"""Pooling of the results of the trees: none, their sum, the sum of their logarithms."""

_SMALLEST_CHUNK = 16384
"""Smallest number of points that walk down a tree together. With fewer, loading nodes more often
would take longer than the smaller intermediate results save in the processor's cache."""

_FRAME = 8
"""Columns of a frame of the stack before those of the totals: node, start, end, depth, mean,
variance, reaching and time above."""


class Query(NamedTuple):
    """The quantity to predict, and the settings of the prediction.

    Attributes
    ----------
    rates : float64 array of shape (d,)
        Split rates of the dimensions. A point outside of a node's box is then split off above the
        node with the probability of Algorithm 6, and the node forecasts it. Where rates have length
        0, points only follow the existing splits.
    rule : int
        `AGGREGATED` or `AT_LEAF`.
    kind : int
        Number of classes whose probabilities are predicted, `REAL` or `DEPTH`.
    pooling : int
        `APART`, `SUM` or `SUM_OF_LOGS` over trees.
    step, dirichlet : float
        Learning rate, and smoothing of the frequencies of classes.
    """

    rates: FloatArray
    rule: int
    kind: int
    pooling: int
    step: float
    dirichlet: float


@njit(**INNER)
def separation_probability(span, distance):  # type: ignore[no-untyped-def]
    """Return the probability that a point is split off right above a node (Algorithm 6, line 2).

    `span` is the time between the node's split and its parent's, `distance` that from its box.
    """
    if not distance > 0.0:
        return 0.0
    # `expm1` takes three times as long, and would be more accurate only for shares below 1e-16.
    # Algorithm 5, lines 3-4: the probability of E < span for E ~ Exp(distance)
    return 1.0 - math.exp(-span * distance) if span < np.inf else 1.0


@njit(**INNER)
def _node_share(tree, node_stats, node, query):  # type: ignore[no-untyped-def]
    """Return the share of the weight reaching a node that its forecast gets."""
    if query.rule == AT_LEAF:
        return 1.0 if is_leaf(tree, node) else 0.0
    return stop_share(tree, node_stats, node, query.step)


@njit(**INNER)
def node_moments(tree, node_stats, node, mean, variance):  # type: ignore[no-untyped-def]
    """Return mean and variance of a node's forecast of real targets, given its parent's.

    The variance is the node's mean loss without the first target's share, averaged with one more
    sample whose loss is the parent's variance. Each target has been forecast from earlier ones.
    Losses are in units of the mean weight of the node's samples, so the unit of weights is free.
    """
    mass, count = node_stats.statistics[node, MASS], float(tree.size[node])
    if not mass > 0.0:
        return mean, variance
    # The first target's loss measures the distance of the node's mean from its parent's.
    loss = node_stats.loss[node] / (mass / count) * max(count - 1.0, 0.0) / count
    return node_stats.statistics[node, MEAN], (loss + variance) / (count + 1.0)


@njit(**INNER)
def first_moments(tree, node_stats):  # type: ignore[no-untyped-def]
    """Return the moments above the root: mean and variance of all targets."""
    root = tree.counters[ROOT]
    mass = node_stats.statistics[root, MASS]
    return node_stats.statistics[root, MEAN], node_stats.loss[root] / mass if mass > 0.0 else 0.0


@njit(**INNER)
def _note(sink, n_components, point, share, mean, variance):  # type: ignore[no-untyped-def]
    """Write a component of positive weight into `sink`; return the number of components."""
    if not share > 0.0:
        return n_components
    if n_components < len(sink):
        row = sink[n_components]
        row[0], row[1], row[2], row[3] = point, share, mean, variance
    return n_components + 1


@njit(**INNER_COUNTING)
def _walk_tree(  # type: ignore[no-untyped-def]
    tree, node_stats, points, query, result, sink, n_components
):
    """Average the forecasts on the paths of all points, walking down the tree with them together.

    So every node is loaded once, however many points pass, and in preorder, in which the nodes of a
    tree lie in memory. The columns of `result` are the probabilities of the classes; of `REAL`
    targets, their mean and the mean of their squares, both less the root's mean; or the `DEPTH`.
    Returns `n_components` plus the number of components.
    """
    rates, kind = query.rates, query.kind
    n_points, n_columns = result.shape
    each = len(rates) > 0
    root = tree.counters[ROOT]
    order = np.arange(n_points)
    result[:] = 0.0
    # Arrays hold a number for each point; `reaching` is for all points if they do not differ.
    unstopped = np.ones(n_points if each else 0)
    separation = np.empty(n_points if each else 0)
    reaching = 1.0
    total = np.zeros(n_columns)
    forecast = np.empty(n_columns)
    mean, variance, time_above = 0.0, 0.0, 0.0
    if kind == REAL:
        mean, variance = first_moments(tree, node_stats)
    offset = mean
    # Waiting right children, at most as many as a path has nodes.
    stack = np.empty((64, _FRAME + n_columns))
    pending, depth = 0, 0
    node, start, end = root, 0, n_points
    while True:
        leaf = is_leaf(tree, node)
        variance_above = variance
        if kind == REAL:
            mean, variance = node_moments(tree, node_stats, node, mean, variance)
            forecast[0] = mean - offset
            forecast[1] = variance + forecast[0] * forecast[0]
        elif kind == DEPTH:
            forecast[0] = depth
        else:
            statistics = node_stats.statistics[node]
            unit = 1.0 / (mass_of_classes(statistics) + kind * query.dirichlet)
            for k in range(kind):
                forecast[k] = unit * (statistics[k] + query.dirichlet)  # (5)
        stop = _node_share(tree, node_stats, node, query)
        if each:
            kept = start
            span = tree.split_time[node] - time_above
            distances_outside(tree, node, rates, points, order, start, end, separation)
            for i in range(start, end):
                point = order[i]
                # A point that is split off goes to a new cell, which repeats the forecast of its
                # parent, a copy of the node. The variance above is that of targets in such cells.
                separated = separation_probability(span, separation[i])
                remaining = 1.0  # or more than negligible, which is all that matters below
                if separated > 0.0 or stop > NEGLIGIBLE_SHARE:
                    split_off = unstopped[point] * separated
                    share = (unstopped[point] - split_off) * stop
                    remaining = unstopped[point] - (split_off + share)
                    unstopped[point] = remaining
                    if kind == REAL:
                        result[point, 0] += (split_off + share) * forecast[0]
                        result[point, 1] += (split_off + share) * forecast[1]
                        result[point, 1] += split_off * (variance_above - variance)
                    else:
                        for k in range(n_columns):
                            result[point, k] += (split_off + share) * forecast[k]
                    if len(sink) > 0:
                        n_components = _note(
                            sink, n_components, point, split_off, mean, variance_above
                        )
                        n_components = _note(sink, n_components, point, share, mean, variance)
                if not leaf and remaining > NEGLIGIBLE_SHARE:
                    if i != kept:
                        order[i], order[kept] = order[kept], point
                    kept += 1
            end = kept
        else:
            share = reaching * stop
            reaching -= share
            for k in range(n_columns):
                total[k] += share * forecast[k]
            if len(sink) > 0:
                for i in range(start, end):
                    n_components = _note(sink, n_components, order[i], share, mean, variance)
            if leaf or reaching < NEGLIGIBLE_SHARE:
                for i in range(start, end):
                    for k in range(n_columns):
                        result[order[i], k] = total[k]
                end = start
        if start == end:
            if pending == 0:
                break
            pending -= 1
            node, start = int(stack[pending, 0]), int(stack[pending, 1])
            end, depth = int(stack[pending, 2]), int(stack[pending, 3])
            mean, variance = stack[pending, 4], stack[pending, 5]
            reaching, time_above = stack[pending, 6], stack[pending, 7]
            for k in range(n_columns):
                total[k] = stack[pending, _FRAME + k]
            continue
        dimension, threshold = tree.dimension[node], tree.threshold[node]
        middle = start
        for i in range(start, end):
            point = order[i]
            # There is no branch, because it would be mispredicted half of the time.
            order[i], order[middle] = order[middle], point
            middle += points[point, dimension] <= threshold
        left, right = tree.children[node, LEFT], tree.children[node, RIGHT]
        depth += 1
        time_above = tree.split_time[node]
        if start < middle < end:
            if pending == len(stack):
                stack = np.concatenate((stack, np.empty_like(stack)))
            stack[pending, 0], stack[pending, 1] = right, middle
            stack[pending, 2], stack[pending, 3] = end, depth
            stack[pending, 4], stack[pending, 5] = mean, variance
            stack[pending, 6], stack[pending, 7] = reaching, time_above
            for k in range(n_columns):
                stack[pending, _FRAME + k] = total[k]
            pending += 1
            node, end = left, middle
        else:
            node = left if middle == end else right
    return n_components


@njit(cache=True, nogil=True)
def predict_aggregation(forest, node_stats, points, query, result, sink):  # type: ignore[no-untyped-def]
    """Predict with every tree and pool the trees.

    Parameters
    ----------
    forest, node_stats : Tree, Aggregation
        With a leading axis of length T; not empty.
    points : array of shape (1 or T, m, d)
        Where to predict.
    query : Query
        The quantity to predict.
    result : float64 array of shape (T or 1, m, columns)
        Results: probabilities, or mean and variance, or depth; one for each tree if they are kept
        `APART`.
    sink : float64 array of shape (rows, 4)
        Result: the components of the mixtures of real targets (point, weight, mean and variance).
        Components without room are counted and left out. Of length 0 if not wanted.

    Returns
    -------
    int
        The number of components.
    """
    n_components = np.int64(0)  # of one type throughout, to compile what uses it once
    n_points = points.shape[1]
    if query.pooling != APART:
        result[:] = 0.0
    for t in range(len(forest.counters)):
        tree, own = tree_at(forest, t), aggregation_at(node_stats, t)
        own_points = points[t if len(points) > 1 else 0]
        # The intermediate results of few points stay in the processor's cache. With too few the
        # nodes would be loaded too often.
        size = n_points if len(sink) > 0 else max(_SMALLEST_CHUNK, 2 * tree.counters[N_NODES])
        for start in range(0, n_points, size):
            end = min(start + size, n_points)
            found = np.empty((end - start, result.shape[2]))
            n_components = _walk_tree(
                tree, own, own_points[start:end], query, found, sink, n_components
            )
            if query.kind == REAL:
                offset = first_moments(tree, own)[0]
                for i in range(end - start):
                    found[i, 1] = max(found[i, 1] - found[i, 0] * found[i, 0], 0.0)
                    found[i, 0] += offset
            for i in range(end - start):
                for k in range(result.shape[2]):
                    if query.pooling == APART:
                        result[t, start + i, k] = found[i, k]
                    elif query.pooling == SUM:
                        result[0, start + i, k] += found[i, k]  # (1), but for the factor 1 / M
                    else:
                        result[0, start + i, k] += math.log(found[i, k])
    return n_components


@njit(cache=True, nogil=True)
def sample_pruning(forest, node_stats, index, key, points, query, result):  # type: ignore[no-untyped-def]
    """Write the values at `points` of a random pruning of one tree with random forecasts.

    The pruning and its forecasts are fixed functions of `key`, so that further calls continue the
    same function: a draw from the mixture of predictions, without noise, for Thompson sampling.
    Each node's key depends on its parent's key and its side, not on its number.
    """
    rates = query.rates
    tree, own = tree_at(forest, index), aggregation_at(node_stats, index)
    own_points = points[index if len(points) > 1 else 0]
    for i in range(own_points.shape[0]):
        node = tree.counters[ROOT]
        mean, variance = first_moments(tree, own)
        time_above = 0.0
        node_key = key
        while True:
            variance_above = variance
            mean, variance = node_moments(tree, own, node, mean, variance)
            separated = 0.0
            if len(rates) > 0:
                distance = distance_outside(tree, node, rates, own_points, i)
                separated = separation_probability(tree.split_time[node] - time_above, distance)
            where = hashed_uniform(node_key, 0)
            stop = separated + (1.0 - separated) * _node_share(tree, own, node, query)
            if where < stop or is_leaf(tree, node):
                chosen = variance_above if where < separated else variance
                std = math.sqrt(chosen / (tree.size[node] + 1.0))
                result[i] = mean + std * hashed_normal(node_key, 1)
                break
            time_above = tree.split_time[node]
            child = child_towards(tree, node, own_points[i])
            node_key = hashed_word(node_key, 4 if child == tree.children[node, LEFT] else 5)
            node = child
