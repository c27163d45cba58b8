"""Slow, plain references for the compiled trees, shared by the tests of trees and surrogates."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from mondrian_bo.surrogates.mondrian_forest.forest import GaussianForest
from mondrian_bo.surrogates.shared.ensemble import Ensemble
from mondrian_bo.trees.hierarchical_gaussian import Hyperparameters
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
from mondrian_bo.trees.tree import NODE_FIELDS, Tree


def grow(
    points,
    targets=None,
    *,
    first=None,
    steps=(),
    n_trees=1,
    seed=0,
    rates=None,
    min_samples_split=2,
    lifetime=np.inf,
    hyperparameters=Hyperparameters(gamma_2=0.3, noise=0.02),  # noqa: B008
    kind=GaussianForest,
):
    """Grow a forest: the first points in a batch, the others online.

    `points` has shape (n, d), or (T, n, d) where each tree sees them differently. The first `first`
    points are the batch (default: all; 0 starts with an empty forest). The others come one by one,
    or in calls of `extend` that end at the indices in `steps`.
    """
    views = points[None] if points.ndim == 2 else points
    n, d = views.shape[1:]
    targets = np.zeros(n) if targets is None else targets
    rates = np.ones(d) if rates is None else np.asarray(rates, dtype=float)
    forest = kind(
        Ensemble(n_trees, d, np.random.SeedSequence(seed)),
        min_samples_split=min_samples_split,
        lifetime=lifetime,
    )
    first = n if first is None else first
    if first > 0:
        forest.build(
            views[:, :first].copy(), targets[:first].copy(), rates, hyperparameters, n_jobs=1
        )
    else:
        if hasattr(forest, "set_scales"):
            forest.set_scales(rates)
        forest.set_hyperparameters(hyperparameters)
    for start, end in pairwise([first, *steps, n] if steps else range(first, n + 1)):
        forest.extend(views[:, start:end], targets[start:end], rates[None])
    return forest


def boxes_of(trees):
    """Return the box of every node, shape (T, capacity, 2, d)."""
    tree = np.arange(len(trees.row))[:, None]
    view = tree if len(trees.points) > 1 else 0 * tree
    has_box = trees.row != NONE
    rows = trees.box[tree, np.where(has_box, trees.row, 0)]
    own = trees.points[view, np.where(has_box, 0, trees.children[..., FIRST_POINT])]
    return np.where(has_box[:, :, None, None], rows, own[:, :, None])


def one_tree(forest, t=0):
    """Return a copy of one tree without spare capacity."""
    n_nodes = int(forest.arrays.counters[t, N_NODES])
    fields = {name: getattr(forest.arrays, name)[t, :n_nodes].copy() for name in NODE_FIELDS}
    # All nodes get boxes; in the forest a leaf of one point has none.
    fields["box"] = boxes_of(forest.arrays)[t, :n_nodes]
    fields["row"] = np.arange(n_nodes, dtype=np.int32)
    fields["points"] = points_of(forest, t).copy()
    fields["next_point"] = forest.arrays.next_point[t, : forest.n_points].copy()
    fields["counters"] = forest.arrays.counters[t].copy()
    fields["stream"] = forest.arrays.stream[t].copy()
    return Tree(**fields)


def points_of(forest, t=0):
    """Return the points as one tree sees them, shape (n, d)."""
    return forest.points[t if len(forest.points) > 1 else 0]


def snapshot(forest):
    """Return a copy of a forest's content without spare capacity, as a flat dictionary."""
    content = {
        "points": forest.points.copy(),
        "targets": forest.targets.copy(),
        "hyperparameters": np.array(getattr(forest, "hyperparameters", ())),
    }
    for t in range(forest.n_trees):
        tree = one_tree(forest, t)
        for name, field in tree._asdict().items():
            content[f"{t}.{name}"] = field
        for name, field in forest.node_stats._asdict().items():
            content[f"{t}.{name}"] = field[t, : len(tree.parent)].copy()
    return content


def assert_same_bits(one, two):
    """Assert that two snapshots hold the same bits: NaN equals NaN, and 0 differs from -0."""
    assert one.keys() == two.keys()
    for name, field in one.items():
        other = two[name]
        assert field.dtype == other.dtype, name
        assert field.shape == other.shape, name
        assert field.tobytes() == other.tobytes(), name


def children_of(tree, node):
    """Return the children of a node; a leaf has none."""
    left, right = (int(child) for child in tree.children[node])
    return [] if left == NONE else [left, right]


def leaf_of(tree, x):
    """Return the leaf that holds x."""
    node = tree.counters[ROOT]
    while tree.children[node, LEFT] != NONE:
        side = LEFT if x[tree.dimension[node]] <= tree.threshold[node] else RIGHT
        node = tree.children[node, side]
    return int(node)


def chain(tree, leaf):
    """Return the points in a leaf's linked list."""
    members = []
    point = tree.children[leaf, FIRST_POINT]
    while point != NONE:
        assert len(members) < len(tree.next_point), "the chain of points is circular"
        members.append(int(point))
        point = tree.next_point[point]
    return members


