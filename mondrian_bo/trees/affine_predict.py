"""Prediction with the affine functions of a Mondrian tree, many points at once.

As :mod:`mondrian_bo.trees.predict` (Algorithm 5 of Lakshminarayanan2016), with the downward message
in the form of precision and information, as :mod:`mondrian_bo.trees.affine_messages` has it. Where
a point branches off, the rules ``PAPER`` and ``REMAINING`` evaluate the function of the node at the
point. Above the root there is the posterior of the trend: so far from all data the mean is affine,
and its deviation grows with the distance.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from mondrian_bo.trees.affine_messages import (
    TREND,
    AffineSettings,
    add_child,
    add_message,
    centre_of,
    clear,
    make_workspace,
    pass_increment,
    pass_to_trend,
    read_message,
    set_features,
    shift_message,
    steps_to,
    take_total,
)
from mondrian_bo.trees.compiling import INNER_COUNTING
from mondrian_bo.trees.hierarchical_gaussian import MEAN
from mondrian_bo.trees.layout import NONE, ROOT
from mondrian_bo.trees.mixture_walk import (
    NEGLIGIBLE_PROBABILITY,
    REACHING,
    add_component,
    branch_off_probability,
    predict_moments,
    start_points,
    write_component,
    write_components,
    write_moments,
)
from mondrian_bo.trees.predict import REMAINING
from mondrian_bo.trees.traversal import STACK_DEPTH, descend, split_points
from mondrian_bo.trees.tree import distances_outside, is_leaf, sibling

_EPSILON = float(np.finfo(np.float64).eps)
"""Rounding error of a pivot, relative to its diagonal entry."""


class AffinePrediction(NamedTuple):
    """Settings of predictions.

    Attributes
    ----------
    mean_prior, gamma_1, floor, rule
        See :class:`mondrian_bo.trees.predict.PredictionSettings`; the rule is ``PAPER`` or
        ``REMAINING``.
    messages : AffineSettings
        What messages depend on.
    """

    mean_prior: float
    gamma_1: float
    floor: float
    rule: int
    messages: AffineSettings


@njit(**INNER_COUNTING)
def copy_message(precision, information, new_precision, new_information):  # type: ignore[no-untyped-def]
    """Copy a message."""
    for i in range(len(information)):
        new_information[i] = information[i]
        for j in range(len(information)):
            new_precision[i, j] = precision[i, j]


@njit(**INNER_COUNTING)
def set_trend(tree, node_stats, settings, mean_prior, work):  # type: ignore[no-untyped-def]
    """Write the posterior of the weights of the trend into the total."""
    pass_to_trend(tree, node_stats, work)
    clear(work.total_precision, work.total_information)
    for k in range(len(work.information)):
        work.total_precision[k, k] = 1.0 / TREND
    work.total_information[0] = (mean_prior - settings.reference) / TREND
    add_message(work)


@njit(**INNER_COUNTING)
def pass_down(tree, node_stats, node, settings, mean_prior, work):  # type: ignore[no-untyped-def]
    """Write the distribution of a node's weights given all targets outside of its subtree.

    That of its parent is in the total (at the root nothing needs to be there), and is lost; that of
    the node is in `precision` and `information` of `work` afterwards.
    """
    parent = tree.parent[node]
    n_dimensions = len(settings.scales)
    step, slope_step = steps_to(tree, node_stats, node)
    if parent == NONE:
        clear(work.precision, work.information)
        for k in range(n_dimensions + 1):
            work.precision[k, k] = 1.0 / TREND
        work.information[0] = (mean_prior - settings.reference) / TREND
        pass_increment(work, step, slope_step)
        return
    add_child(tree, node_stats, parent, sibling(tree, node), settings, work)
    take_total(work)
    set_features(
        centre_of(node_stats.messages[parent], n_dimensions),
        centre_of(node_stats.messages[node], n_dimensions),
        settings.scales,
        work.offset,
    )
    shift_message(work.precision, work.information, work.offset)
    pass_increment(work, step, slope_step)


@njit(**INNER_COUNTING)
def add_own(tree, node_stats, node, settings, work):  # type: ignore[no-untyped-def]
    """Make the total the sum of the message in `work` and a node's own message."""
    clear(work.total_precision, work.total_information)
    add_message(work)
    if tree.size[node] == 1:
        weight = 1.0 / settings.noise
        work.total_precision[0, 0] += weight
        work.total_information[0] += weight * (node_stats.moments[node, MEAN] - settings.reference)
        return
    read_message(node_stats.messages[node], work.precision, work.information)
    add_message(work)


