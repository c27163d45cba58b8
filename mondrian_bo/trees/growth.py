"""Growing Mondrian trees (Lakshminarayanan2016): in a batch (Algorithms 1, 2) or online (3, 4).

Distances are weighted by `rates`, one rate per dimension: a block with data extents e_d splits at
rate ``sum_d rates[d] * e_d``. With ``rates[d] = 1 / range_d`` this is the paper's pre-processing to
[0, 1]. Other rates are the per-dimension lifetimes of Balog2016thesis, chapter 5.

A leaf with fewer than `min_samples_split` points is *paused*: a new point widens its box and joins
it. When the leaf holds enough points, its block is sampled from them. Online and batch learning
then have the same distribution; with Algorithm 4 as printed that holds only for
``min_samples_split=2``. Where classes are given, a leaf of one class is paused too, until a point
of a second class arrives. A block of zero extent (duplicates) has rate 0 and never splits.

``min_samples_split=1`` is for forests that always grow online (Mourtada2021, Algorithms 4, 5). No
leaf waits for more points. A leaf of one class is separated from a point of another class outside
of its box, by a split between the two; if the point is inside of the box, the block is sampled.
Until then the leaf does not change, so it may lack a box, which is computed from its points when it
is needed.

A tree may have a limit of nodes (Khannouz2022). A tree that has no room for another split is full:
a new point follows the existing splits, and the boxes on its path are extended to hold it, as in
the strategy "extend node" of Khannouz2022. Nothing is ever split again. Trees that are aggregated
(:mod:`mondrian_bo.trees.recycling`) make room instead.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from mondrian_bo.trees.compiling import BORROWING, COUNTING, INLINED, INNER, INNER_COUNTING
from mondrian_bo.trees.layout import (
    FIRST_POINT,
    LEFT,
    LOWER,
    N_NODES,
    NONE,
    PAUSED,
    RIGHT,
    ROOT,
    UPPER,
)
from mondrian_bo.trees.random import exponential, exponential_below, uniform
from mondrian_bo.trees.tree import (
    add_box,
    add_leaf,
    child_towards,
    corners,
    distance_outside,
    is_leaf,
    link_point,
    set_split,
    tree_at,
    widen,
)

_FEW = 32
"""Points up to which a leaf of one class gives its box to a new parent instead of copying it.

The box of so few points is fast to compute again. Our choice; results do not depend on it.
"""

_STACK_DEPTH = 64
"""Entries of the stack of :func:`sample_block`, enough for 2**64 points."""


NO_LIMIT = 2**62
"""Value of :attr:`GrowthSettings.max_nodes` for trees without a limit."""


class GrowthSettings(NamedTuple):
    """When blocks are split. The types are fixed, so that functions are compiled once.

    Attributes
    ----------
    min_samples_split : int
        Blocks with fewer points are not split.
    lifetime : float
        Blocks are not split later than this; infinity for no limit.
    max_nodes : int, default=NO_LIMIT
        Largest number of nodes of a tree that grows online.
    """

    min_samples_split: int
    lifetime: float
    max_nodes: int = NO_LIMIT


ALWAYS_ONLINE = GrowthSettings(min_samples_split=1, lifetime=np.inf)
"""Settings of forests that always grow online (Mourtada2021), see the module's docstring."""


@njit(**INNER)
def ensure_box(tree, leaf):  # type: ignore[no-untyped-def]
    """Compute the box of a leaf from its points, if it has none."""
    if tree.row[leaf] != NONE:
        return
    box = tree.box[add_box(tree, leaf)]
    member = tree.children[leaf, FIRST_POINT]
    while member != NONE:
        widen(box, tree.points[member])
        member = tree.next_point[member]


@njit(**INNER)
def _join(tree, leaf, point, x):  # type: ignore[no-untyped-def]
    """Add a point to a leaf and widen its box."""
    if tree.size[leaf] > 0:
        ensure_box(tree, leaf)
        widen(tree.box[tree.row[leaf]], x)
    link_point(tree, leaf, point)


