"""Moments of each target given all others, in trees with affine functions at their nodes.

As :mod:`mondrian_bo.trees.leave_one_out`, whose restricted trees it uses, with the messages of
:mod:`mondrian_bo.trees.affine_messages`. Nodes of restricted trees keep the centres of their boxes.
Increments of values belong to these centres, so that the prior of a restricted tree is that of the
whole tree up to the order of the nodes left out: an approximation where not all targets are used.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from mondrian_bo.shared.array_types import FloatArray
from mondrian_bo.trees.affine_messages import (
    TREND,
    add_message,
    add_observation,
    clear,
    make_workspace,
    pass_increment,
    read_message,
    set_features,
    shift_message,
    take_total,
    write_message,
)
from mondrian_bo.trees.affine_predict import evaluate, solve_total
from mondrian_bo.trees.compiling import INNER_COUNTING
from mondrian_bo.trees.hierarchical_gaussian import remaining_variance
from mondrian_bo.trees.layout import NONE
from mondrian_bo.trees.leave_one_out import RestrictedForest, record_moments


class AffineTargets(NamedTuple):
    """What the sweeps need of the points and the boxes.

    Attributes
    ----------
    points : float64 array of shape (1 or T, k, d)
        The points, as the trees see them.
    targets : float64 array of shape (k,)
        Their targets, minus mu_H.
    centres : float64 array of shape (nodes, d)
        Centres of the nodes' boxes.
    order : int64 array of shape (T, k)
        The points sorted by leaf.
    first : int64 array of shape (nodes,)
        Position of the first point of each leaf in `order`.
    """

    points: FloatArray
    targets: FloatArray
    centres: FloatArray
    order: NDArray[np.int64]
    first: NDArray[np.int64]


def sort_by_leaf(forest: RestrictedForest) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return `order` and `first` of :class:`AffineTargets`."""
    order = np.argsort(forest.leaf, axis=1, kind="stable")
    first = np.zeros(len(forest.parent), dtype=np.int64)
    for leaf in np.take_along_axis(forest.leaf, order, axis=1):
        leaves, starts = np.unique(leaf, return_index=True)
        first[leaves] = starts
    return order, first


@njit(**INNER_COUNTING)
def _read_leaf(data, points, order, node, size, settings, work):  # type: ignore[no-untyped-def]
    """Write the message of the targets of a leaf about its own weights into `work`."""
    clear(work.precision, work.information)
    for i in range(data.first[node], data.first[node] + size):
        point = order[i]
        set_features(points[point], data.centres[node], settings.scales, work.offset)
        add_observation(
            work.precision,
            work.information,
            work.offset,
            1.0 / settings.noise,
            data.targets[point],
        )


@njit(cache=True, nogil=True)
def affine_leave_one_out(forest, data, settings, state, moments):  # type: ignore[no-untyped-def]
    """Write the moments of each target given all others: an upward and a downward sweep.

    Parameters
    ----------
    data : AffineTargets
        Points and targets.
    settings : AffineSettings
        What messages depend on; their reference is not used.
    state : float64 array of shape (2, nodes, columns)
        Working memory, with the columns of :func:`mondrian_bo.trees.affine_messages.n_columns`.
    forest, moments
        See :func:`mondrian_bo.trees.leave_one_out.leave_one_out`.
    """
    noise, scales = settings.noise, settings.scales
    sibling, parent = forest.sibling, forest.parent
    n_nodes, n_dimensions = data.centres.shape
    work = make_workspace(n_dimensions)
    # The variance of the increment of each node's value, and of each of its slopes.
    steps = np.empty((n_nodes, 2))
    remaining = np.empty(n_nodes)
    tree_of = np.empty(n_nodes, dtype=np.int64)
    index = -1
    for node in range(n_nodes):
        index += parent[node] == NONE
        tree_of[node] = index
        remaining[node] = remaining_variance(settings.gamma_2, forest.split_time[node])
        before = 0.5 if parent[node] == NONE else remaining[parent[node]]
        steps[node, 0] = max(before - remaining[node], 0.0)
        steps[node, 1] = steps[node, 0] if forest.size[node] != 1 else 0.0
    up, down = state[0], state[1]
    for node in range(n_nodes - 1, -1, -1):
        above, size = parent[node], forest.size[node]
        if above == NONE:
            continue
        step, slope_step = steps[node]
        t = tree_of[node]
        points = data.points[t if len(data.points) > 1 else 0]
        if size == 1:
            point = data.order[t, data.first[node]]
            variance = noise + step
            set_features(points[point], data.centres[above], scales, work.offset)
            clear(work.precision, work.information)
            add_observation(
                work.precision, work.information, work.offset, 1.0 / variance, data.targets[point]
            )
        else:
            if size > 1:
                _read_leaf(data, points, data.order[t], node, size, settings, work)
            else:
                clear(work.total_precision, work.total_information)
                read_message(up[node + 1], work.precision, work.information)
                add_message(work)
                read_message(up[sibling[node + 1]], work.precision, work.information)
                add_message(work)
                take_total(work)
            pass_increment(work, step, slope_step)
            set_features(data.centres[node], data.centres[above], scales, work.offset)
            shift_message(work.precision, work.information, work.offset)
        write_message(up[node], work.precision, work.information)
    moments[:] = 0.0
    for node in range(n_nodes):
        above, size = parent[node], forest.size[node]
        step, slope_step = steps[node]
        t = tree_of[node]
        points = data.points[t if len(data.points) > 1 else 0]
        if above == NONE:
            clear(work.precision, work.information)
            for k in range(n_dimensions + 1):
                work.precision[k, k] = 1.0 / TREND
            pass_increment(work, step, slope_step)
        else:
            clear(work.total_precision, work.total_information)
            read_message(down[above], work.precision, work.information)
            add_message(work)
            read_message(up[sibling[node]], work.precision, work.information)
            add_message(work)
            if size == 1:
                point = data.order[t, data.first[node]]
                variance = noise + step
                solve_total(work)
                set_features(points[point], data.centres[above], scales, work.offset)
                mean, spread = evaluate(work)
                record_moments(moments, point, t, mean, spread + variance)
                continue
            take_total(work)
            set_features(data.centres[above], data.centres[node], scales, work.offset)
            shift_message(work.precision, work.information, work.offset)
            pass_increment(work, step, slope_step)
        if size == 0:
            write_message(down[node], work.precision, work.information)
            continue
        clear(work.total_precision, work.total_information)
        add_message(work)
        _read_leaf(data, points, data.order[t], node, size, settings, work)
        add_message(work)
        solve_total(work)
        for i in range(data.first[node], data.first[node] + size):
            point = data.order[t, i]
            set_features(points[point], data.centres[node], scales, work.offset)
            mean, variance = evaluate(work)
            # Without the target's own part: the leverage of the target is variance / noise.
            rest = 1.0 - variance / noise
            mean = (mean - data.targets[point] * variance / noise) / rest
            record_moments(moments, point, t, mean, variance / rest + noise)
    moments[2] /= len(forest.leaf)
