"""Points of full trees that are aggregated: two leaves make room for a new split.

A tree with a limit of nodes is full when it has no room for another split. If a new point is to be
split off (Mourtada2021, Algorithm 5), two sibling leaves are removed. Their parent has learnt all
targets of both, so it becomes a leaf as it is. The entries of the two leaves serve as the new split
and the leaf of the new point. So a tree follows inputs and targets that drift.

Which leaves are removed is our choice. :data:`_DRAWS` nodes are drawn, of which about one in six is
the parent of two leaves. Among these, the split with the smallest gain goes, if its gain is less
than :data:`_LARGEST_GAIN`. The gain is the logarithm of the weight of the leaves less that of their
parent. It loses weight with time: a positive gain is divided by 1 + a, where a is the number of
points since the last one in the leaves, per leaf of the tree. Of equal gains the first drawn
counts. Where no split goes, the new point extends the nodes on its path ("extend node" of
Khannouz2022).

No point is read again, so none is linked to a leaf. In a full tree, the entry of a leaf's first
point is the number of the last point in the leaf, whether this point is kept or not.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from mondrian_bo.trees.compiling import INNER
from mondrian_bo.trees.growth import draw_separation, ensure_box, put_above
from mondrian_bo.trees.layout import FIRST_POINT, LEFT, LOWER, N_NODES, NONE, RIGHT, ROOT, UPPER
from mondrian_bo.trees.random import exponential_below, uniform
from mondrian_bo.trees.tree import (
    add_box,
    child_towards,
    distance_outside,
    is_leaf,
    set_split,
    widen,
)

_DRAWS = 32
"""Nodes that are drawn to find two leaves to remove; our choice."""

_LARGEST_GAIN = 1.0
"""Splits with at least this gain stay; chosen on the streams of docs/appendix/amf.md."""


_ROUNDING = 1e-9
"""Relative error of a gain, far above that of double precision; our choice."""


@njit(**INNER)
def _last_point(tree, pair):  # type: ignore[no-untyped-def]
    """Return the number of the last point in the two leaves below a node."""
    left, right = tree.children[pair, LEFT], tree.children[pair, RIGHT]
    return max(tree.children[left, FIRST_POINT], tree.children[right, FIRST_POINT])


@njit(**INNER)
def _pair_to_remove(tree, node_stats, kept, number, step):  # type: ignore[no-untyped-def]
    """Return the parent of the two leaves to remove, neither of them `kept`, or NONE.

    `number` is that of the new point.
    """
    found, least = NONE, _LARGEST_GAIN
    n_nodes = tree.counters[N_NODES]
    for _ in range(_DRAWS):
        node = int(uniform(tree.stream) * n_nodes)
        if is_leaf(tree, node):
            continue
        left, right = tree.children[node, LEFT], tree.children[node, RIGHT]
        if left == kept or right == kept or not is_leaf(tree, left) or not is_leaf(tree, right):
            continue
        one, other = node_stats.log_averaged_weight[left], node_stats.log_averaged_weight[right]
        above = step * node_stats.loss[node]
        gain = one + other + above
        rounding = _ROUNDING * (abs(one) + abs(other) + above)
        if gain > 0.0:
            age = 1.0 + (number - _last_point(tree, node)) / (0.5 * (n_nodes + 1))
            gain, rounding = gain / age, rounding / age
        # Of gains that differ by rounding the first counts: the units of targets and of weights, of
        # which the gain is free, do not decide.
        if gain < least - rounding:
            found, least = node, gain
    return found


@njit(**INNER)
def _remove_leaves(tree, pair):  # type: ignore[no-untyped-def]
    """Make the parent of two leaves a leaf."""
    tree.children[pair, FIRST_POINT] = _last_point(tree, pair)
    tree.children[pair, LEFT] = NONE
    tree.dimension[pair] = NONE
    tree.threshold[pair] = 0.0
    tree.split_time[pair] = np.inf


@njit(**INNER)
def _split_off(tree, node, inner, leaf, x, time, rates, total):  # type: ignore[no-untyped-def]
    """Insert `inner` above `node`, and `leaf` with x below it (Algorithm 5); both are unused.

    `total` is the distance of x from the box of `node`.
    """
    row = tree.row[node]
    lower, upper = tree.box[row, LOWER], tree.box[row, UPPER]
    dimension, threshold, above = draw_separation(tree, lower, upper, x, rates, total)
    for new in (inner, leaf):
        if tree.row[new] == NONE:
            add_box(tree, new)
    hull, own = tree.box[tree.row[inner]], tree.box[tree.row[leaf]]
    for k in range(len(x)):
        hull[LOWER, k] = min(lower[k], x[k])
        hull[UPPER, k] = max(upper[k], x[k])
        own[LOWER, k] = x[k]
        own[UPPER, k] = x[k]
    set_split(tree, inner, dimension, threshold, time)
    put_above(tree, node, inner, leaf, above)
    tree.children[leaf, LEFT] = NONE
    tree.dimension[leaf] = NONE
    tree.threshold[leaf] = 0.0
    tree.split_time[leaf] = np.inf
    tree.size[leaf] = 1


@njit(**INNER)
def extend_full_tree(tree, node_stats, point, rates, sealed, step):  # type: ignore[no-untyped-def]
    """Insert a point into a full tree; O(d log n) for balanced trees.

    Parameters
    ----------
    tree, node_stats : Tree, Aggregation
        One tree, and the states of its nodes, which stay as they are.
    point : int
        The point to insert. It is not linked to its leaf.
    rates : float64 array of shape (d,)
        Split rates of the dimensions.
    sealed : int
        A leaf that is not split, or NONE.
    step : float
        Learning rate.

    Returns
    -------
    tuple of three int
        The parent of the leaves that were removed, the new inner node and the new leaf; or NONE,
        thrice, if nothing was split.
    """
    x = tree.points[point]
    node = np.int64(tree.counters[ROOT])
    number = tree.size[node]
    none = np.int64(NONE)
    parent_time = 0.0
    while True:
        leaf = is_leaf(tree, node)
        if leaf:
            ensure_box(tree, node)
        # Mourtada2021, Algorithm 5, lines 2 to 4
        rate = distance_outside(tree, node, rates, tree.points, point)
        if rate > 0.0 and node != sealed:
            waiting = exponential_below(tree.stream, rate * (tree.split_time[node] - parent_time))
            time = parent_time + waiting / rate
            if time < tree.split_time[node]:
                pair = np.int64(_pair_to_remove(tree, node_stats, node, number, step))
                if pair != NONE:
                    inner = np.int64(tree.children[pair, LEFT])
                    new = np.int64(tree.children[pair, RIGHT])
                    _remove_leaves(tree, pair)
                    _split_off(tree, node, inner, new, x, time, rates, rate)
                    tree.children[new, FIRST_POINT] = number
                    return pair, inner, new
        widen(tree.box[tree.row[node]], x)
        tree.size[node] += 1
        if leaf:
            tree.children[node, FIRST_POINT] = number
            return none, none, none
        parent_time = tree.split_time[node]
        node = np.int64(child_towards(tree, node, x))
