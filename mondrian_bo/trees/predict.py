"""Prediction with a Mondrian tree (Algorithm 5 of Lakshminarayanan2016), many points at once.

All points go down the tree together (:mod:`mondrian_bo.trees.traversal`), and the downward message
goes with them. It depends on the parent's downward message and the sibling's stored upward message,
so the exact posterior of the nodes on a path costs O(depth), with no sweep over the tree.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from mondrian_bo.trees.compiling import INNER, INNER_COUNTING
from mondrian_bo.trees.hierarchical_gaussian import (
    LOCATION,
    MEAN,
    PRECISION,
    SQUARES,
    remaining_variance,
)
from mondrian_bo.trees.layout import NONE, ROOT
from mondrian_bo.trees.mixture_walk import (
    NEGLIGIBLE_PROBABILITY,
    REACHING,
    branch_off_probability,
    predict_moments,
    record_component,
    start_walk,
    write_components,
    write_moments,
)
from mondrian_bo.trees.traversal import STACK_DEPTH, descend, split_points
from mondrian_bo.trees.tree import distances_outside, is_leaf, sibling

PAPER, REMAINING, EMPIRICAL, BRIDGE = 0, 1, 2, 3
"""Rules for the prediction of a point that branches off, see :class:`PredictionSettings`."""

BRIDGE_QUANTILES = (1.0 / 6.0, 0.5, 5.0 / 6.0)
"""Levels of the time of a branch-off at which ``BRIDGE`` evaluates, with equal weights.

