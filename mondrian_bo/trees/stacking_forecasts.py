"""Four forecasts of a tree at one point: with all prunings or with its leaf, split off or not.

The forecasts are those of :func:`mondrian_bo.trees.aggregation_predict.predict_aggregation`, which
sends many points down together. One walk of one point gives all four, so a stream can forecast each
sample before it learns it.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from mondrian_bo.trees.aggregation_nodes import aggregation_at, stop_share
from mondrian_bo.trees.aggregation_predict import (
    first_moments,
    node_moments,
    separation_probability,
)
from mondrian_bo.trees.compiling import COUNTING, INNER
from mondrian_bo.trees.layout import ROOT
from mondrian_bo.trees.tree import child_towards, distance_outside, is_leaf, tree_at

N_FORECASTS = 4
"""Columns of forecasts: all prunings, all prunings along existing splits, the leaf, the leaf along
existing splits. The others split the point off where it lies outside of a node's box."""

VARIANCE = N_FORECASTS
"""Column of the variance of the mixture of all prunings; the first column is its mean."""


@njit(**INNER)
def forecast_point(tree, node_stats, points, point, rates, step, row):  # type: ignore[no-untyped-def]
    """Write the four forecasts of a real target at a point, and the variance of the first."""
    node = tree.counters[ROOT]
    mean, variance = first_moments(tree, node_stats)
    offset, time_above, x = mean, 0.0, points[point]
    # What has not ended above a node, for each of the first three forecasts.
    split_all, all_prunings, split_leaf = 1.0, 1.0, 1.0
    first, second, third, square = 0.0, 0.0, 0.0, 0.0
    while True:
        variance_above = variance
        mean, variance = node_moments(tree, node_stats, node, mean, variance)
        gap = mean - offset
        stop = stop_share(tree, node_stats, node, step)
        separated = 0.0
        if len(rates) > 0:
            distance = distance_outside(tree, node, rates, points, point)
            separated = separation_probability(tree.split_time[node] - time_above, distance)
        split_off = split_all * separated
        share = (split_all - split_off) * stop
        split_all -= split_off + share
        first += (split_off + share) * gap
        square += split_off * (variance_above + gap * gap) + share * (variance + gap * gap)
        second += all_prunings * stop * gap
        all_prunings *= 1.0 - stop
        leaf = is_leaf(tree, node)
        third += split_leaf * (1.0 if leaf else separated) * gap
        split_leaf *= 1.0 - separated
        if leaf:
            break
        time_above = float(tree.split_time[node])
        node = np.int64(child_towards(tree, node, x))
    row[0], row[1] = offset + first, offset + second
    row[2], row[3] = offset + third, mean
    row[VARIANCE] = max(square - first * first, 0.0)


@njit(**COUNTING)
def forecast_points(forest, node_stats, points, rates, step, result):  # type: ignore[no-untyped-def]
    """Write the forecasts of every tree, shape (T, m, 5), at points of shape (1 or T, m, d)."""
    for t in range(len(forest.counters)):
        tree, own = tree_at(forest, t), aggregation_at(node_stats, t)
        own_points = points[t if len(points) > 1 else 0]
        for i in range(own_points.shape[0]):
            forecast_point(tree, own, own_points, i, rates, step, result[t, i])
