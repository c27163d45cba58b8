"""The evidence of trees with the hierarchical Gaussian, at any lifetime and hyper-parameters."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from mondrian_bo.trees.hierarchical_gaussian import (
    LOCATION,
    LOG_DETERMINANT,
    MEAN,
    PRECISION,
    RESIDUAL,
    SQUARES,
    remaining_variance,
)
from mondrian_bo.trees.layout import LEFT, N_NODES, RIGHT, ROOT
from mondrian_bo.trees.tree import is_leaf, preorder, tree_at


@njit(cache=True, nogil=True)
def _through(precision, log_determinant, variance):  # type: ignore[no-untyped-def]
    """Return precision and log-determinant of a message after a step of a prior variance."""
    scale = 1.0 + variance * precision
    return precision / scale, log_determinant + math.log(scale)


@njit(cache=True, nogil=True)
def evidence_terms(forest, moments, hyperparameters, lifetime, terms):  # type: ignore[no-untyped-def]
    """Write the message of each tree about mu_H, as if its process had ended at a lifetime.

    Nodes that split later are leaves then. Their moments are known, so one upward sweep, O(n) per
    tree, gives the evidence without the points.

    Parameters
    ----------
    forest : Tree
        With a leading axis of length T.
    moments : float64 array of shape (T, capacity, 2)
        Mean of the targets of each node and the sum of their squared deviations from it.
    hyperparameters : Hyperparameters
        gamma_2 and the noise.
    lifetime : float
        At most that of the trees.
    terms : float64 array of shape (T, 4)
        Result, see :func:`mondrian_bo.trees.hierarchical_gaussian.log_likelihood_terms`.
    """
    gamma_2, noise = hyperparameters
    for t in range(len(forest.counters)):
        tree = tree_at(forest, t)
        nodes = np.empty(tree.counters[N_NODES], dtype=np.int32)
        preorder(tree, nodes)
        messages = np.empty((len(nodes), 4))
        remaining = np.empty(len(nodes))
        for k in range(len(nodes) - 1, -1, -1):
            node = nodes[k]
            time = min(tree.split_time[node], lifetime)
            remaining[node] = remaining_variance(gamma_2, time)
            message = messages[node]
            if is_leaf(tree, node) or tree.split_time[node] > lifetime:
                message[PRECISION] = tree.size[node] / noise
                message[LOCATION] = moments[t, node, MEAN]
                message[RESIDUAL] = moments[t, node, SQUARES] / noise
                message[LOG_DETERMINANT] = tree.size[node] * math.log(noise)
                continue
            left, right = tree.children[node, LEFT], tree.children[node, RIGHT]
            one, two = messages[left], messages[right]
            p, log_p = _through(
                one[PRECISION], one[LOG_DETERMINANT], remaining[node] - remaining[left]
            )
            q, log_q = _through(
                two[PRECISION], two[LOG_DETERMINANT], remaining[node] - remaining[right]
            )
            weight = q / (p + q)
            shift = two[LOCATION] - one[LOCATION]
            message[PRECISION] = p + q
            message[LOCATION] = one[LOCATION] + weight * shift
            message[RESIDUAL] = one[RESIDUAL] + two[RESIDUAL] + p * weight * shift * shift
            message[LOG_DETERMINANT] = log_p + log_q
        root = tree.counters[ROOT]
        top = messages[root]
        terms[t, PRECISION], terms[t, LOG_DETERMINANT] = _through(
            top[PRECISION], top[LOG_DETERMINANT], 0.5 - remaining[root]
        )
        terms[t, LOCATION], terms[t, RESIDUAL] = top[LOCATION], top[RESIDUAL]
