"""A `with forest.extended(...)` block learns points inside and is undone bit for bit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from trees.oracles import assert_same_bits, check_forest, grow, snapshot

from mondrian_bo.trees.predict import REMAINING

RATES = np.array([1.0, 3.0])


def make_forest(*, n=23, first=11, seed=0, n_trees=5, n_views=1, **options):
    rng = np.random.default_rng(seed)
    points = rng.random((n_views, n, 2))
    return grow(
        points,
        rng.normal(size=n),
        first=first,
        n_trees=n_trees,
        seed=seed,
        rates=RATES,
        **options,
    )


def make_fantasy(kind, forest, n_views=1):
    rng = np.random.default_rng(99)
    known = forest.points
    if kind == "one":
        points = rng.random((n_views, 1, 2))
    elif kind == "seven":
        points = rng.random((n_views, 7, 2)) * 2.0 - 0.5
    elif kind == "known":
        points = known[:, [3, 3, 5]]
    elif kind == "same":
        points = np.repeat(rng.random((n_views, 1, 2)), 6, axis=1)
    else:
        points = np.concatenate([known[:, :4], rng.random((n_views, 40, 2))], axis=1)
    return np.ascontiguousarray(points), rng.normal(size=points.shape[1])


KINDS = ["one", "seven", "known", "same", "many"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("lifetime", [np.inf, 1.0])
@pytest.mark.parametrize("min_samples_split", [2, 5, 10])
@pytest.mark.parametrize(("first", "n_views"), [(11, 1), (23, 1), (0, 5)])
def test_block(kind, min_samples_split, lifetime, first, n_views):
    options = {
        "first": first,
        "n_views": n_views,
        "min_samples_split": min_samples_split,
        "lifetime": lifetime,
    }
    forest, replica = make_forest(**options), make_forest(**options)
    points, targets = make_fantasy(kind, forest, n_views)
    before = snapshot(forest)
    with forest.extended(points, targets, RATES[None]):
        # The fantasy draws the numbers that learning would draw, so all bits agree.
        replica.extend(points, targets, RATES[None])
        assert_same_bits(snapshot(forest), snapshot(replica))
        check_forest(forest, RATES)
        assert forest.n_points == 23 + len(targets)
        query = np.random.default_rng(5).random((n_views, 20, 2))
        for own, other in zip(
            forest.predict(query, RATES, forest.prediction_settings(0.0, 1.0, REMAINING)),
            replica.predict(query, RATES, replica.prediction_settings(0.0, 1.0, REMAINING)),
            strict=True,
        ):
            assert np.array_equal(own, other)
    assert_same_bits(snapshot(forest), before)


@pytest.mark.parametrize("min_samples_split", [3, 5, 10])
def test_paused_leaves_split_inside(min_samples_split):
    # Copies of one path would not be enough: the points of a leaf move to other leaves.
    moved = 0
    for seed in range(20):
        forest = make_forest(seed=seed, min_samples_split=min_samples_split)
        before, leaves = snapshot(forest), forest.leaves(forest.points)
        known = forest.points.copy()
        point = np.random.default_rng(seed).random((1, 1, 2))
        with forest.extended(point, np.zeros(1), RATES[None]):
            moved += np.sum(np.any(forest.leaves(known) != leaves, axis=0))
        assert np.array_equal(forest.leaves(known), leaves)
        assert_same_bits(snapshot(forest), before)
    assert moved > 10


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("min_samples_split", [2, 5])
def test_spare_capacity_is_restored_too(kind, min_samples_split):
    forest = make_forest(min_samples_split=min_samples_split)
    points, targets = make_fantasy(kind, forest)
    for _ in range(2):
        # The first block enlarges the arrays, the second finds them large enough.
        before = [field.copy() for field in (*forest.arrays, *forest.node_stats)]
        with forest.extended(points, targets, RATES[None]):
            pass
    for old, new in zip(before, (*forest.arrays, *forest.node_stats), strict=True):
        assert old.shape == new.shape
        assert old.tobytes() == new.tobytes()


def test_an_empty_forest_may_change_the_number_of_views():
    # As a fantasy before the first trial, of which nothing is left afterwards.
    rng = np.random.default_rng(1)
    forest, replica = (grow(np.empty((1, 0, 2)), first=0, n_trees=3) for _ in range(2))
    for n_views in (1, 3, 1):
        with forest.extended(rng.random((n_views, 12, 2)), np.arange(12.0), RATES[None]):
            check_forest(forest, RATES)
    points = rng.random((3, 30, 2))
    for model in (forest, replica):
        model.extend(points, np.arange(30.0), RATES[None])
    check_forest(forest, RATES)
    assert_same_bits(snapshot(forest), snapshot(replica))


@given(
    known=arrays(np.float64, (12, 2), elements=st.sampled_from([0.0, 0.5, 1.0])),
    fantasy=arrays(np.float64, (5, 2), elements=st.sampled_from([-1.0, 0.0, 0.5, 0.75])),
    n_known=st.integers(0, 12),
    first=st.integers(0, 12),
    min_samples_split=st.integers(2, 6),
)
@settings(max_examples=150, derandomize=True, database=None)
def test_any_points(known, fantasy, n_known, first, min_samples_split):
    forest = grow(
        known[:n_known],
        first=min(first, n_known),
        n_trees=2,
        min_samples_split=min_samples_split,
    )
    before = snapshot(forest)
    with forest.extended(fantasy[None], np.arange(5.0), np.ones((1, 2))):
        check_forest(forest)
    assert_same_bits(snapshot(forest), before)


@pytest.mark.parametrize("first", [0, 11, 23])
@pytest.mark.parametrize("kind", KINDS)
def test_learning_goes_on_as_if_nothing_had_happened(kind, first):
    forest, replica = make_forest(first=first), make_forest(first=first)
    points, targets = make_fantasy(kind, forest)
    for _ in range(2):
        with forest.extended(points, targets, RATES[None]):
            pass
    new = np.random.default_rng(8).random((1, 30, 2))
    targets = np.arange(30.0)
    forest.extend(new, targets, RATES[None])
    replica.extend(new, targets, RATES[None])
    assert_same_bits(snapshot(forest), snapshot(replica))


def test_blocks_within_blocks():
    forest, replica = make_forest(min_samples_split=4), make_forest(min_samples_split=4)
    points, targets = make_fantasy("seven", forest)
    before = snapshot(forest)
    with forest.extended(points[:, :3], targets[:3], RATES[None]):
        outer = snapshot(forest)
        with forest.extended(points[:, 3:], targets[3:], RATES[None]):
            replica.extend(points, targets, RATES[None])
            assert_same_bits(snapshot(forest), snapshot(replica))
        assert_same_bits(snapshot(forest), outer)
    assert_same_bits(snapshot(forest), before)


def test_empty_forest():
    forest = make_forest(n=0, first=0)
    before = snapshot(forest)
    points, targets = np.random.default_rng(0).random((1, 9, 2)), np.arange(9.0)
    with forest.extended(points, targets, RATES[None]):
        check_forest(forest, RATES)
        assert forest.n_points == 9
    assert forest.n_points == 0
    assert_same_bits(snapshot(forest), before)
    with forest.extended(points[:, :0], targets[:0], RATES[None]):
        assert_same_bits(snapshot(forest), before)


def test_an_exception_passes_through_and_is_undone(monkeypatch):
    forest = make_forest(min_samples_split=5)
    points, targets = make_fantasy("seven", forest)
    before = snapshot(forest)
    with (
        pytest.raises(RuntimeError, match="inside"),
        forest.extended(points, targets, RATES[None]),
    ):
        assert forest.n_points == 30
        raise RuntimeError("inside")
    assert_same_bits(snapshot(forest), before)
    # Also when the insertion itself fails half way.
    extend = forest.extend

    def fails(points, targets, rates):
        extend(points[:, :3], targets[:3], rates)
        raise RuntimeError("half way")

    monkeypatch.setattr(forest, "extend", fails)
    with (
        pytest.raises(RuntimeError, match="half way"),
        forest.extended(points, targets, RATES[None]),
    ):
        pytest.fail("must not be reached")
    assert_same_bits(snapshot(forest), before)


def test_damage_is_noticed():
    forest = make_forest()
    before = snapshot(forest)
    forest.node_stats.messages[2, 0, 1] = np.nextafter(forest.node_stats.messages[2, 0, 1], np.inf)
    with pytest.raises(AssertionError):
        assert_same_bits(snapshot(forest), before)
