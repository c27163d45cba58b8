"""Affine functions at the nodes: messages, predictions and draws are those of a dense Gaussian."""

import numpy as np
import pytest
from trees.dense import moments, probes
from trees.dense_affine import DenseAffineTree
from trees.oracles import grow

from mondrian_bo.surrogates.mondrian_forest.linear_forest import LinearForest, LinearHyperparameters
from mondrian_bo.surrogates.mondrian_forest.model import log_evidence
from mondrian_bo.trees.affine_messages import make_workspace, pass_increment, refresh_affine
from mondrian_bo.trees.affine_predict import solve_total
from mondrian_bo.trees.layout import N_NODES
from mondrian_bo.trees.predict import PAPER, REMAINING

MEAN_PRIOR, GAMMA_1 = -0.4, 1.7
RATES = np.array([2.0, 0.6])
PARAMETERS = LinearHyperparameters(gamma_2=0.3, noise=0.02, slope=1.5)
SETTINGS = [(2, np.inf), (6, np.inf), (2, 0.8), (6, 0.8)]


def make_forest(seed, *, n=28, n_trees=2, first=None, offset=0.0, **settings):
    rng = np.random.default_rng(seed)
    points = rng.random((n, 2)) * [1.0, 3.0]
    points[-3:] = points[:3]
    targets = offset + np.cos(4.0 * points[:, 0]) + points[:, 1] + rng.normal(scale=0.2, size=n)
    settings = {"hyperparameters": PARAMETERS, "rates": RATES} | settings
    return grow(
        points, targets, seed=seed, n_trees=n_trees, first=first, kind=LinearForest, **settings
    )