@njit(**INNER_COUNTING)
def solve_total(work):  # type: ignore[no-untyped-def]
    """Solve for the distribution of the weights whose precision is the total.

    Writes the inverse of the Cholesky factor of the precision into `solved` (lower triangle) and
    the mean into `weights`.
    """
    precision, factor, inverse, mean = (
        work.total_precision,
        work.factor,
        work.solved,
        work.weights,
    )
    p = len(mean)
    for i in range(p):
        for j in range(i):
            total = precision[i, j]
            for k in range(j):
                total -= factor[i, k] * factor[j, k]
            factor[i, j] = total / factor[j, j]
        total = precision[i, i]
        for k in range(i):
            total -= factor[i, k] * factor[i, k]
        # A pivot below its own rounding error may be zero or negative.
        factor[i, i] = math.sqrt(max(total, _EPSILON * precision[i, i]))
    for i in range(p):
        scale = 1.0 / factor[i, i]
        for j in range(i):
            total = 0.0
            for k in range(j, i):
                total -= factor[i, k] * inverse[k, j]
            inverse[i, j] = total * scale
        inverse[i, i] = scale
    for k in range(p):
        mean[k] = 0.0
    for i in range(p):
        total = 0.0
        for j in range(i + 1):
            total += inverse[i, j] * work.total_information[j]
        for j in range(i + 1):
            mean[j] += inverse[i, j] * total


@njit(**INNER_COUNTING)
def evaluate(work):  # type: ignore[no-untyped-def]
    """Return mean and variance of the function at the features in `offset`, after `solve_total`."""
    mean, variance = 0.0, 0.0
    features = work.offset
    for i in range(len(features)):
        mean += work.weights[i] * features[i]
        total = 0.0
        for j in range(i + 1):
            total += work.solved[i, j] * features[j]
        variance += total * total
    return mean, variance


