"""Renumbered nodes: the same trees, in another order."""

import copy

import numpy as np
import pytest
from trees.oracles import assert_same_bits
from trees.prunings import NO_RATES, arrays, draw_targets, learn, make_forest, preorder_of

from mondrian_bo.trees.aggregation_nodes import REAL
from mondrian_bo.trees.aggregation_predict import AGGREGATED, AT_LEAF
from mondrian_bo.trees.layout import N_BOXES, N_NODES, NONE, ROOT
from mondrian_bo.trees.numbering import number_in_preorder
from mondrian_bo.trees.tree import empty_forest, view_of


def grow_one_by_one(n, *, restricted=True, n_classes=REAL, seed=0, **options):
    rng = np.random.default_rng(seed)
    points = rng.random((n, 3)).astype(np.float32)
    points[n // 2 :: 5] = points[: len(points[n // 2 :: 5])]
    forest = make_forest(
        3, n_trees=3, seed=seed, restricted=restricted, n_classes=n_classes, **options
    )
    return learn(forest, points, draw_targets(rng, n, n_classes)), rng


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("split_pure", [True, False])
@pytest.mark.parametrize("restricted", [True, False])
def test_trees_stay_the_same(restricted, split_pure, seed):
    n_classes = REAL if split_pure else 2
    forest, rng = grow_one_by_one(
        120, restricted=restricted, n_classes=n_classes, split_pure=split_pure, seed=seed
    )
    new, trees = copy.deepcopy(forest), forest.arrays
    number_in_preorder(new.arrays)
    # The values are still in the old order.
    for t in range(3):
        nodes = preorder_of(view_of(trees, t))
        assert nodes != sorted(nodes)
        for field in new.node_stats:
            field[t, : len(nodes)] = field[t, nodes]
    assert_same_bits(arrays(new), arrays(forest))
    # Both learn on alike, and new rows of boxes do not fall on old ones.
    points = rng.random((40, 3)).astype(np.float32)
    targets = draw_targets(rng, 40, n_classes)
    assert_same_bits(arrays(learn(new, points, targets)), arrays(learn(forest, points, targets)))


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("record", [True, False])
@pytest.mark.parametrize("restricted", [True, False])
def test_what_nodes_carry_moves_with_them(restricted, record, seed):
    forest, rng = grow_one_by_one(120, restricted=restricted, record=record, seed=seed)
    new = copy.deepcopy(forest)
    new.renumber()
    assert not np.array_equal(new.arrays.parent, forest.arrays.parent)
    assert_same_bits(arrays(new), arrays(forest))
    assert np.array_equal(new.best_losses(), forest.best_losses())
    points, targets = rng.random((40, 3)).astype(np.float32), rng.normal(size=40)
    assert_same_bits(arrays(learn(new, points, targets)), arrays(learn(forest, points, targets)))
    assert np.array_equal(new.trace, forest.trace)


@pytest.mark.parametrize("restricted", [True, False])
def test_the_order(restricted):
    forest, _ = grow_one_by_one(150, restricted=restricted)
    number_in_preorder(forest.arrays)
    for t in range(3):
        tree = view_of(forest.arrays, t)
        n_nodes = tree.counters[N_NODES]
        assert tree.counters[ROOT] == 0
        assert preorder_of(tree) == list(range(n_nodes))
        rows = tree.row[:n_nodes]
        assert rows[rows != NONE].tolist() == list(range(tree.counters[N_BOXES]))


@pytest.mark.parametrize("n", [0, 1])
def test_trees_of_no_point_or_one(n):
    forest = empty_forest(np.ones((2, 1), dtype=np.uint64), 3)
    if n == 1:
        forest = grow_one_by_one(1)[0].arrays
    before = copy.deepcopy(forest)
    number_in_preorder(forest)
    for field, old in zip(forest, before, strict=True):
        assert np.array_equal(field, old)


def test_draws_do_not_depend_on_the_numbers():
    rng = np.random.default_rng(1)
    points = rng.random((600, 2)).astype(np.float32)
    targets = rng.normal(size=600)
    one_by_one = learn(make_forest(2, n_trees=2), points, targets)
    at_once = learn(make_forest(2, n_trees=2), points, targets, steps=[])
    # Only large batches number nodes anew.
    assert not np.array_equal(one_by_one.arrays.parent, at_once.arrays.parent)
    assert_same_bits(arrays(one_by_one), arrays(at_once))
    queries = rng.random((1, 50, 2)).astype(np.float32)
    for rates in (NO_RATES, np.ones(2)):
        for rule in (AGGREGATED, AT_LEAF):
            one, two = (
                [forest.sample_function(1, key, queries, rates, rule) for key in range(5)]
                for forest in (one_by_one, at_once)
            )
            assert np.array_equal(one, two)
            assert len(np.unique(one)) >= 5


@pytest.mark.parametrize("n", range(1, 9))
def test_numbers_last_while_points_are_known_for_a_time(n):
    forest, rng = grow_one_by_one(n)
    before = [field.copy() for field in forest.arrays[:-1]]
    with forest.extended(
        rng.random((1, 4, 3)).astype(np.float32), rng.normal(size=4), np.ones((1, 3))
    ):
        n_nodes = [len(preorder_of(view_of(forest.arrays, t))) for t in range(3)]
    used = forest.arrays.counters[:, N_NODES]
    assert np.all(used < n_nodes)
    for t in range(3):
        for name in ("parent", "children", "dimension", "split_time", "row", "size"):
            old = before[forest.arrays._fields.index(name)][t, : used[t]]
            assert np.array_equal(getattr(forest.arrays, name)[t, : used[t]], old)
