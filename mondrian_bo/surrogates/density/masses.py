"""Posterior masses of the cells of a partition (Balog2016thesis, appendix C), and their path."""

from __future__ import annotations

import numpy as np
from numba import njit

from mondrian_bo.shared.array_types import FloatArray, IntArray
from mondrian_bo.trees.layout import LEFT, N_NODES, RIGHT, ROOT
from mondrian_bo.trees.tree import Tree, is_leaf, tree_at

WITH, WITHOUT = 0, 1
"""Densities given all points, and given all but the one at which they are evaluated."""

_WIDEST = 300.0
"""Largest logarithm of a density relative to the shift of its sum: sums and squares are finite."""

_SMALLEST_SHARE = 1e-10
"""Share of its largest value below which a sum over trees is computed anew: errors of compensated
sums, of size 1e-32 times that value and the number of changes, stay far below 1e-12 of the sum."""


@njit(cache=True, nogil=True)
def fill_log_densities(forest, fractions, concentration, densities):  # type: ignore[no-untyped-def]
    """Compute the expected density of every node's cell, relative to the uniform one.

    A node of depth d with n points shares its mass by a Beta variable. A child with the fraction f
    of the volume and k of the points gets ``(g f + k) / (g + n)`` of it in expectation, with
    ``g = concentration (d + 1)^2``. Its density is the parent's times that over f. A point that is
    left out counts neither in n nor in k, all along its path.

    Parameters
    ----------
    forest : Tree
        The arrays of all trees, `size` being the numbers of points.
    fractions : float64 array of shape (T, capacity)
        Share of each node in the volume of its parent.
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
            prior = concentration * (depth[node] + 1.0) ** 2
            size = tree.size[node]
            for side in (LEFT, RIGHT):
                child = tree.children[node, side]
                depth[child] = depth[node] + 1
                fraction = fractions[t, child]
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
def _sum_over_trees(log_densities):  # type: ignore[no-untyped-def]
    """Return the largest log density of a point, 0 if all are -inf, and the sum relative to it."""
    shift = np.max(log_densities)
    if shift == -np.inf:
        return 0.0, 0.0
    total = 0.0
    for t in range(len(log_densities)):
        total += np.exp(log_densities[t] - shift)
    return shift, total


@njit(cache=True, nogil=True)
def _plus(total, lost, change):  # type: ignore[no-untyped-def]
    """Return a sum after a change, and what rounding has lost of it so far (Neumaier)."""
    new = total + change
    if abs(total) >= abs(change):
        return new, lost + ((total - new) + change)
    return new, lost + ((change - new) + total)


@njit(cache=True, nogil=True)
def follow_splits(forest, densities, leaves, split_trees, split_nodes, path):  # type: ignore[no-untyped-def]
    """Write the mean log density of points, relative to the uniform one, after each split.

    Each split changes the density of the points of one cell alone (Balog2016thesis, section 4.1).
    So the whole path takes as long as all points take to go down the trees. The sum over trees of a
    point's densities changes by a difference. It is computed anew, which takes O(T), where its
    densities grow beyond the range of float64, and where it falls so far that rounding errors of
    the former sum would show.

    Parameters
    ----------
    forest : Tree
        The arrays of all trees.
    densities : float64 array of shape (T, capacity)
        Log density of every node's cell; -inf is allowed.
    leaves : int64 array of shape (n, T)
        The leaf of each point in each tree.
    split_trees, split_nodes : int64 arrays of shape (K,)
        The nodes that split, in the order of time.
    path : float64 array of shape (K + 1,)
        Results: before the first split, and after each; -inf where a point has no density.
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
    current = np.zeros((n_points, n_trees))
    # Sums over trees, relative to exp(shift), with compensation: a large density may be added and
    # taken away.
    shifts = np.zeros(n_points)
    sums = np.full(n_points, float(n_trees))
    lost = np.zeros(n_points)
    largest = sums.copy()
    logs = np.full(n_points, np.log(n_trees))
    total, total_lost, n_infinite = 0.0, 0.0, 0
    path[0] = 0.0
    for k in range(len(split_nodes)):
        t, node = split_trees[k], split_nodes[k]
        former = densities[t, node]
        for side in (LEFT, RIGHT):
            child = forest.children[t, node, side]
            latter = densities[t, child]
            # The change of nearly all points, whose shift is 0.
            usual_change = np.exp(latter) - np.exp(former)
            for i in range(first[t, child], first[t, child] + size[t, child]):
                point = order[t, i]
                current[point, t] = latter
                shift = shifts[point]
                is_safe = latter - shift < _WIDEST
                if is_safe:
                    change = usual_change
                    if shift != 0.0:
                        change = np.exp(latter - shift) - np.exp(former - shift)
                    sums[point], lost[point] = _plus(sums[point], lost[point], change)
                    largest[point] = max(largest[point], sums[point])
                    is_safe = sums[point] + lost[point] > _SMALLEST_SHARE * largest[point]
                if not is_safe:
                    shift, sums[point] = _sum_over_trees(current[point])
                    shifts[point], lost[point], largest[point] = shift, 0.0, sums[point]
                log = -np.inf
                if sums[point] > 0.0:
                    log = shift + np.log(sums[point] + lost[point])
                # Infinite terms are counted, as their differences would be NaN.
                n_infinite += int(log == -np.inf) - int(logs[point] == -np.inf)
                change = (0.0 if log == -np.inf else log) - (
                    0.0 if logs[point] == -np.inf else logs[point]
                )
                total, total_lost = _plus(total, total_lost, change)
                logs[point] = log
        path[k + 1] = (total + total_lost) / n_points if n_infinite == 0 else -np.inf


def splits_in_order(arrays: Tree) -> tuple[FloatArray, IntArray, IntArray]:
    """Return the times of all splits in order, their trees and their nodes."""
    trees, nodes = np.nonzero(arrays.children[:, :, LEFT] > 0)
    times = arrays.split_time[trees, nodes].astype(np.float64)
    order = np.argsort(times, kind="stable")
    return times[order], trees[order].astype(np.int64), nodes[order].astype(np.int64)
