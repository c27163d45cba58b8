"""Growing Mondrian trees: in one batch (Algorithms 1, 2 of Lakshminarayanan2016) or online (3, 4).

Distances are weighted per dimension: a block with data extents e_d splits at rate
``sum_d weights[d] * e_d``. With ``weights[d] = 1 / range_d`` this is the paper's pre-processing to
[0, 1]; other weights are the per-dimension lifetimes of Balog2016thesis, chapter 5.

A leaf with fewer than `min_samples_split` points is *paused*: a new point only widens its box and
joins it, and when it holds enough points its block is sampled from the stored points. Online and
batch then have the same distribution, which Algorithm 4 as printed has for ``min_samples_split=2``
alone. Where classes are given, a leaf whose points are all of one class is paused too, until one of
a second class arrives. A block of zero extent (duplicates) has rate 0 and never splits.

``min_samples_split=1`` is for forests that are always grown online (Mourtada2021, Algorithms 4, 5):
no leaf waits for more points, and a leaf of one class is cut off from a point of another that lies
outside of its box, with no cut inside of it; only a point inside has its block sampled. Until such
a point arrives nothing can happen to the leaf: it may do without a box, which is made of its points
then.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from mondrian_bo.trees.compiling import BORROWING, COUNTING, INLINED, INNER, INNER_COUNTING
from mondrian_bo.trees.random import exponential, exponential_below, uniform
from mondrian_bo.trees.tree import (
    FIRST_POINT,
    LEFT,
    LOWER,
    N_NODES,
    NONE,
    PAUSED,
    RIGHT,
    ROOT,
    UPPER,
    add_box,
    add_leaf,
    child_towards,
    corners,
    distance_outside,
    is_leaf,
    set_split,
    tree_at,
    widen,
)

_FEW = 32
"""A leaf of one class that has no more points gives its box away: it is soon made anew."""


@njit(**INNER)
def _link(tree, leaf, point):  # type: ignore[no-untyped-def]
    """Add a point to the chain of a leaf."""
    tree.size[leaf] += 1
    tree.next_point[point] = tree.children[leaf, FIRST_POINT]
    tree.children[leaf, FIRST_POINT] = point


@njit(**INNER)
def _ensure_box(tree, leaf):  # type: ignore[no-untyped-def]
    """Give a leaf the box of its points, if it has gone without."""
    if tree.row[leaf] != NONE:
        return
    box = tree.box[add_box(tree, leaf)]
    member = tree.children[leaf, FIRST_POINT]
    while member != NONE:
        widen(box, tree.points[member])
        member = tree.next_point[member]


@njit(**INNER)
def _join(tree, leaf, point, x):  # type: ignore[no-untyped-def]
    """Add a point to a leaf."""
    if tree.size[leaf] > 0:
        _ensure_box(tree, leaf)
        widen(tree.box[tree.row[leaf]], x)
    _link(tree, leaf, point)


@njit(**BORROWING)
def draw_location(stream, low, high):  # type: ignore[no-untyped-def]
    """Draw a location in [low, high): what lies at `high` is always on its right."""
    location = low + uniform(stream) * (high - low)
    return location if location < high else low


@njit(**BORROWING)
def choose_dimension(stream, extents, total):  # type: ignore[no-untyped-def]
    """Choose d with probability extents[d] / total."""
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
    """Reorder order[start:end] so that the left points come first; return the first right one."""
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
    if end - start > 1:
        box = tree.box[add_box(tree, node)]
        for i in range(start, end):
            widen(box, points[order[i]])


@njit(**INNER)
def _may_split(order, start, end, min_samples_split, classes):  # type: ignore[no-untyped-def]
    """Whether a block of these points is not paused."""
    if end - start < min_samples_split:
        return False
    if len(classes) == 0:
        return True
    for i in range(start + 1, end):  # noqa: SIM110 - a generator would take long to compile
        if classes[order[i]] != classes[order[start]]:
            return True
    return False


@njit(**INNER_COUNTING)
def sample_block(  # type: ignore[no-untyped-def]
    tree, points, order, top, weights, min_samples_split, classes, lifetime
):
    """Grow the block below a leaf from its points (Algorithm 2), iteratively.

    Parameters
    ----------
    tree : Tree
        Has room for ``2 * len(order) - 2`` more nodes.
    points : float64 array of shape (n, d)
        Stored points.
    order : int32 array
        The points of the block; reordered in place, as quicksort does.
    top : int
        The leaf, with its box and count set.
    weights, min_samples_split, lifetime
        See the module's docstring.
    classes : int32 array of shape (n,)
        The classes of the points if blocks of one class are not to be split, else empty.
    """
    extents = np.empty(points.shape[1])
    # Descending into the smaller half last bounds the stack by log2(n), as in quicksort.
    stack_node = np.empty(64, dtype=np.int64)
    stack_start = np.empty(64, dtype=np.int64)
    stack_end = np.empty(64, dtype=np.int64)
    stack_node[0], stack_start[0], stack_end[0] = top, 0, len(order)
    pending = 1
    while pending > 0:
        pending -= 1
        node, start, end = stack_node[pending], stack_start[pending], stack_end[pending]
        time = lifetime
        rate = 0.0
        may_split = _may_split(order, start, end, min_samples_split, classes)
        if tree.row[node] == NONE and (may_split or min_samples_split > 1):
            _bound(tree, node, points, order, start, end)
        row = tree.row[node]
        if may_split and row != NONE:
            for d in range(len(extents)):
                extents[d] = weights[d] * (tree.box[row, UPPER, d] - tree.box[row, LOWER, d])
                rate += extents[d]
            if rate > 0.0:
                parent = tree.parent[node]
                parent_time = tree.split_time[parent] if parent != NONE else 0.0
                time = parent_time + exponential(tree.stream) / rate
        if not time < lifetime:
            tree.dimension[node] = NONE if may_split else PAUSED
            tree.children[node, FIRST_POINT] = NONE
            for i in range(start, end):
                tree.next_point[order[i]] = tree.children[node, FIRST_POINT]
                tree.children[node, FIRST_POINT] = order[i]
            continue
        dimension = choose_dimension(tree.stream, extents, rate)
        threshold = draw_location(
            tree.stream, tree.box[row, LOWER, dimension], tree.box[row, UPPER, dimension]
        )
        middle = _partition(points, order, start, end, dimension, threshold)
        left = add_leaf(tree, node, lifetime)
        right = add_leaf(tree, node, lifetime)
        tree.size[left], tree.size[right] = middle - start, end - middle
        tree.children[node, LEFT], tree.children[node, RIGHT] = left, right
        set_split(tree, node, dimension, threshold, time)
        small, large = (left, right) if middle - start <= end - middle else (right, left)
        for child in (large, small):
            stack_node[pending] = child
            stack_start[pending] = start if child == left else middle
            stack_end[pending] = middle if child == left else end
            pending += 1


@njit(**INNER_COUNTING)
def sample_tree(  # type: ignore[no-untyped-def]
    tree, points, n_points, weights, min_samples_split, classes, lifetime
):
    """Grow an empty tree from the first `n_points` stored points (Algorithm 1).

    The tree has room for ``2 * n_points - 1`` nodes. O(d n log n) for balanced trees.
    """
    order = np.arange(n_points).astype(np.int32)
    root = add_leaf(tree, np.int64(NONE), lifetime)
    tree.counters[ROOT] = root
    tree.size[root] = n_points
    _bound(tree, root, points, order, 0, n_points)
    sample_block(tree, points, order, root, weights, min_samples_split, classes, lifetime)


@njit(**INNER_COUNTING)
def _open(tree, node, point, points, weights, min_samples_split, classes, lifetime):  # type: ignore[no-untyped-def]
    """Split a paused leaf that a point has just joined, if it may be split now."""
    size = tree.size[node]
    if size < min_samples_split:
        return
    # A leaf that was paused with enough points holds one class but for the new point, its head.
    if (
        len(classes) > 0
        and size > min_samples_split
        and classes[tree.next_point[point]] == classes[point]
    ):
        return
    order = np.empty(size, dtype=np.int32)
    member = tree.children[node, FIRST_POINT]
    for i in range(size):
        order[i] = member
        member = tree.next_point[member]
    if _may_split(order, 0, size, min_samples_split, classes):
        sample_block(tree, points, order, node, weights, min_samples_split, classes, lifetime)


@njit(**INNER)
def _insert_above(tree, node, point, x, time, weights, total, paused, lifetime):  # type: ignore[no-untyped-def]
    """Insert a node above `node` that cuts x off into a leaf of its own (Algorithm 4, 4-9)."""
    lower, upper = corners(tree, node)
    remaining = uniform(tree.stream) * total
    dimension = 0
    for k in range(len(x)):
        extent = weights[k] * (max(x[k] - upper[k], 0.0) + max(lower[k] - x[k], 0.0))
        if extent > 0.0:
            dimension = k
            remaining -= extent
            if remaining < 0.0:
                break
    above = x[dimension] > upper[dimension]
    if above:
        threshold = draw_location(tree.stream, upper[dimension], x[dimension])
    else:
        threshold = draw_location(tree.stream, x[dimension], lower[dimension])
    parent = np.int64(tree.parent[node])
    # The inner node comes before its leaf: among new nodes, parents precede their children.
    inner = add_leaf(tree, parent, lifetime)
    leaf = add_leaf(tree, inner, lifetime)
    tree.dimension[leaf] = PAUSED if paused else NONE
    _join(tree, leaf, point, x)
    row = tree.row[node]
    if row != NONE and tree.dimension[node] == PAUSED and tree.size[node] <= _FEW:
        tree.row[inner], tree.row[node] = row, NONE
    else:
        add_box(tree, inner)
    hull = tree.box[tree.row[inner]]
    for k in range(len(x)):
        hull[LOWER, k] = min(lower[k], x[k])
        hull[UPPER, k] = max(upper[k], x[k])
    tree.size[inner] = tree.size[node] + 1
    set_split(tree, inner, dimension, threshold, time)
    tree.children[inner, LEFT] = node if above else leaf
    tree.children[inner, RIGHT] = leaf if above else node
    tree.parent[node] = inner
    if parent == NONE:
        tree.counters[ROOT] = inner
    elif tree.children[parent, LEFT] == node:
        tree.children[parent, LEFT] = inner
    else:
        tree.children[parent, RIGHT] = inner
    return inner


@njit(**INLINED)
def extend_tree(  # type: ignore[no-untyped-def]
    tree, points, point, weights, min_samples_split, classes, lifetime
):
    """Insert one stored point (Algorithms 3, 4); O(d log n) for balanced trees.

    Parameters
    ----------
    tree : Tree
        Has room for ``max(2, 2 * min_samples_split - 2)`` more nodes; with `classes`, for
        ``2 * point + 1`` nodes in all.
    points : float64 array of shape (n, d)
        Stored points.
    point : int
        Which of them to insert.
    weights, min_samples_split, lifetime
        See the module's docstring.
    classes : int32 array of shape (n,)
        See :func:`sample_block`.

    Returns
    -------
    int
        The topmost node whose subtree changed in more than boxes and counts: a leaf that the point
        joined, the leaf that split, or the node inserted above another. All new nodes are in its
        subtree, parents numbered before children.
    """
    x = points[point]
    all_count = True
    for d in range(len(weights)):
        all_count &= weights[d] > 0.0
    lone_is_paused = min_samples_split > 1 or len(classes) > 0
    if tree.counters[N_NODES] == 0:
        root = add_leaf(tree, np.int64(NONE), lifetime)
        tree.dimension[root] = PAUSED if lone_is_paused else NONE
        tree.counters[ROOT] = root
        _join(tree, root, point, x)
        return root
    node = tree.counters[ROOT]
    parent_time = 0.0
    while True:
        leaf = is_leaf(tree, node)
        if tree.dimension[node] == PAUSED:
            if min_samples_split > 1:
                _join(tree, node, point, x)
                _open(tree, node, point, points, weights, min_samples_split, classes, lifetime)
                return node
            if classes[tree.children[node, FIRST_POINT]] == classes[point]:
                _link(tree, node, point)
                if tree.row[node] != NONE:
                    widen(tree.box[tree.row[node]], x)
                return node
            if tree.size[node] > 1:
                _ensure_box(tree, node)
        rate = distance_outside(tree, node, weights, points, point)
        if rate > 0.0:
            waiting = exponential_below(tree.stream, rate * (tree.split_time[node] - parent_time))
            time = parent_time + waiting / rate
            if time < tree.split_time[node]:
                return _insert_above(
                    tree, node, point, x, time, weights, rate, lone_is_paused, lifetime
                )
        if leaf:
            _join(tree, node, point, x)
            if tree.dimension[node] == PAUSED:
                _open(tree, node, point, points, weights, min_samples_split, classes, lifetime)
            return node
        if rate > 0.0 or not all_count:
            widen(tree.box[tree.row[node]], x)
        tree.size[node] += 1
        parent_time = tree.split_time[node]
        node = child_towards(tree, node, x)


@njit(**COUNTING)
def sample_forest(  # type: ignore[no-untyped-def]
    forest, points, n_points, weights, min_samples_split, classes, lifetime
):
    """Grow all trees of an empty forest from the first points of `points`, (1 or T, n, d)."""
    for t in range(len(forest.counters)):
        own = points[t if len(points) > 1 else 0]
        sample_tree(
            tree_at(forest, t), own, n_points, weights, min_samples_split, classes, lifetime
        )


@njit(**COUNTING)
def extend_forest(  # type: ignore[no-untyped-def]
    forest, points, progress, end, weights, min_samples_split, classes, lifetime
):
    """Insert stored points into all trees, and no values along with them.

    ``progress[t]`` is the next point of tree t, and becomes `end`; for the rest see `extend_tree`.
    """
    for t in range(len(forest.counters)):
        tree = tree_at(forest, t)
        own = points[t if len(points) > 1 else 0]
        for point in range(progress[t], end):
            extend_tree(tree, own, point, weights, min_samples_split, classes, lifetime)
        progress[t] = end


def room_for_insertion(min_samples_split: int) -> int:
    """Return how many nodes the insertion of one point may add to a tree."""
    return max(2, 2 * min_samples_split - 2)
