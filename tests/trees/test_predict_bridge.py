"""The bridge: a point that branches off has the posterior of its new node."""

import math

import numpy as np
import pytest
from trees.dense import BridgedTree, moments, probes
from trees.oracles import grow

from mondrian_bo.surrogates import MondrianForestRegressor
from mondrian_bo.surrogates.base import Columns
from mondrian_bo.surrogates.mondrian_forest.surrogate import ForestSurrogate
from mondrian_bo.trees.hierarchical_gaussian import Hyperparameters
from mondrian_bo.trees.layout import ROOT
from mondrian_bo.trees.predict import BRIDGE

MEAN_PRIOR, GAMMA_1 = -0.4, 1.7
RATES = np.array([2.0, 0.6])
SETTINGS = [(2, np.inf), (5, np.inf), (2, 0.8), (5, 0.8)]


def make_forest(seed, *, n=24, **settings):
    rng = np.random.default_rng(seed)
    points = rng.random((n, 2)) * [1.0, 3.0]
    points[-3:] = points[:3]
    targets = np.cos(4.0 * points[:, 0]) + rng.normal(scale=0.2, size=n)
    return grow(points, targets, seed=seed, rates=RATES, **settings)


def dense(forest, t):
    return BridgedTree(forest, t, mean_prior=MEAN_PRIOR, gamma_1=GAMMA_1)


def test_the_dense_reference_of_a_new_node():
    # A tree of three points is compared with a covariance computed by hand.
    forest = grow(np.array([[0.1, 0.2], [0.9, 0.4], [0.8, 0.9]]), np.array([1.0, -1.0, 0.5]))
    reference = BridgedTree(forest, 0, mean_prior=0.0, gamma_1=1.0)
    root = int(reference.tree.counters[ROOT])
    time = reference.tree.split_time[root]
    for child in reference.tree.children[root]:
        # At the parent's time the new node is the parent; at the root's own time it is the root.
        mean, variance = reference.with_new_node(int(child), time)
        assert mean == pytest.approx(reference.mean[root])
        expected = (
            reference.covariance[root, root]
            + reference.spent(np.inf)
            - reference.spent(time)
            + reference.noise
        )
        assert variance == pytest.approx(expected)
    mean, variance = reference.with_new_node(root, time)
    assert mean == pytest.approx(reference.mean[root])
    mean, variance = reference.with_new_node(root, 0.0)
    assert mean == pytest.approx(0.0)
    assert variance == pytest.approx(0.5 + reference.noise)


@pytest.mark.parametrize(("min_samples_split", "lifetime"), SETTINGS)
@pytest.mark.parametrize("first", [0, 24])
def test_moments_and_components(first, min_samples_split, lifetime):
    for seed in range(2):
        forest = make_forest(
            seed, first=first, n_trees=2, min_samples_split=min_samples_split, lifetime=lifetime
        )
        points = probes(forest.points[0], 6, np.random.default_rng(seed))
        settings = forest.prediction_settings(MEAN_PRIOR, GAMMA_1, BRIDGE)
        means, variances = forest.predict(points[None], RATES, settings)
        found = forest.components(points[None], RATES, settings)
        for i, x in enumerate(points):
            expected = [dense(forest, t).components(x, RATES, BRIDGE) for t in range(2)]
            for t in range(2):
                assert np.allclose([means[t, i], variances[t, i]], moments(expected[t]), atol=1e-8)
            own, rows = found[found[:, 0] == i, 1:], np.concatenate(expected)
            own, rows = own[own[:, 0] > 1e-10], rows[rows[:, 0] > 1e-10]
            assert own.shape == rows.shape
            assert np.allclose(own, rows, atol=1e-8)


def test_three_quantiles_are_close_to_the_integral():
    forest = make_forest(3, n=12, hyperparameters=Hyperparameters(gamma_2=1.0, noise=0.02))
    points = probes(forest.points[0], 4, np.random.default_rng(0))
    means, variances = forest.predict(
        points[None], RATES, forest.prediction_settings(MEAN_PRIOR, GAMMA_1, BRIDGE)
    )
    spread = forest.targets.std()
    for i, x in enumerate(points):
        mean, variance = dense(forest, 0).exact_moments(x, RATES)
        assert abs(means[0, i] - mean) < 0.03 * spread
        assert variances[0, i] == pytest.approx(variance, rel=0.1)


@pytest.mark.parametrize("lifetime", [np.inf, 0.8])
def test_functions_have_the_distribution(lifetime):
    forest = make_forest(4, n=12, lifetime=lifetime)
    reference = dense(forest, 0)
    points = probes(forest.points[0], 3, np.random.default_rng(1))
    keys = np.random.default_rng(2).integers(2**63, size=3000)
    draws = np.stack(
        [
            forest.sample_function(
                0,
                int(k),
                points[None],
                RATES,
                forest.prediction_settings(MEAN_PRIOR, GAMMA_1, BRIDGE),
            )
            for k in keys
        ]
    )
    for i, x in enumerate(points):
        mean, variance = reference.exact_moments(x, RATES)
        variance -= reference.noise
        centred = draws[:, i] - draws[:, i].mean()
        assert abs(draws[:, i].mean() - mean) < 5.0 * math.sqrt(variance / len(keys)) + 1e-12
        error = math.sqrt(np.var(centred**2) / len(keys))
        assert abs(centred.var() - variance) < 5.0 * error + 1e-12


def test_next_to_the_data_is_the_leaf_and_far_away_the_prior():
    forest = make_forest(5, n_trees=3)
    settings = (RATES, forest.prediction_settings(MEAN_PRIOR, GAMMA_1, BRIDGE))
    noise = forest.hyperparameters.noise
    far = np.array([[1e4, 1e5], [-1e7, 1.0], [0.5, 1e300]])
    means, variances = forest.predict(far[None], *settings)
    assert np.allclose(means, MEAN_PRIOR, atol=1e-3)
    assert np.allclose(variances, GAMMA_1 * (0.5 + noise), rtol=1e-3)
    # A bridge to the leaf makes predictions continuous, where other rules jump.
    at, beside = (forest.predict(forest.points + shift, *settings) for shift in (0.0, 1e-9))
    assert np.allclose(at[0], beside[0], atol=1e-3)
    assert np.allclose(at[1], beside[1], rtol=1e-2)


def test_options_of_estimator_and_surrogate():
    rng = np.random.default_rng(0)
    X = rng.random((60, 2))
    y = np.sin(5.0 * X[:, 0]) + X[:, 1]
    probe = rng.random((9, 2))
    for rule in ("paper", "remaining", "bridge"):
        forest = MondrianForestRegressor(
            30, branch_off=rule, hyperparameters="paper", random_state=0
        ).fit(X, y)
        mean, std = forest.predict(probe, return_std=True)
        draws = forest.sample_y(probe, 1500)
        assert np.allclose(draws.mean(axis=1), mean, atol=0.15)
        assert np.allclose(draws.std(axis=1), std, rtol=0.2)
    options = {"posterior": "exact", "branch_off": "bridge"}
    surrogate = ForestSurrogate(
        Columns(np.zeros(2, int), False), np.random.SeedSequence(0), **options
    )
    surrogate.learn(X, y)
    means, stds = surrogate.predict(probe)
    assert means.shape == stds.shape and np.all(stds > 0.0)