They are the midpoints of three equal parts of its distribution.
"""

_UNBOUNDED = tuple(-math.log1p(-level) for level in BRIDGE_QUANTILES)
"""The same quantiles of the standard exponential distribution, for blocks that never split."""


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


class _Belief(NamedTuple):
    """Moments of mu_j, the mean of a node, in units of gamma_1 but for the means.

    Attributes
    ----------
    down_mean, down_variance : float
        Given the targets outside of the subtree of the node: the downward message.
    mean, variance : float
        Given all targets: the posterior.
    """

    down_mean: float
    down_variance: float
    mean: float
    variance: float


class _Forecast(NamedTuple):
    """What a node predicts: mean and variance of a target, noise included.

    Attributes
    ----------
    mean, variance : float
        For points in the block of the node, m_j and v_j.
    branch_mean, branch_variance : float
        For points that branch off above the node, if that does not depend on the time.
    """

    mean: float
    variance: float
    branch_mean: float
    branch_variance: float


class _Step(NamedTuple):
    """The step from the parent of a node to the node, or from time 0 to the root.

    Attributes
    ----------
    time, span : float
        Time at which the step begins, tau_parent(j), and its duration Delta_j.
    remaining : float
        Prior variance below the parent, in units of gamma_1.
    per_variance, together : float
        Terms of ``BRIDGE``: the inverse of the prior variance of the step, 0 if there is none; and
        the mixed term of the quadratic form in (1 - share, share) that is the posterior variance of
        an inserted node after this share of the step.
    """

    time: float
    span: float
    remaining: float
    per_variance: float
    together: float


@njit(**INNER)
def _step_to(tree, node_stats, node, above, rule):  # type: ignore[no-untyped-def]
    """Return the :class:`_Step` to a node; `above` is the :class:`_Belief` of its parent."""
    parent = tree.parent[node]
    time, remaining = 0.0, 0.5
    if parent != NONE:
        time, remaining = tree.split_time[parent], node_stats.remaining[parent]
    span = tree.split_time[node] - time  # Algorithm 5, line 5
    per_variance, together = 0.0, 0.0
    if rule == BRIDGE:
        variance = remaining - node_stats.remaining[node]
        # From the posterior covariance of the parent and this node.
        precision = node_stats.messages[node, PRECISION]
        together = 2.0 * above.variance / (1.0 + variance * precision) + variance
        per_variance = 1.0 / variance if variance > 0.0 else 0.0
    return _Step(time, span, remaining, per_variance, together)


@njit(**INNER)
def _belief_at(tree, node_stats, node, above, rule):  # type: ignore[no-untyped-def]
    """Return the :class:`_Belief` of a node from that of its parent.

    With ``EMPIRICAL`` there are no messages, and the mean is that of the targets of the node.
    """
    if rule == EMPIRICAL:
        return _Belief(above.down_mean, above.down_variance, node_stats.moments[node, MEAN], 0.0)
    down_mean, down_variance = message_down(
        tree, node_stats, node, above.down_mean, above.down_variance
    )
    mean, variance = posterior_of(node_stats, node, down_mean, down_variance)
    return _Belief(down_mean, down_variance, mean, variance)


@njit(**INNER)
def _forecast_of(tree, node_stats, node, own, settings):  # type: ignore[no-untyped-def]
    """Return the :class:`_Forecast` of a node, of which `own` is the :class:`_Belief`."""
    _, gamma_1, _, noise, floor, rule = settings
    if rule == EMPIRICAL:
        variance = node_stats.moments[node, SQUARES] / tree.size[node] + gamma_1 * noise
    else:
        variance = gamma_1 * (own.variance + noise)
    if tree.parent[node] == NONE:  # the prior
        branch_variance = gamma_1 * (0.5 - floor + noise)
        return _Forecast(own.mean, variance, settings.mean_prior, branch_variance)
    branch_variance = variance  # Algorithm 5, line 2
    if rule == REMAINING:
        branch_variance += gamma_1 * (node_stats.remaining[node] - floor)
    return _Forecast(own.mean, variance, own.mean, branch_variance)


@njit(**INNER)
def _bridge(k, probability, distance, step, beliefs, settings):  # type: ignore[no-untyped-def]
    """Return mean and variance of a target at the k-th quantile of the time of a branch-off.

    Parameters
    ----------
    k : int
        Index of the quantile in `BRIDGE_QUANTILES`.
    probability, distance : float
        p_j^s(x) and eta_j(x) of the point.
    step, beliefs : _Step and pair of _Belief
        The step to the node; the beliefs of the parent and of the node.
    settings : PredictionSettings
        Hyper-parameters.
    """
    above, own = beliefs
    # Where the argument is near 1 the logarithm loses relative precision. The probability, a factor
    # of the result, is as small there.
    elapsed = (
        -math.log(1.0 - BRIDGE_QUANTILES[k] * probability) if step.span < np.inf else _UNBOUNDED[k]
    )
    time = step.time + min(elapsed * (1.0 / distance), step.span)
    then = remaining_variance(settings.gamma_2, time)
    share = (step.remaining - then) * step.per_variance
    rest = 1.0 - share
    mean = above.mean + share * (own.mean - above.mean)
    variance = rest * (rest * above.variance + share * step.together) + share * share * own.variance
    return mean, settings.gamma_1 * (variance + then - settings.floor + settings.noise)


@njit(**INNER)
def _branch_off(walk, places, n_components, step, beliefs, forecast, settings):  # type: ignore[no-untyped-def]
    """Let the points at a node that lie outside of its box branch off (Algorithm 5, lines 6-8, 13).

    Parameters
    ----------
    walk, places : Walk and pair of int
        The points ``walk.order[start:end]``, where `places` is (start, end).
    n_components : int
        Number of components so far.
    step, beliefs, forecast
        The step to the node, the beliefs of its parent and of the node, and its forecast.
    settings : PredictionSettings
        Hyper-parameters and the rule.

    Returns
    -------
    tuple of int
        The end of the points that go on, which keep their order, and the number of components.
    """
    start, end = places
    n_parts = len(BRIDGE_QUANTILES) if settings.rule == BRIDGE else 1
    kept = start
    for i in range(start, end):
        point, distance = walk.order[i], walk.distances[i]
        if distance > 0.0:
            own = walk.state[point]
            probability = branch_off_probability(step.span, distance)  # line 6
            separated = own[REACHING] * probability  # line 8
            weight = separated / n_parts
            mean, variance = forecast.branch_mean, forecast.branch_variance
            for k in range(n_parts):
                if settings.rule == BRIDGE:
                    mean, variance = _bridge(k, probability, distance, step, beliefs, settings)
                offset = mean - settings.mean_prior
                n_components = record_component(
                    walk, n_components, point, weight, offset, mean, variance
                )
            own[REACHING] -= separated  # line 13
            if own[REACHING] < NEGLIGIBLE_PROBABILITY:
                continue
        walk.order[kept] = point
        kept += 1
    return kept, n_components


@njit(**INNER)
def _stop_at_leaf(walk, places, n_components, forecast, settings):  # type: ignore[no-untyped-def]
    """Give the points that reach a leaf its forecast (Algorithm 5, lines 9-10).

    Returns the number of components; the parameters are those of :func:`_branch_off`.
    """
    offset = forecast.mean - settings.mean_prior
    for i in range(places[0], places[1]):
        point = walk.order[i]
        weight = walk.state[point, REACHING]  # line 10
        n_components = record_component(
            walk, n_components, point, weight, offset, forecast.mean, forecast.variance
        )
    return n_components


@njit(**INNER_COUNTING)
def _predict_tree(tree, node_stats, points, prediction, where, results):  # type: ignore[no-untyped-def]
    """Predict the moments of one tree at `points`, shape (m, d), into rows of the results.

    This is Algorithm 5 for many points; :func:`mondrian_bo.trees.traversal.in_chunks` has the
    parameters. `prediction` is the pair of the rates and the settings, and the results are means,
    variances and the sink (:class:`mondrian_bo.trees.mixture_walk.Walk`), until it is full. Returns
    the number of components.
    """
    rates, settings = prediction
    means, variances, sink = results
    walk, n_components = start_walk(points.shape[0], sink), 0
    # Nodes that wait, and the belief of the parent of each.
    stack, pending = np.empty((STACK_DEPTH, 3), dtype=np.int64), 0
    stack_above = np.empty((STACK_DEPTH, 4))
    above = _Belief(settings.mean_prior, 0.0, settings.mean_prior, 0.0)
    node, start, end = np.int64(tree.counters[ROOT]), 0, points.shape[0]
    while True:  # line 4
        distances_outside(tree, node, rates, points, walk.order, start, end, walk.distances)
        step = _step_to(tree, node_stats, node, above, settings.rule)  # line 5
        own = _belief_at(tree, node_stats, node, above, settings.rule)
        forecast = _forecast_of(tree, node_stats, node, own, settings)
        end, n_components = _branch_off(  # lines 6-8, 13
            walk, (start, end), n_components, step, (above, own), forecast, settings
        )
        leaf = is_leaf(tree, node)
        if leaf:
            n_components = _stop_at_leaf(walk, (start, end), n_components, forecast, settings)
        if leaf or start == end:
            if pending == 0:
                break
            pending -= 1
            node, start, end = stack[pending]
            down_mean, down_variance, mean, variance = stack_above[pending]
            above = _Belief(down_mean, down_variance, mean, variance)
            continue
        above = own
        waiting = stack_above[pending]
        waiting[0], waiting[1] = above.down_mean, above.down_variance
        waiting[2], waiting[3] = above.mean, above.variance
        middle = split_points(tree, node, points, walk.order, start, end, walk.scratch)  # line 14
        node, start, end, pending = descend(tree, node, start, middle, end, stack, pending)
    t, first, last = where
    write_moments(walk.state, settings.mean_prior, means[t, first:last], variances[t, first:last])
    return n_components


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
