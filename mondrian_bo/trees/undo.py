"""Undoing insertions: copies of the few entries that an insertion may overwrite.

An insertion changes the nodes on one path per tree, adds a few new ones and links a few points.
Recording and restoring therefore take O(depth), where a copy of the forest takes O(n). Every array
is restored bit for bit, random streams included.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from mondrian_bo.array_types import AnyArray, FloatArray, IntArray
from mondrian_bo.trees.layout import FIRST_POINT, N_NODES, NONE, ROOT
from mondrian_bo.trees.tree import NODE_FIELDS, Tree, child_towards, is_leaf, view_of


class Entry(NamedTuple):
    """The former content of all entries that one insertion may overwrite.

    Attributes
    ----------
    n_points : int
        Number of points before the insertion.
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


Values = tuple[AnyArray, ...]
"""Statistics of the nodes: arrays with an entry per tree and node."""


def _node_arrays(trees: Tree, values: Values) -> list[NDArray[np.generic]]:
    return [*(getattr(trees, name) for name in NODE_FIELDS), *values]


@njit(cache=True, nogil=True)
def _touched_by(tree, x, room, chain, nodes, points):  # type: ignore[no-untyped-def]
    """List what the insertion of x may change: nodes, and points whose links change.

    Parameters
    ----------
    tree : Tree
        The tree before the insertion.
    x : float64 array of shape (d,)
        The point.
    room : int
        Largest number of nodes that the insertion adds.
    chain : int
        Largest number of points of a leaf whose links change.
    nodes, points : int64 arrays
        Results.

    Returns
    -------
    tuple of int
        The numbers of nodes and points found. If `nodes` is too short it holds only the first.
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
    trees : Tree
        The forest, with capacity for the insertion.
    values : NamedTuple of arrays
        Statistics of its nodes.
    point : float64 array of shape (S, d)
        The point, once (S = 1) or as each tree sees it (S = T).
    n_points : int
        Number of points so far.
    room : int
        Largest number of nodes that the insertion adds to a tree. It is also a bound on the number
        of points of a leaf that it links in a new order.
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
    # The rows of nodes that do not exist yet have no meaning.
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
    """Write the former content back; the latest insertion must be undone first."""
    for field, content in zip(_node_arrays(trees, values), entry.node_content, strict=True):
        field[entry.nodes] = content
    trees.box[entry.boxes] = entry.box_content
    trees.next_point[entry.links] = entry.link_content
    trees.counters[:] = entry.counters
    trees.stream[:] = entry.stream
