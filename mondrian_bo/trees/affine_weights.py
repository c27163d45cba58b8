"""How much each training target counts in a prediction with affine functions.

As :mod:`mondrian_bo.trees.equivalent_weights`, for the messages of
:mod:`mondrian_bo.trees.affine_messages`. The information of a message is linear in the targets, and
its precision does not depend on them. A node's mean weights are the inverse of its total precision
times the sum of the information from below and from above. An adjoint sweep along the path of a
point turns its features into coefficients of the information of the nodes on the path and of their
siblings. From there the coefficients, vectors of length d + 1, go down to the points.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from mondrian_bo.trees.affine_messages import (
    centre_of,
    make_workspace,
    pass_increment,
    read_message,
    set_features,
    steps_to,
)
from mondrian_bo.trees.affine_predict import (
    add_own,
    copy_message,
    pass_down,
    set_trend,
    solve_total,
)
from mondrian_bo.trees.compiling import INNER_COUNTING
from mondrian_bo.trees.equivalent_weights import path_of
from mondrian_bo.trees.hierarchical_gaussian import gaussian_at
from mondrian_bo.trees.layout import FIRST_POINT, LEFT, N_NODES, NONE, RIGHT
from mondrian_bo.trees.mixture_walk import NEGLIGIBLE_PROBABILITY, branch_off_probability
from mondrian_bo.trees.tree import distance_outside, is_leaf, sibling, tree_at

_DEPTH = 64
"""Nodes that wait on a way down for which there is room at first; the arrays double when needed."""


@njit(**INNER_COUNTING)
def _adjoint_of_increment(work, step, slope_step, adjoint):  # type: ignore[no-untyped-def]
    """Write the transpose of what `pass_increment` has just done to the information.

    With S the deviations of the increments it is ``I - S (I + S precision S)^-1 S precision``; the
    Cholesky factor L and ``L^-1 S precision`` are in `factor` and `solved` of `work`.
    """
    p = len(adjoint)
    for j in range(p):
        for i in range(p - 1, -1, -1):
            total = work.solved[i, j]
            for k in range(i + 1, p):
                total -= work.factor[k, i] * adjoint[k, j]
            adjoint[i, j] = total / work.factor[i, i]
    for i in range(p):
        own = math.sqrt(step if i == 0 else slope_step)
        for j in range(p):
            adjoint[i, j] = (1.0 if i == j else 0.0) - own * adjoint[i, j]


@njit(**INNER_COUNTING)
def _unshift_rows(adjoint, shift):  # type: ignore[no-untyped-def]
    """Multiply by the transpose of a shift of the centre, from the left."""
    for j in range(len(adjoint)):
        for i in range(1, len(adjoint)):
            adjoint[0, j] += shift[i] * adjoint[i, j]


@njit(**INNER_COUNTING)
def _unshift_columns(adjoint, shift):  # type: ignore[no-untyped-def]
    """Multiply by the transpose of a shift of the centre, from the right."""
    for i in range(len(adjoint)):
        for j in range(1, len(adjoint)):
            adjoint[i, j] += shift[j] * adjoint[i, 0]


@njit(**INNER_COUNTING)
def _transfers(tree, node_stats, settings, work):  # type: ignore[no-untyped-def]
    """Return the matrices from a node's coefficients to each child's, shape (nodes, p, p).

    Coefficients are those of the information of upward messages. The matrix of the root starts at
    the trend.
    """
    p = len(settings.scales) + 1
    result = np.empty((tree.counters[N_NODES], p, p))
    for node in range(len(result)):
        row, parent = node_stats.messages[node], tree.parent[node]
        read_message(row, work.precision, work.information)
        step, slope_step = steps_to(tree, node_stats, node)
        pass_increment(work, step, slope_step)
        _adjoint_of_increment(work, step, slope_step, result[node])
        if parent != NONE:
            above = centre_of(node_stats.messages[parent], p - 1)
            set_features(centre_of(row, p - 1), above, settings.scales, work.offset)
            _unshift_columns(result[node], work.offset)
    return result


@njit(**INNER_COUNTING)
def _add_mean(work, share, coefficient):  # type: ignore[no-untyped-def]
    """Add those of the mean at the features in `offset`, after `solve_total`, to coefficients."""
    p = len(coefficient)
    for i in range(p):
        total = 0.0
        for j in range(i + 1):
            total += work.solved[i, j] * work.offset[j]
        for j in range(i + 1):
            coefficient[j] += share * work.solved[i, j] * total


@njit(**INNER_COUNTING)
def _coefficients_of_path(tree, node_stats, path, points, i, rates, prediction, work):  # type: ignore[no-untyped-def]
    """Return coefficients of the messages of the nodes on the path of point i.

    Returns
    -------
    own : float64 array of shape (length of the path + 1, p)
        Those of the nodes' own information; the first row is that of the trend's.
    above : float64 array of shape (length of the path, p)
        Those of the information that reaches the parent's children from outside: the sibling of the
        k-th node has them beside the parent's own ones.
    """
    settings = prediction.messages
    p = len(settings.scales) + 1
    length = len(path)
    own, above = np.zeros((length + 1, p)), np.zeros((length, p))
    adjoint = np.empty((length, p, p))
    precision, information = np.empty((p, p)), np.empty(p)
    reaching, time_above = 1.0, 0.0
    last = length - 1
    for k in range(length):
        node = path[k]
        centre = centre_of(node_stats.messages[node], p - 1)
        distance = distance_outside(tree, node, rates, points, i)
        span = tree.split_time[node] - time_above
        time_above = tree.split_time[node]
        separated = 0.0
        if distance > 0.0:  # Lakshminarayanan2016, Algorithm 5, lines 6, 8
            separated = reaching * branch_off_probability(span, distance)
            reaching -= separated
        if k == 0 and separated > 0.0:
            set_trend(tree, node_stats, settings, 0.0, work)
            solve_total(work)
            set_features(points[i], centre, settings.scales, work.offset)
            _add_mean(work, separated, own[0])
            separated = 0.0
        if reaching < NEGLIGIBLE_PROBABILITY and separated == 0.0:
            last = k - 1
            break
        if k > 0:
            copy_message(precision, information, work.total_precision, work.total_information)
        pass_down(tree, node_stats, node, settings, 0.0, work)
        copy_message(work.precision, work.information, precision, information)
        if k > 0:
            step, slope_step = steps_to(tree, node_stats, node)
            _adjoint_of_increment(work, step, slope_step, adjoint[k])
            _unshift_rows(adjoint[k], work.offset)
        share = separated + (reaching if k == length - 1 else 0.0)
        if share > 0.0:
            add_own(tree, node_stats, node, settings, work)
            solve_total(work)
            set_features(points[i], centre, settings.scales, work.offset)
            _add_mean(work, share, own[k + 1])
        if reaching < NEGLIGIBLE_PROBABILITY:
            last = k
            break
    down = np.zeros(p)
    for k in range(last, 0, -1):
        # A mean depends equally on the information from above and on the node's own.
        for j in range(p):
            down[j] += own[k + 1, j]
        for a in range(p):
            for b in range(p):
                above[k, a] += adjoint[k, a, b] * down[b]
        for j in range(p):
            down[j] = above[k, j]
    return own, above


@njit(**INNER_COUNTING)
def _multiply(matrix, vector, result):  # type: ignore[no-untyped-def]
    """Write a product of a matrix and a vector."""
    for i in range(len(vector)):
        total = 0.0
        for j in range(len(vector)):
            total += matrix[i, j] * vector[j]
        result[i] = total


@njit(**INNER_COUNTING)
def _share_among_points(tree, node_stats, transfers, settings, top, coefficient, work, row):  # type: ignore[no-untyped-def]
    """Add a node's coefficients to the weights of the points below it."""
    p = len(coefficient)
    stack = np.empty(_DEPTH, dtype=np.int64)
    coefficients = np.empty((_DEPTH, p))
    stack[0], coefficients[0] = top, coefficient
    current = np.empty(p)
    pending = 1
    while pending > 0:
        pending -= 1
        node = stack[pending]
        for j in range(p):
            current[j] = coefficients[pending, j]
        if is_leaf(tree, node):
            centre = centre_of(node_stats.messages[node], p - 1)
            point = tree.children[node, FIRST_POINT]
            while point != NONE:
                set_features(tree.points[point], centre, settings.scales, work.offset)
                total = 0.0
                for j in range(p):
                    total += current[j] * work.offset[j]
                row[point] += total / settings.noise
                point = tree.next_point[point]
            continue
        if pending + 2 > len(stack):
            stack = np.concatenate((stack, np.empty_like(stack)))
            coefficients = np.concatenate((coefficients, np.empty_like(coefficients)))
        for side in (LEFT, RIGHT):
            child = tree.children[node, side]
            stack[pending] = child
            _multiply(transfers[child], current, coefficients[pending])
            pending += 1


