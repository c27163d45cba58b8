"""What each node of an aggregated Mondrian tree knows, and how it learns (Mourtada2021, AMF).

See :mod:`mondrian_bo.trees.aggregation`, which grows the trees that these nodes belong to.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from mondrian_bo.array_types import AnyArray, FloatArray
from mondrian_bo.trees.compiling import COUNTING, INNER, INNER_COUNTING
from mondrian_bo.trees.memory import mapped_zeros
from mondrian_bo.trees.tree import (
    LEFT,
    N_NODES,
    NONE,
    RIGHT,
    ROOT,
    Tree,
    child_towards,
    is_leaf,
    preorder,
    tree_at,
)

LABEL, MASS = 0, 1
"""Columns of :attr:`Aggregation.statistics`: the first class or the mean label, and, of real labels
alone, their total weight."""

REAL = 0
"""The number of classes that stands for real labels."""

LOG_2 = math.log(2.0)


class Aggregation(NamedTuple):
    """What each node of a tree knows (a forest has one more leading axis).

    Attributes
    ----------
    statistics : array of shape (capacity, 2 or K)
        Mean of the labels and their total weight (float64), or the weight of each class (float32,
        exact up to 16 million samples in a node).
    loss : float64 array of shape (capacity,)
        L_v, the cumulative loss of the node's forecasts.
    average : float64 array of shape (capacity,)
        Logarithm of the averaged weight of the prunings below the node.
    """

    statistics: NDArray[np.floating]
    loss: FloatArray
    average: FloatArray


def empty_aggregation(n_trees: int, n_classes: int) -> Aggregation:
    """Return the values of trees without nodes, for `n_classes` classes or `REAL` labels."""
    precision = np.float64 if n_classes == REAL else np.float32
    return Aggregation(
        np.empty((n_trees, 0, 2 if n_classes == REAL else n_classes), dtype=precision),
        np.empty((n_trees, 0)),
        np.empty((n_trees, 0)),
    )


@njit(**INNER_COUNTING)
def aggregation_at(values, index):  # type: ignore[no-untyped-def]
    """Return the view of one tree's values."""
    return Aggregation(values.statistics[index], values.loss[index], values.average[index])


@njit(**INNER)
def mass_of_classes(statistics):  # type: ignore[no-untyped-def]
    """Return the total weight of a node's classes."""
    total = 0.0
    for k in range(len(statistics)):
        total += statistics[k]
    return total


@njit(**INNER)
def class_forecast(weight, mass, n_classes, dirichlet):  # type: ignore[no-untyped-def]
    """Return the probability of a class that has this weight among all (equation 5)."""
    return (weight + dirichlet) / (mass + dirichlet * n_classes)


@njit(**INNER, error_model="numpy")
def _observe_mean(mass, mean, label, weight, inherited):  # type: ignore[no-untyped-def]
    """Return mass and mean of labels with one more, its loss, and what had been forecast."""
    forecast = mean if mass > 0.0 else inherited
    gap = label - forecast
    if weight > 0.0:
        mass += weight
        mean = forecast + gap * (weight / mass)
    return mass, mean, weight * gap * gap, forecast


@njit(**INNER, error_model="numpy")
def _observe(statistics, label, weight, inherited, n_classes, dirichlet):  # type: ignore[no-untyped-def]
    """Show a node a label; return its loss and what it had forecast, if labels are real."""
    if n_classes == REAL:
        statistics[MASS], statistics[LABEL], loss, forecast = _observe_mean(
            statistics[MASS], statistics[LABEL], label, weight, inherited
        )
        return loss, forecast
    k = LABEL + int(label)
    mass = mass_of_classes(statistics)
    loss = -weight * math.log(class_forecast(statistics[k], mass, n_classes, dirichlet))
    statistics[k] += weight
    return loss, inherited


@njit(**INNER)
def observe_path(tree, values, node, x, label, weight, n_classes, dirichlet):  # type: ignore[no-untyped-def]
    """Show a label to the nodes that hold x, from `node` down; return the leaf."""
    # Before any label is known all prunings forecast alike: the first costs nothing.
    inherited = float(label)
    while True:
        loss, inherited = _observe(
            values.statistics[node], label, weight, inherited, n_classes, dirichlet
        )
        values.loss[node] += loss
        if is_leaf(tree, node):
            return node
        node = child_towards(tree, node, x)


@njit(**INNER)
def set_average(tree, values, best, node, step):  # type: ignore[no-untyped-def]
    """Compute a node's average from its children's, and the loss of its best pruning on request."""
    own = -step * values.loss[node]
    if is_leaf(tree, node):
        values.average[node] = own
        if len(best) > 0:
            best[node] = values.loss[node]
        return
    left, right = tree.children[node, LEFT], tree.children[node, RIGHT]
    below = values.average[left] + values.average[right]
    larger, smaller = max(own, below), min(own, below)
    values.average[node] = larger + math.log1p(math.exp(smaller - larger)) - LOG_2
    if len(best) > 0:
        best[node] = min(values.loss[node], best[left] + best[right])


@njit(**INNER)
def climb(tree, values, best, node, step):  # type: ignore[no-untyped-def]
    """Bring the averages from a node to the root up to date (Algorithm 4, lines 8-14)."""
    while node != NONE:
        set_average(tree, values, best, node, step)
        node = tree.parent[node]


@njit(**INNER)
def stop_share(tree, values, node, step):  # type: ignore[no-untyped-def]
    """Return the weight of the prunings that end at a node among those that reach it (line 6)."""
    if is_leaf(tree, node):
        return 1.0
    return min(1.0, math.exp(-step * values.loss[node] - LOG_2 - values.average[node]))


