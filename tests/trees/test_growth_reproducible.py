"""The same seed gives the same forest, whatever the portions of the stream and the threads."""

import joblib
import numpy as np
import pytest
from trees.oracles import assert_same_bits, check_forest, grow, snapshot

from mondrian_bo.surrogates.mondrian_forest.forest import GaussianForest
from mondrian_bo.surrogates.shared.ensemble import Ensemble
from mondrian_bo.surrogates.shared.parallel import run_parallel, split_trees
from mondrian_bo.trees.hierarchical_gaussian import Hyperparameters
from mondrian_bo.trees.predict import REMAINING

RATES = np.array([1.0, 0.5])


def make_data(n=120, n_views=1):
    rng = np.random.default_rng(1)
    return rng.random((n_views, n, 2)), rng.normal(size=n)


def build(points, targets, n_jobs, n_trees=5, **options):
    forest = GaussianForest(Ensemble(n_trees, 2, np.random.SeedSequence(3)), **options)
    forest.build(points.copy(), targets.copy(), RATES, Hyperparameters(0.5, 0.1), n_jobs)
    return forest


@pytest.mark.parametrize("first", [0, 1, 40])
@pytest.mark.parametrize("min_samples_split", [2, 6])
def test_portions_of_a_stream(first, min_samples_split):
    points, targets = make_data()
    options = {"first": first, "n_trees": 4, "min_samples_split": min_samples_split}
    one_by_one = snapshot(grow(points, targets, **options))
    for steps in ([120], [41, 42, 100, 120], [50, 50, 119]):
        forest = grow(points, targets, steps=steps, **options)
        assert_same_bits(snapshot(forest), one_by_one)


def test_weights_of_each_point():
    points, targets = make_data()
    rates = np.random.default_rng(2).uniform(0.5, 2.0, size=(120, 2))
    at_once = grow(points[:, :30], targets[:30], first=30, n_trees=4)
    at_once.extend(points[:, 30:], targets[30:], rates[30:])
    one_by_one = grow(points[:, :30], targets[:30], first=30, n_trees=4)
    for i in range(30, 120):
        one_by_one.extend(points[:, i : i + 1], targets[i : i + 1], rates[i : i + 1])
    assert_same_bits(snapshot(at_once), snapshot(one_by_one))
    # The result differs from using the first point's rates for all.
    constant = grow(points[:, :30], targets[:30], first=30, n_trees=4)
    constant.extend(points[:, 30:], targets[30:], rates[30:31])
    with pytest.raises(AssertionError):
        assert_same_bits(snapshot(at_once), snapshot(constant))


def test_seeds():
    points, targets = make_data()
    for first in (0, 50, 120):
        one = snapshot(grow(points, targets, first=first, n_trees=3, seed=5))
        assert_same_bits(one, snapshot(grow(points, targets, first=first, n_trees=3, seed=5)))
        other = snapshot(grow(points, targets, first=first, n_trees=3, seed=6))
        assert not np.array_equal(one["0.threshold"], other["0.threshold"])
        # The trees of a forest differ too.
        assert not np.array_equal(one["0.threshold"], one["1.threshold"])


def test_more_trees_leave_the_first_alone():
    points, targets = make_data()
    few = snapshot(grow(points, targets, first=50, n_trees=2))
    many = snapshot(grow(points, targets, first=50, n_trees=6))
    assert_same_bits(few, {name: many[name] for name in few})


@pytest.mark.parametrize("n_views", [1, 5])
@pytest.mark.parametrize("n_jobs", [2, 3, 8, -1, None])
def test_threads(n_jobs, n_views):
    points, targets = make_data(n_views=n_views)
    queries = np.random.default_rng(3).random((n_views, 50, 2)) * 1.5
    for min_samples_split in (2, 6):
        one = build(points, targets, 1, min_samples_split=min_samples_split)
        several = build(points, targets, n_jobs, min_samples_split=min_samples_split)
        assert_same_bits(snapshot(one), snapshot(several))
        settings = one.prediction_settings(0.1, 2.0, REMAINING)
        expected = one.predict(queries, RATES, settings, n_jobs=1)
        found = several.predict(queries, RATES, settings, n_jobs=n_jobs)
        for left, right in zip(expected, found, strict=True):
            assert left.shape == (5, 50)
            assert np.array_equal(left, right)


def test_workers_with_memory_of_their_own():
    # As with Dask and Ray: workers get copies and return copies.
    points, targets = make_data()
    one = build(points, targets, 1)
    with joblib.parallel_config(backend="multiprocessing", n_jobs=2):
        other = build(points, targets, None)
        settings = one.prediction_settings(0.1, 2.0, REMAINING)
        expected = one.predict(points, RATES, settings)
        found = other.predict(points, RATES, settings, n_jobs=None)
    assert_same_bits(snapshot(one), snapshot(other))
    for left, right in zip(expected, found, strict=True):
        assert np.array_equal(left, right)
    # The forest can grow further.
    for forest in (one, other):
        forest.extend(points[:, :5] + 0.01, targets[:5], RATES[None])
    check_forest(other, RATES)
    assert_same_bits(snapshot(one), snapshot(other))


def test_split_trees():
    for n_trees in (1, 2, 7, 10):
        for n_jobs in (1, 2, 3, 20, -1, None):
            parts = split_trees(n_trees, n_jobs)
            together = np.concatenate([np.arange(n_trees)[part] for part in parts])
            assert np.array_equal(together, np.arange(n_trees))
            sizes = [part.stop - part.start for part in parts]
            assert max(sizes) - min(sizes) <= 1
            assert len(parts) <= (n_jobs if n_jobs and n_jobs > 0 else n_trees)
    assert len(split_trees(10, 2)) == 2
    assert len(split_trees(10, None)) == 1


def test_run_parallel_keeps_the_order():
    assert run_parallel(divmod, [(7, 2), (9, 4), (5, 5)]) == [(3, 1), (2, 1), (1, 0)]
    assert run_parallel(divmod, [(7, 2)]) == [(3, 1)]
