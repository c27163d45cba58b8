"""How much each training target counts in a prediction (the equivalent kernel).

Predicted means are linear in the targets, given the tree and the hyper-parameters. A prediction is
first written as a combination of the locations of nodes: the locations of upward messages for the
hierarchical Gaussian, means of targets for empirical moments and for aggregated prunings. This
takes O(depth). The posterior mean of a node on the path depends on the downward message, and that
on the upward messages of the siblings along the path; an adjoint sweep from the leaf to the root
collects the coefficients. A node's location is an average of its children's, and a leaf's location
is the mean of its targets. So coefficients then go down to the points.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from mondrian_bo.trees.aggregation_nodes import MASS, aggregation_at, stop_share
from mondrian_bo.trees.aggregation_predict import AGGREGATED, separation_probability
from mondrian_bo.trees.hierarchical_gaussian import PRECISION, gaussian_at, remaining_variance
from mondrian_bo.trees.layout import FIRST_POINT, LEFT, NONE, RIGHT, ROOT
from mondrian_bo.trees.mixture_walk import NEGLIGIBLE_PROBABILITY, branch_off_probability
from mondrian_bo.trees.predict import (
    BRIDGE,
    BRIDGE_QUANTILES,
    EMPIRICAL,
    share_of_step,
)
from mondrian_bo.trees.tree import child_towards, distance_outside, is_leaf, sibling, tree_at

_DEPTH = 64
"""Nodes of a path for which there is room at first; the arrays double when a path is longer."""


@njit(cache=True, nogil=True)
def _share_of_child(tree, masses, remaining, node, child):  # type: ignore[no-untyped-def]
    """Return the share of a node's location that a child's location has.

    `masses` are the precisions of the upward messages, or the total weights of the targets of the
    nodes; `remaining` is of length 0 in the latter case.
    """
    own, other = masses[child], masses[sibling(tree, child)]
    if len(remaining) > 0:
        # Messages pass through the prior variance of their step.
        own /= 1.0 + (remaining[node] - remaining[child]) * own
        step = remaining[node] - remaining[sibling(tree, child)]
        other /= 1.0 + step * other
    return own / (own + other)


@njit(cache=True, nogil=True)
def _share_among_points(tree, masses, remaining, sample_weights, top, coefficient, tolerance, row):  # type: ignore[no-untyped-def]
    """Add a node's coefficient to the weights of the points below it; O(nodes below)."""
    stack = np.empty(_DEPTH, dtype=np.int64)
    coefficients = np.empty(_DEPTH)
    stack[0], coefficients[0] = top, coefficient
    pending = 1
    while pending > 0:
        pending -= 1
        node, coefficient = stack[pending], coefficients[pending]
        if not coefficient > tolerance:
            continue
        if is_leaf(tree, node):
            mass = 0.0
            point = tree.children[node, FIRST_POINT]
            while point != NONE:
                mass += sample_weights[point] if len(sample_weights) > 0 else 1.0
                point = tree.next_point[point]
            point = tree.children[node, FIRST_POINT]
            while point != NONE:
                own = sample_weights[point] if len(sample_weights) > 0 else 1.0
                row[point] += coefficient * own / mass
                point = tree.next_point[point]
            continue
        if pending + 2 > len(stack):
            stack = np.concatenate((stack, np.empty_like(stack)))
            coefficients = np.concatenate((coefficients, np.empty_like(coefficients)))
        left = tree.children[node, LEFT]
        share = _share_of_child(tree, masses, remaining, node, left)
        stack[pending], coefficients[pending] = left, coefficient * share
        pending += 1
        stack[pending] = tree.children[node, RIGHT]
        coefficients[pending] = coefficient * (1.0 - share)
        pending += 1


@njit(cache=True, nogil=True)
def _share_path_among_points(  # type: ignore[no-untyped-def]
    tree, masses, remaining, sample_weights, path, coefficients, tolerance, row
):
    """Add the coefficients of the nodes on a path, and of their siblings, to those of the points.

    `coefficients` has shape (length of the path, 2): of each node, and of its sibling. Siblings
    without mass must have a coefficient of 0.
    """
    coming = 0.0
    for k in range(len(path)):
        node = path[k]
        own = coming + coefficients[k, 0]
        if k > 0:
            other = sibling(tree, node)
            share = _share_of_child(tree, masses, remaining, path[k - 1], node)
            rest = coming * (1.0 - share) + coefficients[k, 1]
            own = coming * share + coefficients[k, 0]
            _share_among_points(
                tree, masses, remaining, sample_weights, other, rest, tolerance, row
            )
        coming = own
    _share_among_points(tree, masses, remaining, sample_weights, path[-1], coming, tolerance, row)