@njit(**INNER)
def clear_node(values, node):  # type: ignore[no-untyped-def]
    """Let a node know nothing."""
    for k in range(values.statistics.shape[1]):
        values.statistics[node, k] = 0.0
    values.loss[node] = 0.0
    values.average[node] = 0.0


@njit(**INNER)
def copy_node(values, source, target):  # type: ignore[no-untyped-def]
    """Let node `target` know what node `source` knows."""
    for k in range(values.statistics.shape[1]):
        values.statistics[target, k] = values.statistics[source, k]
    values.loss[target] = values.loss[source]
    values.average[target] = -1.0  # set before it is read


@njit(**COUNTING)
def refresh_averages(forest, values, best, step):  # type: ignore[no-untyped-def]
    """Compute all averages anew, O(n) a tree: after many points, or when the step has changed."""
    for t in range(len(forest.counters)):
        tree, own = tree_at(forest, t), aggregation_at(values, t)
        nodes = np.empty(tree.counters[N_NODES], dtype=np.int32)
        preorder(tree, nodes)
        for k in range(len(nodes) - 1, -1, -1):
            set_average(tree, own, best[t], np.int64(nodes[k]), step)


@njit(**INNER)
def _learn_means(statistics, order, start, end, targets, importance, inherited):  # type: ignore[no-untyped-def]
    """Let an empty node learn the real labels of order[start:end]; return its loss."""
    # Not kept in the arrays meanwhile, where each label would wait for the one before to be stored.
    mass, mean, total = 0.0, 0.0, 0.0
    for i in range(start, end):
        point = order[i]
        weight = importance[point] if len(importance) > 0 else 1.0
        mass, mean, loss, inherited[point] = _observe_mean(
            mass, mean, targets[point], weight, inherited[point]
        )
        total += loss
    statistics[MASS], statistics[LABEL] = mass, mean
    return total


@njit(**INNER)
def _learn_counts(statistics, order, start, end, targets, importance, n_classes, dirichlet):  # type: ignore[no-untyped-def]
    """Let an empty node learn the classes of order[start:end]; return its loss."""
    total = 0.0
    for i in range(start, end):
        point = order[i]
        weight = importance[point] if len(importance) > 0 else 1.0
        loss, _ = _observe(statistics, targets[point], weight, 0.0, n_classes, dirichlet)
        total += loss
    return total


@njit(**INNER)
def _share(order, start, end, right_ones, points, dimension, threshold):  # type: ignore[no-untyped-def]
    """Reorder order[start:end], left points first, both as they came; return the first right one.

    `right_ones` is room for as many points.
    """
    middle, n_right = start, 0
    for i in range(start, end):
        point = order[i]
        # Written to both, without a branch, which would be mispredicted half of the time.
        order[middle] = point
        right_ones[n_right] = point
        is_left = points[point, dimension] <= threshold
        middle += is_left
        n_right += not is_left
    for i in range(n_right):
        order[middle + i] = right_ones[i]
    return middle


@njit(**COUNTING)
def _learn_together(  # type: ignore[no-untyped-def]
    forest, values, points, targets, importance, n_classes, dirichlet, order, right_ones, inherited
):
    """Let all nodes learn all labels anew, walking down each tree with all points together.

    So a node's values stay in the processor while it learns. Every node sees the same labels in the
    same order as if the points had come one by one, and ends with the same values. The last three
    parameters are room: `inherited` for what the parent forecast for each point, just before it
    learnt the label, of real labels alone.
    """
    n_points = len(targets)
    for t in range(len(forest.counters)):
        tree, own = tree_at(forest, t), aggregation_at(values, t)
        own_points = points[t if len(points) > 1 else 0]
        for i in range(n_points):
            order[i] = i
        for i in range(len(inherited)):
            inherited[i] = targets[i]
        stack = np.empty((tree.counters[N_NODES] + 1, 3), dtype=np.int32)
        stack[0, 0], stack[0, 1], stack[0, 2] = tree.counters[ROOT], 0, n_points
        pending = 1
        while pending > 0:
            pending -= 1
            node = np.int64(stack[pending, 0])
            start, end = stack[pending, 1], stack[pending, 2]
            clear_node(own, node)
            statistics = own.statistics[node]
            if n_classes == REAL:
                own.loss[node] = _learn_means(
                    statistics, order, start, end, targets, importance, inherited
                )
            else:
                own.loss[node] = _learn_counts(
                    statistics, order, start, end, targets, importance, n_classes, dirichlet
                )
            if is_leaf(tree, node):
                continue
            middle = _share(
                order, start, end, right_ones, own_points, tree.dimension[node],
                tree.threshold[node],
            )  # fmt: skip
            stack[pending, 0] = tree.children[node, LEFT]
            stack[pending, 1], stack[pending, 2] = start, middle
            stack[pending + 1, 0] = tree.children[node, RIGHT]
            stack[pending + 1, 1], stack[pending + 1, 2] = middle, end
            pending += 2


def relearn_forest(
    forest: Tree,
    values: Aggregation,
    best: FloatArray,
    points: AnyArray,
    targets: AnyArray,
    importance: FloatArray,
    n_classes: int,
    dirichlet: float,
    step: float,
) -> None:
    """Learn all labels anew, O(n log n) a tree: faster than one by one where many are new."""
    n_points = len(targets)
    room = (
        mapped_zeros((n_points,), np.int32),
        mapped_zeros((n_points,), np.int32),
        mapped_zeros((n_points if n_classes == REAL else 0,), np.float64),
    )
    _learn_together(forest, values, points, targets, importance, n_classes, dirichlet, *room)
    refresh_averages(forest, values, best, step)
