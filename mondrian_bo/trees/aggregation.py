"""Growth of the Mondrian trees whose prunings are aggregated (Mourtada2021, AMF).

A point is inserted into a tree, and the nodes on its path learn its target. A node that is inserted
above another starts as its copy (Algorithm 5, line 12). Where the insertion splits a block, the new
nodes learn the earlier targets of their own blocks, in the order of the points.
:mod:`mondrian_bo.trees.aggregation_nodes` has the equations of the nodes.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from mondrian_bo.shared.array_types import FloatArray, IntArray
from mondrian_bo.trees.aggregation_nodes import (
    MASS,
    MEAN,
    REAL,
    Aggregation,
    AggregationSettings,
    Samples,
    aggregation_at,
    class_forecast,
    clear_node,
    copy_node,
    learn_on_path,
    mass_of_classes,
    stop_share,
    update_averaged_weight,
    update_averaged_weights_above,
    weight_of,
)
from mondrian_bo.trees.compiling import COUNTING, GENERIC, INNER, INNER_COUNTING
from mondrian_bo.trees.growth import (
    ALWAYS_ONLINE,
    GrowthSettings,
    extend_forest,
    extend_tree,
)
from mondrian_bo.trees.layout import FIRST_POINT, LEFT, N_NODES, NONE, RIGHT, ROOT
from mondrian_bo.trees.recycling import extend_full_tree
from mondrian_bo.trees.stacking_forecasts import forecast_point
from mondrian_bo.trees.tree import Tree, child_towards, has_room, is_leaf, leaf_holding, tree_at
from mondrian_bo.trees.unrestricted_growth import join_cell, must_split, split_cell, start_cells

FORECAST, BEST = 0, 1
"""Columns of a trace: forecast (of the target, or its probability) and loss of the best pruning."""


class Progress(NamedTuple):
    """The progress of each tree, and the record of its forecasts; leading axis T.

    Attributes
    ----------
    next_point : int64 array of shape (T,)
        The next point to learn.
    best : float64 array of shape (T, capacity)
        Losses of the best prunings below each node; of shape (T, 0) if nothing is recorded.
    trace : float64 array of shape (T, n, 2)
        `FORECAST` and `BEST` of each point; of shape (T, 0, 2) if nothing is recorded.
    ahead : float64 array of shape (T, m, 5)
        NaN at first. Forecasts of the new points (:mod:`mondrian_bo.trees.stacking_forecasts`),
        each made before the point is inserted; of shape (T, 0, 5) if they are not wanted.
    """

    next_point: IntArray
    best: FloatArray
    trace: FloatArray
    ahead: FloatArray


class ExtensionSettings(NamedTuple):
    """The points that trees are extended with, and the settings of their growth.

    Attributes
    ----------
    rates : float64 array of shape (d,)
        Split rates of the dimensions.
    box : float64 array of shape (2, d)
        The box of an unrestricted partition; of length 0 for partitions restricted to the data.
    end : int
        Number of the point after the last one to learn.
    learn : bool
        Whether to learn the targets; if not, `relearn_forest` must follow.
    first : int
        Number of the point in row 0 of :attr:`Progress.ahead`.
    max_nodes : int
        Largest number of nodes of a restricted tree. Points of full trees are not linked to leaves
        (:mod:`mondrian_bo.trees.recycling`). 0 for trees that are complete: all of them take points
        as full trees do, so that points need not be kept.
    """

    rates: FloatArray
    box: FloatArray
    end: int
    learn: bool
    first: int
    max_nodes: int


@njit(**INNER)
def _forecast(tree, node_stats, x, target, settings):  # type: ignore[no-untyped-def]
    """Return the tree's forecast at x, which its partition holds already."""
    node = tree.counters[ROOT]
    total, unstopped, inherited = 0.0, 1.0, 0.0
    while True:
        if settings.n_classes != REAL:
            statistics = node_stats.statistics[node]
            inherited = class_forecast(
                statistics[int(target)],
                mass_of_classes(statistics),
                settings.n_classes,
                settings.dirichlet,
            )
        elif node_stats.statistics[node, MASS] > 0.0:
            inherited = node_stats.statistics[node, MEAN]
        stop = stop_share(tree, node_stats, node, settings.step)
        if settings.at_leaf:
            stop = 1.0 if is_leaf(tree, node) else 0.0
        total += unstopped * stop * inherited  # Algorithm 3, line 6, from the root down
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
def _replay(tree, node_stats, best, node, first_new, samples, new, settings):  # type: ignore[no-untyped-def]
    """Let the new nodes below `node` learn the targets before `new`."""
    members = np.empty(tree.size[node], dtype=np.int64)
    _list_members(tree, node, np.empty(len(members) + 1, dtype=np.int64), members)
    _sort(members, new + 1)
    for member in members:
        if member < new:
            x = tree.points[member]
            start = np.int64(child_towards(tree, node, x))
            weight = weight_of(samples, member)
            learn_on_path(tree, node_stats, start, x, samples.targets[member], weight, settings)
    for below in range(tree.counters[N_NODES] - 1, first_new - 1, -1):
        update_averaged_weight(tree, node_stats, best, below, settings.step)


