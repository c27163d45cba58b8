"""Learning which features deserve cuts, from the losses of the cuts made so far.

A cut of node v on feature k has gained what v's forecasts lost more than its children's,
``L_v - L_left - L_right``. The relevance of a feature is the gain of all its cuts, over all trees,
per data point that they divided: an average, so that it does not matter how often the feature has
been cut. Cuts of an irrelevant feature gain nothing: they cost, as children know fewer labels. New
cuts are then drawn with rates in proportion to the relevance, and never below a floor, so that a
feature that is needed later can still be found.

Caution: the theory of Mondrian forests and of AMF (regret bounds, consistency) is for partitions
that do not look at the labels. With learnt rates it holds only conditionally on the partitions that
arise; and cuts made earlier keep the rates of their time, so that learning online and in a batch
differ in distribution.
"""

from __future__ import annotations

import numpy as np

from mondrian_bo.array_types import FloatArray
from mondrian_bo.trees.tree import LEFT, N_NODES, NONE, RIGHT, Tree, preorder, view_of

RELEVANCE_START = 64
"""Relevance is estimated at this number of points and whenever the number has doubled."""

_FLOOR = 0.02


def gains_of_cuts(
    trees: Tree, loss: FloatArray, chance: FloatArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """Return the total gain of the cuts of each feature, and the points they divided, both (d,).

    Parameters
    ----------
    trees : Tree
        The arrays of a forest.
    loss : float64 array of shape (T, capacity)
        Loss of each node's forecasts.
    chance : float64 array of shape (T, capacity) or None, default=None
        What a cut of each node would gain on average if the feature told nothing; None is nothing,
        as for losses of forecasts made before the label was known.
    """
    n_dimensions = trees.box.shape[3]
    gains, divided = np.zeros(n_dimensions), np.zeros(n_dimensions)
    for t in range(len(trees.counters)):
        # In an order that does not depend on how nodes are numbered, nor do the sums then.
        nodes = np.empty(int(trees.counters[t, N_NODES]), dtype=np.int32)
        preorder(view_of(trees, t), nodes)
        children = trees.children[t]
        cut = nodes[children[nodes, LEFT] != NONE]
        left, right = children[cut, LEFT], children[cut, RIGHT]
        gain = loss[t, cut] - loss[t, left] - loss[t, right]
        if chance is not None:
            gain = gain - chance[t, cut]
        dimension = trees.dimension[t, cut]
        gains += np.bincount(dimension, gain, minlength=n_dimensions)
        divided += np.bincount(dimension, trees.size[t, cut], minlength=n_dimensions)
    return gains, divided


def learnt_weights(trees: Tree, loss: FloatArray, chance: FloatArray | None = None) -> FloatArray:
    """Return weights of the features, shape (d,), with mean 1; O(nodes).

    They are in proportion to the root of the average gain, for gains are squares of what labels
    change by. Parameters are those of :func:`gains_of_cuts`. All weights are 1 if no cut has gained
    anything.
    """
    gains, divided = gains_of_cuts(trees, loss, chance)
    average = np.maximum(gains, 0.0) / np.maximum(divided, 1.0)
    if not average.max() > 0.0:
        return np.ones(len(average))
    weights = np.maximum(np.sqrt(average / average.max()), _FLOOR)
    return np.asarray(weights / weights.mean())
