"""Each label given all others, in every tree: cavity moments of the hierarchical Gaussian."""

from __future__ import annotations

import numpy as np
from numba import njit

from mondrian_bo.trees.gaussian import MEAN, gaussian_at
from mondrian_bo.trees.predict import condition, message_down
from mondrian_bo.trees.tree import N_NODES, NONE, is_leaf, preorder, tree_at


@njit(cache=True, nogil=True)
def leave_one_out(forest, values, targets, mean_prior, noise, means, variances):  # type: ignore[no-untyped-def]
    """Write the moments of each label's law given all other labels: one downward sweep, O(T n).

    The trees keep the nodes that the point has made, which by closure under marginalisation changes
    nothing.

    Parameters
    ----------
    forest, values : Tree, Gaussian
        With a leading axis of length T; not empty.
    targets : float64 array of shape (n,)
        Labels.
    mean_prior, noise : float
        mu_H and the noise in units of gamma_1.
    means, variances : float64 arrays of shape (T, n)
        Results, variances in units of gamma_1, noise included.
    """
    for t in range(len(forest.counters)):
        tree, own = tree_at(forest, t), gaussian_at(values, t)
        nodes = np.empty(tree.counters[N_NODES], dtype=np.int32)
        preorder(tree, nodes)
        down = np.empty((len(nodes), 2))
        for node in nodes:
            parent = tree.parent[node]
            mean, variance = mean_prior, 0.0
            if parent != NONE:
                mean, variance = down[parent, 0], down[parent, 1]
            mean, variance = message_down(tree, own, node, mean, variance)
            down[node, 0], down[node, 1] = mean, variance
            if not is_leaf(tree, node):
                continue
            others = tree.size[node] - 1
            centre = own.moments[node, MEAN]
            point = tree.first_point[node]
            while point != NONE:
                # The mean of the leaf's other labels; of no weight where there are none.
                rest = centre + (centre - targets[point]) / max(others, 1)
                means[t, point], variances[t, point] = condition(
                    mean, variance, rest, others / noise
                )
                variances[t, point] += noise
                point = tree.next_point[point]