def check_tree(tree, points, *, rates=None, min_samples_split=2, lifetime=np.inf):
    """Assert that a tree is a Mondrian tree over `points`, by recursion from its root."""
    rates = np.ones(points.shape[1]) if rates is None else np.asarray(rates)
    seen = []

    def visit(node, parent, parent_time, members):
        # `members` went here from the root by the splits; linked lists and sizes must agree.
        seen.append(node)
        own = points[members]
        assert tree.parent[node] == parent
        assert len(members) > 0
        assert tree.size[node] == len(members)
        assert np.array_equal(tree.box[node, LOWER], own.min(axis=0))
        assert np.array_equal(tree.box[node, UPPER], own.max(axis=0))
        extents = rates * (own.max(axis=0) - own.min(axis=0))
        left, right = (int(child) for child in tree.children[node])
        if left == NONE:
            assert tree.dimension[node] in (NONE, PAUSED)
            assert tree.split_time[node] == lifetime
            assert sorted(chain(tree, node)) == sorted(members.tolist())
            # At a rate of 1e-300 a split can be later than the largest finite time.
            if len(members) >= min_samples_split and extents.sum() > 1e-300:
                assert lifetime < np.inf
            return
        dimension, time = tree.dimension[node], tree.split_time[node]
        assert right not in (NONE, left)
        assert 0 <= dimension < points.shape[1]
        assert len(members) >= min_samples_split
        assert parent_time < time < lifetime
        assert extents[dimension] > 0.0
        goes_left = own[:, dimension] <= tree.threshold[node]
        assert own[:, dimension].min() <= tree.threshold[node] < own[:, dimension].max()
        visit(left, node, time, members[goes_left])
        visit(right, node, time, members[~goes_left])

    visit(int(tree.counters[ROOT]), NONE, 0.0, np.arange(len(points)))
    assert sorted(seen) == list(range(tree.counters[N_NODES]))


def check_forest(forest, rates=None):
    """Assert that every tree of a forest is a Mondrian tree over its points."""
    for t in range(forest.n_trees):
        check_tree(
            one_tree(forest, t),
            points_of(forest, t),
            rates=rates,
            min_samples_split=forest.min_samples_split,
            lifetime=forest.lifetime,
        )


class Shapes(NamedTuple):
    """Statistics of many trees over the same points, each of shape (T,)."""

    leaves: np.ndarray
    depth: np.ndarray
    first_leaf_depth: np.ndarray  # of the leaf that holds point 0
    first_leaf_size: np.ndarray
    root_left_size: np.ndarray  # -1 where the root is a leaf
    root_dimension: np.ndarray  # likewise
    root_time: np.ndarray  # the lifetime where the root is a leaf
    root_location: np.ndarray  # 0 where the root is a leaf
    last_time: np.ndarray  # the latest split; 0 where the root is a leaf


def shapes(forest):
    """Return the statistics of a forest's trees."""
    trees, rows = forest.arrays, np.arange(forest.n_trees)
    used = np.arange(trees.parent.shape[1]) < trees.counters[:, N_NODES, None]
    depth = np.zeros(trees.parent.shape, dtype=int)
    ancestor = np.where(used, trees.parent, NONE)
    while np.any(ancestor != NONE):
        depth += ancestor != NONE
        ancestor = np.where(ancestor == NONE, NONE, trees.parent[rows[:, None], ancestor])
    leaf = forest.leaves(forest.points[:, :1])[0]
    root = trees.counters[:, ROOT]
    inner = used & (trees.children[:, :, LEFT] != NONE)
    left = trees.children[rows, root, LEFT]
    return Shapes(
        leaves=(used & ~inner).sum(axis=1),
        depth=depth.max(axis=1),
        first_leaf_depth=depth[rows, leaf],
        first_leaf_size=trees.size[rows, leaf],
        root_left_size=np.where(left == NONE, -1, trees.size[rows, left]),
        root_dimension=trees.dimension[rows, root],
        root_time=trees.split_time[rows, root],
        root_location=np.where(left == NONE, 0.0, trees.threshold[rows, root]),
        last_time=np.where(inner, trees.split_time, 0.0).max(axis=1),
    )


def reference_shapes(points, n_trees, seed, *, rates, min_samples_split, lifetime):
    """Return the statistics of trees sampled by Algorithms 1 and 2, line by line."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(n_trees):
        row = {"leaves": 0, "depth": 0, "last_time": 0.0}

        def sample_block(members, parent_time, depth, row=row):
            own = points[members]
            extents = rates * (own.max(axis=0) - own.min(axis=0))
            time = math.inf
            if len(members) >= min_samples_split and extents.sum() > 0.0:
                time = parent_time + rng.exponential(1.0 / extents.sum())
            if time >= lifetime:
                if depth == 0:
                    row.update(root_left_size=-1, root_dimension=NONE, root_location=0.0)
                    row["root_time"] = lifetime
                if 0 in members:
                    row.update(first_leaf_depth=depth, first_leaf_size=len(members))
                row["leaves"] += 1
                row["depth"] = max(row["depth"], depth)
                return
            dimension = rng.choice(len(extents), p=extents / extents.sum())
            location = rng.uniform(own[:, dimension].min(), own[:, dimension].max())
            goes_left = own[:, dimension] <= location
            if depth == 0:
                row.update(root_left_size=goes_left.sum(), root_dimension=dimension)
                row.update(root_time=time, root_location=location)
            row["last_time"] = max(row["last_time"], time)
            sample_block(members[goes_left], time, depth + 1)
            sample_block(members[~goes_left], time, depth + 1)

        sample_block(np.arange(len(points)), 0.0, 0)
        rows.append(row)
    return Shapes(**{name: np.array([row[name] for row in rows]) for name in Shapes._fields})
