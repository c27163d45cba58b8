"""Prediction with a Mondrian tree (Algorithm 5 of Lakshminarayanan2016), many points at once.

The points go down the tree together and are partitioned at each split, so that a node's box and
messages are loaded once for all of them. On the way the downward message is carried along: it needs
the parent's downward message and the sibling's stored upward message, so the exact posterior of the
nodes on a path costs O(depth), with no sweep over the tree.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from mondrian_bo.trees.hierarchical_gaussian import (
    LOCATION,
    MEAN,
    PRECISION,
    SQUARES,
    gaussian_at,
    remaining_variance,
)
from mondrian_bo.trees.tree import (
    LEFT,
    N_NODES,
    NONE,
    RIGHT,
    ROOT,
    distances_outside,
    is_leaf,
    sibling,
    tree_at,
)

PAPER, REMAINING, EMPIRICAL, BRIDGE = 0, 1, 2, 3
"""What a point that branches off is predicted with, see :func:`predict_forest`."""

_QUANTILES = (1.0 / 6.0, 0.5, 5.0 / 6.0)
"""Where the law of the time of a branch-off is evaluated for ``BRIDGE``, with equal weights."""

_UNBOUNDED = tuple(-math.log1p(-level) for level in _QUANTILES)
"""The same quantiles of the standard exponential law, where a block has no end."""

_SMALLEST_CHUNK = 4096

_REACHING, _FIRST, _SECOND = 0, 1, 2
"""What is known of each point on the way: its probability of not having branched off yet, and the
first two moments of its prediction about the prior mean, so far."""

_NEGLIGIBLE = 1e-13
"""A point whose probability of not having branched off yet is below this goes no deeper."""


@njit(cache=True, nogil=True)
def condition(prior_mean, prior_variance, location, precision):  # type: ignore[no-untyped-def]
    """Return mean and variance of a Gaussian multiplied by a message of the given precision."""
    scale = 1.0 + prior_variance * precision
    return (
        (prior_mean + prior_variance * precision * location) / scale,
        prior_variance / scale,
    )


@njit(cache=True, nogil=True)
def message_down(tree, values, node, down_mean, down_variance):  # type: ignore[no-untyped-def]
    """Return the law of mu_node given all labels outside its subtree.

    `down_mean` and `down_variance` are that law at the node's parent; at the root they are mu_H, 0.
    """
    parent = tree.parent[node]
    if parent == NONE:
        return down_mean, 0.5 - values.remaining[node]
    other = sibling(tree, node)
    precision = values.messages[other, PRECISION]
    precision /= 1.0 + (values.remaining[parent] - values.remaining[other]) * precision
    mean, variance = condition(
        down_mean, down_variance, values.messages[other, LOCATION], precision
    )
    return mean, variance + values.remaining[parent] - values.remaining[node]


@njit(cache=True, nogil=True)
def share_of_step(parent_remaining, remaining, remaining_then):  # type: ignore[no-untyped-def]
    """Return the share of the prior variance of a step down that is spent at a time within it."""
    step = parent_remaining - remaining
    return (parent_remaining - remaining_then) / step if step > 0.0 else 0.0


@njit(cache=True, nogil=True)
def _predict_tree(  # type: ignore[no-untyped-def]
    tree,
    values,
    points,
    weights,
    mean_prior,
    gamma_1,
    gamma_2,
    noise,
    floor,
    rule,
    means,
    variances,
    sink,
):
    """Predict the moments of one tree at `points`, shape (m, d), into `means` and `variances`.

    Each component of the mixture (3) is also handed to `sink`, a float64 array of shape (rows, 4),
    as point, weight, mean, variance, as far as there is room. Returns the number of components.
    """
    n_points = points.shape[0]
    order = np.empty(n_points, dtype=np.int32)
    right_ones = np.empty(n_points, dtype=np.int32)
    distances = np.empty(n_points)
    # Side by side, for points are met in no order of theirs.
    state = np.empty((n_points, 3))
    for i in range(n_points):
        order[i] = i
        state[i, _REACHING], state[i, _FIRST], state[i, _SECOND] = 1.0, 0.0, 0.0
    n_components = 0
    # The larger part of a split waits on the stack: log2(m) frames suffice.
    stack_node = np.empty(64, dtype=np.int64)
    stack_range = np.empty((64, 2), dtype=np.int64)
    # Downward message and prediction of a branch-off, both at the node's parent. For BRIDGE the
    # latter is the parent's posterior in units of gamma_1.
    stack_state = np.empty((64, 4))
    pending = 0
    n_parts = len(_QUANTILES) if rule == BRIDGE else 1
    root = tree.counters[ROOT]
    if rule == EMPIRICAL:
        branch_mean = values.moments[root, MEAN]
        branch_variance = values.moments[root, SQUARES] / tree.size[root]
    else:
        branch_mean = mean_prior
        # A point that branches off above the root has no parent but the prior, whatever the rule.
        branch_variance = 0.0 if rule == BRIDGE else gamma_1 * (0.5 - floor + noise)
    down_mean, down_variance = mean_prior, 0.0
    node, start, end = root, 0, n_points
    while True:
        parent = tree.parent[node]
        parent_time, parent_remaining = 0.0, 0.5
        if parent != NONE:
            parent_time, parent_remaining = tree.split_time[parent], values.remaining[parent]
        span = tree.split_time[node] - parent_time
        step = parent_remaining - values.remaining[node]
        leaf = is_leaf(tree, node)
        dimension = 0 if leaf else tree.dimension[node]
        threshold = np.inf if leaf else tree.threshold[node]
        middle, n_right = start, 0
        distances_outside(tree, node, weights, points, order, start, end, distances)
        # Mean and variance of the prediction at this node, and of a branch-off right below it.
        if rule == EMPIRICAL:
            own_mean = values.moments[node, MEAN]
            own_variance = values.moments[node, SQUARES] / tree.size[node]
            posterior = 0.0
            below_variance = own_variance
        else:
            down_mean, down_variance = message_down(tree, values, node, down_mean, down_variance)
            own_mean, posterior = condition(
                down_mean,
                down_variance,
                values.messages[node, LOCATION],
                values.messages[node, PRECISION],
            )
            own_variance = gamma_1 * (posterior + noise)
            below_variance = own_variance
            if rule == REMAINING:
                below_variance += gamma_1 * (values.remaining[node] - floor)
            elif rule == BRIDGE:
                below_variance = posterior
        finite = span < np.inf
        # Of a bridge: how the means of the parent and of this node vary together, with a weight.
        together, per_step = 0.0, 0.0
        if rule == BRIDGE:
            precision = values.messages[node, PRECISION]
            together = 2.0 * branch_variance / (1.0 + step * precision) + step
            per_step = 1.0 / step if step > 0.0 else 0.0
        for i in range(start, end):
            point = order[i]
            distance = distances[i]
            if distance > 0.0:
                own = state[point]
                chance = -math.expm1(-span * distance) if finite else 1.0
                separated = own[_REACHING] * chance
                weight = separated / n_parts
                part_mean, part_variance = branch_mean, branch_variance
                mean_time = 1.0 / distance
                for k in range(n_parts):
                    if rule == BRIDGE:
                        # What the logarithm of a number near 1 lacks of precision is as little as
                        # the chance that makes it so near.
                        elapsed = (
                            -math.log(1.0 - _QUANTILES[k] * chance) if finite else _UNBOUNDED[k]
                        )
                        time = parent_time + min(elapsed * mean_time, span)
                        then = remaining_variance(gamma_2, time)
                        share = (parent_remaining - then) * per_step
                        rest = 1.0 - share
                        part_mean = branch_mean + share * (own_mean - branch_mean)
                        part_variance = (
                            rest * (rest * branch_variance + share * together)
                            + share * share * posterior
                        )
                        part_variance = gamma_1 * (part_variance + then - floor + noise)
                    offset = part_mean - mean_prior
                    own[_FIRST] += weight * offset
                    own[_SECOND] += weight * (part_variance + offset * offset)
                    if n_components < len(sink):
                        row = sink[n_components]
                        row[0], row[1] = point, weight
                        row[2], row[3] = part_mean, part_variance
                    n_components += 1
                own[_REACHING] -= separated
                if own[_REACHING] < _NEGLIGIBLE:
                    continue
            # Written to both, without a branch, which would be mispredicted half of the time.
            order[middle] = point
            right_ones[n_right] = point
            is_left = points[point, dimension] <= threshold
            middle += is_left
            n_right += not is_left
        for i in range(n_right):
            order[middle + i] = right_ones[i]
        end = middle + n_right
        if leaf:
            offset = own_mean - mean_prior
            second = own_variance + offset * offset
            for i in range(start, end):
                point = order[i]
                own = state[point]
                own[_FIRST] += own[_REACHING] * offset
                own[_SECOND] += own[_REACHING] * second
                if n_components < len(sink):
                    row = sink[n_components]
                    row[0], row[1] = point, own[_REACHING]
                    row[2], row[3] = own_mean, own_variance
                n_components += 1
        if leaf or start == end:
            if pending == 0:
                break
            pending -= 1
            node = stack_node[pending]
            start, end = stack_range[pending]
            down_mean, down_variance, branch_mean, branch_variance = stack_state[pending]
            continue
        branch_mean, branch_variance = own_mean, below_variance
        left, right = tree.children[node, LEFT], tree.children[node, RIGHT]
        if start < middle < end:
            left_smaller = middle - start <= end - middle
            stack_node[pending] = right if left_smaller else left
            stack_range[pending, 0] = middle if left_smaller else start
            stack_range[pending, 1] = end if left_smaller else middle
            stack_state[pending, 0], stack_state[pending, 1] = down_mean, down_variance
            stack_state[pending, 2], stack_state[pending, 3] = branch_mean, branch_variance
            pending += 1
            node = left if left_smaller else right
            if left_smaller:
                end = middle
            else:
                start = middle
        else:
            node = left if middle == end else right
    for i in range(n_points):
        mean = state[i, _FIRST]
        variances[i] = max(state[i, _SECOND] - mean * mean, 0.0)
        means[i] = mean + mean_prior
    return n_components


@njit(cache=True, nogil=True)
def predict_forest(  # type: ignore[no-untyped-def]
    forest,
    values,
    points,
    weights,
    mean_prior,
    gamma_1,
    gamma_2,
    noise,
    floor,
    rule,
    means,
    variances,
):
    """Write mean and variance of each tree's predictive mixture (equation 4), shape (T, m).

    Parameters
    ----------
    forest, values : Tree, Gaussian
        With a leading axis of length T; not empty.
    points : float64 array of shape (1 or T, m, d)
        Where to predict; one row per tree where trees see the points differently.
    weights : float64 array of shape (d,)
        Rate weights of the dimensions.
    mean_prior, gamma_1, gamma_2, noise : float
        mu_H, gamma_1, gamma_2 and the noise variance in units of gamma_1.
    floor : float
        Prior variance still to come at the lifetime, in units of gamma_1; 0 if it is infinite.
    rule : int
        ``PAPER``: a point that branches off has the posterior of the parent of its new node.
        ``REMAINING``: and the prior variance still to come, without which predictions far from the
        data would be surer than the prior. ``BRIDGE``: it has the posterior of its new node itself,
        between that parent and the node below, and the prior variance still to come.
        ``EMPIRICAL``: nodes are predicted with the mean and variance of their labels (section 5.3).
    means, variances : float64 arrays of shape (T, m)
        Results.
    """
    nothing = np.empty((0, 4))
    n_points = points.shape[1]
    for t in range(len(forest.counters)):
        tree = tree_at(forest, t)
        # Of few points at a time the intermediate results stay in the processor's cache; of too few
        # the nodes would be loaded more often than need be.
        size = max(_SMALLEST_CHUNK, 2 * tree.counters[N_NODES])
        for start in range(0, n_points, size):
            end = min(start + size, n_points)
            _predict_tree(
                tree,
                gaussian_at(values, t),
                points[t if len(points) > 1 else 0, start:end],
                weights,
                mean_prior,
                gamma_1,
                gamma_2,
                noise,
                floor,
                rule,
                means[t, start:end],
                variances[t, start:end],
                nothing,
            )


@njit(cache=True, nogil=True)
def tree_components(  # type: ignore[no-untyped-def]
    forest, values, index, points, weights, mean_prior, gamma_1, gamma_2, noise, floor, rule, sink
):
    """Write the components of one tree's mixture (equation 3) into `sink`; return their number.

    Rows of `sink`, a float64 array of shape (rows, 4), are point, weight, mean, variance, in no
    particular order; what has no room is counted and left out. The rest as in `predict_forest`.
    """
    own = points[index if len(points) > 1 else 0]
    means, variances = np.empty(own.shape[0]), np.empty(own.shape[0])
    return _predict_tree(
        tree_at(forest, index),
        gaussian_at(values, index),
        own,
        weights,
        mean_prior,
        gamma_1,
        gamma_2,
        noise,
        floor,
        rule,
        means,
        variances,
        sink,
    )