@njit(**BORROWING)
def draw_location(stream, low, high):  # type: ignore[no-untyped-def]
    """Draw a location from [low, high), so that a point at `high` is always on its right."""
    location = low + uniform(stream) * (high - low)
    return location if location < high else low


@njit(**BORROWING)
def choose_dimension(stream, extents, total):  # type: ignore[no-untyped-def]
    """Draw dimension d with probability extents[d] / total."""
    remaining = uniform(stream) * total
    chosen = 0
    for d in range(len(extents)):
        if extents[d] > 0.0:
            chosen = d
            remaining -= extents[d]
            if remaining < 0.0:
                break
    return chosen


@njit(**INNER)
def _partition(points, order, start, end, dimension, threshold):  # type: ignore[no-untyped-def]
    """Reorder order[start:end] so that the left points come first; return the first right index.

    As quicksort does. :func:`mondrian_bo.trees.traversal.split_points` keeps the order of points,
    which needs an array of its own and gives the leaves' lists of points in another order.
    """
    low, high = start, end - 1
    while True:
        while low <= high and points[order[low], dimension] <= threshold:
            low += 1
        while low <= high and points[order[high], dimension] > threshold:
            high -= 1
        if low >= high:
            return low
        order[low], order[high] = order[high], order[low]


@njit(**INNER)
def _bound(tree, node, points, order, start, end):  # type: ignore[no-untyped-def]
    """Give a node the box of order[start:end], unless it is a single point."""
    if end - start > 1:
        box = tree.box[add_box(tree, node)]
        for i in range(start, end):
            widen(box, points[order[i]])  # Algorithm 2, line 1


@njit(**INNER)
def _may_split(order, start, end, min_samples_split, classes):  # type: ignore[no-untyped-def]
    """Whether a block of the points order[start:end] may split, or is paused."""
    if end - start < min_samples_split:  # Algorithm 2, line 2
        return False
    if len(classes) == 0:
        return True
    for i in range(start + 1, end):  # noqa: SIM110 - a generator takes long to compile
        if classes[order[i]] != classes[order[start]]:
            return True
    return False


