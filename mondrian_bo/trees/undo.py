"""Undoing insertions: copies of the few entries that an insertion may overwrite.

An insertion changes the nodes on one path per tree, fills a few new ones and links a few points, so
recording and restoring is O(depth), where copying the forest would be O(n).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from mondrian_bo.array_types import AnyArray, FloatArray, IntArray
from mondrian_bo.trees.tree import (
    FIRST_POINT,
    N_NODES,
    NODE_FIELDS,
    NONE,
    ROOT,
    Tree,
    child_towards,
    is_leaf,
    view_of,
)


class Entry(NamedTuple):
    """The old content of what one insertion may overwrite.

    Attributes
    ----------
    n_points : int
        Number of points before the insertion.
    nodes : pair of int64 arrays
        Trees and nodes.
    node_content : list of arrays
        Their entries, one array per field.
    boxes : pair of int64 arrays
        Trees and boxes of those nodes.
    box_content : float array of shape (k, 2, d)
        Their corners.
    links : pair of int64 arrays
        Trees and points whose links may change.
    link_content : int32 array
        Their links.
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


Values = tuple[AnyArray, ...]
"""What the nodes carry: arrays with an entry per tree and node."""


def _node_arrays(trees: Tree, values: Values) -> list[NDArray[np.generic]]:
    return [*(getattr(trees, name) for name in NODE_FIELDS), *values]


@njit(cache=True, nogil=True)
def _touched_by(tree, x, room, chain, nodes, points):  # type: ignore[no-untyped-def]
    """List what the insertion of x may change: entries of node arrays and of `next_point`.

    Parameters
    ----------
    tree : Tree
        The tree before the insertion.
    x : float64 array of shape (d,)
        The point.
    room : int
        How many nodes the insertion may add.
    chain : int
        How many points of a leaf the insertion may link anew.
    nodes, points : int64 arrays
        Results.

    Returns
    -------
    tuple of int
        The numbers of nodes and points found; when `nodes` is too short it holds only a part.
    """
    n_nodes = 0
    n_points = 0
    node = tree.counters[ROOT]
    while node != NONE:
        if n_nodes < len(nodes):
            nodes[n_nodes] = node
        n_nodes += 1
        if is_leaf(tree, node):
            point = tree.children[node, FIRST_POINT]
            while point != NONE and n_points < chain:
                points[n_points] = point
                n_points += 1
                point = tree.next_point[point]
            break
        node = child_towards(tree, node, x)
    for k in range(room):
        if n_nodes < len(nodes):
            nodes[n_nodes] = tree.counters[N_NODES] + k
        n_nodes += 1
    return n_nodes, n_points


def record(trees: Tree, values: Values, point: FloatArray, n_points: int, room: int) -> Entry:
    """Copy what the insertion of a point may overwrite.

    Parameters
    ----------
    trees, values : Tree, Gaussian
        The forest, with room for the insertion.
    point : float64 array of shape (S, d)
        The point, once or as each tree sees it.
    n_points : int
        Number of points so far.
    room : int
        How many nodes an insertion may add to a tree, and so a bound on how many points of a leaf
        it may link anew.
    """
    where, links = [], []
    nodes = np.empty(256, dtype=np.int64)
    chain = np.empty(room, dtype=np.int64)
    for t in range(len(trees.counters)):
        tree = view_of(trees, t)
        x = point[t if len(point) > 1 else 0]
        n_nodes, n_links = _touched_by(tree, x, room, room, nodes, chain)
        if n_nodes > len(nodes):
            nodes = np.empty(2 * n_nodes, dtype=np.int64)
            _touched_by(tree, x, room, room, nodes, chain)
        where.append(np.stack([np.full(n_nodes, t), nodes[:n_nodes]]))
        links.append(np.stack([np.full(n_links + 1, t), np.append(chain[:n_links], n_points)]))
    tree_of_node, node = np.concatenate(where, axis=1)
    tree_of_link, link = np.concatenate(links, axis=1)
    # Entries of nodes that are yet to come say nothing.
    known = node < trees.counters[tree_of_node, N_NODES]
    row = trees.row[tree_of_node, node]
    known &= row != NONE
    boxes = tree_of_node[known], row[known].astype(np.int64)
    return Entry(
        n_points,
        (tree_of_node, node),
        [field[tree_of_node, node] for field in _node_arrays(trees, values)],
        boxes,
        trees.box[boxes],
        (tree_of_link, link),
        trees.next_point[tree_of_link, link],
        trees.counters.copy(),
        trees.stream.copy(),
    )


def restore(trees: Tree, values: Values, entry: Entry) -> None:
    """Write the old content back; the latest insertion is undone first."""
    for field, content in zip(_node_arrays(trees, values), entry.node_content, strict=True):
        field[entry.nodes] = content
    trees.box[entry.boxes] = entry.box_content
    trees.next_point[entry.links] = entry.link_content
    trees.counters[:] = entry.counters
    trees.stream[:] = entry.stream
