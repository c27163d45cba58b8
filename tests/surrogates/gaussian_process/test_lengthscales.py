"""Split rates from learnt lengthscales."""

from __future__ import annotations

import numpy as np
import pytest

from mondrian_bo.surrogates import MondrianForestRegressor
from mondrian_bo.surrogates.gaussian_process.lengthscales import inverse_lengthscales
from mondrian_bo.trees.layout import N_NODES

OTHERS = [0, 1, 2, 4, 5, 6]


def make_data(n, seed, d=8):
    """Return data in which columns 3 and 7 are relevant."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, d))
    return X, np.sin(6.0 * X[:, 3]) + X[:, 7] + 0.05 * rng.normal(size=n)


def rates_of(forest):
    return forest.model_.scales.feature_weights


@pytest.mark.parametrize("seed", range(3))
def test_relevant_features_have_short_lengthscales(seed):
    X, y = make_data(500, seed)
    y = (y - y.mean()) / y.std()
    rates = inverse_lengthscales(X, np.ones(8), y, np.random.default_rng(seed))
    assert rates.mean() == pytest.approx(1.0)
    assert rates.min() > 0.0
    assert min(rates[[3, 7]]) > 1.5 * rates[OTHERS].max()
    # Only the product of points and rates counts.
    units = 2.0 ** np.arange(-4, 4)
    same = inverse_lengthscales(X * units, 1.0 / units, y, np.random.default_rng(seed))
    np.testing.assert_allclose(same, rates)
    other = inverse_lengthscales(X, 1.0 / units, y, np.random.default_rng(seed))
    assert np.abs(other / rates - 1.0).max() > 0.5


@pytest.mark.parametrize("seed", range(3))
def test_relevant_features_are_split_more_often_and_errors_are_smaller(seed):
    X, y = make_data(900, seed)
    errors, shares = [], []
    for relevance in (False, "lengthscales"):
        forest = MondrianForestRegressor(feature_relevance=relevance, random_state=seed)
        forest.fit(X[:600], y[:600])
        errors.append(np.sqrt(np.mean((forest.predict(X[600:]) - y[600:]) ** 2)))
        trees = forest.model_.forest.arrays
        used = trees.counters[:, N_NODES]
        splits = np.concatenate([trees.dimension[t, : used[t]] for t in range(10)])
        shares.append(np.mean(np.isin(splits[splits >= 0], [3, 7])))
    assert errors[1] < 0.8 * errors[0]
    assert shares[1] > 1.5 * shares[0]


def test_given_weights_stay_factors():
    X, y = make_data(200, 0)
    given = np.ones(8)
    given[3] = 0.0
    forest = MondrianForestRegressor(
        feature_relevance="lengthscales", feature_weights=given, random_state=0
    ).fit(X, y)
    assert rates_of(forest)[3] == 0.0
    assert rates_of(forest)[7] == rates_of(forest).max()
    # Ignored features do not enter the mean.
    assert rates_of(forest)[given > 0.0].mean() == pytest.approx(1.0)


@pytest.mark.parametrize("targets", [np.zeros(100), np.full(100, 0.1)])
def test_constant_targets_have_equal_rates(targets):
    X, _ = make_data(100, 0)
    forest = MondrianForestRegressor(feature_relevance="lengthscales", random_state=0)
    forest.fit(X, targets)
    np.testing.assert_array_equal(rates_of(forest), 1.0)
    assert np.all(np.isfinite(forest.predict(X)))


def test_rates_are_learnt_from_enough_samples_on():
    X, y = make_data(130, 1)
    forest = MondrianForestRegressor(feature_relevance="lengthscales", random_state=0)
    forest.fit(X[:32], y[:32])
    np.testing.assert_array_equal(rates_of(forest), 1.0)
    forest.partial_fit(X[32:63], y[32:63])
    np.testing.assert_array_equal(rates_of(forest), 1.0)
    forest.partial_fit(X[63:], y[63:])
    assert min(rates_of(forest)[[3, 7]]) > rates_of(forest)[OTHERS].max()
    # The result does not depend on how the stream is divided.
    other = MondrianForestRegressor(feature_relevance="lengthscales", random_state=0)
    other.fit(X[:32], y[:32])
    for i in range(32, 130):
        other.partial_fit(X[i : i + 1], y[i : i + 1])
    np.testing.assert_array_equal(other.predict(X), forest.predict(X))


@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_extreme_inputs(scale):
    X, y = make_data(100, 2)
    forest = MondrianForestRegressor(feature_relevance="lengthscales", random_state=0)
    forest.fit(X * scale, y)
    assert min(rates_of(forest)[[3, 7]]) > rates_of(forest)[OTHERS].max()


def test_unknown_values_are_refused():
    X, y = make_data(20, 0)
    with pytest.raises(ValueError, match="feature_relevance"):
        MondrianForestRegressor(feature_relevance="gains").fit(X, y)
