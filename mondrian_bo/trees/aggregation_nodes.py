"""The state of each node of an aggregated Mondrian tree, and its updates (Mourtada2021, AMF).

Every node v forecasts the targets of its block. L_v is the cumulative loss of these forecasts, each
made from the earlier targets of the block alone. With w_v = exp(-step L_v), the averaged weight of
v, which is the average of the weights of all prunings below v under the prior of equation 7, is
(Algorithm 2, line 15)

    averaged_v = w_v                                          at leaves,
    averaged_v = w_v / 2 + averaged_left averaged_right / 2   elsewhere.

Averaged weights are kept as logarithms, and L_v is kept in place of w_v, so that the step may
change. Losses and forecasts of a node depend on the sequence of targets in its block alone. So
averaged weights may be computed along one path per point or, after many points, by one sweep, with
the same result to the last bit.

Forecasts are means for real targets (equation 4; squared loss) and Dirichlet-smoothed frequencies
for classes (equation 5; logarithmic loss). An empty node forecasts every class alike. For real
targets it repeats its parent's forecast, where the paper forecasts 0: then the result does not
depend on where the targets are centred, and Lemma 1 holds for any forecast made before the target
is known.

:mod:`mondrian_bo.trees.aggregation` grows the trees that these nodes belong to.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from mondrian_bo.shared.array_types import AnyArray, FloatArray
from mondrian_bo.trees.compiling import COUNTING, INNER, INNER_COUNTING
from mondrian_bo.trees.layout import LEFT, N_NODES, NONE, RIGHT, ROOT
from mondrian_bo.trees.memory import mapped_zeros
from mondrian_bo.trees.traversal import split_points
from mondrian_bo.trees.tree import Tree, child_towards, is_leaf, preorder, tree_at

MEAN, MASS = 0, 1
"""Columns of :attr:`Aggregation.statistics` for real targets: their mean and their total weight.
For classes, column k is the weight of class k."""

REAL = 0
"""Value of `n_classes` for real targets."""

LOG_2 = math.log(2.0)
"""The prior weight of a pruning is halved at each of its nodes that is no leaf of the whole tree
(Mourtada2021, equation 7)."""


_LARGEST_EXACT = 2**24
"""Largest whole number up to which float32 holds all whole numbers."""


class Aggregation(NamedTuple):
    """The state of each node of a tree (a forest has one more leading axis).

    Attributes
    ----------
    statistics : array of shape (capacity, 2 or K)
        The state of the node's forecaster: mean and total weight of real targets (float64), or the
        weight of each class (float32 while these weights are exact, else float64).
    loss : float64 array of shape (capacity,)
        L_v, the cumulative loss of the node's forecasts.
    log_averaged_weight : float64 array of shape (capacity,)
        Logarithm of the averaged weight of v.
    """

    statistics: NDArray[np.floating]
    loss: FloatArray
    log_averaged_weight: FloatArray


class Samples(NamedTuple):
    """What the samples of a forest are, beside their points; the trees hold these.

    Attributes
    ----------
    targets : array of shape (n,)
        Real targets (float64), or numbers of classes (int32).
    weights : float64 array of shape (n,)
        Weights of the samples; empty if all are 1.
    classes : int32 array of shape (n,)
        `targets` if blocks of one class are not split, else empty.
    """

    targets: AnyArray
    weights: FloatArray
    classes: NDArray[np.int32]


class AggregationSettings(NamedTuple):
    """Settings of the forecasters and of their aggregation.

    Attributes
    ----------
    n_classes : int
        Number of classes, or `REAL`.
    dirichlet : float
        Smoothing of the frequencies of classes; 1/2 in equation 5.
    step : float
        Learning rate, eta in the paper.
    at_leaf : bool
        Whether recorded forecasts are those of the leaves alone, rather than of all prunings.
    """

    n_classes: int
    dirichlet: float
    step: float
    at_leaf: bool


def empty_aggregation(n_trees: int, n_classes: int) -> Aggregation:
    """Return the states of trees without nodes, for `n_classes` classes or `REAL`."""
    dtype = np.float64 if n_classes == REAL else np.float32
    return Aggregation(
        np.empty((n_trees, 0, 2 if n_classes == REAL else n_classes), dtype=dtype),
        np.empty((n_trees, 0)),
        np.empty((n_trees, 0)),
    )


def with_exact_counts(
    node_stats: Aggregation, root: int, n_points: int, sample_weights: FloatArray | None
) -> Aggregation:
    """Return states whose weights of classes stay exact, or float64, with more samples.

    They are float32, half of the memory, while all samples have whole weights that add up to at
    most 2^24. From there on, a float32 sum would stay as it is when a sample of weight 1 is added.

    Parameters
    ----------
    node_stats : Aggregation
        States of all trees, with a leading axis.
    root : int
        Number of the root of the first tree, or NONE without nodes.
    n_points : int
        Number of samples with those to come.
    sample_weights : float64 array of shape (m,) or None
        Weights of the samples to come; None if all weights are 1, former ones too.

    Returns
    -------
    Aggregation
        The same one, or one with float64 statistics.
    """
    counts = node_stats.statistics
    if counts.dtype == np.float64 or (sample_weights is None and n_points <= _LARGEST_EXACT):
        return node_stats
    if sample_weights is not None:
        known = 0.0 if root == NONE else float(counts[0, root].sum(dtype=np.float64))
        total = known + float(sample_weights.sum())
        if total <= _LARGEST_EXACT and np.array_equal(sample_weights, np.rint(sample_weights)):
            return node_stats
    return node_stats._replace(statistics=counts.astype(np.float64))


@njit(**INNER_COUNTING)
def aggregation_at(node_stats, index):  # type: ignore[no-untyped-def]
    """Return the view of one tree's nodes."""
    return Aggregation(
        node_stats.statistics[index], node_stats.loss[index], node_stats.log_averaged_weight[index]
    )