@njit(**INNER_COUNTING)
def _predict_tree(tree, node_stats, points, prediction, where, results):  # type: ignore[no-untyped-def]
    """Predict the moments of one tree at `points`, shape (m, d), into rows of the results.

    Components are also written into the last of the results, the sink, as in
    :mod:`mondrian_bo.trees.predict`. Returns their number.
    """
    rates, (mean_prior, gamma_1, floor, rule, settings) = prediction
    means, variances, sink = results
    noise = settings.noise
    shift = settings.reference - mean_prior
    n_points, n_dimensions = points.shape
    work = make_workspace(n_dimensions)
    order, state = start_points(n_points)
    scratch, distances = np.empty_like(order), np.empty(n_points)
    n_components = 0
    stack = np.empty((STACK_DEPTH, 3), dtype=np.int64)
    # The downward message of the parent of the node that waits, and of the current node.
    p = n_dimensions + 1
    stack_precision = np.empty((STACK_DEPTH, p, p))
    stack_information = np.empty((STACK_DEPTH, p))
    precision, information = np.empty((p, p)), np.empty(p)
    pending = 0
    node, start, end = np.int64(tree.counters[ROOT]), 0, n_points
    while True:
        parent = tree.parent[node]
        parent_time = 0.0 if parent == NONE else tree.split_time[parent]
        span = tree.split_time[node] - parent_time  # Algorithm 5, line 5
        leaf = is_leaf(tree, node)
        distances_outside(tree, node, rates, points, order, start, end, distances)
        outside = False
        for i in range(start, end):
            outside |= distances[i] > 0.0
        centre = centre_of(node_stats.messages[node], n_dimensions)
        solved_trend = False
        if outside and parent == NONE:
            set_trend(tree, node_stats, settings, mean_prior, work)
            solve_total(work)
            solved_trend = True
        if not solved_trend:
            pass_down(tree, node_stats, node, settings, mean_prior, work)
            copy_message(work.precision, work.information, precision, information)
            if outside or leaf:
                add_own(tree, node_stats, node, settings, work)
                solve_total(work)
        # What a branch-off above this node adds to the variance of the function (Algorithm 5,
        # line 2, and section 5.2 for the prior above the root).
        further = 0.0
        if parent == NONE:
            further = 0.5 - floor
        elif rule == REMAINING:
            further = node_stats.remaining[node] - floor
        kept = start
        for i in range(start, end):
            point = order[i]
            if distances[i] > 0.0:
                own = state[point]
                # Algorithm 5, lines 6, 8
                weight = own[REACHING] * branch_off_probability(span, distances[i])
                set_features(points[point], centre, settings.scales, work.offset)
                offset, variance = evaluate(work)
                offset += shift
                variance = gamma_1 * (variance + further + noise)
                add_component(own, weight, offset, variance)
                write_component(sink, n_components, point, weight, offset + mean_prior, variance)
                n_components += 1
                own[REACHING] -= weight  # Algorithm 5, line 13
                if own[REACHING] < NEGLIGIBLE_PROBABILITY:
                    continue
            order[kept] = point
            kept += 1
        end = kept
        if solved_trend and end > start:
            pass_down(tree, node_stats, node, settings, mean_prior, work)
            copy_message(work.precision, work.information, precision, information)
            if leaf:
                add_own(tree, node_stats, node, settings, work)
                solve_total(work)
        if leaf:
            for i in range(start, end):
                point = order[i]
                own = state[point]
                set_features(points[point], centre, settings.scales, work.offset)
                offset, variance = evaluate(work)
                offset += shift
                variance = gamma_1 * (variance + noise)
                weight = own[REACHING]  # Algorithm 5, line 10
                add_component(own, weight, offset, variance)
                write_component(sink, n_components, point, weight, offset + mean_prior, variance)
                n_components += 1
        if leaf or start == end:
            if pending == 0:
                break
            pending -= 1
            node, start, end = stack[pending]
            copy_message(
                stack_precision[pending],
                stack_information[pending],
                work.total_precision,
                work.total_information,
            )
            continue
        middle = split_points(tree, node, points, order, start, end, scratch)
        copy_message(precision, information, stack_precision[pending], stack_information[pending])
        node, start, end, pending = descend(tree, node, start, middle, end, stack, pending)
        copy_message(precision, information, work.total_precision, work.total_information)
    t, first, last = where
    write_moments(state, mean_prior, means[t, first:last], variances[t, first:last])
    return n_components


_write_moments_of_trees = predict_moments(_predict_tree)
_write_components = write_components(_predict_tree)


@njit(cache=True, nogil=True)
def predict_affine(forest, node_stats, points, rates, prediction, means, variances):  # type: ignore[no-untyped-def]
    """Write mean and variance of each tree's predictive mixture, equation (4).

    O(d^3) for each node that any of the points passes, and O(d^2) for each node that a point lies
    outside of.

    Parameters
    ----------
    forest, node_stats, points, rates, means, variances
        See :func:`mondrian_bo.trees.predict.predict_forest`.
    prediction : AffinePrediction
        Hyper-parameters and the rule for points that branch off.
    """
    _write_moments_of_trees(forest, node_stats, points, rates, prediction, means, variances)


@njit(cache=True, nogil=True)
def affine_components(forest, node_stats, index, points, rates, prediction, sink):  # type: ignore[no-untyped-def]
    """Write the components of one tree's mixture, equation (3), into `sink`; return their number.

    As :func:`mondrian_bo.trees.predict.tree_components`.
    """
    return _write_components(forest, node_stats, index, points, rates, prediction, sink)
