"""Points on their way down a tree, and the mixtures of Gaussians that they collect.

Algorithm 5 of Lakshminarayanan2016 for many points at once, apart from what a node predicts. That
is up to the callers, :mod:`mondrian_bo.trees.predict` and :mod:`mondrian_bo.trees.affine_predict`:
at each node some points branch off and get a component of the mixture (3) there; those that reach a
leaf get their last component.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from mondrian_bo.shared.array_types import FloatArray
from mondrian_bo.trees.compiling import GENERIC, INNER, INNER_COUNTING
from mondrian_bo.trees.hierarchical_gaussian import gaussian_at
from mondrian_bo.trees.traversal import in_chunks
from mondrian_bo.trees.tree import tree_at

SMALLEST_CHUNK = 4096
"""Smallest number of points predicted at a time: their intermediate results fit into the cache."""

REACHING, FIRST, SECOND = 0, 1, 2
"""Columns of the state of a point on its way down.

The probability that it has not branched off yet (p_NotSeparatedYet), and the first two moments of
its prediction so far, about the prior mean.
"""

NEGLIGIBLE_PROBABILITY = 1e-13
"""Probability of not having branched off at which a point stops.

Its weight is lost, which changes the moments by a relative 1e-13 at most.
"""


class Walk(NamedTuple):
    """Points that go down a tree together.

    Attributes
    ----------
    order : int32 array of shape (m,)
        The points; ``order[start:end]`` are at the current node (see
        :mod:`mondrian_bo.trees.traversal`).
    scratch : int32 array of shape (m,)
        Working memory of :func:`mondrian_bo.trees.traversal.split_points`.
    distances : float64 array of shape (m,)
        Distance of the point ``order[i]`` from the box of the current node, eta_j(x).
    state : float64 array of shape (m, 3)
        States of the points by their numbers, with the columns `REACHING`, `FIRST` and `SECOND`:
        points are read in no particular order.
    sink : float64 array of shape (rows, 4)
        The components of the mixtures (3): point, weight, mean, variance. The caller's; of length 0
        if components are not wanted.
    """

    order: NDArray[np.int32]
    scratch: NDArray[np.int32]
    distances: FloatArray
    state: FloatArray
    sink: FloatArray


@njit(**INNER)
def add_component(own, weight, offset, variance):  # type: ignore[no-untyped-def]
    """Add a component to the state `own` of a point; `offset` is its mean less the prior mean."""
    own[FIRST] += weight * offset  # (4)
    own[SECOND] += weight * (variance + offset * offset)  # (4)


@njit(**INNER)
def write_component(sink, n_components, point, weight, mean, variance):  # type: ignore[no-untyped-def]
    """Write a component of the mixture (3) into the next row of `sink`, if it has one."""
    if n_components < len(sink):
        sink[n_components, 0], sink[n_components, 1] = point, weight
        sink[n_components, 2], sink[n_components, 3] = mean, variance


@njit(**INNER_COUNTING)
def start_points(n_points):  # type: ignore[no-untyped-def]
    """Return what points at the root start with: their order, and their states.

    There is one row of states per point: points are read in no particular order.
    """
    order = np.empty(n_points, dtype=np.int32)
    state = np.empty((n_points, 3))
    for i in range(n_points):
        order[i] = i
        state[i, REACHING], state[i, FIRST], state[i, SECOND] = 1.0, 0.0, 0.0
    return order, state


@njit(**INNER_COUNTING)
def start_walk(n_points, sink):  # type: ignore[no-untyped-def]
    """Return the walk of points that are at the root (Algorithm 5, line 3)."""
    order, state = start_points(n_points)
    return Walk(order, np.empty_like(order), np.empty(n_points), state, sink)


@njit(**INNER)
def branch_off_probability(span, distance):  # type: ignore[no-untyped-def]
    """Return p_j^s(x), the probability that a point branches off right above a node.

    `span` is Delta_j, the time between the split of the node and that of its parent, and may be
    infinite; `distance` is eta_j(x), positive.
    """
    return -math.expm1(-span * distance) if span < np.inf else 1.0  # Algorithm 5, line 6


@njit(**INNER)
def record_component(walk, n_components, point, weight, offset, mean, variance):  # type: ignore[no-untyped-def]
    """Add a component to the mixture of a point; return the new number of components.

    Parameters
    ----------
    walk : Walk
        The state of the point and, if it has a row left, the sink get the component.
    n_components : int
        Number of components so far, of all points.
    point, weight
        The point, and w_j.
    offset, mean, variance : float
        The mean m_j less the prior mean, the mean, and the variance v_j of a target.
    """
    add_component(walk.state[point], weight, offset, variance)
    write_component(walk.sink, n_components, point, weight, mean, variance)
    return n_components + 1


@njit(**INNER)
def write_moments(state, mean_prior, means, variances):  # type: ignore[no-untyped-def]
    """Write the moments of the points from their states, equation (4)."""
    for i in range(len(means)):
        mean = state[i, FIRST]
        variances[i] = max(state[i, SECOND] - mean * mean, 0.0)
        means[i] = mean + mean_prior


def predict_moments(predict_tree: Any) -> Any:
    """Make a function that writes the moments of each tree's prediction.

    Parameters
    ----------
    predict_tree : compiled function
        Predicts with one tree. It is called as :func:`mondrian_bo.trees.traversal.in_chunks` says,
        with the rates and the settings, and with means, variances and the sink as results.

    Returns
    -------
    compiled function
        Has the parameters of :func:`predict_forest`.
    """
    run = in_chunks(predict_tree, gaussian_at)

    @njit(**GENERIC)
    def write(forest, node_stats, points, rates, settings, means, variances):  # type: ignore[no-untyped-def]
        results = (means, variances, np.empty((0, 4)))
        run(forest, node_stats, points, SMALLEST_CHUNK, (rates, settings), results)

    return write


def write_components(predict_tree: Any) -> Any:
    """Make a function that writes the components of one tree's mixture.

    Parameters
    ----------
    predict_tree : compiled function
        See :func:`predict_moments`.

    Returns
    -------
    compiled function
        Has the parameters of :func:`tree_components`.
    """

    @njit(**GENERIC)
    def write(forest, node_stats, index, points, rates, settings, sink):  # type: ignore[no-untyped-def]
        own = points[index if len(points) > 1 else 0]
        n_points = own.shape[0]
        # Plain integers: numba compiles the function anew for literal ones.
        where = (np.int64(0), np.int64(0), n_points)
        return predict_tree(
            tree_at(forest, index),
            gaussian_at(node_stats, index),
            own,
            (rates, settings),
            where,
            (np.empty((1, n_points)), np.empty((1, n_points)), sink),
        )

    return write