@njit(**INNER)
def weight_of(samples, point):  # type: ignore[no-untyped-def]
    """Return the weight of a sample."""
    return samples.weights[point] if len(samples.weights) > 0 else 1.0


@njit(**INNER)
def mass_of_classes(statistics):  # type: ignore[no-untyped-def]
    """Return the total weight of a node's classes."""
    total = 0.0
    for k in range(len(statistics)):
        total += statistics[k]
    return total


@njit(**INNER)
def class_forecast(weight, mass, n_classes, dirichlet):  # type: ignore[no-untyped-def]
    """Return the probability of a class that has `weight` of the node's `mass`."""
    return (weight + dirichlet) / (mass + dirichlet * n_classes)  # (5)


@njit(**INNER, error_model="numpy")
def _learn_mean(mass, mean, target, weight, inherited):  # type: ignore[no-untyped-def]
    """Return mass and mean of targets with one more, its loss, and its forecast."""
    forecast = mean if mass > 0.0 else inherited
    gap = target - forecast
    if weight > 0.0:
        mass += weight
        mean = forecast + gap * (weight / mass)  # (4)
    return mass, mean, weight * gap * gap, forecast


@njit(**INNER, error_model="numpy")
def _learn_target(statistics, target, weight, inherited, settings):  # type: ignore[no-untyped-def]
    """Let a node learn a target; return its loss, and its forecast if targets are real."""
    if settings.n_classes == REAL:
        statistics[MASS], statistics[MEAN], loss, forecast = _learn_mean(
            statistics[MASS], statistics[MEAN], target, weight, inherited
        )
        return loss, forecast
    k = int(target)
    mass = mass_of_classes(statistics)
    forecast = class_forecast(statistics[k], mass, settings.n_classes, settings.dirichlet)
    statistics[k] += weight
    return -weight * math.log(forecast), inherited


@njit(**INNER)
def learn_on_path(tree, node_stats, node, x, target, weight, settings):  # type: ignore[no-untyped-def]
    """Let the nodes that hold x learn a target, from `node` down; return the leaf."""
    # Before the first target all prunings have the same forecast, so its loss is not counted.
    inherited = float(target)
    while True:
        loss, inherited = _learn_target(
            node_stats.statistics[node], target, weight, inherited, settings
        )
        node_stats.loss[node] += loss  # Algorithm 2, line 14: L_v is kept in place of w_v
        if is_leaf(tree, node):
            return node
        node = child_towards(tree, node, x)


@njit(**INNER)
def update_averaged_weight(tree, node_stats, best, node, step):  # type: ignore[no-untyped-def]
    """Compute a node's averaged weight, and the loss of its best pruning where `best` has room."""
    log_weight = -step * node_stats.loss[node]
    if is_leaf(tree, node):
        node_stats.log_averaged_weight[node] = log_weight  # Algorithm 2, line 15
        if len(best) > 0:
            best[node] = node_stats.loss[node]
        return
    left, right = tree.children[node, LEFT], tree.children[node, RIGHT]
    below = node_stats.log_averaged_weight[left] + node_stats.log_averaged_weight[right]
    larger, smaller = max(log_weight, below), min(log_weight, below)
    # Algorithm 2, line 15
    node_stats.log_averaged_weight[node] = larger + math.log1p(math.exp(smaller - larger)) - LOG_2
    if len(best) > 0:
        best[node] = min(node_stats.loss[node], best[left] + best[right])


@njit(**INNER)
def update_averaged_weights_above(tree, node_stats, best, node, step):  # type: ignore[no-untyped-def]
    """Compute the averaged weights from a node to the root (Algorithm 4, lines 8-14)."""
    while node != NONE:
        update_averaged_weight(tree, node_stats, best, node, step)
        node = tree.parent[node]


@njit(**INNER)
def stop_share(tree, node_stats, node, step):  # type: ignore[no-untyped-def]
    """Return the share of prunings that end at a node among those that reach it, by weight.

    It is ``w_v / 2`` over the averaged weight of v, and 1 at a leaf.
    """
    if is_leaf(tree, node):
        return 1.0
    # Algorithm 3, line 6: the factor of y_v
    log_share = -step * node_stats.loss[node] - LOG_2 - node_stats.log_averaged_weight[node]
    return min(1.0, math.exp(log_share))


