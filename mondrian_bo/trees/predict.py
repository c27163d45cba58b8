"""Prediction with a Mondrian tree (Algorithm 5 of Lakshminarayanan2016), many points at once.

All points go down the tree together (:mod:`mondrian_bo.trees.traversal`), and the downward message
goes with them. It depends on the parent's downward message and the sibling's stored upward message,
so the exact posterior of the nodes on a path costs O(depth), with no sweep over the tree.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from mondrian_bo.trees.compiling import GENERIC, INNER, INNER_COUNTING
from mondrian_bo.trees.hierarchical_gaussian import (
    LOCATION,
    MEAN,
    PRECISION,
    SQUARES,
    gaussian_at,
    remaining_variance,
)
from mondrian_bo.trees.layout import NONE, ROOT
from mondrian_bo.trees.traversal import STACK_DEPTH, descend, in_chunks, split_points
from mondrian_bo.trees.tree import distances_outside, is_leaf, sibling, tree_at

PAPER, REMAINING, EMPIRICAL, BRIDGE = 0, 1, 2, 3
"""Rules for the prediction of a point that branches off, see :class:`PredictionSettings`."""

BRIDGE_QUANTILES = (1.0 / 6.0, 0.5, 5.0 / 6.0)
"""Levels of the time of a branch-off at which ``BRIDGE`` evaluates, with equal weights.

They are the midpoints of three equal parts of its distribution.
"""

_UNBOUNDED = tuple(-math.log1p(-level) for level in BRIDGE_QUANTILES)
"""The same quantiles of the standard exponential distribution, for blocks that never split."""

SMALLEST_CHUNK = 4096
"""Smallest number of points predicted at a time: their intermediate results fit into the cache."""

REACHING, FIRST, SECOND = 0, 1, 2
"""Columns of the state of a point on its way down.

The probability that it has not branched off yet (p_NotSeparatedYet), and the first two moments of
its prediction so far, about the prior mean.
"""

NEGLIGIBLE = 1e-13
"""Probability of not having branched off at which a point stops.

