"""Stacked predictions compared with plain ridge regression and with separate forecasts."""

import numpy as np
import pytest
from sklearn.datasets import make_friedman1

from mondrian_bo.surrogates import AMFRegressor
from mondrian_bo.surrogates.amf.stacking import Stacking
from mondrian_bo.trees.aggregation_predict import AGGREGATED, AT_LEAF

NO_RATES = np.empty(0)
BOX = [[0.0, 1.0]] * 5


def stream(n=120, noise=1.0):
    return make_friedman1(n, 5, noise=noise, random_state=0)


def separate_forecasts(model, points):
    """The four forecasts, each from the walk of many points, and the variance of the first."""
    rates = model._outer_rates()
    kinds = [(rates, AGGREGATED), (NO_RATES, AGGREGATED), (rates, AT_LEAF), (NO_RATES, AT_LEAF)]
    found = [model.forest.predict(points, *kind) for kind in kinds]
    return np.stack([*(means for means, _ in found), found[0][1]], axis=2)


@pytest.mark.parametrize("bounds", [None, BOX])
def test_forecasts(bounds):
    X, y = stream()
    model = AMFRegressor(3, stacking=True, bounds=bounds, random_state=0).fit(X, y).model_
    queries = np.random.default_rng(1).random((50, 5)).astype(np.float32)
    if bounds is None:
        queries = 3.0 * queries - 1.0
    found = model.forest.forecasts(queries[None], model._outer_rates())
    np.testing.assert_allclose(found, separate_forecasts(model, queries[None]), rtol=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
def test_ridge_regression_of_forecasts_made_before(weighted):
    X, y = stream()
    weights = np.random.default_rng(2).uniform(0.5, 2.0, len(y)) if weighted else np.ones(len(y))
    # With given bounds and step neither scales nor weights change before the next forecast.
    forest = AMFRegressor(3, stacking=True, bounds=BOX, step=0.1, random_state=0)
    forest.partial_fit(X[:1], y[:1], weights[:1])
    rows, variances, means = [], [], []
    for i in range(1, len(y)):
        each = separate_forecasts(forest.model_, X[None, i : i + 1].astype(np.float32))[:, 0]
        rows.append(each[:, :4].mean(axis=0))
        variances.append(each[:, 4].mean() + each[:, 0].var())
        means.append(np.average(y[:i], weights=weights[:i]))
        forest.partial_fit(X[i : i + 1], y[i : i + 1], weights[i : i + 1])
    deviations = np.array(rows) - np.array(means)[:, None]
    target, variances = y[1:] - np.array(means), np.array(variances)
    # Weights are in inverse proportion to predicted deviations, relative to those so far.
    usual = np.cumsum(weights[1:] * variances) / np.cumsum(weights[1:])
    relative = np.divide(variances, usual, where=usual > 0.0, out=np.ones_like(usual))
    w = weights[1:] / (np.sqrt(relative) + 0.01)
    unit = np.average(target**2, weights=w)
    unit *= weights[1:].mean()  # the prior counts as much as 0.3 samples of the mean weight
    # Ridge regression as least squares with further rows.
    design = np.vstack([deviations * np.sqrt(w)[:, None], np.sqrt(0.3 * unit) * np.eye(4)])
    expected = np.linalg.lstsq(
        design, np.concatenate([target * np.sqrt(w), np.full(4, 0.25 * np.sqrt(0.3 * unit))])
    )[0]
    stacking = forest.model_.stacking
    np.testing.assert_allclose(stacking.coefficients, expected, rtol=1e-7, atol=1e-9)
    error = np.sum(w * (target - deviations @ expected) ** 2)
    scale = (error + unit) / (np.sum(w * variances) + unit)
    assert stacking.scale == pytest.approx(scale, rel=1e-7)
    points = X[None, :20].astype(np.float32)
    each = separate_forecasts(forest.model_, points).mean(axis=0)[:, :4]
    mean = np.average(y, weights=weights)
    predicted, std = forest.predict(X[:20], return_std=True)
    combined = mean + (each - mean) @ expected
    np.testing.assert_allclose(predicted, np.clip(combined, y.min(), y.max()), rtol=1e-8)
    # The mixture has the same moments, and the weights the same mean.
    mixture = forest._mixture(X[:20])
    first = np.bincount(mixture.point, mixture.weight * mixture.mean)
    second = np.bincount(mixture.point, mixture.weight * (mixture.mean**2 + mixture.std**2))
    np.testing.assert_allclose(first, predicted, rtol=1e-9)
    np.testing.assert_allclose(second - first**2, std**2, rtol=1e-7)
    found = forest.weights(X[:20], tolerance=0.0)
    np.testing.assert_allclose(found @ y, predicted, rtol=1e-9)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-9)


def test_calls_and_jobs_do_not_matter():
    X, y = stream(300)
    expected = AMFRegressor(4, stacking=True, random_state=0).fit(X, y).predict(X, return_std=True)
    by_parts = AMFRegressor(4, stacking=True, random_state=0, n_jobs=2)
    for start, end in ((0, 1), (1, 2), (2, 77), (77, 300)):
        by_parts.partial_fit(X[start:end], y[start:end])
    for one, other in zip(by_parts.predict(X, return_std=True), expected, strict=True):
        assert np.array_equal(one, other)