@njit(**INNER)
def clear_node(node_stats, node):  # type: ignore[no-untyped-def]
    """Reset a node to the state without targets: w_v is 1."""
    for k in range(node_stats.statistics.shape[1]):
        node_stats.statistics[node, k] = 0.0
    node_stats.loss[node] = 0.0
    node_stats.log_averaged_weight[node] = 0.0


@njit(**INNER)
def copy_node(node_stats, source, target):  # type: ignore[no-untyped-def]
    """Copy the state of node `source` to node `target`."""
    for k in range(node_stats.statistics.shape[1]):
        node_stats.statistics[target, k] = node_stats.statistics[source, k]
    node_stats.loss[target] = node_stats.loss[source]
    node_stats.log_averaged_weight[target] = -1.0  # set before it is read


@njit(**COUNTING)
def refresh_averaged_weights(forest, node_stats, best, step):  # type: ignore[no-untyped-def]
    """Compute all averaged weights anew, O(n) a tree: after many points, or for another step."""
    for t in range(len(forest.counters)):
        tree, own = tree_at(forest, t), aggregation_at(node_stats, t)
        nodes = np.empty(tree.counters[N_NODES], dtype=np.int32)
        preorder(tree, nodes)
        for k in range(len(nodes) - 1, -1, -1):
            update_averaged_weight(tree, own, best[t], np.int64(nodes[k]), step)


@njit(**INNER)
def _learn_means(statistics, order, start, end, samples, inherited):  # type: ignore[no-untyped-def]
    """Let an empty node learn the real targets of order[start:end]; return its loss."""
    # These stay in registers. In arrays each target would wait until the one before is stored.
    mass, mean, total = 0.0, 0.0, 0.0
    for i in range(start, end):
        point = order[i]
        mass, mean, loss, inherited[point] = _learn_mean(
            mass, mean, samples.targets[point], weight_of(samples, point), inherited[point]
        )
        total += loss
    statistics[MASS], statistics[MEAN] = mass, mean
    return total


@njit(**INNER)
def _learn_counts(statistics, order, start, end, samples, settings):  # type: ignore[no-untyped-def]
    """Let an empty node learn the classes of order[start:end]; return its loss."""
    total = 0.0
    for i in range(start, end):
        point = order[i]
        weight = weight_of(samples, point)
        loss, _ = _learn_target(statistics, samples.targets[point], weight, 0.0, settings)
        total += loss
    return total


@njit(**COUNTING)
def _learn_together(forest, node_stats, samples, settings, room):  # type: ignore[no-untyped-def]
    """Let all nodes learn all targets anew, walking down each tree with all points together.

    A node's state stays in the processor while it learns. Every node sees the same targets in the
    same order as in a stream, and ends with the same values. `room` holds three arrays: the order
    of the points, the right ones among them and, for real targets, the parent's forecast for each
    point just before it learns the target.
    """
    order, right_ones, inherited = room
    n_points = len(samples.targets)
    for t in range(len(forest.counters)):
        tree, own = tree_at(forest, t), aggregation_at(node_stats, t)
        for i in range(n_points):
            order[i] = i
        for i in range(len(inherited)):
            inherited[i] = samples.targets[i]
        stack = np.empty((tree.counters[N_NODES] + 1, 3), dtype=np.int32)
        stack[0, 0], stack[0, 1], stack[0, 2] = tree.counters[ROOT], 0, n_points
        pending = 1
        while pending > 0:
            pending -= 1
            node = np.int64(stack[pending, 0])
            start, end = stack[pending, 1], stack[pending, 2]
            clear_node(own, node)
            statistics = own.statistics[node]
            if settings.n_classes == REAL:
                own.loss[node] = _learn_means(statistics, order, start, end, samples, inherited)
            else:
                own.loss[node] = _learn_counts(statistics, order, start, end, samples, settings)
            if is_leaf(tree, node):
                continue
            middle = split_points(tree, node, tree.points, order, start, end, right_ones)
            stack[pending, 0] = tree.children[node, LEFT]
            stack[pending, 1], stack[pending, 2] = start, middle
            stack[pending + 1, 0] = tree.children[node, RIGHT]
            stack[pending + 1, 1], stack[pending + 1, 2] = middle, end
            pending += 2


def relearn_forest(
    forest: Tree,
    node_stats: Aggregation,
    best: FloatArray,
    samples: Samples,
    settings: AggregationSettings,
) -> None:
    """Learn all targets anew, O(n log n) a tree: faster than one by one if many are new."""
    n_points = len(samples.targets)
    room = (
        mapped_zeros((n_points,), np.int32),
        mapped_zeros((n_points,), np.int32),
        mapped_zeros((n_points if settings.n_classes == REAL else 0,), np.float64),
    )
    _learn_together(forest, node_stats, samples, settings, room)
    refresh_averaged_weights(forest, node_stats, best, settings.step)