@njit(**INNER_COUNTING)
def sample_block(tree, points, order, top, rates, classes, settings):  # type: ignore[no-untyped-def]
    """Sample the splits of the block below a leaf from its points (Algorithm 2), iteratively.

    Parameters
    ----------
    tree : Tree
        Must have capacity for ``2 * len(order) - 2`` more nodes.
    points : float64 array of shape (n, d)
        Stored points.
    order : int32 array
        The points of the block; reordered in place, as quicksort does.
    top : int
        The leaf, with its box and size set.
    rates : float64 array of shape (d,)
        Split rate of each dimension.
    classes : int32 array of shape (n,)
        The classes of the points if blocks of one class are not to be split, else empty.
    settings : GrowthSettings
        When blocks are split.
    """
    min_samples_split, lifetime, max_nodes = settings
    extents = np.empty(points.shape[1])
    # The smaller half is done first, so that the stack holds at most log2(n) entries.
    stack_node = np.empty(_STACK_DEPTH, dtype=np.int64)
    stack_start = np.empty(_STACK_DEPTH, dtype=np.int64)
    stack_end = np.empty(_STACK_DEPTH, dtype=np.int64)
    stack_node[0], stack_start[0], stack_end[0] = top, 0, len(order)
    pending = 1
    while pending > 0:
        pending -= 1
        node, start, end = stack_node[pending], stack_start[pending], stack_end[pending]
        time = lifetime  # Algorithm 2, line 11, where the lifetime is infinite
        rate = 0.0
        may_split = _may_split(order, start, end, min_samples_split, classes)
        may_split &= tree.counters[N_NODES] + 2 <= max_nodes
        if tree.row[node] == NONE and (may_split or min_samples_split > 1):
            _bound(tree, node, points, order, start, end)
        row = tree.row[node]
        if may_split and row != NONE:
            for d in range(len(extents)):
                extents[d] = rates[d] * (tree.box[row, UPPER, d] - tree.box[row, LOWER, d])
                rate += extents[d]
            if rate > 0.0:
                parent = tree.parent[node]
                parent_time = tree.split_time[parent] if parent != NONE else 0.0
                time = parent_time + exponential(tree.stream) / rate  # Algorithm 2, lines 3, 4
        if not time < lifetime:
            tree.dimension[node] = NONE if may_split else PAUSED
            tree.children[node, FIRST_POINT] = NONE
            for i in range(start, end):
                tree.next_point[order[i]] = tree.children[node, FIRST_POINT]
                tree.children[node, FIRST_POINT] = order[i]
            continue
        dimension = choose_dimension(tree.stream, extents, rate)  # Algorithm 2, line 5
        threshold = draw_location(  # Algorithm 2, line 6
            tree.stream, tree.box[row, LOWER, dimension], tree.box[row, UPPER, dimension]
        )
        middle = _partition(points, order, start, end, dimension, threshold)  # Algorithm 2, line 7
        left = add_leaf(tree, node, lifetime)
        right = add_leaf(tree, node, lifetime)
        tree.size[left], tree.size[right] = middle - start, end - middle
        tree.children[node, LEFT], tree.children[node, RIGHT] = left, right
        set_split(tree, node, dimension, threshold, time)
        small, large = (left, right) if middle - start <= end - middle else (right, left)
        for child in (large, small):  # Algorithm 2, lines 8, 9
            stack_node[pending] = child
            stack_start[pending] = start if child == left else middle
            stack_end[pending] = middle if child == left else end
            pending += 1


@njit(**INNER_COUNTING)
def sample_tree(tree, points, n_points, rates, classes, settings):  # type: ignore[no-untyped-def]
    """Grow an empty tree from the first `n_points` stored points (Algorithm 1).

    The tree must have capacity for ``2 * n_points - 1`` nodes. O(d n log n) for balanced trees.
    The other parameters are those of :func:`sample_block`.
    """
    order = np.arange(n_points).astype(np.int32)
    root = add_leaf(tree, np.int64(NONE), settings.lifetime)
    tree.counters[ROOT] = root
    tree.size[root] = n_points
    _bound(tree, root, points, order, 0, n_points)
    sample_block(tree, points, order, root, rates, classes, settings)


@njit(**INNER_COUNTING)
def _open(tree, node, point, points, rates, classes, settings):  # type: ignore[no-untyped-def]
    """Sample the block of a paused leaf that a point has just joined, if it may split now."""
    size = tree.size[node]
    if size < settings.min_samples_split:
        return
    # A leaf that was paused with enough points holds one class, apart from the new point, which is
    # the head of its list.
    if (
        len(classes) > 0
        and size > settings.min_samples_split
        and classes[tree.next_point[point]] == classes[point]
    ):
        return
    order = np.empty(size, dtype=np.int32)
    member = tree.children[node, FIRST_POINT]
    for i in range(size):
        order[i] = member
        member = tree.next_point[member]
    if _may_split(order, 0, size, settings.min_samples_split, classes):
        sample_block(tree, points, order, node, rates, classes, settings)


@njit(**INNER)
def draw_separation(tree, lower, upper, x, rates, total):  # type: ignore[no-untyped-def]
    """Draw a split that separates x from a box at distance `total` (Algorithm 4, lines 1, 4, 5).

    Returns its dimension, its location, and whether x is above.
    """
    remaining = uniform(tree.stream) * total
    dimension = 0
    for k in range(len(x)):  # Algorithm 4, lines 1, 4
        extent = rates[k] * (max(x[k] - upper[k], 0.0) + max(lower[k] - x[k], 0.0))
        if extent > 0.0:
            dimension = k
            remaining -= extent
            if remaining < 0.0:
                break
    above = x[dimension] > upper[dimension]
    if above:  # Algorithm 4, line 5
        threshold = draw_location(tree.stream, upper[dimension], x[dimension])
    else:
        threshold = draw_location(tree.stream, x[dimension], lower[dimension])
    return dimension, threshold, above


