"""The hierarchical Gaussian with an affine function at each node, exact and online.

Lakshminarayanan2016, section 5.4, asks for linear leaves. Here node j has weights w_j: the value of
its function at the centre c_j of its box, and d slopes. The target of a point x of leaf j is
w_j' f_j(x) plus noise, with the features ``f_j(x) = (1, scales (x - c_j))``. The function of node j
is that of its parent plus an increment, whose weights are independent and have the variance phi_j
of the model with constant leaves. A leaf of one point has the slopes of its parent. Above the root
is the trend, whose weights have mean (mu_H, 0) and variance `TREND`.

The upward message of node j is the likelihood of the targets below j as a function of w_j,

    exp(-1/2 (w_j' precision w_j - 2 information' w_j + residual + log_determinant)),

about the centre c_j. It depends on the subtree of j alone, so that inserting a point changes the
messages of one path. A message takes O(d^3): one Cholesky decomposition of I + precision times the
variance of the increment, whose eigenvalues are at least 1. Updates of rank one would take O(d^2),
but boxes, and with them centres, change along the path.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from mondrian_bo.shared.array_types import FloatArray
from mondrian_bo.trees.compiling import INNER_COUNTING
from mondrian_bo.trees.hierarchical_gaussian import (
    LOCATION,
    LOG_DETERMINANT,
    MEAN,
    PRECISION,
    RESIDUAL,
    collect_leaf,
    combine_moments,
    gaussian_at,
    join_leaf,
    remaining_variance,
)
from mondrian_bo.trees.layout import FIRST_POINT, LEFT, NONE, RIGHT, ROOT
from mondrian_bo.trees.tree import corners, is_leaf, tree_at
from mondrian_bo.trees.upward import extend_upward, sweep_upward, update_upward

TREND = 4.0
"""Prior variance of the trend's value and slopes, in units of gamma_1 and of the scaled features.

Our choice: a trend may cross twice the deviation of targets in the range of a feature.
"""

_RESIDUAL, _LOG_DETERMINANT, _N_SCALARS = 0, 1, 2
"""First columns of a row of messages, and their number.

