"""The messages are exact: they agree with one dense Gaussian over all targets."""

import numpy as np
import pytest
from trees.dense import DenseTree
from trees.oracles import check_forest, grow, one_tree

from mondrian_bo.trees.hierarchical_gaussian import (
    LOCATION,
    LOG_DETERMINANT,
    MEAN,
    PRECISION,
    RESIDUAL,
    SQUARES,
    Hyperparameters,
    refresh_messages,
    remaining_variance,
)
from mondrian_bo.trees.layout import N_NODES, ROOT
from mondrian_bo.trees.predict import REMAINING

PRIOR = {"mean_prior": 0.7, "gamma_1": 2.5}
SETTINGS = [(2, np.inf), (5, np.inf), (2, 1.2), (5, 1.2)]


def make_data(n, seed, n_duplicates=4):
    rng = np.random.default_rng(seed)
    points = rng.random((n, 2))
    points[n - n_duplicates :] = points[:n_duplicates]
    return points, np.sin(5.0 * points[:, 0]) + rng.normal(scale=0.3, size=n)


def log_likelihoods(forest, mean_prior, gamma_1):
    """Return each tree's log marginal likelihood from its root message."""
    terms = forest.log_likelihood_terms()
    squares = terms[:, RESIDUAL] + terms[:, PRECISION] * (terms[:, LOCATION] - mean_prior) ** 2
    constant = forest.n_points * np.log(2.0 * np.pi * gamma_1)
    return -0.5 * (constant + terms[:, LOG_DETERMINANT] + squares / gamma_1)


def check_against_dense(forest, mean_prior=0.7, gamma_1=2.5, tolerance=1e-8):
    """Compare likelihoods, the predictions at the data and the moments of the root."""
    rates = np.ones(forest.points.shape[2])
    means, variances = forest.predict(
        forest.points, rates, forest.prediction_settings(mean_prior, gamma_1, REMAINING)
    )
    likelihoods = log_likelihoods(forest, mean_prior, gamma_1)
    for t in range(forest.n_trees):
        dense = DenseTree(forest, t, mean_prior=mean_prior, gamma_1=gamma_1)
        assert likelihoods[t] == pytest.approx(dense.log_likelihood(), rel=tolerance, abs=tolerance)
        # A data point is inside all boxes on its path: its prediction is its leaf's posterior.
        spread = np.diag(dense.covariance)[dense.leaves] + dense.noise
        assert np.allclose(means[t], dense.mean[dense.leaves], rtol=tolerance, atol=tolerance)
        assert np.allclose(variances[t], spread, rtol=tolerance, atol=tolerance)


