"""Hyper-parameters, lifetime and weights of trees by the evidence, against dense Gaussians."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import multivariate_normal
from trees.oracles import grow, leaf_of, one_tree

from mondrian_bo.surrogates import MondrianForestRegressor
from mondrian_bo.surrogates.mondrian_forest import model as model_module
from mondrian_bo.surrogates.mondrian_forest.evidence import learn_by_evidence, log_evidence_at
from mondrian_bo.surrogates.mondrian_forest.model import appendix_b
from mondrian_bo.trees.hierarchical_gaussian import Hyperparameters
from mondrian_bo.trees.layout import N_NODES, NONE


def make_data(n=40, seed=0, noise=0.2):
    rng = np.random.default_rng(seed)
    X = rng.random((n, 2))
    X[-3:] = X[:3]
    return X, np.cos(4.0 * X[:, 0]) + noise * rng.normal(size=n)


def dense_log_evidence(forest, t, hyperparameters, gamma_1, lifetime, mean_prior):
    """The normal density of the targets: they share variance up to the last common node in time."""
    tree, n = one_tree(forest, t), forest.n_points
    spent = lambda time: gamma_1 * (expit(hyperparameters.gamma_2 * time) - 0.5)  # noqa: E731
    leaves = [leaf_of(tree, x) for x in forest.points[0]]
    covariance = np.empty((n, n))
    for i in range(n):
        above, node = [], leaves[i]
        while node != NONE:
            above.append(node)
            node = tree.parent[node]
        for j in range(n):
            node = leaves[j]
            while node not in above:
                node = tree.parent[node]
            covariance[i, j] = spent(min(tree.split_time[node], lifetime))
    covariance += gamma_1 * hyperparameters.noise * np.eye(n)
    return multivariate_normal(np.full(n, mean_prior), covariance).logpdf(forest.targets)


@pytest.mark.parametrize("own_lifetime", [np.inf, 1.5])
@pytest.mark.parametrize("lifetime", [0.3, 1.0, 1.5, np.inf])
def test_evidence_at_any_lifetime(lifetime, own_lifetime):
    X, y = make_data()
    forest = grow(X, y, n_trees=3, min_samples_split=3, lifetime=own_lifetime)
    lifetime = min(lifetime, own_lifetime)
    for hyperparameters in (Hyperparameters(0.3, 0.2), Hyperparameters(3.0, 0.01)):
        # A variance of 0 leaves gamma_1 free.
        values, gamma_1 = log_evidence_at(forest, hyperparameters, lifetime, 0.1, 0.0)
        expected = [
            dense_log_evidence(forest, t, hyperparameters, gamma_1, lifetime, 0.1) for t in range(3)
        ]
        np.testing.assert_allclose(values, expected, rtol=1e-9)
        for factor in (0.99, 1.01):  # the closed form is the maximum
            other = [
                dense_log_evidence(forest, t, hyperparameters, factor * gamma_1, lifetime, 0.1)
                for t in range(3)
            ]
            assert np.mean(other) < np.mean(expected)


def test_learnt_values_have_the_most_evidence_around():
    X, y = make_data(150, noise=0.3)
    forest = grow(X, y, n_trees=4)
    mean, variance = y.mean(), y.var()
    heuristic = appendix_b(150, 2.0)
    learnt, lifetime = learn_by_evidence(forest, mean, variance, heuristic)
    gamma_2, noise = learnt.hyperparameters

    def value(gamma_2, noise, lifetime):
        found = log_evidence_at(forest, Hyperparameters(gamma_2, noise), lifetime, mean, variance)
        return found[0].mean()

    best = value(gamma_2, noise, lifetime)
    assert learnt.log_density == pytest.approx(best, rel=1e-12)
    assert best > value(*heuristic, np.inf) + 5.0
    grid = np.geomspace(0.2, 5.0, 9)
    around = [value(gamma_2 * a, noise * b, lifetime) for a in grid for b in grid]
    assert best > max(around) - 0.3
    assert best >= value(gamma_2, noise, np.inf)


def test_trees_are_grown_with_the_learnt_lifetime(monkeypatch):
    """It is learnt from trees of the full lifetime, whenever the number of samples has doubled."""
    seen = []

    def shorter(forest, *arguments):
        seen.append((forest.n_points, forest.lifetime, forest.arrays.split_time[0].max()))
        return learn_by_evidence(forest, *arguments)[0], 0.4

    monkeypatch.setattr(model_module, "learn_by_evidence", shorter)
    X, y = make_data(60)
    options = {"hyperparameters": "marginal_likelihood", "random_state": 0, "lifetime": 9.0}
    model = MondrianForestRegressor(3, **options).fit(X[:20], y[:20])
    model.partial_fit(X[20:], y[20:])
    assert [entry[:2] for entry in seen] == [(20, 9.0), (40, 9.0)]
    forest = model.model_.forest
    assert forest.lifetime == 0.4
    for t in range(3):
        times = forest.arrays.split_time[t, : forest.arrays.counters[t, N_NODES]]
        assert times.max() == 0.4
    assert np.all(np.isfinite(model.predict(X)))


def test_streams_may_be_divided():
    X, y = make_data(100)
    options = {"hyperparameters": "marginal_likelihood", "random_state": 0, "bounds": [[0, 1]] * 2}
    Q = np.random.default_rng(1).random((10, 2))
    models = []
    for size in (1, 23):
        model = MondrianForestRegressor(3, **options).fit(X[:20], y[:20])
        for start in range(20, 100, size):
            model.partial_fit(X[start : start + size], y[start : start + size])
        models.append(model)
    np.testing.assert_array_equal(*(model.predict(Q) for model in models))


def test_trees_are_weighed_by_their_evidence():
    X, y = make_data(30)
    options = {"hyperparameters": "marginal_likelihood", "weigh_trees": True, "random_state": 0}
    model = MondrianForestRegressor(4, **options).fit(X, y)
    own = model.model_
    evidence = own.log_marginal_likelihood()
    expected = np.exp(evidence) / np.exp(evidence).sum()
    np.testing.assert_allclose(own.tree_weights, expected, rtol=1e-10)
    Q = np.random.default_rng(1).uniform(-0.2, 1.2, size=(20, 2))
    means, variances = own.predict(Q[None])
    mean, std = model.predict(Q, return_std=True)
    np.testing.assert_allclose(mean, expected @ means, rtol=1e-10)
    second = expected @ (variances + means**2)
    np.testing.assert_allclose(std**2, second - mean**2, rtol=1e-8)
    np.testing.assert_allclose(mean, y.mean() + model.weights(Q) @ (y - y.mean()), atol=1e-9)
    mixture = own.mixture(Q[None])
    sums = np.bincount(mixture.point, mixture.weight)
    np.testing.assert_allclose(sums, 1.0, rtol=1e-9)
    found = np.bincount(mixture.point, mixture.weight * mixture.mean)
    np.testing.assert_allclose(found, mean, rtol=1e-9)
    rng = np.random.default_rng(0)
    draws = np.stack([own.draw(rng)(Q[None]) for _ in range(2000)])
    assert np.all(np.abs(draws.mean(axis=0) - mean) < 5.0 * std / np.sqrt(2000))


def test_linear_leaves_have_no_evidence_search():
    X, y = make_data(30)
    with pytest.raises(ValueError, match="needs leaf='constant'"):
        MondrianForestRegressor(leaf="linear", hyperparameters="marginal_likelihood").fit(X, y)