The information, the centre and the lower triangle of the precision follow.
"""

_FARTHEST = 1e100
"""Bound of scaled coordinates, without unit: squares and sums of them stay below 1e308."""


class AffineSettings(NamedTuple):
    """What affine messages depend on, apart from the targets.

    Attributes
    ----------
    gamma_2 : float
        Scale of split times in the prior variances.
    noise : float
        Noise variance in units of gamma_1.
    reference : float
        Number that targets are counted from in messages.
    scales : float64 array of shape (d,)
        Factors of the features: a slope's increments relative to those of the value.
    """

    gamma_2: float
    noise: float
    reference: float
    scales: FloatArray


class Workspace(NamedTuple):
    """Memory for one message, reused for all nodes.

    Attributes
    ----------
    precision, information : float64 arrays of shape (d + 1, d + 1) and (d + 1,)
        A message; both triangles of the precision are stored.
    total_precision, total_information : float64 arrays of the same shapes
        A sum of messages.
    factor, solved : float64 arrays of shape (d + 1, d + 1)
        A lower triangular factor, and what it was solved for.
    offset : float64 array of shape (d + 1,)
        Features or a shift of the centre.
    weights : float64 array of shape (d + 1,)
        Intermediate results.
    """

    precision: FloatArray
    information: FloatArray
    total_precision: FloatArray
    total_information: FloatArray
    factor: FloatArray
    solved: FloatArray
    offset: FloatArray
    weights: FloatArray


def n_columns(n_dimensions: int) -> int:
    """Return the length of a row of messages of trees in d dimensions."""
    p = n_dimensions + 1
    return _N_SCALARS + p + n_dimensions + p * (p + 1) // 2


@njit(**INNER_COUNTING)
def make_workspace(n_dimensions):  # type: ignore[no-untyped-def]
    """Return memory for messages of trees in d dimensions."""
    p = n_dimensions + 1
    return Workspace(
        np.empty((p, p)),
        np.empty(p),
        np.empty((p, p)),
        np.empty(p),
        np.zeros((p, p)),
        np.empty((p, p)),
        np.empty(p),
        np.empty(p),
    )


def centres_of_rows(rows: FloatArray, n_dimensions: int) -> FloatArray:
    """Return the centres of nodes from their rows of messages, shape (nodes, d)."""
    first = _N_SCALARS + n_dimensions + 1
    return rows[:, first : first + n_dimensions].copy()


# Algebra of messages ------------------------------------------------------------------------------


@njit(**INNER_COUNTING)
def write_message(row, precision, information):  # type: ignore[no-untyped-def]
    """Write precision and information of a message into its row."""
    p = len(information)
    column = _N_SCALARS + 2 * p - 1
    for i in range(p):
        row[_N_SCALARS + i] = information[i]
        for j in range(i + 1):
            row[column] = precision[i, j]
            column += 1


@njit(**INNER_COUNTING)
def read_message(row, precision, information):  # type: ignore[no-untyped-def]
    """Read precision and information of a message from its row."""
    p = len(information)
    column = _N_SCALARS + 2 * p - 1
    for i in range(p):
        information[i] = row[_N_SCALARS + i]
        for j in range(i + 1):
            precision[i, j] = precision[j, i] = row[column]
            column += 1


@njit(**INNER_COUNTING)
def centre_of(row, n_dimensions):  # type: ignore[no-untyped-def]
    """Return the view of the centre of a node in its row of messages."""
    first = _N_SCALARS + n_dimensions + 1
    return row[first : first + n_dimensions]


@njit(**INNER_COUNTING)
def set_features(x, centre, scales, features):  # type: ignore[no-untyped-def]
    """Write the features of a point about a centre: 1 and the scaled coordinates."""
    features[0] = 1.0
    for k in range(len(scales)):
        # A feature without weight has scale 0, also where the difference overflows.
        scaled = scales[k] * (x[k] - centre[k]) if scales[k] > 0.0 else 0.0
        features[k + 1] = min(max(scaled, -_FARTHEST), _FARTHEST)


@njit(**INNER_COUNTING)
def add_observation(precision, information, features, weight, target):  # type: ignore[no-untyped-def]
    """Add the message of a target with a given weight (inverse variance)."""
    for i in range(len(features)):
        share = weight * features[i]
        information[i] += share * target
        for j in range(len(features)):
            precision[i, j] += share * features[j]


@njit(**INNER_COUNTING)
def shift_message(precision, information, shift):  # type: ignore[no-untyped-def]
    """Express a message about the weights at another centre, in place.

    ``shift[1:]`` is the scaled difference old centre minus new centre.
    """
    p = len(information)
    for i in range(1, p):
        information[i] += shift[i] * information[0]
        for j in range(p):
            precision[i, j] += shift[i] * precision[0, j]
    for i in range(p):
        for j in range(1, p):
            precision[i, j] += shift[j] * precision[i, 0]


@njit(**INNER_COUNTING)
def pass_increment(work, step, slope_step):  # type: ignore[no-untyped-def]
    """Pass the message in `work` through an increment of the weights, in place.

    Parameters
    ----------
    work : Workspace
        The message in `precision` and `information`.
    step, slope_step : float
        Variances of the increments of the value and of each slope.

    Returns
    -------
    tuple of float
        What the residual loses, and what the log-determinant gains.
    """
    precision, information = work.precision, work.information
    factor, solved, vector = work.factor, work.solved, work.weights
    p = len(information)
    log_determinant, loss = 0.0, 0.0
    # The Cholesky factor of I + S precision S, where S has the deviations of the increments.
    for i in range(p):
        own = math.sqrt(step if i == 0 else slope_step)
        for j in range(i):
            total = own * math.sqrt(step if j == 0 else slope_step) * precision[i, j]
            for k in range(j):
                total -= factor[i, k] * factor[j, k]
            factor[i, j] = total / factor[j, j]
        total = 1.0 + own * own * precision[i, i]
        for k in range(i):
            total -= factor[i, k] * factor[i, k]
        # Eigenvalues are at least 1, and with them what is left here; rounding may say less.
        total = max(total, 1.0)
        factor[i, i] = math.sqrt(total)
        log_determinant += math.log(total)
    # Its inverse times S precision and S information.
    for i in range(p):
        own = math.sqrt(step if i == 0 else slope_step)
        value = own * information[i]
        for j in range(p):
            solved[i, j] = own * precision[i, j]
        for k in range(i):
            share = factor[i, k]
            value -= share * vector[k]
            for j in range(p):
                solved[i, j] -= share * solved[k, j]
        inverse = 1.0 / factor[i, i]
        vector[i] = value * inverse
        loss += vector[i] * vector[i]
        for j in range(p):
            solved[i, j] *= inverse
    # (precision^-1 + S^2)^-1 by the matrix inversion lemma.
    for i in range(p):
        for k in range(p):
            share = solved[k, i]
            information[i] -= share * vector[k]
            for j in range(i + 1):
                precision[i, j] -= share * solved[k, j]
        for j in range(i):
            precision[j, i] = precision[i, j]
    return loss, log_determinant


@njit(**INNER_COUNTING)
def add_message(work):  # type: ignore[no-untyped-def]
    """Add the message in `work` to the total."""
    for i in range(len(work.information)):
        work.total_information[i] += work.information[i]
        for j in range(len(work.information)):
            work.total_precision[i, j] += work.precision[i, j]


@njit(**INNER_COUNTING)
def take_total(work):  # type: ignore[no-untyped-def]
    """Make the message in `work` the total."""
    for i in range(len(work.information)):
        work.information[i] = work.total_information[i]
        for j in range(len(work.information)):
            work.precision[i, j] = work.total_precision[i, j]


@njit(**INNER_COUNTING)
def clear(precision, information):  # type: ignore[no-untyped-def]
    """Make a message the one that says nothing."""
    for i in range(len(information)):
        information[i] = 0.0
        for j in range(len(information)):
            precision[i, j] = 0.0


# Nodes --------------------------------------------------------------------------------------------


@njit(**INNER_COUNTING)
def _set_centre(tree, row, node):  # type: ignore[no-untyped-def]
    """Write the centre of a node's box into its row."""
    lower, upper = corners(tree, node)
    centre = centre_of(row, len(lower))
    for k in range(len(lower)):
        # Halves first: the sum of two large numbers may overflow.
        centre[k] = 0.5 * lower[k] + 0.5 * upper[k]


