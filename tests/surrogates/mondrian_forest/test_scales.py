"""Inputs and targets of any scale: predictions follow them."""

import numpy as np
import pytest
from trees.oracles import snapshot

from mondrian_bo.surrogates import MondrianForestRegressor

SETTINGS = [
    {},
    {"min_samples_split": 5, "lifetime": 2.0},
    {"branch_off": "paper", "hyperparameters": "paper"},
    {"branch_off": "remaining"},
    {"posterior": "empirical"},
]


def make_data(n=50, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((n, 2))
    return X, np.sin(4.0 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=n)


def queries():
    return np.random.default_rng(9).uniform(-0.3, 1.3, size=(30, 2))


def fitted(X, y, portions=(), **options):
    forest = MondrianForestRegressor(n_estimators=5, random_state=1, **options)
    parts = zip(np.split(X, portions), np.split(y, portions), strict=True)
    for some, targets in parts:
        forest.partial_fit(some, targets)
    return forest


@pytest.mark.parametrize("options", SETTINGS)
def test_scale_of_inputs(options):
    X, y = make_data()
    forest = fitted(X, y, **options)
    expected = forest.predict(queries(), return_std=True)
    # Powers of two scale without rounding: all bits agree.
    for scale in (2.0**10, 2.0**-300, 2.0**900, [2.0**-9, 2.0**20]):
        scaled = fitted(X * scale, y, **options)
        found = scaled.predict(queries() * scale, return_std=True)
        assert np.array_equal(found, expected)
        assert np.array_equal(scaled.apply(queries() * scale), forest.apply(queries()))
        assert scaled.log_marginal_likelihood() == forest.log_marginal_likelihood()
    for scale, shift in ((1000.0, -5.0), (1e-5, 0.03), ([7.0, 1e7], [-1e5, 3.0])):
        moved = fitted(X * scale + shift, y, **options)
        found = moved.predict(queries() * scale + shift, return_std=True)
        assert np.allclose(found, expected, rtol=1e-5)
    # A mirrored input is another draw: which neighbour is "left" matters to the stream.
    mirrored = fitted(-X, y, **options)
    assert not np.array_equal(mirrored.predict(-queries()), expected[0])


@pytest.mark.parametrize("portions", [[1], [10, 30]])
def test_scale_of_inputs_online(portions):
    X, y = make_data()
    expected = fitted(X, y, portions).predict(queries(), return_std=True)
    for scale in (2.0**10, 2.0**-40, [2.0**-9, 2.0**20]):
        scaled = fitted(X * scale, y, portions)
        assert np.array_equal(scaled.predict(queries() * scale, return_std=True), expected)


def test_tiny_and_huge_inputs():
    X, y = make_data()
    for scale in (1e-300, 1e300):
        forest = fitted(X * scale, y, [20])
        mean, std = forest.predict(queries() * scale, return_std=True)
        assert np.all(np.isfinite(mean) & np.isfinite(std))
        assert len(np.unique(forest.apply(X * scale)[:, 0])) == 50
    # An extent below the smallest normal number has no finite inverse: as good as constant.
    inputs = np.array([[0.5, 0.0], [0.1, 1e-313], [0.5, 3.0]])
    forest, plain = fitted(X * [1.0, 1e-312], y), fitted(X * [1.0, 0.0], y)
    assert np.allclose(forest.predict(inputs, True), plain.predict(inputs, True))
    forest = fitted(X * [1.0, 1e-312], y, [1, 20])
    assert np.all(np.isfinite(forest.predict(inputs, True)))


def test_bounds_are_the_scale():
    X, y = make_data()
    bounds = np.array([[-1.0, 3.0], [0.0, 2.0]])
    bounded = fitted(X, y, [20], bounds=bounds)
    # The same forest, scaled by the caller; its unit cube is [0, 1].
    scaled = (X - bounds[:, 0]) / np.ptp(bounds, axis=1)
    by_hand = fitted(scaled, y, [20], bounds=[[0.0, 1.0]] * 2)
    own = snapshot(bounded.model_.forest)
    other = snapshot(by_hand.model_.forest)
    for name in ("0.split_time", "3.split_time", "0.dimension", "0.children"):
        assert np.allclose(own[name], other[name])
    inputs = (queries() - bounds[:, 0]) / np.ptp(bounds, axis=1)
    assert np.allclose(bounded.predict(queries()), by_hand.predict(inputs))
    # Data may lie outside.
    bounded.partial_fit([[100.0, -100.0]], [5.0])
    assert np.isfinite(bounded.predict([[100.0, -100.0]]))[0]


@pytest.mark.parametrize("options", SETTINGS)
@pytest.mark.parametrize("portions", [[], [20]])
def test_scale_of_targets(options, portions):
    X, y = make_data()
    forest = fitted(X, y, portions, **options)
    mean, std = forest.predict(queries(), return_std=True)
    quantiles = forest.predict_quantiles(queries(), (0.01, 0.3, 0.9))
    density = forest.logpdf(queries(), mean + 0.5)
    evidence = forest.log_marginal_likelihood()
    draws = forest.sample_y(queries(), 4)
    for scale, shift in ((1e6, 0.0), (1e-12, 0.0), (-3.0, 40.0), (1e-3, 1000.0), (1e100, 0.0)):
        other = fitted(X, shift + scale * y, portions, **options)
        found, spread = other.predict(queries(), return_std=True)
        size = abs(scale)
        near = {"rtol": 1e-6, "atol": 1e-6 * size}
        assert np.allclose(found, shift + scale * mean, **near)
        assert np.allclose(spread, size * std, **near)
        targets = shift + scale * (mean + 0.5)
        assert np.allclose(other.logpdf(queries(), targets), density - np.log(size), atol=1e-4)
        levels = (0.01, 0.3, 0.9) if scale > 0.0 else (0.99, 0.7, 0.1)
        found = other.predict_quantiles(queries(), levels)
        assert np.allclose(found, shift + scale * quantiles, **near)
        expected = evidence - 50 * np.log(size)
        assert other.log_marginal_likelihood() == pytest.approx(expected, abs=1e-4)
        if scale > 0.0:
            assert np.allclose(other.sample_y(queries(), 4), shift + scale * draws, **near)


def test_targets_of_a_small_signal_on_a_large_offset():
    X, y = make_data()
    small = fitted(X, y).predict_quantiles(queries())
    large = fitted(X, 1e6 + 1e-5 * y).predict_quantiles(queries())
    # Two digits of the signal survive in such targets, five in their quantiles at most.
    assert np.allclose((large - 1e6) / 1e-5, small, atol=1e-3)


@pytest.mark.parametrize("portions", [[], [1], [25]])
def test_feature_weight_of_zero(portions):
    X, y = make_data()
    rng = np.random.default_rng(3)
    noise = rng.normal(size=50)
    padded = np.insert(X, 1, noise, axis=1)
    forest = fitted(padded, y, portions, feature_weights=[1.0, 0.0, 1.0])
    plain = fitted(X, y, portions)
    inputs = np.insert(queries(), 1, 1e9 * rng.normal(size=30), axis=1)
    expected = plain.predict(queries(), return_std=True)
    # The sum over features may be in another order, no more.
    assert np.allclose(forest.predict(inputs, return_std=True), expected, rtol=1e-12)
    assert np.array_equal(forest.apply(inputs), plain.apply(queries()))
    assert not np.any(forest.model_.forest.arrays.dimension == 1)


def test_feature_weights_direct_the_splits():
    X, y = make_data(200)
    forest = MondrianForestRegressor(200, random_state=0, feature_weights=[3.0, 1.0]).fit(X, y)
    trees = forest.model_.forest.arrays
    roots = trees.dimension[np.arange(200), trees.counters[:, 1]]
    # Extents are scaled to 1, so a root is cut in the first dimension with probability 3/4.
    assert abs(np.mean(roots == 0) - 0.75) < 4.5 * np.sqrt(0.75 * 0.25 / 200)