@njit(**INNER)
def put_above(tree, node, inner, leaf, above):  # type: ignore[no-untyped-def]
    """Put `inner` between a node and its parent, with `leaf` as other child (Algorithm 4, line 8).

    `above` is whether the leaf is on the right.
    """
    parent = np.int64(tree.parent[node])
    tree.children[inner, LEFT] = node if above else leaf
    tree.children[inner, RIGHT] = leaf if above else node
    tree.parent[inner], tree.parent[leaf], tree.parent[node] = parent, inner, inner
    tree.size[inner] = tree.size[node] + 1
    if parent == NONE:
        tree.counters[ROOT] = inner
    elif tree.children[parent, LEFT] == node:
        tree.children[parent, LEFT] = inner
    else:
        tree.children[parent, RIGHT] = inner


@njit(**INNER)
def _insert_above(tree, node, x, time, rates, total, lifetime):  # type: ignore[no-untyped-def]
    """Insert a node above `node` whose split separates x from its box (Algorithm 4, lines 4 to 8).

    `total` is the distance of x from the box. Returns the new inner node; the next node is its new
    leaf, which is still empty.
    """
    lower, upper = corners(tree, node)
    dimension, threshold, above = draw_separation(tree, lower, upper, x, rates, total)
    parent = np.int64(tree.parent[node])
    # The inner node comes before its leaf: among new nodes, parents precede their children.
    inner = add_leaf(tree, parent, lifetime)  # Algorithm 4, line 6
    leaf = add_leaf(tree, inner, lifetime)
    row = tree.row[node]
    if row != NONE and tree.dimension[node] == PAUSED and tree.size[node] <= _FEW:
        tree.row[inner], tree.row[node] = row, NONE
    else:
        add_box(tree, inner)
    hull = tree.box[tree.row[inner]]
    for k in range(len(x)):  # Algorithm 4, line 7
        hull[LOWER, k] = min(lower[k], x[k])
        hull[UPPER, k] = max(upper[k], x[k])
    set_split(tree, inner, dimension, threshold, time)
    put_above(tree, node, inner, leaf, above)  # Algorithm 4, line 8
    return inner


@njit(**INNER)
def extend_nodes(tree, x):  # type: ignore[no-untyped-def]
    """Count a point in the nodes on its path, and extend their boxes to hold it; return its leaf.

    "Extend node" of Khannouz2022. The point is not linked to its leaf.
    """
    node = np.int64(tree.counters[ROOT])
    while True:
        if is_leaf(tree, node):
            ensure_box(tree, node)
        widen(tree.box[tree.row[node]], x)
        tree.size[node] += 1
        if is_leaf(tree, node):
            return node
        node = np.int64(child_towards(tree, node, x))


