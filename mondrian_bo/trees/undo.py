"""Undoing insertions: copies of the few entries that an insertion may overwrite.

An insertion changes the nodes on one path per tree, adds a few new ones and links a few points.
Recording and restoring m insertions therefore take O(m depth), where a copy of the forest takes
O(n). Every array is restored bit for bit, random streams included.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from mondrian_bo.shared.array_types import AnyArray, FloatArray, IntArray
from mondrian_bo.trees.layout import FIRST_POINT, N_NODES, NONE, ROOT
from mondrian_bo.trees.tree import NODE_FIELDS, Tree, child_towards, is_leaf, view_of


class Entry(NamedTuple):
    """The former content of all entries that some insertions may overwrite.

    Attributes
    ----------
    n_points : int
        Number of points before the first insertion.
    nodes : pair of int64 arrays
        Trees and nodes.
    node_content : list of arrays
        Entries of those nodes, one array per field.
    boxes : pair of int64 arrays
        Trees and boxes of those nodes.
    box_content : float array of shape (k, 2, d)
        Corners of those boxes.
    links : pair of int64 arrays
        Trees and points whose links may change.
    link_content : int32 array
        Links of those points.
    counters, stream : arrays
        Copies of the whole fields of the trees.
    """

    n_points: int
    nodes: tuple[IntArray, IntArray]
    node_content: list[NDArray[np.generic]]
    boxes: tuple[IntArray, IntArray]
    box_content: FloatArray
    links: tuple[IntArray, IntArray]
    link_content: NDArray[np.int32]
    counters: IntArray
    stream: NDArray[np.uint64]


NodeStats = tuple[AnyArray, ...]
"""Statistics of the nodes: arrays with an entry per tree and node."""


def _node_arrays(trees: Tree, node_stats: NodeStats) -> list[NDArray[np.generic]]:
    return [*(getattr(trees, name) for name in NODE_FIELDS), *node_stats]


@njit(cache=True, nogil=True)
def _touched_by(tree, points, room, nodes, linked):  # type: ignore[no-untyped-def]
    """List what the insertion of points may change: nodes, and points whose links change.

    An insertion adds nodes and never moves old ones. So the old nodes on the path of a later point
    are on its path before the first insertion.

    Parameters
    ----------
    tree : Tree
        The tree before the insertions.
    points : float64 array of shape (m, d)
        The points.
    room : int
        Largest number of points of a leaf whose links change.
    nodes, linked : int64 arrays
        Results, with repetitions.

    Returns
    -------
    tuple of int
        The numbers of nodes and points found. Arrays that are too short hold only the first.
    """
    n_nodes = 0
    n_linked = 0
    for i in range(len(points)):
        node = tree.counters[ROOT]
        while node != NONE:
            if n_nodes < len(nodes):
                nodes[n_nodes] = node
            n_nodes += 1
            if is_leaf(tree, node):
                point = tree.children[node, FIRST_POINT]
                for _ in range(room):
                    if point == NONE:
                        break
                    if n_linked < len(linked):
                        linked[n_linked] = point
                    n_linked += 1
                    point = tree.next_point[point]
                break
            node = child_towards(tree, node, points[i])
    return n_nodes, n_linked


def most_new_nodes(n_points: int, n_new: int, room: int) -> int:
    """Return a bound on the nodes that insertions add to a tree of `n_points` points."""
    # A binary tree has fewer than twice as many nodes as leaves, and no leaf is empty.
    return min(n_new * room, 2 * (n_points + n_new))


def record(
    trees: Tree, node_stats: NodeStats, points: FloatArray, n_points: int, room: int
) -> Entry:
    """Copy what the insertion of points may overwrite.

    Parameters
    ----------
    trees : Tree
        The forest, with capacity for the insertions (`most_new_nodes`).
    node_stats : NamedTuple of arrays
        Statistics of its nodes.
    points : float64 array of shape (S, m, d)
        The points, once (S = 1) or as each tree sees them (S = T).
    n_points : int
        Number of points so far.
    room : int
        Largest number of nodes that one insertion adds to a tree. It is also a bound on the number
        of points of a leaf that it links in a new order.
    """
    where, links = [], []
    n_new = points.shape[1]
    n_nodes_added = most_new_nodes(n_points, n_new, room)
    nodes = np.empty(64 * n_new + 192, dtype=np.int64)
    linked = np.empty(64 * n_new + 192, dtype=np.int64)
    for t in range(len(trees.counters)):
        tree = view_of(trees, t)
        seen = points[t if len(points) > 1 else 0]
        n_nodes, n_linked = _touched_by(tree, seen, room, nodes, linked)
        if n_nodes > len(nodes) or n_linked > len(linked):
            nodes, linked = np.empty((2, 2 * max(n_nodes, n_linked)), dtype=np.int64)
            _touched_by(tree, seen, room, nodes, linked)
        used = trees.counters[t, N_NODES]
        added = np.arange(used, used + n_nodes_added)
        inserted = np.arange(n_points, n_points + n_new)
        where.append(_of_tree(t, nodes[:n_nodes], added))
        links.append(_of_tree(t, linked[:n_linked], inserted))
    tree_of_node, node = np.concatenate(where, axis=1)
    tree_of_link, link = np.concatenate(links, axis=1)
    # The rows of nodes that do not exist yet have no meaning.
    known = node < trees.counters[tree_of_node, N_NODES]
    row = trees.row[tree_of_node, node]
    known &= row != NONE
    boxes = tree_of_node[known], row[known].astype(np.int64)
    return Entry(
        n_points,
        (tree_of_node, node),
        [field[tree_of_node, node] for field in _node_arrays(trees, node_stats)],
        boxes,
        trees.box[boxes],
        (tree_of_link, link),
        trees.next_point[tree_of_link, link],
        trees.counters.copy(),
        trees.stream.copy(),
    )


def _of_tree(tree: int, old: IntArray, new: IntArray) -> IntArray:
    """Return a tree's index and its entries, each once, shape (2, k)."""
    entries = np.concatenate([np.unique(old), new])
    return np.stack([np.full(len(entries), tree), entries])


def restore(trees: Tree, node_stats: NodeStats, entry: Entry) -> None:
    """Write the former content back."""
    for field, content in zip(_node_arrays(trees, node_stats), entry.node_content, strict=True):
        field[entry.nodes] = content
    trees.box[entry.boxes] = entry.box_content
    trees.next_point[entry.links] = entry.link_content
    trees.counters[:] = entry.counters
    trees.stream[:] = entry.stream