def check_nodes(forest):
    """Compare every node with the moments of its targets and their likelihood of its mean."""
    for t in range(forest.n_trees):
        dense = DenseTree(forest, t, mean_prior=0.0, gamma_1=1.0)
        tree = one_tree(forest, t)
        for node in range(len(tree.parent)):
            targets = dense.members(node)
            below = np.isin(dense.targets, targets)
            moments = forest.node_stats.moments[t, node]
            assert moments[MEAN] == pytest.approx(targets.mean(), abs=1e-10)
            assert moments[SQUARES] == pytest.approx(np.sum((targets - targets.mean()) ** 2))
            time = tree.split_time[node]
            remaining = forest.node_stats.remaining[t, node]
            assert remaining == pytest.approx(0.5 - dense.spent(time), abs=1e-14)
            # Targets given mu_node: the variance that they share above the node is gone.
            covariance = dense.target_covariance[np.ix_(below, below)] - dense.prior[node, node]
            inverse = np.linalg.inv(covariance)
            precision = inverse.sum()
            location = inverse.sum(axis=0) @ targets / precision
            deviation = targets - location
            expected = [
                precision,
                location,
                deviation @ inverse @ deviation,
                np.linalg.slogdet(covariance)[1],
            ]
            message = forest.node_stats.messages[t, node]
            assert np.allclose(message, expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize(("min_samples_split", "lifetime"), SETTINGS)
@pytest.mark.parametrize("first", [0, 1, 13, 30])
def test_small_trees(first, min_samples_split, lifetime):
    for seed in range(3):
        points, targets = make_data(30, seed)
        forest = grow(
            points,
            targets,
            first=first,
            n_trees=4,
            seed=seed,
            min_samples_split=min_samples_split,
            lifetime=lifetime,
        )
        check_against_dense(forest)
        check_nodes(forest)


@pytest.mark.parametrize(
    "hyperparameters",
    [
        Hyperparameters(gamma_2=1e-3, noise=1.0),
        Hyperparameters(gamma_2=5.0, noise=1e-3),
        Hyperparameters(gamma_2=400.0, noise=0.1),
    ],
)
def test_hyperparameters_of_any_size(hyperparameters):
    points, targets = make_data(25, 7)
    forest = grow(points, targets, first=10, n_trees=4, hyperparameters=hyperparameters)
    check_against_dense(forest)
    forest = grow(points, targets, first=10, n_trees=4)
    forest.set_hyperparameters(hyperparameters)
    assert forest.hyperparameters == hyperparameters
    check_against_dense(forest)
    check_nodes(forest)


def test_one_point_and_two():
    for n in (1, 2):
        points, targets = make_data(n, 3, n_duplicates=0)
        for first in range(n + 1):
            check_against_dense(grow(points, targets, first=first, n_trees=3))


@pytest.mark.parametrize(("min_samples_split", "lifetime"), SETTINGS)
def test_new_targets(min_samples_split, lifetime):
    points, targets = make_data(28, 5)
    forest = grow(
        points,
        targets,
        first=9,
        n_trees=3,
        min_samples_split=min_samples_split,
        lifetime=lifetime,
    )
    new = np.random.default_rng(1).normal(size=28)
    forest.set_targets(new)
    new_copy, new[:] = new.copy(), 0.0
    assert np.array_equal(forest.targets, new_copy)
    check_against_dense(forest)
    # The forest then learns further points.
    forest.extend(points[None, :4] + 0.5, np.arange(4.0), np.ones((1, 2)))
    check_forest(forest)
    check_against_dense(forest)


@pytest.mark.parametrize("min_samples_split", [2, 5])
def test_long_online_runs(min_samples_split):
    points, targets = make_data(300, 11, n_duplicates=20)
    forest = grow(points, targets, first=0, n_trees=2, min_samples_split=min_samples_split)
    check_against_dense(forest)


@pytest.mark.parametrize("offset", [1e6, -3e5])
def test_targets_far_from_zero(offset):
    points, targets = make_data(300, 12, n_duplicates=20)
    targets = offset + 0.1 * targets
    forest = grow(points, targets, first=0, n_trees=2)
    rates = np.ones(2)
    means, variances = forest.predict(
        points[None], rates, forest.prediction_settings(offset, 0.01, REMAINING)
    )
    # The same targets except for the offset: the subtraction has no rounding error.
    small = grow(points, targets - offset, first=0, n_trees=2)
    for t in range(2):
        dense = DenseTree(small, t, mean_prior=0.0, gamma_1=0.01)
        expected = dense.mean[dense.leaves]
        spread = np.diag(dense.covariance)[dense.leaves] + dense.noise
        # Targets of this size have a rounding error of 1e-10 themselves.
        assert np.allclose(means[t] - offset, expected, rtol=0.0, atol=3e-9)
        assert np.allclose(variances[t], spread, rtol=1e-8)
        likelihood = log_likelihoods(forest, offset, 0.01)[t]
        assert likelihood == pytest.approx(dense.log_likelihood(), rel=1e-6)
    mean, variance = forest.target_moments()
    assert mean == pytest.approx(targets.mean(), rel=1e-14)
    assert variance == pytest.approx(targets.var(), rel=1e-8)


@pytest.mark.parametrize(("min_samples_split", "lifetime"), SETTINGS)
def test_messages_kept_online_are_those_of_a_full_sweep(min_samples_split, lifetime):
    points, targets = make_data(400, 13, n_duplicates=30)
    forest = grow(
        points,
        targets,
        first=50,
        n_trees=3,
        min_samples_split=min_samples_split,
        lifetime=lifetime,
    )
    online = [field.copy() for field in forest.node_stats]
    refresh_messages(forest.arrays, forest.node_stats, forest.targets, forest.hyperparameters)
    for t in range(3):
        used = forest.arrays.counters[t, N_NODES]
        for before, after in zip(online, forest.node_stats, strict=True):
            assert np.allclose(before[t, :used], after[t, :used], rtol=1e-10, atol=1e-10)


def test_target_moments_and_the_root():
    points, targets = make_data(90, 14)
    for first in (0, 40, 90):
        forest = grow(points, targets, first=first, n_trees=3)
        mean, variance = forest.target_moments()
        assert mean == pytest.approx(targets.mean(), abs=1e-12)
        assert variance == pytest.approx(targets.var(), rel=1e-12)
        for t in range(3):
            root = forest.arrays.counters[t, ROOT]
            assert forest.node_stats.moments[t, root, MEAN] == pytest.approx(mean, abs=1e-12)


def test_remaining_variance():
    times = np.array([0.0, 0.3, 2.0, 50.0, 1e4, 1e300])
    for gamma_2 in (1e-3, 0.7, 20.0):
        found = np.array([remaining_variance(gamma_2, time) for time in times])
        assert np.allclose(found, 1.0 / (1.0 + np.exp(np.minimum(gamma_2 * times, 700.0))))
        assert found[0] == 0.5
        assert remaining_variance(gamma_2, np.inf) == 0.0
    # Deep in a tree the relative precision stays: sigmoid would be rounded to 1 here.
    assert remaining_variance(1.0, 100.0) == pytest.approx(np.exp(-100.0), rel=1e-12)
