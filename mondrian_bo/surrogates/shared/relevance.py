"""Feature relevance: split rates in proportion to the loss that earlier splits have reduced.

A split of a node on a feature reduces the loss of the node's forecasts by the gain
``loss(node) - loss(left child) - loss(right child)``. The relevance of a feature is the sum of the
gains of its splits over all trees, divided by the number of points that these splits divided. It is
an average, so it does not depend on how often the feature was split. Splits on an irrelevant
feature have negative gain, because each child knows fewer targets. The rates of new splits follow
the relevance and have a floor, so that a feature that becomes relevant later is still found.

Caution: the theory of Mondrian forests and of AMF (regret bounds, consistency) assumes partitions
that are independent of the targets. With learnt rates it holds only conditionally on the partition.
Earlier splits keep the rates they were drawn with, so online and batch learning have different
distributions.
"""

from __future__ import annotations

import numpy as np

from mondrian_bo.shared.array_types import FloatArray
from mondrian_bo.trees.layout import LEFT, N_NODES, NONE, RIGHT
from mondrian_bo.trees.tree import Tree, preorder, view_of

RELEVANCE_START = 64
"""Number of points at the first estimate of the relevance, our choice; later ones at doublings."""

_FLOOR = 0.02
"""Smallest rate relative to the largest, our choice: an irrelevant feature has some splits."""


def gains_of_splits(
    arrays: Tree, loss: FloatArray, expected_gain: FloatArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """Return the total gain of the splits on each feature and the points they divided, both (d,).

    Parameters
    ----------
    arrays : Tree
        The arrays of a forest.
    loss : float64 array of shape (T, capacity)
        Loss of the forecasts of each node.
    expected_gain : float64 array of shape (T, capacity) or None, default=None
        Expected gain of a split of each node on an irrelevant feature, which is subtracted. None
        is 0, which is right for losses of forecasts made before their target was known.

    Returns
    -------
    gains, n_divided : float64 arrays of shape (d,)
        Sums over all splits of all trees.
    """
    n_dimensions = arrays.box.shape[3]
    gains, divided = np.zeros(n_dimensions), np.zeros(n_dimensions)
    for t in range(len(arrays.counters)):
        # Preorder makes the order of summation independent of the numbers of the nodes.
        nodes = np.empty(int(arrays.counters[t, N_NODES]), dtype=np.int32)
        preorder(view_of(arrays, t), nodes)
        children = arrays.children[t]
        inner = nodes[children[nodes, LEFT] != NONE]
        left, right = children[inner, LEFT], children[inner, RIGHT]
        gain = loss[t, inner] - loss[t, left] - loss[t, right]
        if expected_gain is not None:
            gain = gain - expected_gain[t, inner]
        dimension = arrays.dimension[t, inner]
        gains += np.bincount(dimension, gain, minlength=n_dimensions)
        divided += np.bincount(dimension, arrays.size[t, inner], minlength=n_dimensions)
    return gains, divided


def learnt_rates(
    arrays: Tree, loss: FloatArray, expected_gain: FloatArray | None = None
) -> FloatArray:
    """Return factors of the features' split rates with mean 1, shape (d,); O(nodes).

    They are proportional to the square root of the relevance, because a gain is a square of a
    difference of targets. All are 1 if no feature has positive relevance. Parameters are those of
    :func:`gains_of_splits`.
    """
    gains, divided = gains_of_splits(arrays, loss, expected_gain)
    relevance = np.maximum(gains, 0.0) / np.maximum(divided, 1.0)
    if not relevance.max() > 0.0:
        return np.ones(len(relevance))
    rates = np.maximum(np.sqrt(relevance / relevance.max()), _FLOOR)
    return np.asarray(rates / rates.mean())