def test_it_helps_where_trees_prune_too_much():
    X, y = stream(800, noise=0.1)
    errors = []
    for stacking in (False, True):
        forest = AMFRegressor(stacking=stacking, random_state=0).fit(X[:600], y[:600])
        errors.append(np.mean((forest.predict(X[600:]) - y[600:]) ** 2))
    assert errors[1] < 0.8 * errors[0]


def test_predictions_stay_in_the_range_of_the_targets():
    # Linear combinations learnt where targets differ little go far wrong after a jump.
    X = np.arange(300.0)[:, None]
    y = np.where(X[:, 0] < 200, 100.0 + np.sin(X[:, 0]), 50.0 + np.sin(X[:, 0]))
    forest = AMFRegressor(random_state=0).fit(X[:201], y[:201])
    queries = np.array([[-50.0], [100.0], [199.0], [200.0], [201.0], [999.0]])
    forecasts = forest.model_.forest.forecasts(
        queries[None].astype(np.float32), forest.model_._outer_rates()
    )
    forecasts = forecasts[:, :, :4].mean(axis=0)
    stacking = forest.model_.stacking
    combined = stacking.mean + (forecasts - stacking.mean) @ stacking.coefficients
    low, high = y[:201].min(), y[:201].max()
    assert combined.min() < low
    predicted = forest.predict(queries)
    np.testing.assert_allclose(predicted, np.clip(combined, low, high), rtol=1e-10)
    weights = forest.weights(queries, tolerance=0.0)
    np.testing.assert_allclose(weights @ y[:201], predicted, rtol=1e-9)
    np.testing.assert_allclose(weights.sum(axis=1), 1.0, rtol=1e-9)


def test_few_and_constant_targets():
    assert np.array_equal(Stacking(4).coefficients, np.full(4, 0.25))
    forest = AMFRegressor(2, stacking=True, random_state=0).partial_fit([[0.0]], [3.0])
    assert forest.predict([[5.0]]) == pytest.approx(3.0)
    forest.partial_fit([[1.0], [2.0]], [3.0, 3.0])
    mean, std = forest.predict([[0.0], [9.0]], return_std=True)
    np.testing.assert_allclose(mean, 3.0)
    assert np.all(np.isfinite(std))
    assert np.all(np.isfinite(forest.logpdf([[0.5]], [3.0])))


@pytest.mark.parametrize("stacking", [False, True])
@pytest.mark.parametrize("target", [3.0, 0.0])
def test_densities_after_equal_targets(target, stacking):
    forest = AMFRegressor(2, stacking=stacking, random_state=0)
    forest.partial_fit([[0.0], [1.0]], [target, target])
    logs = forest.logpdf([[0.0]] * 3, [target, target + 0.5, target + 1.0])
    assert np.isfinite(logs).all()
    assert logs[0] > 0.0 > logs[1] > logs[2]


def test_densities_after_equal_targets_without_a_unit():
    forest = AMFRegressor(2, random_state=0).partial_fit([[0.0], [1.0]], [1e-315, 1e-315])
    assert not np.isnan(forest.logpdf([[0.0]] * 2, [1e-315, 1.0])).any()


def test_targets_and_weights_whose_products_underflow():
    rng = np.random.default_rng(0)
    X, y = rng.random((40, 2)), 10.0**-161.5 * rng.normal(size=40)
    weights = np.where(np.arange(40) % 2, 1e30, 1e-300)
    for settings in ({}, {"sample_weight": weights}):
        forest = AMFRegressor(5, stacking=True, random_state=0).partial_fit(X, y, **settings)
        assert np.isfinite(forest.predict(X)).all()


@pytest.mark.parametrize(
    ("options", "stacked"),
    [
        ({}, True),
        ({"bounds": BOX}, True),
        ({"step": "corollary"}, False),
        ({"step": 0.5}, False),
        ({"step": 0.5, "stacking": True}, True),
        ({"use_aggregation": False}, False),
        ({"online_to_batch": True}, False),
        ({"stacking": False}, False),
    ],
)
def test_the_default_stacks_where_no_paper_rule_is_asked_for(options, stacked):
    forest = AMFRegressor(2, random_state=0, **options).fit(*stream(5))
    assert (forest.model_.stacking is not None) == stacked


@pytest.mark.parametrize("other", [{"use_aggregation": False}, {"online_to_batch": True}])
def test_what_cannot_be_stacked(other):
    with pytest.raises(ValueError, match="stacking=True needs"):
        AMFRegressor(stacking=True, **other).fit([[0.0]], [0.0])


@pytest.mark.parametrize("ratio", [1e12, 1e18, 1e25, 1e30])
def test_weights_of_any_ratio(ratio):
    """The forecasts of one sample decide, and the others break the tie."""
    X, y = stream(60)
    for heavy in (7, 59):
        weights = np.where(np.arange(60) == heavy, ratio, 1.0)
        forest = AMFRegressor(5, random_state=0).partial_fit(X, y, sample_weight=weights)
        mean, std = forest.predict(X, return_std=True)
        assert np.isfinite(mean).all()
        assert np.isfinite(std).all()
        assert np.all((mean >= y.min() - 1e-9) & (mean <= y.max() + 1e-9))
