"""Random functions from the posterior of a Mondrian tree with affine functions at its nodes.

As :mod:`mondrian_bo.trees.posterior_draw`; the functions are piecewise affine.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from mondrian_bo.trees.affine_messages import (
    centre_of,
    clear,
    make_workspace,
    set_features,
    steps_to,
)
from mondrian_bo.trees.affine_predict import add_own, set_trend, solve_total
from mondrian_bo.trees.compiling import INNER_COUNTING
from mondrian_bo.trees.hierarchical_gaussian import gaussian_at
from mondrian_bo.trees.layout import ROOT
from mondrian_bo.trees.predict import REMAINING
from mondrian_bo.trees.random import hashed_normal, hashed_uniform, hashed_word
from mondrian_bo.trees.tree import child_towards, distance_outside, is_leaf, tree_at


@njit(**INNER_COUNTING)
def _draw_weights(work, key, node, weights):  # type: ignore[no-untyped-def]
    """Draw weights from the distribution that `solve_total` has solved for."""
    p = len(weights)
    own_key = hashed_word(key, 2 * node + 2)
    for i in range(p):
        weights[i] = work.weights[i]
    for i in range(p):
        normal = hashed_normal(own_key, i)
        for j in range(i + 1):
            weights[j] += work.solved[i, j] * normal


@njit(**INNER_COUNTING)
def _draw_node(tree, node_stats, node, settings, gamma_1, key, work, weights):  # type: ignore[no-untyped-def]
    """Draw a node's weights given `weights`, those of its parent at the node's centre, in place."""
    step, slope_step = steps_to(tree, node_stats, node)
    # The posterior of the increments, in units of their deviations: the precision is I + S L S.
    clear(work.precision, work.information)
    add_own(tree, node_stats, node, settings, work)
    p = len(weights)
    above = work.offset
    above[:] = weights
    for i in range(p):
        total = work.total_information[i]
        for j in range(p):
            total -= work.total_precision[i, j] * above[j]
        work.information[i] = total
    for i in range(p):
        own = math.sqrt(step if i == 0 else slope_step)
        work.total_information[i] = own * work.information[i]
        for j in range(p):
            other = math.sqrt(step if j == 0 else slope_step)
            work.total_precision[i, j] *= own * other
        work.total_precision[i, i] += 1.0
    solve_total(work)
    mean = work.weights.copy()
    work.weights[:] = 0.0
    _draw_weights(work, key, node, weights)
    for i in range(p):
        own = math.sqrt(step if i == 0 else slope_step)
        weights[i] = above[i] + own * (mean[i] + math.sqrt(gamma_1) * weights[i])


@njit(cache=True, nogil=True)
def sample_affine(forest, node_stats, index, key, points, rates, prediction, result):  # type: ignore[no-untyped-def]
    """Write the values at `points` of one random function drawn from one tree's posterior.

    O(d^3) for each node on a point's path. Parameters are those of
    :func:`mondrian_bo.trees.posterior_draw.sample_function`, with AffinePrediction.
    """
    mean_prior, gamma_1, floor, rule, settings = prediction
    tree, own_stats = tree_at(forest, index), gaussian_at(node_stats, index)
    own = points[index if len(points) > 1 else 0]
    n_dimensions = own.shape[1]
    work = make_workspace(n_dimensions)
    weights, features = np.empty(n_dimensions + 1), np.empty(n_dimensions + 1)
    threshold = hashed_uniform(key, 0)
    root = tree.counters[ROOT]
    set_trend(tree, own_stats, settings, mean_prior, work)
    solve_total(work)
    trend_mean = work.weights.copy()
    work.weights[:] = 0.0
    trend = np.empty(n_dimensions + 1)
    _draw_weights(work, hashed_word(key, 1), 0, trend)
    for k in range(n_dimensions + 1):
        trend[k] = trend_mean[k] + math.sqrt(gamma_1) * trend[k]
    for i in range(own.shape[0]):
        x = own[i]
        node = np.int64(root)
        weights[:] = trend
        unseparated, parent_time = 1.0, 0.0
        while True:
            distance = distance_outside(tree, node, rates, own, i)
            is_root = tree.parent[node] < 0
            centre = centre_of(own_stats.messages[node], n_dimensions)
            branches = False
            if distance > 0.0:
                span = tree.split_time[node] - parent_time
                unseparated *= math.exp(-span * distance)
                branches = unseparated < threshold
            if not (branches and is_root):
                _draw_node(tree, own_stats, node, settings, gamma_1, key, work, weights)
            if branches or is_leaf(tree, node):
                set_features(x, centre, settings.scales, features)
                value = settings.reference
                for k in range(n_dimensions + 1):
                    value += weights[k] * features[k]
                if branches:
                    variance = 0.0
                    if is_root:
                        variance = 0.5 - floor
                    elif rule == REMAINING:
                        variance = own_stats.remaining[node] - floor
                    value += math.sqrt(gamma_1 * variance) * hashed_normal(key, 2 * node + 1)
                result[i] = value
                break
            parent_time = tree.split_time[node]
            node = np.int64(child_towards(tree, node, x))
            # The parent's function at the child's centre.
            set_features(
                centre_of(own_stats.messages[node], n_dimensions),
                centre,
                settings.scales,
                features,
            )
            for k in range(1, n_dimensions + 1):
                weights[0] += weights[k] * features[k]