@njit(**INNER_COUNTING)
def _set_leaf(tree, node_stats, targets, leaf, settings, work):  # type: ignore[no-untyped-def]
    """Compute a leaf's message from its points."""
    row = node_stats.messages[leaf]
    _set_centre(tree, row, leaf)
    centre = centre_of(row, len(settings.scales))
    weight = 1.0 / settings.noise
    row[_RESIDUAL], row[_LOG_DETERMINANT] = 0.0, tree.size[leaf] * math.log(settings.noise)
    clear(work.total_precision, work.total_information)
    point = tree.children[leaf, FIRST_POINT]
    while point != NONE:
        set_features(tree.points[point], centre, settings.scales, work.offset)
        target = targets[point] - settings.reference
        add_observation(work.total_precision, work.total_information, work.offset, weight, target)
        row[_RESIDUAL] += weight * target * target
        point = tree.next_point[point]
    write_message(row, work.total_precision, work.total_information)


@njit(**INNER_COUNTING)
def _extend_leaf(tree, node_stats, target, point, leaf, settings, work):  # type: ignore[no-untyped-def]
    """Update a leaf's message with a point that has just joined it and widened its box."""
    row = node_stats.messages[leaf]
    centre = centre_of(row, len(settings.scales))
    for k in range(len(centre)):
        work.weights[k] = centre[k]
    _set_centre(tree, row, leaf)
    read_message(row, work.precision, work.information)
    set_features(work.weights, centre, settings.scales, work.offset)
    shift_message(work.precision, work.information, work.offset)
    set_features(tree.points[point], centre, settings.scales, work.offset)
    own = target - settings.reference
    weight = 1.0 / settings.noise
    add_observation(work.precision, work.information, work.offset, weight, own)
    row[_RESIDUAL] += weight * own * own
    row[_LOG_DETERMINANT] += math.log(settings.noise)
    write_message(row, work.precision, work.information)


@njit(**INNER_COUNTING)
def steps_to(tree, node_stats, node):  # type: ignore[no-untyped-def]
    """Return the variances of a node's increments: of its value and of each slope.

    A single point has the slopes of the node above, as its target says nothing about slopes.
    """
    parent = tree.parent[node]
    # The trend is at time 0, after which 1 - sigmoid(0) = 1/2 remains.
    above = 0.5 if parent == NONE else node_stats.remaining[parent]
    step = max(above - node_stats.remaining[node], 0.0)
    return step, step if tree.size[node] > 1 else 0.0


@njit(**INNER_COUNTING)
def add_child(tree, node_stats, node, child, settings, work):  # type: ignore[no-untyped-def]
    """Add a child's message, about its parent's weights, to the total.

    Returns its residual and log-determinant.
    """
    row = node_stats.messages[child]
    step, slope_step = steps_to(tree, node_stats, child)
    n_dimensions = len(settings.scales)
    centre = centre_of(row, n_dimensions)
    set_features(
        centre, centre_of(node_stats.messages[node], n_dimensions), settings.scales, work.offset
    )
    if tree.size[child] == 1:
        # A single point is at the centre of its box: only the value's increment matters.
        variance = settings.noise + step
        target = node_stats.moments[child, MEAN] - settings.reference
        weight = 1.0 / variance
        add_observation(work.total_precision, work.total_information, work.offset, weight, target)
        return weight * target * target, math.log(variance)
    read_message(row, work.precision, work.information)
    loss, gain = pass_increment(work, step, slope_step)
    shift_message(work.precision, work.information, work.offset)
    add_message(work)
    return row[_RESIDUAL] - loss, row[_LOG_DETERMINANT] + gain