@njit(**INNER)
def _insert_into_full_tree(tree, node_stats, best, samples, point, rates, settings):  # type: ignore[no-untyped-def]
    """Update a full tree with a point."""
    sealed = np.int64(NONE)
    if len(samples.classes) > 0:
        # A leaf of the point's class alone is not split.
        sealed = np.int64(leaf_holding(tree, tree.points[point]))
        for k in range(settings.n_classes):
            if k != samples.classes[point] and node_stats.statistics[sealed, k] > 0.0:
                sealed = np.int64(NONE)
                break
    pair, inner, leaf = extend_full_tree(tree, node_stats, point, rates, sealed, settings.step)
    if pair != NONE:
        side = LEFT if tree.children[inner, RIGHT] == leaf else RIGHT
        # A copy of the node below it, until it learns the new target (Algorithm 5, line 12).
        copy_node(node_stats, np.int64(tree.children[inner, side]), inner)
        clear_node(node_stats, leaf)
        update_averaged_weights_above(tree, node_stats, best, pair, settings.step)


@njit(**INNER)
def _insert(tree, node_stats, best, samples, point, extension, settings):  # type: ignore[no-untyped-def]
    """Update a restricted partition with a point; let the new nodes learn earlier targets.

    Returns True: there is room for all nodes of such a partition.
    """
    if tree.counters[N_NODES] > 0 and tree.counters[N_NODES] + 2 > extension.max_nodes:
        _insert_into_full_tree(tree, node_stats, best, samples, point, extension.rates, settings)
        return True
    first_new, rates = tree.counters[N_NODES], extension.rates
    limits = GrowthSettings(1, np.inf, extension.max_nodes)
    # Algorithm 4, line 5
    node = np.int64(extend_tree(tree, tree.points, point, rates, samples.classes, limits))
    for new in range(first_new, tree.counters[N_NODES]):
        clear_node(node_stats, new)
    if is_leaf(tree, node):
        return True
    if node >= first_new:
        # A copy of the node below it, until it learns the new target (Algorithm 5, line 12).
        side = LEFT if tree.children[node, RIGHT] == node + 1 else RIGHT
        copy_node(node_stats, np.int64(tree.children[node, side]), node)
    else:
        _replay(tree, node_stats, best, node, first_new, samples, point, settings)
    return True


@njit(**INNER)
def _insert_into_cells(tree, node_stats, best, samples, point, extension, settings):  # type: ignore[no-untyped-def]
    """Update an unrestricted partition as `_insert` does (Algorithm 2, lines 2-11).

    Without `learn` new nodes learn nothing. Returns False if there is no room; the tree is then
    valid and lacks the point.
    """
    x = tree.points[point]
    if tree.counters[N_NODES] == 0:
        if not has_room(tree):
            return False
        start_cells(tree, extension.box)
        clear_node(node_stats, np.int64(tree.counters[ROOT]))
    leaf = leaf_holding(tree, x)
    while must_split(tree, leaf, tree.points, point, extension.rates, samples.classes):
        if not has_room(tree):
            return False
        split_cell(tree, leaf, tree.points, extension.rates, samples.classes)
        if extension.learn:
            left, right = np.int64(tree.children[leaf, LEFT]), np.int64(tree.children[leaf, RIGHT])
            clear_node(node_stats, left)
            clear_node(node_stats, right)
            if tree.size[left] == 0 or tree.size[right] == 0:
                # Algorithm 2, line 6
                copy_node(node_stats, leaf, left if tree.size[right] == 0 else right)
                update_averaged_weight(tree, node_stats, best, left, settings.step)
                update_averaged_weight(tree, node_stats, best, right, settings.step)
            else:
                _replay(tree, node_stats, best, leaf, left, samples, point, settings)
        leaf = np.int64(child_towards(tree, leaf, x))
    join_cell(tree, leaf, point, samples.classes)
    node = tree.parent[leaf]
    while node != NONE:
        tree.size[node] += 1
        node = tree.parent[node]
    return True


