"""Weights of training targets in predictions: what they predict, and how they depend on targets."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from scipy.stats import binomtest
from sklearn.exceptions import NotFittedError

from mondrian_bo.surrogates import (
    AMFRegressor,
    GaussianProcessForestRegressor,
    MondrianForestRegressor,
    MondrianGridRegressor,
    MondrianKernelMixtureRegressor,
    MondrianKernelRegressor,
)

SIGNIFICANCE = 1e-4

SQUARE = [[0.0, 1.0]] * 2
FORESTS = {
    **{
        f"forest, {rule}": lambda rule=rule: MondrianForestRegressor(
            3, branch_off=rule, random_state=0
        )
        for rule in ("remaining", "paper", "bridge")
    },
    "forest, empirical": lambda: MondrianForestRegressor(
        3, posterior="empirical", min_samples_split=5, random_state=0
    ),
    "forest, blocks, short": lambda: MondrianForestRegressor(
        3, min_samples_split=6, lifetime=2.0, branch_off="bridge", random_state=0
    ),
    "AMF": lambda: AMFRegressor(3, stacking=False, random_state=0),
    "AMF, leaves": lambda: AMFRegressor(3, use_aggregation=False, random_state=0),
    "AMF, box": lambda: AMFRegressor(3, stacking=False, bounds=SQUARE, random_state=0),
    "AMF, box, leaves": lambda: AMFRegressor(
        3, bounds=SQUARE, use_aggregation=False, random_state=0
    ),
    "AMF, past": lambda: AMFRegressor(3, online_to_batch=True, random_state=0),
}
KERNELS = {
    "kernel, primal": lambda: MondrianKernelRegressor(4, 0.5, random_state=0),
    "kernel, dual": lambda: MondrianKernelRegressor(20, 6.0, random_state=0),
    "grid": lambda: MondrianGridRegressor(5, [2.0, 1.0], random_state=0),
    "kernel, mixture": lambda: MondrianKernelMixtureRegressor(4, 2.0, random_state=0),
}
FUNCTIONS = {
    **{
        f"linear, {rule}": lambda rule=rule: MondrianForestRegressor(
            3, leaf="linear", branch_off=rule, random_state=0
        )
        for rule in ("remaining", "paper")
    },
    "AMF, stacked": lambda: AMFRegressor(3, random_state=0),
    "linear, blocks, short, weighed": lambda: MondrianForestRegressor(
        3, leaf="linear", min_samples_split=6, lifetime=2.0, weigh_trees=True, random_state=0
    ),
    "processes, one block": lambda: GaussianProcessForestRegressor(3, random_state=0),
    "processes": lambda: GaussianProcessForestRegressor(3, block_size=15, random_state=0),
}
ALL = FORESTS | KERNELS | FUNCTIONS


def make_data(n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((n, 2))
    X[-3:] = X[0]  # duplicates share a leaf
    return X, 100.0 + np.sin(6.0 * X[:, 0]) + 0.3 * rng.normal(size=n)


def queries(model, X, name):
    """Training points, points between them and, where they may be, points far away."""
    inside = np.random.default_rng(7).random((20, 2))
    outside = [[1.3, -0.4], [50.0, 0.5]]
    return np.concatenate([X, inside] if "box" in name or "grid" in name else [X, inside, outside])


@pytest.mark.parametrize("name", ALL)
def test_weights_predict(name):
    X, y = make_data()
    model = ALL[name]().fit(X, y)
    Q = queries(model, X, name)
    for tolerance in (0.0, 1e-12):
        weights = model.weights(Q, tolerance=tolerance)
        assert isinstance(weights, csr_matrix) and weights.shape == (len(Q), len(y))
        predicted = y.mean() + weights @ (y - y.mean())
        np.testing.assert_allclose(predicted, model.predict(Q), rtol=1e-11, atol=1e-9)
    if name in FORESTS:
        assert weights.data.min() > 0.0
        sums = np.asarray(weights.sum(axis=1)).ravel()
        assert sums.max() < 1.0 + 1e-9
        if "AMF" in name:
            np.testing.assert_allclose(sums, 1.0, atol=1e-9)


@pytest.mark.parametrize(
    "name",
    [
        "forest, remaining",
        "forest, bridge",
        "forest, empirical",
        "AMF",
        "linear, remaining",
        "processes",
        "processes, one block",
    ],
)
def test_weights_after_a_stream(name):
    X, y = make_data(130)
    model = ALL[name]().fit(X[:40], y[:40])
    for start in range(40, 130, 30):
        model.partial_fit(X[start : start + 30], y[start : start + 30])
    Q = queries(model, X, name)
    offset = getattr(model, "prior_mean_", y.mean())
    predicted = offset + model.weights(Q) @ (y - offset)
    np.testing.assert_allclose(predicted, model.predict(Q), rtol=1e-11, atol=1e-9)


def test_the_forest_before_the_first_sample_has_no_weights():
    X, y = make_data(4)
    n_empty = 0
    for seed in range(300):
        model = AMFRegressor(2, online_to_batch=True, random_state=seed).fit(X, y)
        weights = model.weights(X, tolerance=0.0)
        assert weights.shape == (4, 4)
        np.testing.assert_allclose(weights @ y, model.predict(X), rtol=1e-12)
        sums = np.asarray(weights.sum(axis=1)).ravel()
        is_empty = weights.nnz == 0
        np.testing.assert_allclose(sums, 0.0 if is_empty else 1.0, atol=1e-12)
        n_empty += is_empty
    assert binomtest(n_empty, 300, 1 / 4).pvalue > SIGNIFICANCE


@pytest.mark.parametrize("rule", ["remaining", "bridge"])
def test_weights_are_the_derivatives_of_the_mean(rule):
    """Unit vectors through the messages, with the hyper-parameters held."""
    X, y = make_data(25)
    model = MondrianForestRegressor(2, branch_off=rule, random_state=0).fit(X, y)
    Q = np.random.default_rng(1).uniform(-0.2, 1.2, size=(15, 2))
    forest, own = model.model_.forest, model.model_
    weights = model.weights(Q, tolerance=0.0).toarray()
    for i, unit in enumerate(np.eye(len(y))):
        own.set_targets(unit)
        settings = forest.prediction_settings(0.0, 1.0, own._rule)
        means, _ = forest.predict(Q[None], own.rates, settings)
        np.testing.assert_allclose(weights[:, i], means.mean(axis=0), rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("rule", ["remaining", "paper"])
def test_weights_of_linear_leaves_are_the_derivatives_of_the_mean(rule):
    """Unit vectors through the messages, with the hyper-parameters held."""
    X, y = make_data(20)
    model = MondrianForestRegressor(2, leaf="linear", branch_off=rule, random_state=0).fit(X, y)
    Q = np.random.default_rng(1).uniform(-0.2, 1.2, size=(10, 2))
    forest, own = model.model_.forest, model.model_
    weights = model.weights(Q, tolerance=0.0).toarray()
    for i, unit in enumerate(np.eye(len(y))):
        own.set_targets(unit)
        settings = forest.prediction_settings(0.0, 1.0, own._rule)
        means, _ = forest.predict(Q[None], own.rates, settings)
        np.testing.assert_allclose(weights[:, i], means.mean(axis=0), rtol=1e-8, atol=1e-12)


def test_weights_of_processes_are_those_of_their_joint_covariance():
    """Each tree written out: leaves share means, points of a leaf share a process."""
    X, y = make_data(50)
    model = GaussianProcessForestRegressor(2, block_size=15, random_state=0).fit(X, y)
    Q = np.random.default_rng(1).uniform(-0.2, 1.2, size=(10, 2))
    forest, m = model.model_._processes, len(Q)
    rows = model.model_._rows(np.concatenate([Q, X])[None])
    expected = np.zeros((m, len(y)))
    for t in range(2):
        trees, own = forest.trees, forest._leaves[t]
        nodes = np.concatenate([trees.leaves(part[None])[:, t] for part in (Q, X)])
        paths = {}
        for node in own:
            paths[node], above = [node], trees.arrays.parent[t]
            while above[paths[node][-1]] >= 0:
                paths[node].append(int(above[paths[node][-1]]))
        joint = np.zeros((len(nodes), len(nodes)))
        for i, one in enumerate(nodes):
            for j, other in enumerate(nodes):
                common = next(k for k in paths[one] if k in paths[other])
                joint[i, j] = forest._gamma_1 * (0.5 - trees.node_stats.remaining[t, common])
        noise = np.zeros(len(nodes))
        for node, leaf in own.items():
            inside, scale = np.flatnonzero(nodes == node), leaf.scale
            covariances = scale * forest.covariance.between(rows[inside], rows[inside])
            joint[np.ix_(inside, inside)] += covariances
            noise[inside] = leaf.noise
        gram = joint[m:, m:] + np.diag(noise[m:])
        expected += 0.5 * joint[:m, m:] @ np.linalg.inv(gram)
    np.testing.assert_allclose(model.weights(Q).toarray(), expected, atol=1e-9)


def test_sample_weights_count():
    X, y = make_data()
    counts = np.random.default_rng(3).integers(1, 4, size=len(y)).astype(float)
    model = AMFRegressor(3, random_state=0).partial_fit(X, y, sample_weight=counts)
    np.testing.assert_allclose(model.weights(X) @ y, model.predict(X), rtol=1e-11)


def test_without_a_prior_mean():
    X, y = make_data()
    model = MondrianKernelRegressor(10, 2.0, normalize_y=False, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.weights(X) @ y, model.predict(X), rtol=1e-10)


def test_kernel_weights_are_those_of_kernel_ridge_regression():
    X, y = make_data()
    model = MondrianKernelRegressor(30, 3.0, noise_variance=0.1, random_state=0).fit(X, y)
    features = model.model_.features(X[None]).toarray()
    gram = features @ features.T
    expected = gram @ np.linalg.inv(gram + 0.1 * np.eye(len(y)))
    np.testing.assert_allclose(model.weights(X).toarray(), expected, atol=1e-9)


def test_tolerance_makes_rows_sparse():
    X, y = make_data(400)
    model = MondrianForestRegressor(5, random_state=0).fit(X, y)
    exact, sparse = model.weights(X, tolerance=0.0), model.weights(X, tolerance=1e-3)
    assert sparse.nnz < 0.3 * exact.nnz
    assert abs(exact - sparse).max() < 0.05


def test_errors():
    X, y = make_data()
    with pytest.raises(NotFittedError):
        MondrianForestRegressor().weights(X)
    model = AMFRegressor(2, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="tolerance must be a number from 0 on"):
        model.weights(X, tolerance=-1.0)
    with pytest.raises(ValueError, match="features"):
        model.weights(X[:, :1])