def check_against_dense(forest, rule=REMAINING, seed=0, tolerance=1e-8, mean_prior=MEAN_PRIOR):
    rng = np.random.default_rng(seed)
    points = probes(forest.points[0], 8, rng)
    means, variances = forest.predict(
        points[None], RATES, forest.prediction_settings(mean_prior, GAMMA_1, rule)
    )
    rows = forest.components(
        points[None], RATES, forest.prediction_settings(mean_prior, GAMMA_1, rule)
    )
    found = log_evidence(forest.log_likelihood_terms(), forest.n_points, mean_prior, GAMMA_1)
    dense = [
        DenseAffineTree(forest, t, mean_prior=mean_prior, gamma_1=GAMMA_1)
        for t in range(forest.n_trees)
    ]
    for t, tree in enumerate(dense):
        assert found[t] == pytest.approx(tree.log_likelihood(), rel=tolerance, abs=tolerance)
    for i, x in enumerate(points):
        expected = [tree.components(x, RATES, rule) for tree in dense]
        for t in range(forest.n_trees):
            mean, variance = moments(expected[t])
            assert means[t, i] == pytest.approx(mean, rel=tolerance, abs=tolerance)
            assert variances[t, i] == pytest.approx(variance, rel=tolerance, abs=tolerance)
        own, other = rows[rows[:, 0] == i, 1:], np.concatenate(expected)
        own, other = own[own[:, 0] > 1e-11], other[other[:, 0] > 1e-11]
        assert np.allclose(own, other, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(("min_samples_split", "lifetime"), SETTINGS)
@pytest.mark.parametrize("first", [0, 12, 28])
def test_the_dense_posterior(first, min_samples_split, lifetime):
    settings = {"min_samples_split": min_samples_split, "lifetime": lifetime}
    for rule in (REMAINING, PAPER):
        check_against_dense(make_forest(3, first=first, **settings), rule)


@pytest.mark.parametrize(
    "hyperparameters",
    [
        LinearHyperparameters(gamma_2=1e-3, noise=1.0, slope=0.1),
        LinearHyperparameters(gamma_2=5.0, noise=1e-3, slope=30.0),
        LinearHyperparameters(gamma_2=400.0, noise=0.1, slope=1.0),
    ],
)
def test_hyperparameters_of_any_size(hyperparameters):
    forest = make_forest(4, first=10)
    forest.set_hyperparameters(hyperparameters)
    check_against_dense(forest, tolerance=1e-7 if hyperparameters.slope > 1.0 else 1e-8)


@pytest.mark.parametrize("n", [1, 2])
def test_few_points(n):
    for first in range(n + 1):
        points, targets = np.arange(2.0 * n).reshape(n, 2), np.arange(1.0, n + 1.0)
        forest = grow(
            points,
            targets,
            first=first,
            rates=RATES,
            kind=LinearForest,
            hyperparameters=PARAMETERS,
        )
        check_against_dense(forest)


def test_new_targets_and_fantasies():
    forest = make_forest(5, first=10)
    forest.set_targets(np.random.default_rng(0).normal(size=28))
    check_against_dense(forest)
    extra = np.random.default_rng(1).random((1, 3, 2))
    before = [field.copy() for field in forest.node_stats]
    with forest.extended(extra, np.array([3.0, -2.0, 1.0]), RATES[None]):
        check_against_dense(forest)
    used = forest.arrays.counters[:, N_NODES].min()
    for field, old in zip(forest.node_stats, before, strict=True):
        assert np.array_equal(field[:, :used], old[:, :used])
    check_against_dense(forest)


def test_each_tree_with_its_own_view_of_the_points():
    rng = np.random.default_rng(6)
    views = rng.random((2, 25, 2))
    forest = grow(
        views,
        rng.normal(size=25),
        first=12,
        n_trees=2,
        rates=RATES,
        kind=LinearForest,
        hyperparameters=PARAMETERS,
    )
    means, variances = forest.predict(
        views, RATES, forest.prediction_settings(MEAN_PRIOR, GAMMA_1, REMAINING)
    )
    for t in range(2):
        dense = DenseAffineTree(forest, t, mean_prior=MEAN_PRIOR, gamma_1=GAMMA_1)
        for i in (0, 13, 24):
            mean, variance = moments(dense.components(views[t, i], RATES, REMAINING))
            assert means[t, i] == pytest.approx(mean, abs=1e-8)
            assert variances[t, i] == pytest.approx(variance, abs=1e-8)


def test_targets_far_from_zero():
    forest = make_forest(7, n=60, offset=1e6)
    check_against_dense(forest, mean_prior=1e6, tolerance=1e-7)


def test_pivots_below_the_rounding_error():
    work = make_workspace.py_func(2)
    features = np.array([1.0, 3e9, 1e9])
    work.precision[:] = work.total_precision[:] = 7.0 * np.outer(features, features)
    work.information[:] = work.total_information[:] = 0.5 * features
    solve_total.py_func(work)
    assert np.all(np.isfinite(work.weights))
    loss, log_determinant = pass_increment.py_func(work, 1.0, 1.0)
    assert log_determinant == pytest.approx(np.log(7.0 * features @ features), rel=0.01)
    assert np.isfinite(loss)


@pytest.mark.parametrize(("min_samples_split", "lifetime"), SETTINGS)
def test_messages_kept_online_are_those_of_a_full_sweep(min_samples_split, lifetime):
    forest = make_forest(8, n=400, first=50, min_samples_split=min_samples_split, lifetime=lifetime)
    # The same number to count targets from.
    settings = forest.message_settings(PARAMETERS)
    online = [field.copy() for field in forest.node_stats]
    refresh_affine(forest.arrays, forest.node_stats, forest.targets, settings)
    for t in range(forest.n_trees):
        used = forest.arrays.counters[t, N_NODES]
        for before, after in zip(online, forest.node_stats, strict=True):
            scale = np.abs(after[t, :used]).max()
            assert np.allclose(before[t, :used], after[t, :used], rtol=1e-9, atol=1e-12 * scale)


def test_one_affine_function_is_found_and_extrapolated():
    rng = np.random.default_rng(9)
    points = rng.random((40, 2))
    targets = 2.0 + points @ [1.5, -0.7] + 1e-3 * rng.normal(size=40)
    forest = grow(
        points,
        targets,
        n_trees=3,
        kind=LinearForest,
        hyperparameters=LinearHyperparameters(gamma_2=1e-4, noise=1e-3, slope=1.0),
    )
    far = np.array([[3.0, -2.0], [-10.0, 10.0]])
    means, variances = forest.predict(
        far[None], np.ones(2), forest.prediction_settings(targets.mean(), 1.0, REMAINING)
    )
    assert np.allclose(means, 2.0 + far @ [1.5, -0.7], rtol=0.05)
    assert np.all(variances[:, 1] > variances[:, 0])


def test_draws_have_the_moments_of_the_posterior():
    forest = make_forest(10, n=15, n_trees=1, min_samples_split=3)
    points = probes(forest.points[0], 3, np.random.default_rng(0))[:12]
    draws = np.array(
        [
            forest.sample_function(
                0,
                key,
                points[None],
                RATES,
                forest.prediction_settings(MEAN_PRIOR, GAMMA_1, REMAINING),
            )
            for key in range(4000)
        ]
    )
    again = forest.sample_function(
        0, 17, points[None], RATES, forest.prediction_settings(MEAN_PRIOR, GAMMA_1, REMAINING)
    )
    assert np.array_equal(again, draws[17])
    mean, variance = forest.predict(
        points[None], RATES, forest.prediction_settings(MEAN_PRIOR, GAMMA_1, REMAINING)
    )
    spread = np.sqrt(variance[0] - GAMMA_1 * PARAMETERS.noise)
    # Five standard errors of means and, for tails as of a normal distribution, of deviations.
    assert np.all(np.abs(draws.mean(axis=0) - mean[0]) < 5.0 * spread / np.sqrt(4000.0))
    assert np.allclose(draws.std(axis=0), spread, rtol=0.12)


def test_draws_are_joint():
    # Both points lie in the same leaf: their values have the covariance of its function.
    forest = make_forest(11, n=12, n_trees=1, lifetime=1e-9)
    points = forest.points[0, :2]
    dense = DenseAffineTree(forest, 0, mean_prior=MEAN_PRIOR, gamma_1=GAMMA_1)
    draws = np.array(
        [
            forest.sample_function(
                0,
                key,
                points[None],
                RATES,
                forest.prediction_settings(MEAN_PRIOR, GAMMA_1, REMAINING),
            )
            for key in range(4000)
        ]
    )
    pairs = [(dense.leaves[i], points[i]) for i in range(2)]
    cross = dense.covariances(pairs, dense.known)
    gain = np.linalg.solve(dense.target_covariance, cross.T).T
    expected = dense.covariances(pairs, pairs) - gain @ cross.T
    assert np.allclose(np.cov(draws.T), expected, rtol=0.1, atol=0.05 * expected.max())
