"""Posterior masses of the cells of a partition (Balog2016thesis, appendix C), and their path."""

from __future__ import annotations

import numpy as np
from numba import njit

from mondrian_bo.shared.array_types import FloatArray, IntArray
from mondrian_bo.trees.layout import LEFT, LOWER, N_NODES, RIGHT, ROOT, UPPER
from mondrian_bo.trees.tree import Tree, is_leaf, tree_at

WITH, WITHOUT = 0, 1
"""Densities given all points, and given all but the one at which they are evaluated."""


@njit(cache=True, nogil=True)
def fill_log_densities(forest, concentration, densities):  # type: ignore[no-untyped-def]
    """Compute the expected density of every node's cell, relative to the uniform one.

    A node of depth d with n points shares its mass by a Beta variable. A child with the fraction f
    of the volume and k of the points gets ``(g f + k) / (g + n)`` of it in expectation, with
    ``g = concentration (d + 1)^2``. Its density is the parent's times that over f. A point that is
    left out counts neither in n nor in k, all along its path.

    Parameters
    ----------
    forest : Tree
        The arrays of all trees, `size` being the numbers of points.
    concentration : float
        The gamma of appendix C.
    densities : float64 array of shape (2, T, capacity)
        Results, as logarithms: `WITH` all points, and `WITHOUT` one of those in the cell.
    """
    for t in range(len(forest.counters)):
        tree = tree_at(forest, t)
        n_nodes = tree.counters[N_NODES]
        depth = np.zeros(n_nodes, dtype=np.int64)
        root = tree.counters[ROOT]
        densities[WITH, t, root] = 0.0
        densities[WITHOUT, t, root] = 0.0
        # Children come after their parents.
        for node in range(n_nodes):
            if is_leaf(tree, node):
                continue
            d = tree.dimension[node]
            low, high = tree.box[node, LOWER, d], tree.box[node, UPPER, d]
            prior = concentration * (depth[node] + 1.0) ** 2
            size = tree.size[node]
            for side in (LEFT, RIGHT):
                child = tree.children[node, side]
                depth[child] = depth[node] + 1
                threshold = tree.threshold[node]
                width = threshold - low if side == LEFT else high - threshold
                fraction = width / (high - low)
                points = tree.size[child]
                share = (prior + points / fraction) / (prior + size)
                densities[WITH, t, child] = densities[WITH, t, node] + np.log(share)
                densities[WITHOUT, t, child] = densities[WITHOUT, t, node]
                if points > 0:
                    share = (prior + (points - 1) / fraction) / (prior + (size - 1))
                    densities[WITHOUT, t, child] += np.log(share)


@njit(cache=True, nogil=True)
def _sort_points(tree, leaves, first, order):  # type: ignore[no-untyped-def]
    """Order points so that those of a node are ``order[first[node] : first[node] + size]``.

    Returns the sizes; `first` and `order` are results.
    """
    n_nodes = tree.counters[N_NODES]
    size = np.zeros(n_nodes, dtype=np.int64)
    for i in range(len(leaves)):
        size[leaves[i]] += 1
    for node in range(n_nodes - 1, -1, -1):
        if not is_leaf(tree, node):
            size[node] = size[tree.children[node, LEFT]] + size[tree.children[node, RIGHT]]
    first[tree.counters[ROOT]] = 0
    for node in range(n_nodes):
        if not is_leaf(tree, node):
            left = tree.children[node, LEFT]
            first[left] = first[node]
            first[tree.children[node, RIGHT]] = first[node] + size[left]
    place = first.copy()
    for i in range(len(leaves)):
        order[place[leaves[i]]] = i
        place[leaves[i]] += 1
    return size


@njit(cache=True, nogil=True)
def follow_splits(forest, densities, leaves, split_trees, split_nodes, path):  # type: ignore[no-untyped-def]
    """Write the mean log density of points, relative to the uniform one, after each split.

    Each split changes the density of the points of one cell alone (Balog2016thesis, section 4.1).
    So the whole path takes as long as all points take to go down the trees.

    Parameters
    ----------
    forest : Tree
        The arrays of all trees.
    densities : float64 array of shape (T, capacity)
        Log density of every node's cell.
    leaves : int64 array of shape (n, T)
        The leaf of each point in each tree.
    split_trees, split_nodes : int64 arrays of shape (K,)
        The nodes that split, in the order of time.
    path : float64 array of shape (K + 1,)
        Results: before the first split, and after each.
    """
    n_points, n_trees = leaves.shape
    capacity = densities.shape[1]
    first = np.zeros((n_trees, capacity), dtype=np.int64)
    size = np.zeros((n_trees, capacity), dtype=np.int64)
    order = np.zeros((n_trees, n_points), dtype=np.int64)
    for t in range(n_trees):
        tree = tree_at(forest, t)
        found = _sort_points(tree, leaves[:, t], first[t], order[t])
        size[t, : len(found)] = found
    # Sums over trees with compensation (Neumaier): a large density may be added and taken away.
    sums = np.full(n_points, float(n_trees))
    lost = np.zeros(n_points)
    logs = np.full(n_points, np.log(n_trees))
    total = 0.0
    path[0] = 0.0
    for k in range(len(split_nodes)):
        t, node = split_trees[k], split_nodes[k]
        before = np.exp(densities[t, node])
        for side in (LEFT, RIGHT):
            child = forest.children[t, node, side]
            change = np.exp(densities[t, child]) - before
            for i in range(first[t, child], first[t, child] + size[t, child]):
                point = order[t, i]
                old = sums[point]
                new = old + change
                if abs(old) >= abs(change):
                    lost[point] += (old - new) + change
                else:
                    lost[point] += (change - new) + old
                sums[point] = new
                log = np.log(new + lost[point])
                total += log - logs[point]
                logs[point] = log
        path[k + 1] = total / n_points


def splits_in_order(forest: Tree) -> tuple[FloatArray, IntArray, IntArray]:
    """Return the times of all splits in order, their trees and their nodes."""
    trees, nodes = np.nonzero(forest.children[:, :, LEFT] > 0)
    times = forest.split_time[trees, nodes].astype(np.float64)
    order = np.argsort(times, kind="stable")
    return times[order], trees[order].astype(np.int64), nodes[order].astype(np.int64)