@njit(**INLINED)
def extend_tree(tree, points, point, rates, classes, settings):  # type: ignore[no-untyped-def]
    """Insert one stored point (Algorithms 3, 4); O(d log n) for balanced trees.

    Parameters
    ----------
    tree : Tree
        Must have capacity for ``max(2, 2 * min_samples_split - 2)`` more nodes; with `classes`, for
        ``2 * point + 1`` nodes in all.
    points : float64 array of shape (n, d)
        Stored points.
    point : int
        The point to insert.
    rates : float64 array of shape (d,)
        Split rate of each dimension.
    classes : int32 array of shape (n,)
        See :func:`sample_block`.
    settings : GrowthSettings
        When blocks are split.

    Returns
    -------
    int
        The topmost node whose subtree changed in more than boxes and sizes: a leaf that the point
        joined, the leaf that split, or the node inserted above another. All new nodes are in its
        subtree, parents numbered before children.
    """
    min_samples_split, lifetime, max_nodes = settings
    x = points[point]
    all_rates_positive = True
    for d in range(len(rates)):
        all_rates_positive &= rates[d] > 0.0
    lone_is_paused = min_samples_split > 1 or len(classes) > 0
    if tree.counters[N_NODES] == 0:
        root = add_leaf(tree, np.int64(NONE), lifetime)
        tree.dimension[root] = PAUSED if lone_is_paused else NONE
        tree.counters[ROOT] = root
        link_point(tree, root, point)
        return root
    if tree.counters[N_NODES] + 2 > max_nodes:
        full_leaf = extend_nodes(tree, x)
        tree.size[full_leaf] -= 1
        link_point(tree, full_leaf, point)
        return full_leaf
    node = tree.counters[ROOT]
    parent_time = 0.0
    while True:
        leaf = is_leaf(tree, node)
        if tree.dimension[node] == PAUSED:
            if min_samples_split > 1:
                _join(tree, node, point, x)
                _open(tree, node, point, points, rates, classes, settings)
                return node
            if classes[tree.children[node, FIRST_POINT]] == classes[point]:
                link_point(tree, node, point)
                if tree.row[node] != NONE:
                    widen(tree.box[tree.row[node]], x)
                return node
            if tree.size[node] > 1:
                ensure_box(tree, node)
        rate = distance_outside(tree, node, rates, points, point)  # Algorithm 4, line 1
        if rate > 0.0:
            # Algorithm 4, lines 2, 3
            waiting = exponential_below(tree.stream, rate * (tree.split_time[node] - parent_time))
            time = parent_time + waiting / rate
            if time < tree.split_time[node]:
                inner = _insert_above(tree, node, x, time, rates, rate, lifetime)
                new_leaf = inner + 1
                tree.dimension[new_leaf] = PAUSED if lone_is_paused else NONE
                link_point(tree, new_leaf, point)  # Algorithm 4, line 9
                return inner
        if leaf:
            _join(tree, node, point, x)
            if tree.dimension[node] == PAUSED:
                _open(tree, node, point, points, rates, classes, settings)
            return node
        if rate > 0.0 or not all_rates_positive:
            widen(tree.box[tree.row[node]], x)  # Algorithm 4, line 11
        tree.size[node] += 1
        parent_time = tree.split_time[node]
        node = child_towards(tree, node, x)  # Algorithm 4, lines 13, 14


@njit(**COUNTING)
def sample_forest(forest, points, n_points, rates, classes, settings):  # type: ignore[no-untyped-def]
    """Grow all trees of an empty forest from the first points of `points`, (1 or T, n, d).

    The other parameters are those of :func:`sample_tree`.
    """
    for t in range(len(forest.counters)):
        own = points[t if len(points) > 1 else 0]
        sample_tree(tree_at(forest, t), own, n_points, rates, classes, settings)


@njit(**COUNTING)
def extend_forest(forest, points, progress, end, rates, classes, settings):  # type: ignore[no-untyped-def]
    """Insert stored points into all trees, without updating the nodes' statistics of the targets.

    ``progress[t]`` is the next point of tree t and becomes `end`. The other parameters are those of
    :func:`extend_tree`.
    """
    for t in range(len(forest.counters)):
        tree = tree_at(forest, t)
        own = points[t if len(points) > 1 else 0]
        for point in range(progress[t], end):
            extend_tree(tree, own, point, rates, classes, settings)
        progress[t] = end


def room_for_insertion(min_samples_split: int) -> int:
    """Return the largest number of nodes that inserting one point adds to a tree."""
    return max(2, 2 * min_samples_split - 2)
