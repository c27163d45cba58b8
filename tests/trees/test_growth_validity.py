"""Every tree is a Mondrian tree over its points, however it was grown."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from trees.oracles import check_forest, check_tree, grow, one_tree

from mondrian_bo.trees.layout import FIRST_POINT, LEFT, N_NODES, NONE, ROOT
from mondrian_bo.trees.tree import preorder, tree_at

SPLITS = [2, 5, 10]
LIFETIMES = [np.inf, 1.5]

# A coarse grid makes duplicates, ties and constant dimensions; the rest has awkward spacings.
coordinates = st.one_of(
    st.sampled_from([0.0, 0.25, 1.0]),
    st.sampled_from([-0.0, 1.0, np.nextafter(1.0, 2.0), 1e-300, -1e6, 5e-324]),
    st.floats(-1e6, 1e6, width=32),
)


@st.composite
def streams(draw):
    n = draw(st.integers(1, 24))
    d = draw(st.integers(1, 3))
    n_views = draw(st.sampled_from([1, 2]))
    points = draw(arrays(np.float64, (n_views, n, d), elements=coordinates))
    first = draw(st.integers(0, n))
    steps = draw(st.lists(st.integers(first, n), max_size=3).map(sorted))
    return points, first, steps


@given(
    stream=streams(),
    min_samples_split=st.sampled_from(SPLITS),
    lifetime=st.sampled_from([np.inf, 1.0, 1e-3]),
    seed=st.integers(0, 2**32),
)
@settings(max_examples=400, derandomize=True, database=None)
def test_any_points_in_any_portions(stream, min_samples_split, lifetime, seed):
    points, first, steps = stream
    forest = grow(
        points,
        first=first,
        steps=steps,
        n_trees=2,
        seed=seed,
        min_samples_split=min_samples_split,
        lifetime=lifetime,
    )
    assert np.array_equal(forest.points, points)
    check_forest(forest)


@pytest.mark.parametrize("lifetime", LIFETIMES)
@pytest.mark.parametrize("min_samples_split", SPLITS)
@pytest.mark.parametrize("first", [0, 1, 60, 150])
def test_larger_trees(first, min_samples_split, lifetime):
    rng = np.random.default_rng(first)
    points = rng.random((3, 150, 3))
    points[:, 100:120] = points[:, :20]
    rates = np.array([2.0, 0.0, 0.5])
    forest = grow(
        points,
        first=first,
        steps=[] if first == 60 else [70 + first // 2, 100 + first // 3],
        n_trees=3,
        rates=rates,
        min_samples_split=min_samples_split,
        lifetime=lifetime,
    )
    check_forest(forest, rates)
    # A rate of zero: no tree splits that dimension.
    assert not np.any(forest.arrays.dimension[:, : forest.arrays.counters[:, N_NODES].min()] == 1)


def test_trees_grow_while_they_are_checked():
    points = np.random.default_rng(0).normal(size=(60, 2))
    for min_samples_split in (2, 5):
        forest = grow(points[:1], first=0, n_trees=2, min_samples_split=min_samples_split)
        for i in range(1, 60):
            forest.extend(points[None, i : i + 1], np.zeros(1), np.ones((1, 2)))
            check_forest(forest)


def test_duplicates_never_split():
    points = np.full((40, 2), 0.3)
    for first in (0, 7, 40):
        forest = grow(points, first=first, n_trees=3)
        assert np.all(forest.arrays.counters[:, N_NODES] == 1)
        check_forest(forest)
    # They stay together when other points come.
    others = np.concatenate([points, np.random.default_rng(1).random((5, 2))])
    forest = grow(others, first=40, n_trees=3)
    assert np.all(forest.leaves(points[None]) == forest.leaves(points[None, :1]))
    check_forest(forest)


def test_infinite_lifetime_separates_all_points():
    rng = np.random.default_rng(2)
    points = rng.random((80, 2))
    for first in (0, 30, 80):
        leaves = grow(points, first=first, n_trees=4).leaves(points[None])
        assert all(len(np.unique(column)) == 80 for column in leaves.T)


def test_short_lifetime_never_splits():
    points = np.random.default_rng(3).random((50, 2))
    for first in (0, 20, 50):
        forest = grow(points, first=first, n_trees=5, lifetime=1e-9)
        assert np.all(forest.arrays.counters[:, N_NODES] == 1)
        check_forest(forest)


def test_neighbouring_numbers_are_separated():
    # The gap holds no number but its lower end, which must be the split location.
    points = np.array([[1.0], [np.nextafter(1.0, 2.0)]])
    for seed in range(20):
        for first in (0, 1, 2):
            check_forest(grow(points, first=first, seed=seed))
            check_forest(grow(points[::-1], first=first, seed=seed))


def test_preorder_visits_parents_first():
    points = np.random.default_rng(4).random((40, 2))
    forest = grow(points, first=10, n_trees=3)
    for t in range(3):
        tree = tree_at(forest.arrays, t)
        n_nodes = int(tree.counters[N_NODES])
        nodes = np.empty(n_nodes, dtype=np.int32)
        preorder(tree, nodes)
        position = np.argsort(nodes)
        assert sorted(nodes.tolist()) == list(range(n_nodes))
        assert nodes[0] == tree.counters[ROOT]
        others = nodes[1:]
        assert np.all(position[tree.parent[others]] < position[others])


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("size", lambda tree: tree.size[0] + 1),
        ("parent", lambda tree: tree.parent[0] + 1),
        ("threshold", lambda tree: tree.box[0, 1, tree.dimension[0]]),
        ("split_time", lambda tree: np.inf),
        ("box", lambda tree: tree.box[0] + 1e-9),
        ("dimension", lambda tree: NONE),
    ],
)
def test_the_checker_notices_damage(field, change):
    points = np.random.default_rng(5).random((12, 2))
    tree = one_tree(grow(points))
    check_tree(tree, points)
    assert tree.children[0, LEFT] != NONE
    getattr(tree, field)[0] = change(tree)
    with pytest.raises((AssertionError, IndexError)):
        check_tree(tree, points)


def test_the_checker_notices_a_lost_point():
    points = np.random.default_rng(6).random((12, 2))
    tree = one_tree(grow(points, min_samples_split=5))
    leaf = int(np.argmax((tree.children[:, LEFT] == NONE) * tree.size))
    head = tree.children[leaf, FIRST_POINT]
    assert tree.next_point[head] != NONE
    tree.next_point[head] = NONE
    with pytest.raises(AssertionError):
        check_tree(tree, points, min_samples_split=5)
