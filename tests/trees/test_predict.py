"""Predictions are Algorithm 5 over the dense posterior."""

from itertools import pairwise

import numpy as np
import pytest
from trees.dense import RULES, DenseTree, moments, probes
from trees.oracles import grow

from mondrian_bo.trees.hierarchical_gaussian import Hyperparameters
from mondrian_bo.trees.predict import BRIDGE, EMPIRICAL, REMAINING

MEAN_PRIOR, GAMMA_1 = -0.4, 1.7
RATES = np.array([2.0, 0.6])
SETTINGS = [(2, np.inf), (5, np.inf), (2, 0.8), (5, 0.8)]


def make_forest(seed, *, n=28, **settings):
    rng = np.random.default_rng(seed)
    points = rng.random((n, 2)) * [1.0, 3.0]
    points[-3:] = points[:3]
    targets = np.cos(4.0 * points[:, 0]) + rng.normal(scale=0.2, size=n)
    return grow(points, targets, seed=seed, rates=RATES, **settings)


def predict(forest, points, rule, rates=RATES):
    views = points[None] if points.ndim == 2 else points
    return forest.predict(views, rates, forest.prediction_settings(MEAN_PRIOR, GAMMA_1, rule))


def components(forest, points, rule):
    """Return the components of each point, as a list of arrays (weight, mean, variance)."""
    views = points[None] if points.ndim == 2 else points
    rows = forest.components(views, RATES, forest.prediction_settings(MEAN_PRIOR, GAMMA_1, rule))
    assert np.all(np.diff(rows[:, 0]) >= 0.0)
    return [rows[rows[:, 0] == i, 1:] for i in range(views.shape[1])]


