"""Aggregation with exponential weights over all prunings of a Mondrian tree (Mourtada2021, AMF).

Every node v forecasts the labels of its block and pays for it: L_v is its cumulative loss, each
label being forecast from the earlier ones alone. With w_v = exp(-step L_v), the average of the
weights of all prunings below v under the prior of equation 7 is (Algorithm 2, line 15)

    average_v = w_v                                        at leaves,
    average_v = w_v / 2 + average_left average_right / 2   elsewhere.

Both are kept as logarithms, and L_v itself rather than w_v, so that the step may change. Losses and
forecasts of a node depend on the sequence of labels in its block alone. So a node inserted above
another starts as its copy (Algorithm 5, line 12), and averages may be brought up to date along one
path per point or, after many points, by one sweep, with the same result to the last bit.

Forecasts are means for real labels (equation 4; squared loss) and, for classes, Dirichlet-smoothed
frequencies (equation 5; logarithmic loss). An empty node forecasts every class alike; for real
labels it repeats its parent, where the paper forecasts 0: then the result does not depend on where
the labels are centred, and Lemma 1 holds for any forecast made before the label is known.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from mondrian_bo.array_types import AnyArray, FloatArray, IntArray
from mondrian_bo.trees.aggregation_nodes import (
    LABEL,
    LOG_2,
    MASS,
    REAL,
    Aggregation,
    aggregation_at,
    class_forecast,
    clear_node,
    climb,
    copy_node,
    empty_aggregation,
    mass_of_classes,
    observe_path,
    refresh_averages,
    relearn_forest,
    set_average,
    stop_share,
)
from mondrian_bo.trees.cells import (
    has_room,
    join_cell,
    must_split,
    split_cell,
    start_cells,
)
from mondrian_bo.trees.compiling import COUNTING, INNER, INNER_COUNTING
from mondrian_bo.trees.growth import extend_forest, extend_tree
from mondrian_bo.trees.tree import (
    FIRST_POINT,
    LEFT,
    N_NODES,
    NONE,
    RIGHT,
    ROOT,
    Tree,
    child_towards,
    is_leaf,
    leaf_holding,
    tree_at,
)

__all__ = [
    "BEST",
    "FORECAST",
    "LABEL",
    "LOG_2",
    "MASS",
    "REAL",
    "Aggregation",
    "aggregation_at",
    "empty_aggregation",
    "extend_aggregation",
    "mass_of_classes",
    "refresh_averages",
    "relearn_forest",
    "stop_share",
]

FORECAST, BEST = 0, 1
"""Columns of a trace: forecast (of the label, or its probability) and loss of the best pruning."""


@njit(**INNER)
def _forecast(tree, values, x, label, n_classes, dirichlet, step):  # type: ignore[no-untyped-def]
    """Return the aggregated forecast at x, which the tree's partition has been updated with."""
    node = tree.counters[ROOT]
    total, unstopped, inherited = 0.0, 1.0, 0.0
    while True:
        if n_classes != REAL:
            statistics = values.statistics[node]
            inherited = class_forecast(
                statistics[LABEL + int(label)], mass_of_classes(statistics), n_classes, dirichlet
            )
        elif values.statistics[node, MASS] > 0.0:
            inherited = values.statistics[node, LABEL]
        stop = stop_share(tree, values, node, step)
        total += unstopped * stop * inherited
        unstopped *= 1.0 - stop
        if is_leaf(tree, node):
            return total
        node = child_towards(tree, node, x)


@njit(**INNER_COUNTING)
def _sort(numbers, bound):  # type: ignore[no-untyped-def]
    """Sort numbers from [0, bound) in place, bit by bit: `numpy.sort` takes a second to compile."""
    ones = np.empty_like(numbers)
    bit = 1
    while bit < bound:
        n_zeros, n_ones = 0, 0
        for number in numbers:
            if number & bit:
                ones[n_ones] = number
                n_ones += 1
            else:
                numbers[n_zeros] = number
                n_zeros += 1
        for i in range(n_ones):
            numbers[n_zeros + i] = ones[i]
        bit *= 2