Its weight is lost, which changes the moments by a relative 1e-13 at most.
"""


class PredictionSettings(NamedTuple):
    """Settings of predictions. All types are fixed, so that functions are compiled once.

    Attributes
    ----------
    mean_prior : float
        mu_H.
    gamma_1 : float
        Scale of the prior variances.
    gamma_2 : float
        Scale of split times in the prior variances.
    noise : float
        Noise variance in units of gamma_1.
    floor : float
        Prior variance after the lifetime in units of gamma_1; 0 if the lifetime is infinite.
    rule : int
        The prediction of a point that branches off before a node j. A node is then inserted above
        j that holds the same data. ``PAPER``: the posterior of j, which stands for that of the
        inserted node (Algorithm 5, line 2). ``REMAINING``: the same, plus the prior variance below
        j. ``BRIDGE``: the posterior of the inserted node, between j's parent and j, plus the prior
        variance below the inserted node. ``EMPIRICAL``: as ``PAPER``, where mean and variance of
        the targets of a node take the place of its posterior (section 5.3). A point that branches
        off above the root has the prior, whatever the rule.
    """

    mean_prior: float
    gamma_1: float
    gamma_2: float
    noise: float
    floor: float
    rule: int


@njit(cache=True, nogil=True)
def condition(prior_mean, prior_variance, location, precision):  # type: ignore[no-untyped-def]
    """Return mean and variance of a Gaussian multiplied by a message with a given precision."""
    scale = 1.0 + prior_variance * precision
    return (
        (prior_mean + prior_variance * precision * location) / scale,
        prior_variance / scale,
    )


@njit(**INNER)
def posterior_of(node_stats, node, prior_mean, prior_variance):  # type: ignore[no-untyped-def]
    """Return mean and variance of mu_node, from those given all targets outside of its subtree."""
    message = node_stats.messages[node]
    return condition(prior_mean, prior_variance, message[LOCATION], message[PRECISION])


@njit(cache=True, nogil=True)
def message_down(tree, node_stats, node, down_mean, down_variance):  # type: ignore[no-untyped-def]
    """Return mean and variance of mu_node given all targets outside of its subtree.

    `down_mean` and `down_variance` are those of the node's parent; at the root they are mu_H, 0.
    """
    parent = tree.parent[node]
    if parent == NONE:
        return down_mean, 0.5 - node_stats.remaining[node]
    other = sibling(tree, node)
    precision = node_stats.messages[other, PRECISION]
    precision /= 1.0 + (node_stats.remaining[parent] - node_stats.remaining[other]) * precision
    mean, variance = condition(
        down_mean, down_variance, node_stats.messages[other, LOCATION], precision
    )
    return mean, variance + node_stats.remaining[parent] - node_stats.remaining[node]


@njit(cache=True, nogil=True)
def share_of_step(parent_remaining, remaining, remaining_then):  # type: ignore[no-untyped-def]
    """Return the share of phi_j that has been spent at a time between parent and node."""
    step = parent_remaining - remaining
    return (parent_remaining - remaining_then) / step if step > 0.0 else 0.0


@njit(**INNER)
def add_component(own, weight, offset, variance):  # type: ignore[no-untyped-def]
    """Add a component to the state `own` of a point; `offset` is its mean less the prior mean."""
    own[FIRST] += weight * offset  # (4)
    own[SECOND] += weight * (variance + offset * offset)  # (4)


@njit(**INNER)
def write_component(sink, n_components, point, weight, mean, variance):  # type: ignore[no-untyped-def]
    """Write a component of the mixture (3) into the next row of `sink`, if it has one."""
    if n_components < len(sink):
        sink[n_components, 0], sink[n_components, 1] = point, weight
        sink[n_components, 2], sink[n_components, 3] = mean, variance


@njit(**INNER_COUNTING)
def start_points(n_points):  # type: ignore[no-untyped-def]
    """Return what points at the root start with: their order, and their states.

    There is one row of states per point: points are read in no particular order.
    """
    order = np.empty(n_points, dtype=np.int32)
    state = np.empty((n_points, 3))
    for i in range(n_points):
        order[i] = i
        state[i, REACHING], state[i, FIRST], state[i, SECOND] = 1.0, 0.0, 0.0
    return order, state


@njit(**INNER)
def write_moments(state, mean_prior, means, variances):  # type: ignore[no-untyped-def]
    """Write the moments of the points from their states, equation (4)."""
    for i in range(len(means)):
        mean = state[i, FIRST]
        variances[i] = max(state[i, SECOND] - mean * mean, 0.0)
        means[i] = mean + mean_prior


@njit(cache=True, nogil=True)
def _predict_tree(tree, node_stats, points, settings, where, results):  # type: ignore[no-untyped-def]
    """Predict the moments of one tree at `points`, shape (m, d), into rows of the results.

    The results are those of :func:`predict_moments`. Each component of the mixture (3) is also
    written into the last of them, the sink, until it is full. Returns the number of components.
    """
    rates, (mean_prior, gamma_1, gamma_2, noise, floor, rule) = settings
    means, variances, sink = results
    n_points = points.shape[0]
    order, state = start_points(n_points)
    scratch, distances = np.empty_like(order), np.empty(n_points)
    n_components = 0
    stack = np.empty((STACK_DEPTH, 3), dtype=np.int64)
    # Downward message, mean and variance (in units of gamma_1) of the posterior, all of the parent
    # of the node that waits.
    stack_state = np.empty((STACK_DEPTH, 4))
    pending = 0
    n_parts = len(BRIDGE_QUANTILES) if rule == BRIDGE else 1
    root = np.int64(tree.counters[ROOT])
    above_mean, above_variance = mean_prior, 0.0
    down_mean, down_variance = mean_prior, 0.0
    node, start, end = root, 0, n_points
    while True:
        parent = tree.parent[node]
        parent_time, parent_remaining = 0.0, 0.5
        if parent != NONE:
            parent_time, parent_remaining = tree.split_time[parent], node_stats.remaining[parent]
        span = tree.split_time[node] - parent_time  # Algorithm 5, line 5
        step = parent_remaining - node_stats.remaining[node]
        leaf = is_leaf(tree, node)
        distances_outside(tree, node, rates, points, order, start, end, distances)
        posterior = 0.0
        if rule == EMPIRICAL:
            own_mean = node_stats.moments[node, MEAN]
            own_variance = node_stats.moments[node, SQUARES] / tree.size[node] + gamma_1 * noise
        else:
            down_mean, down_variance = message_down(
                tree, node_stats, node, down_mean, down_variance
            )
            own_mean, posterior = posterior_of(node_stats, node, down_mean, down_variance)
            own_variance = gamma_1 * (posterior + noise)
        # The prediction of a branch-off above this node, if it does not depend on the time.
        branch_mean, branch_variance = own_mean, own_variance  # Algorithm 5, line 2
        if parent == NONE:
            branch_mean, branch_variance = mean_prior, gamma_1 * (0.5 - floor + noise)
        elif rule == REMAINING:
            branch_variance += gamma_1 * (node_stats.remaining[node] - floor)
        finite = span < np.inf
        # BRIDGE: the new node's variance is a quadratic form in (1 - share, share); `together` is
        # its mixed term, from the posterior covariance of the parent and this node.
        together, per_step = 0.0, 0.0
        if rule == BRIDGE:
            precision = node_stats.messages[node, PRECISION]
            together = 2.0 * above_variance / (1.0 + step * precision) + step
            per_step = 1.0 / step if step > 0.0 else 0.0
        kept = start
        for i in range(start, end):
            point = order[i]
            distance = distances[i]
            if distance > 0.0:
                own = state[point]
                # Algorithm 5, line 6
                probability = -math.expm1(-span * distance) if finite else 1.0
                separated = own[REACHING] * probability  # Algorithm 5, line 8
                weight = separated / n_parts
                part_mean, part_variance = branch_mean, branch_variance
                mean_time = 1.0 / distance
                for k in range(n_parts):
                    if rule == BRIDGE:
                        # Where the argument is near 1 the logarithm loses relative precision. The
                        # probability, a factor of the result, is as small there.
                        elapsed = (
                            -math.log(1.0 - BRIDGE_QUANTILES[k] * probability)
                            if finite
                            else _UNBOUNDED[k]
                        )
                        time = parent_time + min(elapsed * mean_time, span)
                        then = remaining_variance(gamma_2, time)
                        share = (parent_remaining - then) * per_step
                        rest = 1.0 - share
                        part_mean = above_mean + share * (own_mean - above_mean)
                        part_variance = (
                            rest * (rest * above_variance + share * together)
                            + share * share * posterior
                        )
                        part_variance = gamma_1 * (part_variance + then - floor + noise)
                    offset = part_mean - mean_prior
                    add_component(own, weight, offset, part_variance)
                    write_component(sink, n_components, point, weight, part_mean, part_variance)
                    n_components += 1
                own[REACHING] -= separated  # Algorithm 5, line 13
                if own[REACHING] < NEGLIGIBLE:
                    continue
            order[kept] = point
            kept += 1
        end = kept
        if leaf:
            offset = own_mean - mean_prior
            for i in range(start, end):
                point = order[i]
                own = state[point]
                weight = own[REACHING]  # Algorithm 5, line 10
                add_component(own, weight, offset, own_variance)
                write_component(sink, n_components, point, weight, own_mean, own_variance)
                n_components += 1
        if leaf or start == end:
            if pending == 0:
                break
            pending -= 1
            node, start, end = stack[pending]
            down_mean, down_variance, above_mean, above_variance = stack_state[pending]
            continue
        above_mean, above_variance = own_mean, posterior
        middle = split_points(tree, node, points, order, start, end, scratch)
        waiting = stack_state[pending]
        waiting[0], waiting[1] = down_mean, down_variance
        waiting[2], waiting[3] = above_mean, above_variance
        node, start, end, pending = descend(tree, node, start, middle, end, stack, pending)
    t, first, last = where
    write_moments(state, mean_prior, means[t, first:last], variances[t, first:last])
    return n_components


def predict_moments(predict_tree: Any) -> Any:
    """Make a function that writes the moments of each tree's prediction.

    Parameters
    ----------
    predict_tree : compiled function
        Predicts with one tree. It is called as :func:`mondrian_bo.trees.traversal.in_chunks` says,
        with the rates and the settings, and with means, variances and the sink as results.

    Returns
    -------
    compiled function
        Has the parameters of :func:`predict_forest`.
    """
    run = in_chunks(predict_tree, gaussian_at)

    @njit(**GENERIC)
    def write(forest, node_stats, points, rates, settings, means, variances):  # type: ignore[no-untyped-def]
        results = (means, variances, np.empty((0, 4)))
        run(forest, node_stats, points, SMALLEST_CHUNK, (rates, settings), results)

    return write


def write_components(predict_tree: Any) -> Any:
    """Make a function that writes the components of one tree's mixture.

    Parameters
    ----------
    predict_tree : compiled function
        See :func:`predict_moments`.

    Returns
    -------
    compiled function
        Has the parameters of :func:`tree_components`.
    """

    @njit(**GENERIC)
    def write(forest, node_stats, index, points, rates, settings, sink):  # type: ignore[no-untyped-def]
        own = points[index if len(points) > 1 else 0]
        n_points = own.shape[0]
        # Plain integers: numba compiles the function anew for literal ones.
        where = (np.int64(0), np.int64(0), n_points)
        return predict_tree(
            tree_at(forest, index),
            gaussian_at(node_stats, index),
            own,
            (rates, settings),
            where,
            (np.empty((1, n_points)), np.empty((1, n_points)), sink),
        )

    return write


_write_moments_of_trees = predict_moments(_predict_tree)
_write_components = write_components(_predict_tree)


@njit(cache=True, nogil=True)
def predict_forest(forest, node_stats, points, rates, settings, means, variances):  # type: ignore[no-untyped-def]
    """Write mean and variance of each tree's predictive mixture, equation (4).

    Parameters
    ----------
    forest, node_stats : Tree, Gaussian
        With a leading axis of length T; not empty.
    points : float64 array of shape (1 or T, m, d)
        Where to predict; one row per tree where trees see the points differently.
    rates : float64 array of shape (d,)
        Split rate of each dimension.
    settings : PredictionSettings
        Hyper-parameters and the rule for points that branch off.
    means, variances : float64 arrays of shape (T, m)
        Results.
    """
    _write_moments_of_trees(forest, node_stats, points, rates, settings, means, variances)


@njit(cache=True, nogil=True)
def tree_components(forest, node_stats, index, points, rates, settings, sink):  # type: ignore[no-untyped-def]
    """Write the components of one tree's mixture, equation (3), into `sink`; return their number.

    Rows of `sink`, a float64 array of shape (rows, 4), are point, weight, mean, variance, in no
    particular order. Components beyond its length are counted and not written. `index` is the
    tree's; the other parameters are those of :func:`predict_forest`.
    """
    return _write_components(forest, node_stats, index, points, rates, settings, sink)