@njit(cache=True, nogil=True)
def path_of(tree, points, i):  # type: ignore[no-untyped-def]
    """Return the nodes from the root to the leaf that holds point i."""
    path = np.empty(_DEPTH, dtype=np.int64)
    node = np.int64(tree.counters[ROOT])
    length = 0
    while True:
        if length == len(path):
            path = np.concatenate((path, np.empty_like(path)))
        path[length] = node
        length += 1
        if is_leaf(tree, node):
            return path[:length]
        node = np.int64(child_towards(tree, node, points[i]))


@njit(cache=True, nogil=True)
def _shares_of_posteriors(tree, node_stats, path, points, i, rates, settings):  # type: ignore[no-untyped-def]
    """Return the shares of the posterior means on a path in the prediction of point i.

    These are the weights of Algorithm 5 of Lakshminarayanan2016; they add up to 1 less the share of
    the prior mean. A branch-off under `BRIDGE` is shared between a node and its parent.
    """
    shares = np.zeros(len(path))
    reaching, parent_time, parent_remaining = 1.0, 0.0, 0.5
    for k in range(len(path)):
        node = path[k]
        distance = distance_outside(tree, node, rates, points, i)
        span = tree.split_time[node] - parent_time
        if distance > 0.0:
            probability = branch_off_probability(span, distance)
            separated = reaching * probability
            if settings.rule == BRIDGE:
                for level in BRIDGE_QUANTILES:
                    elapsed = -math.log(1.0 - level * probability)
                    if not span < np.inf:
                        elapsed = -math.log1p(-level)
                    time = parent_time + min(elapsed / distance, span)
                    then = remaining_variance(settings.gamma_2, time)
                    share = share_of_step(parent_remaining, node_stats.remaining[node], then)
                    shares[k] += share * separated / len(BRIDGE_QUANTILES)
                    if k > 0:  # above the root there is the prior
                        shares[k - 1] += (1.0 - share) * separated / len(BRIDGE_QUANTILES)
            elif k > 0:
                shares[k] += separated
            reaching -= separated
            if reaching < NEGLIGIBLE_PROBABILITY:
                return shares
        parent_time, parent_remaining = tree.split_time[node], node_stats.remaining[node]
    shares[-1] += reaching
    return shares


@njit(cache=True, nogil=True)
def _adjoint(tree, node_stats, path, shares):  # type: ignore[no-untyped-def]
    """Turn shares of posterior means into coefficients of the locations of upward messages.

    The downward message to a node is computed as in :mod:`mondrian_bo.trees.predict`; then the
    coefficients go from the leaf back to the root.
    """
    length = len(path)
    down_variance = np.empty(length)
    # The precision of the sibling's message about the parent.
    across = np.zeros(length)
    for k in range(length):
        node = path[k]
        if k == 0:
            down_variance[k] = 0.5 - node_stats.remaining[node]
            continue
        other, above = sibling(tree, node), node_stats.remaining[path[k - 1]]
        precision = node_stats.messages[other, PRECISION]
        across[k] = precision / (1.0 + (above - node_stats.remaining[other]) * precision)
        known = down_variance[k - 1] / (1.0 + down_variance[k - 1] * across[k])
        down_variance[k] = known + above - node_stats.remaining[node]
    coefficients = np.zeros((length, 2))
    down = 0.0  # the coefficient of the location of the downward message
    for k in range(length - 1, -1, -1):
        ratio = down_variance[k] * node_stats.messages[path[k], PRECISION]
        coefficients[k, 0] = shares[k] * ratio / (1.0 + ratio)
        down += shares[k] / (1.0 + ratio)
        if k > 0:
            ratio = down_variance[k - 1] * across[k]
            coefficients[k, 1] = down * ratio / (1.0 + ratio)
            down /= 1.0 + ratio
    return coefficients


