"""The Gaussian process forest agrees with one dense joint Gaussian."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from mondrian_bo.surrogates.gaussian_process import repeated_fit
from mondrian_bo.surrogates.gaussian_process.fit import Prior, fit_hyperparameters
from mondrian_bo.surrogates.gaussian_process_forest.forest import GaussianProcessForest
from mondrian_bo.surrogates.gaussian_process_forest.posterior_draw import draw_from_forest
from mondrian_bo.surrogates.shared.ensemble import Ensemble
from mondrian_bo.trees.layout import N_NODES, NONE
from mondrian_bo.trees.tree import NODE_FIELDS

NUMERIC = np.zeros(3, dtype=bool)


def data(n, seed=0):
    rng = np.random.default_rng(seed)
    points = rng.random((n, 3))
    targets = np.sin(6.0 * points[:, 0]) + 2.0 * points[:, 1]
    return points, (targets - targets.mean()) / targets.std()


def forest_of(points, targets, block_size, batches=(), n_trees=3, **options):
    forest = GaussianProcessForest(
        Ensemble(n_trees, 3, np.random.SeedSequence(1)),
        NUMERIC,
        block_size=block_size,
        prior=Prior(mean_variance=1.5),
        **options,
    )
    targets, start = targets.copy(), 0
    for end in (*batches, len(targets)):
        forest.learn(points[None, start:end], points[start:end], targets[start:end])
        forest.predict(points[None, :2], points[:2])
        start = end
    return forest


def predict(forest, probes, with_gradients=False):
    return forest.predict(probes[None], probes, with_gradients)


def dense_prediction(forest, t, points, targets, probes):
    """Condition the joint Gaussian of all targets and functions of one tree."""
    arrays = forest.trees.arrays
    gamma_1, gamma_2 = 2.0 * 1.5, forest.trees.hyperparameters.gamma_2

    def path(leaf):
        nodes = []
        while leaf != NONE:
            nodes.append(int(leaf))
            leaf = arrays.parent[t, leaf]
        return nodes

    def spent(node):
        return gamma_1 * (expit(gamma_2 * arrays.split_time[t, node]) - 0.5)

    def between(some, others):
        leaves = [forest.trees.leaves(x[None])[:, t] for x in (some, others)]
        means = np.empty((len(some), len(others)))
        for i, one in enumerate(leaves[0]):
            for k, two in enumerate(leaves[1]):
                shared = set(path(one)) & set(path(two))
                means[i, k] = max((spent(node) for node in shared), default=0.0)
        same = leaves[0][:, None] == leaves[1][None]
        return means + np.where(same, forest.covariance.between(some, others), 0.0)

    prior = between(points, points) + forest.covariance.noise * np.eye(len(points))
    cross = between(probes, points)
    gain = np.linalg.solve(prior, cross.T).T
    variances = np.diag(between(probes, probes)) - np.einsum("ij,ij->i", gain, cross)
    return gain @ targets, variances


def test_few_points_are_one_process():
    points, targets = data(40)
    probes, _ = data(9, seed=1)
    forest = forest_of(points, targets, 40)
    means, variances, *_ = predict(forest, probes)
    assert means.shape == (1, 9)
    prior = forest.covariance.between(points, points) + 1.5 + forest.covariance.noise * np.eye(40)
    cross = forest.covariance.between(probes, points) + 1.5
    gain = np.linalg.solve(prior, cross.T).T
    assert np.allclose(means[0], gain @ targets, atol=1e-8)
    expected = forest.covariance.amplitude + 1.5 - np.einsum("ij,ij->i", gain, cross)
    assert np.allclose(variances[0], expected, atol=1e-8)


@pytest.mark.parametrize("batches", [(), (20, 21, 22, 60), tuple(range(1, 90, 7))])
def test_many_points_are_one_joint_gaussian(batches):
    points, targets = data(90)
    probes, _ = data(15, seed=1)
    forest = forest_of(points, targets, 20, batches)
    means, variances, *_ = predict(forest, probes)
    assert means.shape == (3, 15)
    for t in range(3):
        expected = dense_prediction(forest, t, points, targets, probes)
        assert np.allclose(means[t], expected[0], atol=1e-8)
        assert np.allclose(variances[t], expected[1], atol=1e-8)


def test_points_are_not_needed_while_there_is_a_single_leaf():
    points, targets = data(40)
    probes, _ = data(9, seed=1)
    forest = forest_of(points, targets, 40)
    assert forest.has_single_leaf and forest.n_components == 1
    assert np.array_equal(forest.predict(None, probes).means, predict(forest, probes).means)
    function = draw_from_forest(forest, np.zeros(3, dtype=np.int64), np.random.default_rng(0))
    assert np.array_equal(function(None, probes), function(probes[None], probes))
    more, more_targets = data(2, seed=2)
    with forest.extended(more[None], more, more_targets):
        # A few imputed points grow no trees.
        assert forest.has_single_leaf and forest.n_components == 1
        assert forest.predict(None, probes).means.shape == (1, 9)
    assert forest._trees is None
    forest.learn(more[None], more, more_targets)
    assert not forest.has_single_leaf and forest.n_components == 3


def test_a_single_tree_may_have_many_leaves():
    points, targets = data(90)
    probes, _ = data(15, seed=1)
    forest = forest_of(points, targets, 20, n_trees=1)
    means, variances, *_ = predict(forest, probes)
    expected = dense_prediction(forest, 0, points, targets, probes)
    assert np.allclose((means[0], variances[0]), expected, atol=1e-8)


def test_leaves_have_at_most_block_size_points():
    points, targets = data(300)
    forest = forest_of(points, targets, 25, (10, 11, 150))
    leaves = forest.trees.leaves(points[None])
    for t in range(3):
        _, sizes = np.unique(leaves[:, t], return_counts=True)
        assert sizes.max() <= 25 and sizes.sum() == 300


@pytest.mark.parametrize("step", [1, 7, 50])
def test_hyper_parameters_are_fitted_to_current_leaves(monkeypatch, step):
    fitted = []

    def recording_fit(leaves, *settings):
        fitted.append(leaves)
        return fit_hyperparameters(leaves, *settings)

    monkeypatch.setattr(repeated_fit, "fit_hyperparameters", recording_fit)
    points, targets = data(150)
    forest = forest_of(points, targets, 20, range(step, 150, step))
    assert len(fitted) > 5 or step == 50
    for leaves in fitted:
        for rows, their_targets, _ in leaves:
            assert len(rows) <= 20
            places = [int(np.flatnonzero((points == row).all(axis=1))[0]) for row in rows]
            assert len(set(places)) == len(places)
            assert np.array_equal(their_targets, targets[places])
    for t in range(3):
        assert sorted(forest._leaves[t]) == forest._nodes_of_leaves(t)


def test_gradients_are_limits_of_differences():
    points, targets = data(90)
    forest = forest_of(points, targets, 20)
    probes, _ = data(15, seed=1)
    prediction = predict(forest, probes, with_gradients=True)
    for j, direction in enumerate(1e-6 * np.eye(3)):
        up, down = predict(forest, probes + direction), predict(forest, probes - direction)
        assert np.allclose(prediction.mean_gradients[:, :, j], (up[0] - down[0]) / 2e-6, atol=1e-4)
        assert np.allclose(
            prediction.variance_gradients[:, :, j], (up[1] - down[1]) / 2e-6, atol=1e-4
        )


@pytest.mark.parametrize("block_size", [200, 30])
def test_extensions_are_learnt_and_undone(block_size):
    points, targets = data(90)
    new_points, new_targets = data(31, seed=2)
    probes, _ = data(15, seed=1)
    forest = forest_of(points, targets, block_size)
    before = predict(forest, probes)
    with forest.extended(new_points[None], new_points, new_targets):
        inside = predict(forest, probes)
        both = np.concatenate([points, new_points]), np.concatenate([targets, new_targets])
        for t in range(len(inside.means)):
            expected = dense_prediction(forest, t, *both, probes)
            assert np.allclose(inside.means[t], expected[0], atol=1e-8)
            assert np.allclose(inside.variances[t], expected[1], atol=1e-8)
    after = predict(forest, probes)
    assert not np.allclose(inside[0], before[0], atol=1e-3)
    assert np.array_equal(before[0], after[0]) and np.array_equal(before[1], after[1])
    # The undone points can be learnt afterwards.
    forest.learn(new_points[None], new_points, new_targets)
    for t, means in enumerate(predict(forest, probes).means):
        assert np.allclose(means, dense_prediction(forest, t, *both, probes)[0], atol=1e-8)


@pytest.mark.parametrize("n_first", [1, 12])
def test_trees_that_are_grown_late_are_those_of_a_forest_with_trees_from_the_start(n_first):
    points, targets = data(90)
    probes, _ = data(15, seed=1)
    late, early = (
        GaussianProcessForest(
            Ensemble(2, 3, np.random.SeedSequence(1)), NUMERIC, prior=Prior(), block_size=40
        )
        for _ in range(2)
    )
    ends = [n_first, *range(n_first + 1, 91)]
    for start, end in zip([0, *ends], ends, strict=False):
        for forest in (late, early):
            forest.learn(points[None, start:end], points[start:end], targets[start:end])
        assert early.trees is early._trees
        assert (late._trees is None) == (end <= 40)
        assert np.array_equal(predict(late, probes)[:2], predict(early, probes)[:2])
        if end == 38:
            for n_more, is_single in ((1, True), (5, True), (43, False)):
                more = points[None, 40 : 40 + n_more], points[40 : 40 + n_more], targets[:n_more]
                with late.extended(*more), early.extended(*more):
                    assert late.has_single_leaf == is_single
                    if n_more != 5:
                        assert np.array_equal(predict(late, probes)[:2], predict(early, probes)[:2])
                assert late._trees is None
    one, other = late.trees.arrays, early.trees.arrays
    assert np.array_equal(one.counters, other.counters) and np.array_equal(one.stream, other.stream)
    n_nodes = one.counters[:, N_NODES].min()
    assert n_nodes > 1
    for field in NODE_FIELDS:
        assert np.array_equal(getattr(one, field)[:, :n_nodes], getattr(other, field)[:, :n_nodes])


def test_an_error_inside_an_extension_is_undone():
    points, targets = data(90)
    probes, _ = data(5, seed=1)
    forest = forest_of(points, targets, 30)
    before = predict(forest, probes)
    with (
        pytest.raises(KeyError),
        forest.extended(points[None, :1] + 0.5, points[:1] + 0.5, targets[:1]),
    ):
        raise KeyError
    assert np.array_equal(predict(forest, probes)[0], before[0])


def test_targets_can_be_replaced():
    points, targets = data(90)
    probes, _ = data(5, seed=1)
    forest = forest_of(points, targets, 30)
    forest.set_targets(-targets)
    means, variances, *_ = predict(forest, probes)
    forest.set_targets(targets)
    again = predict(forest, probes)
    assert np.allclose(means, -again[0], atol=1e-10)
    assert np.allclose(variances, again[1], atol=1e-10)


def test_draws_have_the_moments_of_a_mixture_of_trees():
    points, targets = data(60)
    probes, _ = data(6, seed=1)
    forest = forest_of(points, targets, 20)
    rng = np.random.default_rng(3)
    none = np.zeros(3, dtype=np.int64)
    draws = []
    for i in range(700):
        function = draw_from_forest(forest, none, rng)
        draws.append(function(probes[None], probes))
        if i % 10 == 0:
            assert np.allclose(function(probes[None, 2:3], probes[2:3]), draws[-1][2])
    means, variances, *_ = predict(forest, probes)
    mean = means.mean(axis=0)
    variance = (variances + means**2).mean(axis=0) - mean**2
    assert np.all(np.abs(np.mean(draws, axis=0) - mean) < 4.5 * np.sqrt(variance / len(draws)))
    # Random Fourier features approximate the covariance.
    assert np.allclose(np.var(draws, axis=0), variance, rtol=0.2, atol=1e-4)