@njit(**INNER)
def _list_members(tree, node, stack, found):  # type: ignore[no-untyped-def]
    """Write the points below a node into `found`; `stack` has room for one more than those."""
    n_found = 0
    stack[0], pending = node, 1
    while pending > 0:
        pending -= 1
        node = stack[pending]
        if is_leaf(tree, node):
            member = tree.children[node, FIRST_POINT]
            while member != NONE:
                found[n_found] = member
                n_found += 1
                member = tree.next_point[member]
        else:
            stack[pending] = tree.children[node, LEFT]
            stack[pending + 1] = tree.children[node, RIGHT]
            pending += 2


@njit(**INNER_COUNTING)
def _replay(tree, values, best, node, first_new, points, targets, importance, new, setting):  # type: ignore[no-untyped-def]
    """Let nodes that have come to be below `node` forecast the labels that came before `new`."""
    n_classes, dirichlet, step = setting
    members = np.empty(tree.size[node], dtype=np.int64)
    _list_members(tree, node, np.empty(len(members) + 1, dtype=np.int64), members)
    _sort(members, new + 1)
    for member in members:
        if member < new:
            x = points[member]
            start = np.int64(child_towards(tree, node, x))
            weight = importance[member] if len(importance) > 0 else 1.0
            observe_path(tree, values, start, x, targets[member], weight, n_classes, dirichlet)
    for below in range(tree.counters[N_NODES] - 1, first_new - 1, -1):
        set_average(tree, values, best, below, step)


@njit(**INNER)
def _insert(  # type: ignore[no-untyped-def]
    tree, values, best, points, targets, importance, classes, point, rates, setting
):
    """Update a restricted partition with a point; let the new nodes know what they missed."""
    first_new = tree.counters[N_NODES]
    node = np.int64(extend_tree(tree, points, point, rates, 1, classes, np.inf))
    for new in range(first_new, tree.counters[N_NODES]):
        clear_node(values, new)
    if is_leaf(tree, node):
        return
    if node >= first_new:
        # A copy of the node below it, until it sees the new label (Algorithm 5, line 12).
        side = LEFT if tree.children[node, RIGHT] == node + 1 else RIGHT
        copy_node(values, np.int64(tree.children[node, side]), node)
    else:
        _replay(tree, values, best, node, first_new, points, targets, importance, point, setting)


@njit(**INNER)
def _insert_into_cells(  # type: ignore[no-untyped-def]
    tree, values, best, points, targets, importance, classes, point, rates, box, learn, setting
):
    """Do as `_insert` in an unrestricted partition; new nodes stay ignorant if not to `learn`.

    Returns False, with a sound tree in which the point is missing, if there is no room.
    """
    x = points[point]
    if tree.counters[N_NODES] == 0:
        if not has_room(tree):
            return False
        start_cells(tree, box)
        clear_node(values, np.int64(tree.counters[ROOT]))
    leaf = leaf_holding(tree, x)
    while must_split(tree, leaf, points, point, rates, classes):
        if not has_room(tree):
            return False
        split_cell(tree, leaf, points, rates, classes)
        if learn:
            left, right = np.int64(tree.children[leaf, LEFT]), np.int64(tree.children[leaf, RIGHT])
            clear_node(values, left)
            clear_node(values, right)
            if tree.size[left] == 0 or tree.size[right] == 0:
                copy_node(values, leaf, left if tree.size[right] == 0 else right)
                set_average(tree, values, best, left, setting[2])
                set_average(tree, values, best, right, setting[2])
            else:
                _replay(tree, values, best, leaf, left, points, targets, importance, point, setting)
        leaf = np.int64(child_towards(tree, leaf, x))
    join_cell(tree, leaf, point, classes)
    node = tree.parent[leaf]
    while node != NONE:
        tree.size[node] += 1
        node = tree.parent[node]
    return True


@njit(**INNER)
def _learn(tree, values, best, trace, point, x, label, weight, setting):  # type: ignore[no-untyped-def]
    """Show the nodes that hold x its label, and record what they forecast if there is a trace."""
    n_classes, dirichlet, step = setting
    root = tree.counters[ROOT]
    if len(trace) > 0:
        climb(tree, values, best, leaf_holding(tree, x), step)
        trace[point, FORECAST] = _forecast(tree, values, x, label, n_classes, dirichlet, step)
    leaf = observe_path(tree, values, root, x, label, weight, n_classes, dirichlet)
    climb(tree, values, best, leaf, step)
    if len(trace) > 0:
        trace[point, BEST] = best[root]