@njit(cache=True, nogil=True)
def gaussian_weights(forest, node_stats, points, rates, settings, scale, weights):  # type: ignore[no-untyped-def]
    """Add the weights of the training targets in the means of trees; O(T n) a point.

    Parameters
    ----------
    forest, node_stats, points, rates, settings
        See :func:`mondrian_bo.trees.predict.predict_forest`.
    scale : tuple of two floats
        The weight of each tree, and a tolerance: nodes with at most this coefficient are left out.
        Their weight stays with the prior mean.
    weights : float64 array of shape (m, n)
        The sum over trees is added to it. The prior mean has the rest of the trees' weights.
    """
    tree_weight, tolerance = scale
    nothing = np.empty(0)
    for t in range(len(forest.counters)):
        tree, own = tree_at(forest, t), gaussian_at(node_stats, t)
        own_points = points[t if len(points) > 1 else 0]
        empirical = settings.rule == EMPIRICAL
        masses = tree.size.astype(np.float64) if empirical else own.messages[:, PRECISION].copy()
        remaining = nothing if empirical else own.remaining
        for i in range(own_points.shape[0]):
            path = path_of(tree, own_points, i)
            shares = _shares_of_posteriors(tree, own, path, own_points, i, rates, settings)
            if empirical:
                coefficients = np.zeros((len(path), 2))
                coefficients[:, 0] = shares
            else:
                coefficients = _adjoint(tree, own, path, shares)
            coefficients *= tree_weight
            _share_path_among_points(
                tree, masses, remaining, nothing, path, coefficients, tolerance, weights[i]
            )


@njit(cache=True, nogil=True)
def leaf_mean_weights(forest, node_stats, index, points, i, weights):  # type: ignore[no-untyped-def]
    """Add the weights of the locations of leaves in the posterior mean of a leaf; O(n).

    Parameters
    ----------
    forest, node_stats : Tree, Gaussian
        With a leading axis of length T; leaves may have messages of their own.
    index : int
        The tree.
    points : float64 array of shape (m, d)
        Points as the tree sees them.
    i : int
        One of them, which is in the leaf.
    weights : float64 array of shape (n,)
        The weight of each leaf is added to it, in equal parts for the leaf's points.
    """
    tree, own = tree_at(forest, index), gaussian_at(node_stats, index)
    path = path_of(tree, points, i)
    shares = np.zeros(len(path))
    shares[-1] = 1.0
    coefficients = _adjoint(tree, own, path, shares)
    masses = own.messages[:, PRECISION].copy()
    nothing = np.empty(0)
    _share_path_among_points(tree, masses, own.remaining, nothing, path, coefficients, 0.0, weights)


@njit(cache=True, nogil=True)
def aggregation_weights(forest, node_stats, points, query, sample_weights, tolerance, weights):  # type: ignore[no-untyped-def]
    """Add up the weights of the training targets in the forecasts of all trees; O(T n) a point.

    Parameters
    ----------
    forest, node_stats, points, query
        See :func:`mondrian_bo.trees.aggregation_predict.predict_aggregation`.
    sample_weights : float64 array of shape (n,) or (0,)
        Weights of the samples; empty if all are 1.
    tolerance : float
        Nodes with at most this coefficient are left out.
    weights : float64 array of shape (m, n)
        Result, zero at first: the sum over trees. Rows add up to T, but for what is left out.
    """
    nothing = np.empty(0)
    for t in range(len(forest.counters)):
        tree, own = tree_at(forest, t), aggregation_at(node_stats, t)
        own_points = points[t if len(points) > 1 else 0]
        masses = np.ascontiguousarray(own.statistics[:, MASS])
        for i in range(own_points.shape[0]):
            path = path_of(tree, own_points, i)
            coefficients = np.zeros((len(path), 2))
            reaching, time_above, known = 1.0, 0.0, 0
            for k in range(len(path)):
                node = path[k]
                if masses[node] > 0.0:
                    known = k  # a node without targets forecasts as its parent does
                separated = 0.0
                if len(query.rates) > 0:
                    distance = distance_outside(tree, node, query.rates, own_points, i)
                    separated = separation_probability(tree.split_time[node] - time_above, distance)
                stop = 1.0 if is_leaf(tree, node) else 0.0
                if query.rule == AGGREGATED:
                    stop = stop_share(tree, own, node, query.step)
                coefficients[known, 0] += reaching * (separated + (1.0 - separated) * stop)
                reaching *= (1.0 - separated) * (1.0 - stop)
                time_above = tree.split_time[node]
            length = known + 1
            _share_path_among_points(
                tree,
                masses,
                nothing,
                sample_weights,
                path[:length],
                coefficients[:length],
                tolerance,
                weights[i],
            )