@njit(**INNER_COUNTING)
def combine_affine(tree, node_stats, node, settings, work):  # type: ignore[no-untyped-def]
    """Compute an internal node's moments and message from its children's."""
    combine_moments(tree, node_stats, node)
    row = node_stats.messages[node]
    _set_centre(tree, row, node)
    clear(work.total_precision, work.total_information)
    left, right = tree.children[node, LEFT], tree.children[node, RIGHT]
    residual_one, determinant_one = add_child(tree, node_stats, node, left, settings, work)
    residual_two, determinant_two = add_child(tree, node_stats, node, right, settings, work)
    row[_RESIDUAL] = residual_one + residual_two
    row[_LOG_DETERMINANT] = determinant_one + determinant_two
    write_message(row, work.total_precision, work.total_information)


@njit(**INNER_COUNTING)
def _refresh_node(tree, node_stats, node, data):  # type: ignore[no-untyped-def]
    """Compute a node from scratch; children of an internal node must be up to date."""
    targets, settings, work = data
    time = tree.split_time[node]
    node_stats.remaining[node] = remaining_variance(settings.gamma_2, time)
    if is_leaf(tree, node):
        collect_leaf(tree, node_stats, targets, node)
        _set_leaf(tree, node_stats, targets, node, settings, work)
    else:
        combine_affine(tree, node_stats, node, settings, work)


_sweep = sweep_upward(_refresh_node, gaussian_at)


@njit(cache=True, nogil=True)
def refresh_affine(forest, node_stats, targets, settings):  # type: ignore[no-untyped-def]
    """Compute the statistics of every node of every tree: one upward sweep, O(n d^3) per tree.

    Parameters are those of :func:`mondrian_bo.trees.hierarchical_gaussian.refresh_messages`, with
    AffineSettings.
    """
    work = make_workspace(len(settings.scales))
    _sweep(forest, node_stats, (targets, settings, work))


@njit(**INNER_COUNTING)
def _join(tree, node_stats, leaf, point, data):  # type: ignore[no-untyped-def]
    """Update a leaf that a point has just joined."""
    targets, settings, work = data
    join_leaf(tree, node_stats, targets[point], leaf)
    _extend_leaf(tree, node_stats, targets[point], point, leaf, settings, work)


@njit(**INNER_COUNTING)
def _pass_up(tree, node_stats, node, data):  # type: ignore[no-untyped-def]
    """Compute an internal node from its children; return that it has changed."""
    _, settings, work = data
    combine_affine(tree, node_stats, node, settings, work)
    return True


_update = update_upward(_refresh_node, _join, _pass_up)


@njit(**INNER_COUNTING)
def _update_after(tree, node_stats, inserted, data):  # type: ignore[no-untyped-def]
    """Update the statistics after an insertion, see `update_upward`."""
    _update(tree, node_stats, inserted, data)


_extend = extend_upward(_update_after, gaussian_at)


@njit(cache=True, nogil=True)
def extend_affine(forest, node_stats, points, targets, start, rates, growth, settings):  # type: ignore[no-untyped-def]
    """Insert stored points into every tree and update the messages on their paths.

    O(d^3) for each node of a path. Parameters are those of
    :func:`mondrian_bo.trees.hierarchical_gaussian.extend_messages`, with AffineSettings.
    """
    data = (targets, settings, make_workspace(len(settings.scales)))
    insertion = (start, len(targets), rates, np.empty(0, dtype=np.int32), growth)
    _extend(forest, node_stats, points, insertion, data)


@njit(**INNER_COUNTING)
def pass_to_trend(tree, node_stats, work):  # type: ignore[no-untyped-def]
    """Write the root's message about the weights of the trend into `work`.

    Returns its residual and log-determinant.
    """
    root = tree.counters[ROOT]
    row = node_stats.messages[root]
    read_message(row, work.precision, work.information)
    step, slope_step = steps_to(tree, node_stats, root)
    loss, gain = pass_increment(work, step, slope_step)
    return row[_RESIDUAL] - loss, row[_LOG_DETERMINANT] + gain


@njit(cache=True, nogil=True)
def affine_likelihood_terms(forest, node_stats, settings, terms):  # type: ignore[no-untyped-def]
    """Write the message about mu_H into `terms`, shape (T, 4).

    As :func:`mondrian_bo.trees.hierarchical_gaussian.log_likelihood_terms`.
    """
    work = make_workspace(len(settings.scales))
    for t in range(len(forest.counters)):
        residual, determinant = pass_to_trend(tree_at(forest, t), gaussian_at(node_stats, t), work)
        loss, gain = pass_increment(work, TREND, TREND)
        precision, information = work.precision[0, 0], work.information[0]
        terms[t, PRECISION] = precision
        terms[t, LOCATION] = settings.reference + information / precision
        terms[t, RESIDUAL] = residual - loss - information * information / precision
        terms[t, LOG_DETERMINANT] = determinant + gain
