"""The partitions that trees with split times are at every lifetime (Balog2016, section 4.1).

At lifetime L the cells of a tree are the topmost nodes that have not split by then. Cells of all
trees are numbered together, and the cell of each point in each tree is an array of shape (n, T).
Cell numbers are columns of features. An insertion never separates older points, so the numbers of
their cells stay.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from mondrian_bo.trees.layout import FIRST_POINT, LEFT, N_NODES, NONE, RIGHT, ROOT
from mondrian_bo.trees.tree import child_towards, distance_outside, is_leaf, preorder, tree_at


@njit(cache=True, nogil=True)
def assign_cells(forest, lifetime, cells):  # type: ignore[no-untyped-def]
    """Write the cell of each point at a lifetime, and number the cells afresh; O(T n).

    Parameters
    ----------
    forest : Tree
        The trees.
    lifetime : float
        Nodes that split at this time or before have split.
    cells : int32 array of shape (n, T)
        Result.

    Returns
    -------
    int
        The number of cells of all trees; those of a tree follow those of the tree before.
    """
    n_cells = 0
    for t in range(len(forest.counters)):
        tree = tree_at(forest, t)
        nodes = np.empty(tree.counters[N_NODES], dtype=np.int64)
        preorder(tree, nodes)
        # In preorder, the nodes of a cell follow its topmost one.
        for node in nodes:
            parent = tree.parent[node]
            starts = parent == NONE or tree.split_time[parent] <= lifetime
            if starts and (is_leaf(tree, node) or tree.split_time[node] > lifetime):
                n_cells += 1
            if is_leaf(tree, node):
                point = tree.children[node, FIRST_POINT]
                while point != NONE:
                    cells[point, t] = n_cells - 1
                    point = tree.next_point[point]
    return n_cells


@njit(cache=True, nogil=True)
def _known_cell(tree, node, cells, t):  # type: ignore[no-untyped-def]
    """Return the cell of a point below a node whose cell is known, or NONE; O(depth) as a rule."""
    top = node
    while True:
        if is_leaf(tree, node):
            point = tree.children[node, FIRST_POINT]
            while point != NONE:
                if cells[point, t] != NONE:
                    return cells[point, t]
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
def _top_node(tree, lifetime, x):  # type: ignore[no-untyped-def]
    """Return the topmost node of the cell that holds x at a lifetime."""
    node = tree.counters[ROOT]
    while not is_leaf(tree, node) and tree.split_time[node] <= lifetime:
        node = child_towards(tree, node, x)
    return node


@njit(cache=True, nogil=True)
def assign_new_cells(forest, points, lifetime, cells, start, n_cells):  # type: ignore[no-untyped-def]
    """Write the cells of inserted points; new cells get new numbers, point after point.

    Parameters
    ----------
    forest : Tree
        The trees, with all points.
    points : float64 array of shape (1 or T, n, d)
        The points.
    lifetime : float
        The lifetime of the partitions.
    cells : int32 array of shape (n, T)
        The cell of each point: known before `start`, and written from `start` on, where the
        entries are ``NONE`` at first.
    start : int
        The first new point.
    n_cells : int
        The number of cells so far.

    Returns
    -------
    int
        The number of cells.
    """
    for point in range(start, len(cells)):
        for t in range(len(forest.counters)):
            tree = tree_at(forest, t)
            x = points[t if len(points) > 1 else 0, point]
            cell = _known_cell(tree, _top_node(tree, lifetime, x), cells, t)
            if cell == NONE:
                cell = n_cells
                n_cells += 1
            cells[point, t] = cell
    return n_cells


@njit(cache=True, nogil=True)
def locate(forest, points, rates, lifetime, cells, found, stays):  # type: ignore[no-untyped-def]
    """Find the cells of points that are not in the trees; O(T d depth) each.

    The conditional Mondrian may separate a point from the data wherever it lies outside of a node's
    box (Balog2016thesis, section 1.3). A node at distance eta does not separate it with probability
    exp(-eta * duration), where the duration is the time from the split of the parent to the split
    of the node.

    Parameters
    ----------
    forest : Tree
        The trees.
    points : float64 array of shape (1 or T, m, d)
        The points.
    rates : float64 array of shape (d,)
        Split rates of the dimensions.
    lifetime : float
        The lifetime of the partitions.
    cells : int32 array of shape (n, T)
        The cells of the points in the trees.
    found : int32 array of shape (m, T)
        Result: the cell that each point is in unless a new split separates it.
    stays : float64 array of shape (m, T)
        Result: the probability that no split does.
    """
    for t in range(len(forest.counters)):
        tree = tree_at(forest, t)
        own = points[t if len(points) > 1 else 0]
        for i in range(len(found)):
            node = tree.counters[ROOT]
            time, exponent = 0.0, 0.0
            while True:
                end = min(tree.split_time[node], lifetime)
                # The distance of points near the largest number is infinite.
                if end > time:
                    exponent += (end - time) * distance_outside(tree, node, rates, own, i)
                if is_leaf(tree, node) or tree.split_time[node] > lifetime:
                    break
                time = end
                node = child_towards(tree, node, own[i])
            found[i, t] = _known_cell(tree, node, cells, t)
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
