"""Random functions from the posterior of a Mondrian tree with the hierarchical Gaussian.

The variances of the rules for branching off are those of :mod:`mondrian_bo.trees.predict`, without
the noise.
"""

from __future__ import annotations

import math

from numba import njit

from mondrian_bo.trees.hierarchical_gaussian import (
    MEAN,
    SQUARES,
    gaussian_at,
    remaining_variance,
)
from mondrian_bo.trees.layout import ROOT
from mondrian_bo.trees.predict import (
    BRIDGE,
    EMPIRICAL,
    REMAINING,
    posterior_of,
    share_of_step,
)
from mondrian_bo.trees.random import hashed_normal, hashed_uniform
from mondrian_bo.trees.tree import child_towards, distance_outside, is_leaf, tree_at


@njit(cache=True, nogil=True)
def sample_function(forest, node_stats, index, key, points, rates, settings, result):  # type: ignore[no-untyped-def]
    """Write the values at `points` of one random function drawn from one tree's posterior.

    The means of the nodes are drawn jointly, from the root down, with numbers that are fixed
    functions of `key` and the node. A call costs O(depth) per point, and further calls with the
    same key evaluate the same function. One uniform number decides for all points whether they
    branch off, and points that branch off above the same node share one draw; so the function is
    piecewise constant. It has no noise.

    Parameters
    ----------
    forest, node_stats : Tree, Gaussian
        With a leading axis of length T; not empty.
    index : int
        The tree.
    key : uint64
        Identifies the draw.
    points, rates, settings
        See :func:`mondrian_bo.trees.predict.predict_forest`.
    result : float64 array of shape (m,)
        Values.
    """
    mean_prior, gamma_1, gamma_2, _, floor, rule = settings
    tree, own_stats = tree_at(forest, index), gaussian_at(node_stats, index)
    own = points[index if len(points) > 1 else 0]
    threshold = hashed_uniform(key, 0)
    for i in range(own.shape[0]):
        x = own[i]
        node = tree.counters[ROOT]
        unseparated = 1.0
        parent_time, parent_remaining = 0.0, 0.5
        above = mean_prior
        while True:
            # The value of this node, drawn given that of its parent.
            remaining = own_stats.remaining[node]
            if rule == EMPIRICAL:
                mean = own_stats.moments[node, MEAN]
                variance = own_stats.moments[node, SQUARES] / tree.size[node]
            else:
                mean, variance = posterior_of(own_stats, node, above, parent_remaining - remaining)
                variance *= gamma_1
            mean += math.sqrt(variance) * hashed_normal(key, 2 * node + 2)
            distance = distance_outside(tree, node, rates, own, i)
            if distance > 0.0:
                before = unseparated
                unseparated *= math.exp(-(tree.split_time[node] - parent_time) * distance)
                if unseparated < threshold:
                    variance = 0.0
                    if rule == BRIDGE:
                        # The time at which the probability of passing falls to `threshold`.
                        time = parent_time + math.log(before / threshold) / distance
                        then = remaining_variance(gamma_2, min(time, tree.split_time[node]))
                        share = share_of_step(parent_remaining, remaining, then)
                        step = parent_remaining - remaining
                        mean = above + share * (mean - above)
                        variance = gamma_1 * (share * (1.0 - share) * step + then - floor)
                    elif parent_time == 0.0:
                        mean, variance = mean_prior, gamma_1 * (0.5 - floor)
                    elif rule == REMAINING:
                        variance = gamma_1 * (remaining - floor)
                    result[i] = mean + math.sqrt(variance) * hashed_normal(key, 2 * node + 1)
                    break
            if is_leaf(tree, node):
                result[i] = mean
                break
            above = mean
            parent_time, parent_remaining = tree.split_time[node], own_stats.remaining[node]
            node = child_towards(tree, node, x)
