"""The partitions that trees with split times are at every lifetime (Balog2016, section 4.1).

At lifetime L the cells of a tree are the topmost nodes that have not split by then. Each point has
a *label* in each tree, an array of shape (n, T): points of one cell have the same label, points of
different cells or trees have different ones. Labels are columns of features. Inserting points never
separates older ones, so that labels, once given, stay.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from mondrian_bo.trees.tree import (
    FIRST_POINT,
    LEFT,
    N_NODES,
    NONE,
    RIGHT,
    ROOT,
    child_towards,
    distance_outside,
    is_leaf,
    preorder,
    tree_at,
)


@njit(cache=True, nogil=True)
def label_points(forest, lifetime, labels):  # type: ignore[no-untyped-def]
    """Label all points with the numbers of their cells at a lifetime; O(T n).

    Parameters
    ----------
    forest : Tree
        The trees.
    lifetime : float
        Nodes that split at this time or before have split.
    labels : int32 array of shape (n, T)
        Result.

    Returns
    -------
    int
        The number of cells of all trees; those of a tree follow those of the tree before.
    """
    n_labels = 0
    for t in range(len(forest.counters)):
        tree = tree_at(forest, t)
        nodes = np.empty(tree.counters[N_NODES], dtype=np.int64)
        preorder(tree, nodes)
        # In preorder, the nodes of a cell follow its topmost one.
        for node in nodes:
            parent = tree.parent[node]
            starts = parent == NONE or tree.split_time[parent] <= lifetime
            if starts and (is_leaf(tree, node) or tree.split_time[node] > lifetime):
                n_labels += 1
            if is_leaf(tree, node):
                point = tree.children[node, FIRST_POINT]
                while point != NONE:
                    labels[point, t] = n_labels - 1
                    point = tree.next_point[point]
    return n_labels


@njit(cache=True, nogil=True)
def _known_label(tree, node, labels, t):  # type: ignore[no-untyped-def]
    """Return the label of a point below a node that has one, or NONE; O(depth) as a rule."""
    top = node
    while True:
        if is_leaf(tree, node):
            point = tree.children[node, FIRST_POINT]
            while point != NONE:
                if labels[point, t] != NONE:
                    return labels[point, t]
                point = tree.next_point[point]
            # The next leaf in preorder, below `top`.
            while node != top and tree.children[tree.parent[node], RIGHT] == node:
                node = tree.parent[node]
            if node == top:
                return np.int32(NONE)
            node = tree.children[tree.parent[node], RIGHT]
        else:
            node = tree.children[node, LEFT]


@njit(cache=True, nogil=True)
def _cell_of(tree, lifetime, x):  # type: ignore[no-untyped-def]
    """Return the node that is the cell of x at a lifetime."""
    node = tree.counters[ROOT]
    while not is_leaf(tree, node) and tree.split_time[node] <= lifetime:
        node = child_towards(tree, node, x)
    return node


@njit(cache=True, nogil=True)
def label_new_points(forest, points, lifetime, labels, start, n_labels):  # type: ignore[no-untyped-def]
    """Label points that have been inserted; new cells get new labels, point after point.

    Parameters
    ----------
    forest : Tree
        The trees, with all points.
    points : float64 array of shape (1 or T, n, d)
        The points.
    lifetime : float
        The lifetime of the partitions.
    labels : int32 array of shape (n, T)
        Those of points from `start` on are the result, and ``NONE`` before.
    start : int
        The first new point.
    n_labels : int
        The number of labels so far.

    Returns
    -------
    int
        The number of labels.
    """
    for point in range(start, len(labels)):
        for t in range(len(forest.counters)):
            tree = tree_at(forest, t)
            x = points[t if len(points) > 1 else 0, point]
            label = _known_label(tree, _cell_of(tree, lifetime, x), labels, t)
            if label == NONE:
                label = n_labels
                n_labels += 1
            labels[point, t] = label
    return n_labels


@njit(cache=True, nogil=True)
def locate(forest, points, weights, lifetime, labels, found, stays):  # type: ignore[no-untyped-def]
    """Find the cells of points that are not in the trees; O(T d depth) each.

    A point outside of the data's boxes may be cut off on its way, by the conditional Mondrian
    (Balog2016thesis, section 1.3): a node of which it is at distance eta lets it pass with
    probability exp(-eta times the time the node has lived).

    Parameters
    ----------
    forest : Tree
        The trees.
    points : float64 array of shape (1 or T, m, d)
        The points.
    weights : float64 array of shape (d,)
        Rate weights of the dimensions.
    lifetime : float
        The lifetime of the partitions.
    labels : int32 array of shape (n, T)
        Labels of the points in the trees.
    found : int32 array of shape (m, T)
        Result: the label of the cell that each point is in unless it was cut off.
    stays : float64 array of shape (m, T)
        Result: the probability that it was not.
    """
    for t in range(len(forest.counters)):
        tree = tree_at(forest, t)
        own = points[t if len(points) > 1 else 0]
        for i in range(len(found)):
            node = tree.counters[ROOT]
            time, exponent = 0.0, 0.0
            while True:
                end = min(tree.split_time[node], lifetime)
                exponent += (end - time) * distance_outside(tree, node, weights, own, i)
                if is_leaf(tree, node) or tree.split_time[node] > lifetime:
                    break
                time = end
                node = child_towards(tree, node, own[i])
            found[i, t] = _known_label(tree, node, labels, t)
            stays[i, t] = math.exp(-exponent)


@njit(cache=True, nogil=True)
def arrange(forest, order, start, end):  # type: ignore[no-untyped-def]
    """Order the points so that those of every node stand side by side; O(T n).

    Parameters
    ----------
    forest : Tree
        The trees.
    order : int32 array of shape (T, n)
        Result: the points in the order of the leaves.
    start, end : int32 arrays of shape (T, capacity)
        Results: the points of node j of tree t are ``order[t, start[t, j]:end[t, j]]``.
    """
    for t in range(len(forest.counters)):
        tree = tree_at(forest, t)
        nodes = np.empty(tree.counters[N_NODES], dtype=np.int64)
        preorder(tree, nodes)
        done = 0
        for node in nodes:
            start[t, node] = done
            if is_leaf(tree, node):
                point = tree.children[node, FIRST_POINT]
                while point != NONE:
                    order[t, done] = point
                    done += 1
                    point = tree.next_point[point]
        for node in nodes:
            end[t, node] = start[t, node] + tree.size[node]