def check_against_algorithm_5(forest, rule, seed=0, tolerance=1e-8):
    rng = np.random.default_rng(seed)
    points = probes(forest.points[0], 12, rng)
    means, variances = predict(forest, points, rule)
    dense = [
        DenseTree(forest, t, mean_prior=MEAN_PRIOR, gamma_1=GAMMA_1) for t in range(forest.n_trees)
    ]
    found = components(forest, points, rule)
    for i, x in enumerate(points):
        expected = [tree.components(x, RATES, rule) for tree in dense]
        for t in range(forest.n_trees):
            mean, variance = moments(expected[t])
            assert means[t, i] == pytest.approx(mean, rel=tolerance, abs=tolerance)
            assert variances[t, i] == pytest.approx(variance, rel=tolerance, abs=tolerance)
        # Tree after tree, each from the root down.
        rows = np.concatenate(expected)
        own = found[i]
        own, rows = own[own[:, 0] > 1e-11], rows[rows[:, 0] > 1e-11]
        assert own.shape == rows.shape
        assert np.allclose(own, rows, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(("min_samples_split", "lifetime"), SETTINGS)
@pytest.mark.parametrize("first", [0, 12, 28])
def test_algorithm_5(rule, first, min_samples_split, lifetime):
    for seed in range(2):
        forest = make_forest(
            seed,
            first=first,
            n_trees=3,
            min_samples_split=min_samples_split,
            lifetime=lifetime,
        )
        check_against_algorithm_5(forest, rule, seed)


@pytest.mark.parametrize("rule", RULES)
def test_algorithm_5_after_changes(rule):
    forest = make_forest(4, first=10, n_trees=3)
    forest.set_hyperparameters(Hyperparameters(gamma_2=2.0, noise=0.1))
    check_against_algorithm_5(forest, rule)
    forest.set_targets(np.random.default_rng(0).normal(size=28))
    check_against_algorithm_5(forest, rule)
    extra = np.random.default_rng(1).random((1, 3, 2))
    with forest.extended(extra, np.array([3.0, -2.0, 1.0]), RATES[None]):
        check_against_algorithm_5(forest, rule)
    check_against_algorithm_5(forest, rule)


@pytest.mark.parametrize("rule", RULES)
def test_algorithm_5_after_a_long_run(rule):
    check_against_algorithm_5(make_forest(6, n=200, first=0, n_trees=2), rule)


@pytest.mark.parametrize("rule", RULES)
def test_one_point(rule):
    forest = grow(np.array([[0.5, 0.5]]), np.array([2.0]), n_trees=2, rates=RATES)
    check_against_algorithm_5(forest, rule)


@pytest.mark.parametrize("lifetime", [np.inf, 0.8])
def test_far_away_is_the_prior(lifetime):
    forest = make_forest(5, n_trees=5, lifetime=lifetime)
    far = np.array([[1e4, 1e5], [-1e7, 1.0], [0.5, 1e300]])
    noise = forest.hyperparameters.noise
    floor = 0.0 if lifetime == np.inf else 1.0 / (1.0 + np.exp(0.3 * lifetime))
    for rule in RULES:
        means, variances = predict(forest, far, rule)
        assert np.allclose(means, MEAN_PRIOR, rtol=0.0, atol=1e-9)
        assert np.allclose(variances, GAMMA_1 * (0.5 - floor + noise), rtol=1e-9)


@pytest.mark.parametrize("rule", [*RULES, BRIDGE])
@pytest.mark.parametrize(("min_samples_split", "lifetime"), SETTINGS)
def test_the_limit_at_a_training_point_is_the_prediction_there(rule, min_samples_split, lifetime):
    forest = make_forest(
        7, first=12, n_trees=3, min_samples_split=min_samples_split, lifetime=lifetime
    )
    rng = np.random.default_rng(5)
    at = predict(forest, forest.points[0], rule)
    for _ in range(4):
        step = 1e-9 * rng.standard_normal(forest.points[0].shape)
        beside = predict(forest, forest.points[0] + step, rule)
        # The bridge goes on to the leaf's time: its limit is reached at a slower rate.
        tolerance = 1e-4 if rule == BRIDGE else 1e-6
        assert np.allclose(beside[0], at[0], rtol=0.0, atol=tolerance)
        assert np.allclose(beside[1], at[1], rtol=tolerance, atol=tolerance)


def test_the_empirical_posterior_has_noise():
    forest = make_forest(13, n_trees=2)
    variances = predict(forest, forest.points[0], EMPIRICAL)[1]
    assert np.allclose(variances.min(), GAMMA_1 * forest.hyperparameters.noise)


def test_uncertainty_returns_smoothly_to_the_prior():
    # As in Figure 2, on a ray that leaves the data at one of the points. The point itself is in its
    # leaf for certain, what lies next to it is not: there the deviation jumps.
    hyperparameters = Hyperparameters(gamma_2=1.0, noise=0.02)
    forest = make_forest(8, n_trees=50, hyperparameters=hyperparameters)
    last = forest.points[0, np.argmax(forest.points[0, :, 0])]
    steps = np.geomspace(1e-6, 1e3, 600)
    means, variances = predict(forest, last + steps[:, None] * [1.0, 0.0], REMAINING)
    std = np.sqrt(variances.mean(axis=0) + means.var(axis=0))
    prior = np.sqrt(GAMMA_1 * (0.5 + hyperparameters.noise))
    assert std[0] < 0.6 * prior
    assert std[-1] == pytest.approx(prior, rel=1e-3)
    assert np.all(np.diff(std) > -1e-3 * prior)
    assert np.abs(np.diff(std)).max() < 0.01 * prior
    assert np.abs(np.diff(means.mean(axis=0))).max() < 0.01 * prior


@pytest.mark.parametrize("rule", RULES)
def test_many_points_at_once_are_the_points_one_by_one(rule):
    forest = make_forest(9, first=10, n_trees=4)
    points = probes(forest.points[0], 100, np.random.default_rng(2))
    points = np.concatenate([points, points[::-1]])
    means, variances = predict(forest, points, rule)
    together = components(forest, points, rule)
    for i in range(len(points)):
        one = predict(forest, points[i : i + 1], rule)
        assert np.array_equal(one[0][:, 0], means[:, i])
        assert np.array_equal(one[1][:, 0], variances[:, i])
        assert np.array_equal(components(forest, points[i : i + 1], rule)[0], together[i])


@pytest.mark.parametrize("n_views", [1, 2])
def test_more_points_than_go_down_the_tree_together(n_views):
    rng = np.random.default_rng(14)
    points = rng.random((n_views, 30, 2))
    forest = grow(points, rng.normal(size=30), first=20, n_trees=2, rates=RATES)
    queries = rng.random((n_views, 9001, 2)) * 1.2
    for rule in RULES:
        together = predict(forest, queries, rule)
        ends = [0, 1, 700, 4095, 4096, 8193, 9001]
        parts = [predict(forest, queries[:, a:b].copy(), rule) for a, b in pairwise(ends)]
        for k in (0, 1):
            assert np.array_equal(np.concatenate([part[k] for part in parts], axis=1), together[k])


def test_each_tree_with_its_own_view_of_the_points():
    rng = np.random.default_rng(10)
    points = rng.random((3, 20, 2))
    targets = rng.normal(size=20)
    forest = grow(points, targets, first=8, n_trees=3, rates=RATES)
    queries = np.concatenate([points[:, :5], rng.random((3, 6, 2)) * 1.5], axis=1)
    means, variances = predict(forest, queries, REMAINING)
    found = components(forest, queries, REMAINING)
    leaves = forest.leaves(points)
    for t in range(3):
        dense = DenseTree(forest, t, mean_prior=MEAN_PRIOR, gamma_1=GAMMA_1)
        assert np.array_equal(leaves[:, t], dense.leaves)
        for i, x in enumerate(queries[t]):
            mean, variance = moments(dense.components(x, RATES, REMAINING))
            assert means[t, i] == pytest.approx(mean, rel=1e-8, abs=1e-8)
            assert variances[t, i] == pytest.approx(variance, rel=1e-8)
    for i, rows in enumerate(found):
        assert rows[:, 0].sum() == pytest.approx(3.0)
        assert rows[:, 0] @ rows[:, 1] == pytest.approx(means[:, i].sum())


@pytest.mark.parametrize("rule", RULES)
def test_component_weights_add_up(rule):
    forest = make_forest(11, n_trees=3, lifetime=0.8)
    points = probes(forest.points[0], 30, np.random.default_rng(3))
    for rows in components(forest, points, rule):
        assert np.all(rows[:, 0] >= 0.0)
        assert rows[:, 0].sum() == pytest.approx(3.0, abs=1e-11)
        assert np.all(rows[:, 2] >= 0.0)


def test_posterior_means_do_not_depend_on_gamma_1():
    forest = make_forest(12, n_trees=3)
    points = probes(forest.points[0], 20, np.random.default_rng(4))
    one = forest.components(
        points[None], RATES, forest.prediction_settings(MEAN_PRIOR, 1.0, REMAINING)
    )
    other = forest.components(
        points[None], RATES, forest.prediction_settings(MEAN_PRIOR, 9.0, REMAINING)
    )
    assert np.array_equal(one[:, :3], other[:, :3])
    assert np.allclose(9.0 * one[:, 3], other[:, 3], rtol=1e-12)
