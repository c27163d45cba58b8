"""Prediction with a Mondrian tree (Algorithm 5 of paper 004), many points at once.

The points go down the tree together and are partitioned at each split, so that a node's box and
messages are loaded once for all of them. On the way the downward message is carried along: it needs
the parent's downward message and the sibling's stored upward message, so the exact posterior of the
nodes on a path costs O(depth), with no sweep over the tree.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from mondrian_bo.trees.gaussian import (
    LOCATION,
    MEAN,
    PRECISION,
    SQUARES,
    gaussian_at,
)
from mondrian_bo.trees.random import hashed_normal, hashed_uniform
from mondrian_bo.trees.tree import (
    LEFT,
    LOWER,
    N_NODES,
    NONE,
    RIGHT,
    ROOT,
    UPPER,
    child_towards,
    extent_outside,
    is_leaf,
    sibling,
    tree_at,
)

PAPER, REMAINING, EMPIRICAL = 0, 1, 2
"""What a point that branches off is predicted with, see :func:`predict_forest`."""

_SMALLEST_CHUNK = 4096

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
def _message_down(tree, values, node, down_mean, down_variance):  # type: ignore[no-untyped-def]
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
def _predict_tree(  # type: ignore[no-untyped-def]
    tree, values, points, weights, mean_prior, gamma_1, noise, floor, rule, means, variances, sink
):
    """Predict the moments of one tree at `points`, shape (m, d), into `means` and `variances`.

    Each component of the mixture (3) is also handed to `sink`, a float64 array of shape (rows, 4),
    as point, weight, mean, variance, as far as there is room. Returns the number of components.
    """
    n_points = points.shape[0]
    order = np.arange(n_points)
    unseparated = np.ones(n_points)
    means[:] = 0.0
    variances[:] = 0.0
    n_components = 0
    # The larger part of a split waits on the stack: log2(m) frames suffice.
    stack_node = np.empty(64, dtype=np.int64)
    stack_range = np.empty((64, 2), dtype=np.int64)
    # Downward message and prediction of a branch-off, both at the node's parent.
    stack_state = np.empty((64, 4))
    pending = 0
    root = tree.counters[ROOT]
    if rule == EMPIRICAL:
        branch_mean = values.moments[root, MEAN]
        branch_variance = values.moments[root, SQUARES] / tree.size[root]
    else:
        branch_mean = mean_prior
        # A point that branches off above the root has no parent but the prior, whatever the rule.
        branch_variance = gamma_1 * (0.5 - floor + noise)
    down_mean, down_variance = mean_prior, 0.0
    node, start, end = root, 0, n_points
    while True:
        parent = tree.parent[node]
        span = tree.split_time[node] - (tree.split_time[parent] if parent != NONE else 0.0)
        lower, upper = tree.box[node, LOWER], tree.box[node, UPPER]
        kept = start
        leaf = is_leaf(tree, node)
        # Mean and variance of the prediction at this node, and of a branch-off right below it.
        if rule == EMPIRICAL:
            own_mean = values.moments[node, MEAN]
            own_variance = values.moments[node, SQUARES] / tree.size[node]
            below_variance = own_variance
        else:
            down_mean, down_variance = _message_down(tree, values, node, down_mean, down_variance)
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
        offset = branch_mean - mean_prior
        second = branch_variance + offset * offset
        for i in range(start, end):
            point = order[i]
            distance = extent_outside(lower, upper, weights, points, point)
            if distance > 0.0:
                separated = unseparated[point]
                if span < np.inf:
                    separated *= -math.expm1(-span * distance)
                means[point] += separated * offset
                variances[point] += separated * second
                unseparated[point] -= separated
                if n_components < len(sink):
                    row = sink[n_components]
                    row[0], row[1] = point, separated
                    row[2], row[3] = branch_mean, branch_variance
                n_components += 1
                if unseparated[point] < _NEGLIGIBLE:
                    continue
            order[i], order[kept] = order[kept], point
            kept += 1
        end = kept
        if leaf:
            offset = own_mean - mean_prior
            second = own_variance + offset * offset
            for i in range(start, end):
                point = order[i]
                means[point] += unseparated[point] * offset
                variances[point] += unseparated[point] * second
                if n_components < len(sink):
                    row = sink[n_components]
                    row[0], row[1] = point, unseparated[point]
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
        dimension, threshold = tree.dimension[node], tree.threshold[node]
        middle = start
        for i in range(start, end):
            point = order[i]
            # Without a branch, which would be mispredicted half of the time.
            order[i], order[middle] = order[middle], point
            middle += points[point, dimension] <= threshold
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
        variances[i] = max(variances[i] - means[i] * means[i], 0.0)
        means[i] += mean_prior
    return n_components


@njit(cache=True, nogil=True)
def predict_forest(  # type: ignore[no-untyped-def]
    forest, values, points, weights, mean_prior, gamma_1, noise, floor, rule, means, variances
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
    mean_prior, gamma_1, noise : float
        mu_H, gamma_1 and the noise variance in units of gamma_1.
    floor : float
        Prior variance still to come at the lifetime, in units of gamma_1; 0 if it is infinite.
    rule : int
        ``PAPER``: a point that branches off has the posterior of the parent of its new node.
        ``REMAINING``: and the prior variance still to come, without which predictions far from the
        data would be surer than the prior. ``EMPIRICAL``: nodes are predicted with the mean and
        variance of their labels (section 5.3).
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
                noise,
                floor,
                rule,
                means[t, start:end],
                variances[t, start:end],
                nothing,
            )


@njit(cache=True, nogil=True)
def tree_components(  # type: ignore[no-untyped-def]
    forest, values, index, points, weights, mean_prior, gamma_1, noise, floor, rule, sink
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
        noise,
        floor,
        rule,
        means,
        variances,
        sink,
    )


@njit(cache=True, nogil=True)
def sample_function(  # type: ignore[no-untyped-def]
    forest, values, index, key, points, weights, mean_prior, gamma_1, floor, rule, result
):
    """Write the values at `points` of one random function drawn from one tree's posterior.

    The values of the nodes are drawn jointly, from the root down, with numbers that are fixed
    functions of `key` and the node: a call costs O(depth) per point and further calls with the same
    key continue the same function. Points that branch off before the same node share one draw, and
    one uniform number decides for all points how far from the data is far enough to branch off, so
    the function is piecewise constant rather than noise. Labels add noise of their own.

    Parameters
    ----------
    index : int
        The tree.
    key : uint64
        Names the draw.
    result : float64 array of shape (m,)
        Values. The other parameters are those of :func:`predict_forest`.
    """
    tree, own_values = tree_at(forest, index), gaussian_at(values, index)
    own = points[index if len(points) > 1 else 0]
    threshold = hashed_uniform(key, 0)
    for i in range(own.shape[0]):
        x = own[i]
        node = tree.counters[ROOT]
        unseparated = 1.0
        parent_time, parent_remaining = 0.0, 0.5
        mean, variance = mean_prior, 0.0
        if rule == EMPIRICAL:
            mean = own_values.moments[node, MEAN]
            variance = own_values.moments[node, SQUARES] / tree.size[node]
        while True:
            box = tree.box[node]
            distance = extent_outside(box[LOWER], box[UPPER], weights, own, i)
            if distance > 0.0:
                unseparated *= math.exp(-(tree.split_time[node] - parent_time) * distance)
                if unseparated < threshold:
                    if rule == REMAINING or (rule == PAPER and parent_time == 0.0):
                        variance = gamma_1 * (parent_remaining - floor)
                    result[i] = mean + math.sqrt(variance) * hashed_normal(key, 2 * node + 1)
                    break
            if rule == EMPIRICAL:
                mean = own_values.moments[node, MEAN]
                variance = own_values.moments[node, SQUARES] / tree.size[node]
            else:
                mean, variance = condition(
                    mean,
                    parent_remaining - own_values.remaining[node],
                    own_values.messages[node, LOCATION],
                    own_values.messages[node, PRECISION],
                )
                mean += math.sqrt(gamma_1 * variance) * hashed_normal(key, 2 * node + 2)
                variance = 0.0
            if is_leaf(tree, node):
                if rule == EMPIRICAL:
                    mean += math.sqrt(variance) * hashed_normal(key, 2 * node + 2)
                result[i] = mean
                break
            parent_time, parent_remaining = tree.split_time[node], own_values.remaining[node]
            node = child_towards(tree, node, x)