@njit(**INNER)
def _look_ahead(tree, node_stats, ahead, point, extension, settings):  # type: ignore[no-untyped-def]
    """Write the tree's forecasts of a point that its partition does not hold yet, if wanted."""
    if len(ahead) > 0 and tree.counters[N_NODES] > 0:
        rates = extension.rates if len(extension.box) == 0 else extension.rates[:0]
        row = ahead[point - extension.first]
        # A tree without room has begun to split for the point: its forecast is there already.
        if not math.isnan(row[0]):
            return
        forecast_point(tree, node_stats, tree.points, point, rates, settings.step, row)


@njit(**INNER)
def _learn(tree, node_stats, best, trace, samples, point, settings):  # type: ignore[no-untyped-def]
    """Let the nodes that hold a point learn its target; record their forecast if wanted."""
    x, target = tree.points[point], samples.targets[point]
    if len(trace) > 0:
        leaf = leaf_holding(tree, x)
        update_averaged_weights_above(tree, node_stats, best, leaf, settings.step)
        trace[point, FORECAST] = _forecast(tree, node_stats, x, target, settings)
    root = tree.counters[ROOT]
    weight = weight_of(samples, point)
    leaf = learn_on_path(tree, node_stats, root, x, target, weight, settings)
    update_averaged_weights_above(tree, node_stats, best, leaf, settings.step)
    if len(trace) > 0:
        trace[point, BEST] = best[root]


def _extending(insert: Any) -> Any:
    """Make a function that learns stored points, or only inserts them by another function.

    The function returns False if an insertion finds no room.
    """

    @njit(**GENERIC)
    def extend(arrays, sample_fields, extension_fields, setting_fields):  # type: ignore[no-untyped-def]
        forest, node_stats = Tree(*arrays[0]), Aggregation(*arrays[1])
        progress = Progress(*arrays[2])
        samples, settings = Samples(*sample_fields), AggregationSettings(*setting_fields)
        extension = ExtensionSettings(*extension_fields)
        for t in range(len(forest.counters)):
            tree, own = tree_at(forest, t), aggregation_at(node_stats, t)
            best, trace, ahead = progress.best[t], progress.trace[t], progress.ahead[t]
            for point in range(progress.next_point[t], extension.end):
                _look_ahead(tree, own, ahead, point, extension, settings)
                if not insert(tree, own, best, samples, point, extension, settings):
                    return False
                if extension.learn:
                    _learn(tree, own, best, trace, samples, point, settings)
                progress.next_point[t] = point + 1
        return True

    return extend


_extend_by_insertion = _extending(_insert)
_extend_by_cells = _extending(_insert_into_cells)


@njit(**COUNTING)
def _extend_restricted(arrays, samples, extension, settings):  # type: ignore[no-untyped-def]
    """Learn stored points, with partitions restricted to the data (Algorithms 4, 5)."""
    return _extend_by_insertion(arrays, samples, extension, settings)


@njit(**COUNTING)
def _extend_cells(arrays, samples, extension, settings):  # type: ignore[no-untyped-def]
    """Learn stored points, or only insert them, in unrestricted partitions; False if no room."""
    return _extend_by_cells(arrays, samples, extension, settings)


def extend_aggregation(
    forest: Tree,
    node_stats: Aggregation,
    progress: Progress,
    samples: Samples,
    extension: ExtensionSettings,
    settings: AggregationSettings,
) -> bool:
    """Learn stored points one after the other (Algorithms 2, 4 and 5).

    Parameters
    ----------
    forest, node_stats : Tree, Aggregation
        With a leading axis of length T. Restricted partitions have room for ``2 * extension.end``
        nodes, or ``extension.max_nodes`` if these are fewer.
    progress : Progress
        The next point for each tree; advanced.
    samples : Samples
        Targets and weights of the stored points.
    extension : ExtensionSettings
        Which points to learn, and how partitions grow.
    settings : AggregationSettings
        Settings of the forecasters.

    Returns
    -------
    bool
        False if an unrestricted tree lacks room: call again when there is more.
    """
    # Three kernels, of which most programs need one or two: each takes seconds to compile.
    if len(extension.box) == 0 and not extension.learn:
        extend_forest(
            forest,
            forest.points,
            progress.next_point,
            extension.end,
            extension.rates,
            samples.classes,
            ALWAYS_ONLINE,
        )
        return True
    # Numba takes twice as long to tell the types of NamedTuples as those of tuples.
    arrays = (tuple(forest), tuple(node_stats), tuple(progress))
    others = (tuple(samples), tuple(extension), tuple(settings))
    extend = _extend_cells if len(extension.box) > 0 else _extend_restricted
    return bool(extend(arrays, *others))