@njit(cache=True, nogil=True)
def affine_weights(forest, node_stats, points, rates, prediction, scale, weights):  # type: ignore[no-untyped-def]
    """Add the weights of the training targets in the means of trees; O(T n d^2) a point.

    Matrices of shape (d + 1, d + 1) for all nodes of one tree are computed first, in O(n d^3).
    Parameters are those of :func:`mondrian_bo.trees.equivalent_weights.gaussian_weights`, with
    AffinePrediction. The tolerance of `scale` is not used: weights of points below a node may be
    larger than the node's coefficients.
    """
    settings = prediction.messages
    p = len(settings.scales) + 1
    work = make_workspace(p - 1)
    coming, other = np.empty(p), np.empty(p)
    for t in range(len(forest.counters)):
        tree, own_stats = tree_at(forest, t), gaussian_at(node_stats, t)
        own_points = points[t if len(points) > 1 else 0]
        transfers = _transfers(tree, own_stats, settings, work)
        for i in range(own_points.shape[0]):
            path = path_of(tree, own_points, i)
            own, above = _coefficients_of_path(
                tree, own_stats, path, own_points, i, rates, prediction, work
            )
            own *= scale[0]
            above *= scale[0]
            _multiply(transfers[path[0]], own[0], coming)
            coming += own[1]
            for k in range(1, len(path)):
                node = path[k]
                beside = sibling(tree, node)
                _multiply(transfers[beside], coming + above[k], other)
                _share_among_points(
                    tree,
                    own_stats,
                    transfers,
                    settings,
                    beside,
                    other,
                    work,
                    weights[i],
                )
                _multiply(transfers[node], coming.copy(), coming)
                coming += own[k + 1]
            _share_among_points(
                tree,
                own_stats,
                transfers,
                settings,
                path[-1],
                coming,
                work,
                weights[i],
            )