@njit(**COUNTING)
def _extend_restricted(  # type: ignore[no-untyped-def]
    arrays, points, targets, importance, classes, progress, end, rates, setting, best, trace
):
    """Learn stored points, with partitions restricted to the data."""
    forest, values = Tree(*arrays[0]), Aggregation(*arrays[1])
    for t in range(len(forest.counters)):
        tree, own = tree_at(forest, t), aggregation_at(values, t)
        own_points = points[t if len(points) > 1 else 0]
        for point in range(progress[t], end):
            x, label = own_points[point], targets[point]
            weight = importance[point] if len(importance) > 0 else 1.0
            _insert(
                tree, own, best[t], own_points, targets, importance, classes, point, rates, setting
            )
            _learn(tree, own, best[t], trace[t], point, x, label, weight, setting)
            progress[t] = point + 1


@njit(**COUNTING)
def _extend_cells(  # type: ignore[no-untyped-def]
    arrays, points, targets, importance, classes, progress, end, rates, box, setting, learn, best,
    trace,
):  # fmt: skip
    """Learn stored points, or just insert them, with unrestricted partitions; False: no room."""
    forest, values = Tree(*arrays[0]), Aggregation(*arrays[1])
    for t in range(len(forest.counters)):
        tree, own = tree_at(forest, t), aggregation_at(values, t)
        own_points = points[t if len(points) > 1 else 0]
        for point in range(progress[t], end):
            x, label = own_points[point], targets[point]
            weight = importance[point] if len(importance) > 0 else 1.0
            if not _insert_into_cells(
                tree, own, best[t], own_points, targets, importance, classes, point, rates, box,
                learn, setting,
            ):  # fmt: skip
                return False
            if learn:
                _learn(tree, own, best[t], trace[t], point, x, label, weight, setting)
            progress[t] = point + 1
    return True


def extend_aggregation(
    forest: Tree,
    values: Aggregation,
    points: AnyArray,
    targets: AnyArray,
    importance: FloatArray,
    classes: NDArray[np.int32],
    progress: IntArray,
    end: int,
    rates: FloatArray,
    box: FloatArray,
    n_classes: int,
    dirichlet: float,
    step: float,
    learn: bool,
    best: FloatArray,
    trace: FloatArray,
) -> bool:
    """Learn stored points one after the other (Algorithms 2, 4 and 5).

    Parameters
    ----------
    forest, values : Tree, Aggregation
        With a leading axis of length T. Restricted partitions have room for ``2 * end`` nodes.
    points : array of shape (1 or T, n, d)
        Stored points, of the type of ``forest.box``.
    targets : array of shape (n,)
        Labels: float64, or int32 numbers of classes.
    importance : float64 array of shape (n,)
        Weights of the samples; empty if all are 1.
    classes : int32 array of shape (n,)
        `targets` if blocks of one class are not to be split, else empty.
    progress : int64 array of shape (T,)
        The next point for each tree; advanced.
    end : int
        The point to stop before.
    rates : float64 array of shape (d,)
        Rate weights of the dimensions.
    box : float64 array of shape (2, d)
        The box of an unrestricted partition; of length 0 for partitions restricted to the data.
    n_classes, dirichlet, step : int, float, float
        Number of classes or `REAL`, smoothing of their frequencies, learning rate.
    learn : bool
        Whether to learn the labels; if not, `relearn_forest` must follow.
    best : float64 array of shape (T, capacity)
        Losses of the best prunings below each node; of shape (T, 0) if no trace is wanted.
    trace : float64 array of shape (T, n, 2)
        See `FORECAST` and `BEST`; of shape (T, 0, 2) if not wanted.

    Returns
    -------
    bool
        False if an unrestricted tree lacks room: call again when there is more.
    """
    # Three kernels, of which most programs need one or two: to compile takes seconds.
    if len(box) == 0 and not learn:
        extend_forest(forest, points, progress, end, rates, 1, classes, np.inf)
        return True
    # Numba takes twice as long to tell the types of NamedTuples as those of tuples.
    arrays = (tuple(forest), tuple(values))
    setting = (n_classes, float(dirichlet), float(step))
    labels = (targets, importance, classes, progress, end, rates)
    if len(box) > 0:
        return bool(_extend_cells(arrays, points, *labels, box, setting, learn, best, trace))
    _extend_restricted(arrays, points, *labels, setting, best, trace)
    return True
