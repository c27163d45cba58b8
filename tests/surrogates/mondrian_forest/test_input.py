"""Inputs that are wrong, few, repeated or constant: each has a defined outcome."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from trees.oracles import assert_same_bits, snapshot

from mondrian_bo.surrogates import MondrianForestRegressor
from mondrian_bo.trees.predict import predict_forest

SETTINGS = [
    {},
    {"min_samples_split": 5, "lifetime": 2.0},
    {"branch_off": "paper", "hyperparameters": "paper"},
    {"branch_off": "remaining"},
    {"posterior": "empirical"},
]


def make_data(n=30, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((n, 2))
    return X, np.sin(4.0 * X[:, 0]) + 0.1 * rng.normal(size=n)


def make_forest(**options):
    return MondrianForestRegressor(random_state=0, **options)


X_GOOD, Y_GOOD = make_data()
WRONG = {
    "NaN in X": (np.array([[0.5, np.nan]]), np.array([1.0]), "NaN"),
    "inf in X": (np.array([[0.5, np.inf]]), np.array([1.0]), "infinity"),
    "NaN in y": (np.array([[0.5, 0.5]]), np.array([np.nan]), "NaN"),
    "-inf in y": (np.array([[0.5, 0.5]]), np.array([-np.inf]), "infinity"),
    "a target too large": (np.array([[0.5, 0.5]]), np.array([-1e160]), "squares overflow"),
    "too few features": (np.array([[0.5]]), np.array([1.0]), "features"),
    "too many features": (np.ones((1, 3)), np.array([1.0]), "features"),
    "a flat X": (np.array([0.5, 0.5]), np.array([1.0, 1.0]), "2D array"),
    "too few targets": (np.ones((3, 2)), np.array([1.0, 2.0]), "inconsistent"),
    "targets of two columns": (np.ones((3, 2)), np.ones((3, 2)), "1d array"),
    "no samples": (np.ones((0, 2)), np.ones(0), "0 sample"),
    "words": (np.array([["a", "b"]]), np.array([1.0]), "could not convert"),
    "late in a batch": (
        np.concatenate([X_GOOD, [[np.nan, 0.0]]]),
        np.append(Y_GOOD, 0.0),
        "NaN",
    ),
}


def test_no_samples_change_nothing():
    forest = make_forest().fit(X_GOOD, Y_GOOD)
    before = snapshot(forest.model_.forest)
    assert forest.partial_fit(np.ones((0, 2)), np.ones(0)) is forest
    assert_same_bits(snapshot(forest.model_.forest), before)


@pytest.mark.parametrize("name", [name for name in WRONG if name != "no samples"])
def test_wrong_input_changes_nothing(name):
    X, y, message = WRONG[name]
    forest = make_forest().fit(X_GOOD, Y_GOOD)
    before = snapshot(forest.model_.forest)
    rates = forest.model_.rates
    with pytest.raises(ValueError, match=message):
        forest.partial_fit(X, y)
    assert_same_bits(snapshot(forest.model_.forest), before)
    assert np.array_equal(forest.model_.rates, rates)
    assert forest.n_features_in_ == 2
    # A later sample finds the forest as it was.
    replica = make_forest().fit(X_GOOD, Y_GOOD)
    for model in (forest, replica):
        model.partial_fit([[0.1, 2.0]], [0.0])
    assert_same_bits(snapshot(forest.model_.forest), snapshot(replica.model_.forest))


@pytest.mark.parametrize("name", [name for name in WRONG if "features" not in name])
def test_wrong_input_to_fit(name):
    X, y, message = WRONG[name]
    for start in (MondrianForestRegressor.fit, MondrianForestRegressor.partial_fit):
        forest = make_forest()
        with pytest.raises(ValueError, match=message):
            start(forest, X, y)
        with pytest.raises(NotFittedError):
            forest.predict(X_GOOD)


@pytest.mark.parametrize("method", ["predict", "apply", "decision_path", "sample_y", "logpdf"])
def test_wrong_input_to_predict(method):
    forest = make_forest()
    extra = {"logpdf": ([0.0],)}.get(method, ())
    with pytest.raises(NotFittedError):
        getattr(forest, method)([[0.5, 0.5]], *extra)
    forest.fit(X_GOOD, Y_GOOD)
    getattr(forest, method)([[0.5, 0.5]], *extra)
    for X, message in [
        ([[np.nan, 0.5]], "NaN"),
        ([[np.inf, 0.5]], "infinity"),
        ([[0.5]], "features"),
        ([[0.5, 0.5, 0.5]], "features"),
        ([0.5, 0.5], "2D array"),
        (np.ones((0, 2)), "0 sample"),
    ]:
        with pytest.raises(ValueError, match=message):
            getattr(forest, method)(X, *extra)


def test_not_fitted_has_no_likelihood():
    with pytest.raises(NotFittedError):
        make_forest().log_marginal_likelihood()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_estimators": 0}, "n_estimators"),
        ({"n_estimators": 2.5}, "n_estimators"),
        ({"min_samples_split": 1}, "min_samples_split"),
        ({"min_samples_split": "2"}, "min_samples_split"),
        ({"lifetime": 0.0}, "lifetime"),
        ({"lifetime": -1.0}, "lifetime"),
        ({"lifetime": np.nan}, "lifetime"),
        ({"posterior": "exactly"}, "posterior"),
        ({"branch_off": None}, "branch_off"),
        ({"random_state": "seed"}, "random_state"),
        ({"n_jobs": 1.5}, "n_jobs"),
        ({"bounds": [[0.0, 1.0]]}, r"bounds must have shape \(2, 2\)"),
        ({"bounds": [[0.0, 1.0], [1.0, 1.0]]}, "lower < upper"),
        ({"bounds": [[0.0, 1.0], [0.0, np.inf]]}, "finite"),
        ({"bounds": [[0.0, 1.0], [0.0, np.nan]]}, "finite"),
        ({"feature_weights": [1.0]}, r"feature_weights must have shape \(2,\)"),
        ({"feature_weights": [1.0, -1.0]}, "non-negative"),
        ({"feature_weights": [0.0, 0.0]}, "not all zero"),
        ({"feature_weights": [1.0, np.inf]}, "finite"),
    ],
)
def test_wrong_parameters(options, message):
    for start in (MondrianForestRegressor.fit, MondrianForestRegressor.partial_fit):
        forest = MondrianForestRegressor(**options)
        with pytest.raises(ValueError, match=message):
            start(forest, X_GOOD, Y_GOOD)
        assert not hasattr(forest, "model_")


@pytest.mark.parametrize("levels", [(0.0,), (1.0, 0.5), (np.nan,), (-0.1,), [[0.1, 0.2]]])
def test_wrong_levels(levels):
    forest = make_forest().fit(X_GOOD, Y_GOOD)
    with pytest.raises(ValueError, match=r"quantiles must be numbers in \(0, 1\)"):
        forest.predict_quantiles(X_GOOD, levels)


def test_wrong_targets_of_a_density():
    forest = make_forest().fit(X_GOOD, Y_GOOD)
    for y in (Y_GOOD[:5], Y_GOOD[:, None], 0.0):
        with pytest.raises(ValueError, match=r"y must have shape \(30,\)"):
            forest.logpdf(X_GOOD, y)
    for bad in (np.nan, np.inf, -np.inf):
        with pytest.raises(ValueError, match="y contains NaN or infinity"):
            forest.logpdf(X_GOOD[:2], [0.0, bad])


@pytest.mark.parametrize("options", SETTINGS)
def test_one_sample(options):
    forest = make_forest(**options).fit([[0.3, 0.7]], [4.0])
    mean, std = forest.predict([[0.3, 0.7], [5.0, -1.0]], return_std=True)
    assert np.allclose(mean, 4.0)
    assert np.allclose(std, 0.0, atol=1e-8)
    assert np.all(np.isfinite(forest.logpdf([[0.3, 0.7]], [4.0])))
    assert np.allclose(forest.predict_quantiles([[9.0, 9.0]]), 4.0, atol=1e-6)
    assert np.allclose(forest.sample_y([[0.3, 0.7]], 5), 4.0)
    assert np.isfinite(forest.log_marginal_likelihood())
    # More may follow, here or elsewhere.
    forest.partial_fit([[0.3, 0.7], [1.0, 1.0]], [4.0, 6.0])
    assert forest.model_.mean_prior == pytest.approx(14.0 / 3.0)


@pytest.mark.parametrize("options", SETTINGS)
@pytest.mark.parametrize("level", [0.0, 0.1, -3.0, 1e6, 1e-12])
def test_constant_targets(options, level):
    X, _ = make_data(40)
    y = np.full(40, level)
    forest = make_forest(**options).fit(X[:20], y[:20]).partial_fit(X[20:], y[20:])
    inputs = np.concatenate([X, X + 0.01, X + 100.0])
    mean, std = forest.predict(inputs, return_std=True)
    assert np.allclose(mean, level, rtol=1e-14, atol=1e-300)
    assert np.all(std <= 1e-7 * abs(level))
    assert np.all(np.isfinite(forest.logpdf(inputs, np.full(120, level))))
    quantiles = forest.predict_quantiles(inputs)
    assert np.allclose(quantiles, level, atol=1e-8 * max(abs(level), 1.0))
    assert np.allclose(forest.sample_y(inputs, 3), level, rtol=1e-7, atol=1e-300)
    assert np.isfinite(forest.log_marginal_likelihood())


@pytest.mark.parametrize("options", SETTINGS)
def test_the_same_input_with_different_targets(options):
    X = np.array([[0.2, 0.2]] * 10 + [[0.8, 0.8]] * 10)
    y = np.array([0.0, 1.0] * 5 + [4.0, 6.0] * 5)
    batch = make_forest(**options).fit(X, y)
    online = make_forest(**options).fit(X[:7], y[:7]).partial_fit(X[7:], y[7:])
    for forest in (batch, online):
        mean, std = forest.predict([[0.2, 0.2], [0.8, 0.8]], return_std=True)
        assert 0.3 < mean[0] < 1.5
        assert 3.5 < mean[1] < 5.2
        assert np.all(std > 0.1)
        leaves = forest.apply(X)
        assert np.all(leaves[:10] == leaves[0])


@pytest.mark.parametrize("options", SETTINGS)
def test_constant_feature(options):
    X, y = make_data(40)
    padded = np.insert(X, 1, 7.5, axis=1)
    forest = make_forest(**options).fit(padded, y)
    plain = make_forest(**options).fit(X, y)
    found = forest.predict(padded, return_std=True)
    assert np.allclose(found, plain.predict(X, return_std=True), rtol=1e-12)
    # Off the constant is away from the data.
    assert forest.predict([[0.5, 1e6, 0.5]])[0] == pytest.approx(y.mean())
    # It may begin to vary.
    padded[:, 1] += np.arange(40)
    forest.partial_fit(padded, y)
    assert np.any(forest.model_.forest.arrays.dimension == 1)


def test_all_inputs_the_same():
    forest = make_forest().fit(np.full((20, 2), 0.3), np.arange(20.0))
    mean, std = forest.predict([[0.3, 0.3]], return_std=True)
    assert mean[0] == pytest.approx(9.5)
    assert 0.0 < std[0] < np.arange(20.0).std()
    forest.partial_fit([[0.9, 0.3]], [5.0])
    assert len(np.unique(forest.apply([[0.3, 0.3], [0.9, 0.3]])[:, 0])) == 2


def test_the_callers_arrays():
    X, y = make_data(40)
    kept = X.copy(), y.copy()
    forest = make_forest().fit(X[:20], y[:20]).partial_fit(X[20:], y[20:])
    queries = np.random.default_rng(1).random((10, 2))
    before = forest.predict(queries, return_std=True)
    assert np.array_equal(X, kept[0])
    assert np.array_equal(y, kept[1])
    X[:], y[:] = -5.0, 99.0
    assert np.array_equal(forest.predict(queries, return_std=True), before)
    # Nor later, when messages are computed from the stored targets anew.
    replica = make_forest().fit(kept[0][:20], kept[1][:20]).partial_fit(kept[0][20:], kept[1][20:])
    for model in (forest, replica):
        model.partial_fit(queries, np.zeros(10))
        model.model_.forest.set_hyperparameters(model.model_.forest.hyperparameters)
    assert_same_bits(snapshot(forest.model_.forest), snapshot(replica.model_.forest))


def test_arrays_of_other_kinds():
    X, y = make_data(30)
    reference = make_forest().fit(X[:20], y[:20]).partial_fit(X[20:], y[20:])
    read_only = X.copy()
    read_only.flags.writeable = False
    strided = np.repeat(np.repeat(X, 2, axis=0), 2, axis=1)[::2, ::2]
    for other in (np.asfortranarray(X), read_only, strided, X.tolist()):
        forest = make_forest().fit(other[:20], y[:20].tolist())
        forest.partial_fit(other[20:], y[20:].tolist())
        assert_same_bits(snapshot(forest.model_.forest), snapshot(reference.model_.forest))
        assert np.array_equal(forest.predict(other), reference.predict(X))
    integers = make_forest().fit(np.arange(20).reshape(10, 2), np.arange(10))
    floats = make_forest().fit(np.arange(20.0).reshape(10, 2), np.arange(10.0))
    assert_same_bits(snapshot(integers.model_.forest), snapshot(floats.model_.forest))


def test_nothing_is_compiled_again_for_arrays_of_other_kinds():
    X, y = make_data(30)
    forest = make_forest().fit(X, y)
    forest.predict(X)
    compiled = len(predict_forest.signatures)
    read_only = X.copy()
    read_only.flags.writeable = False
    for other in (read_only, np.asfortranarray(X), X[::2], X.astype(np.float32), X.tolist()):
        forest.predict(other)
        forest.partial_fit(other, y[: len(other)])
    assert len(predict_forest.signatures) == compiled


@pytest.mark.parametrize(
    ("options", "X", "y"),
    [
        ({"bounds": [[0.0, 1.0]] * 2}, np.ones((5, 3)), np.arange(5.0)),
        ({"feature_weights": [1.0, 2.0]}, np.ones((5, 3)), np.arange(5.0)),
        ({}, np.ones((5, 3)), np.full(5, np.nan)),
        ({}, np.full((5, 3), np.inf), np.arange(5.0)),
        ({"min_samples_split": 0}, np.ones((5, 3)), np.arange(5.0)),
    ],
)
def test_a_failed_fit_keeps_the_old_forest(options, X, y):
    learnt, targets = make_data()
    forest = make_forest().fit(learnt, targets)
    before, expected = snapshot(forest.model_.forest), forest.predict(learnt)
    with pytest.raises(ValueError, match=r"must|NaN|infinity|min_samples_split"):
        forest.set_params(**options).fit(X, y)
    assert_same_bits(snapshot(forest.model_.forest), before)
    # It has two features still, and is not asked about three.
    for method, extra in ((forest.predict, ()), (forest.partial_fit, (np.arange(5.0),))):
        with pytest.raises(ValueError, match="features"):
            method(np.ones((5, 3)), *extra)
    assert np.array_equal(forest.predict(learnt), expected)
