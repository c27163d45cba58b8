"""The `fit` that all estimators share: what it checks, and what an exception leaves behind."""

import numpy as np
import pytest
from scipy.stats import uniform
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from mondrian_bo.surrogates import (
    AMFClassifier,
    AMFRegressor,
    GaussianProcessForestRegressor,
    LaplaceFourierFeatures,
    MondrianFeatures,
    MondrianForestClassifier,
    MondrianForestDensity,
    MondrianForestRegressor,
    MondrianKernelClassifier,
    MondrianKernelMixtureRegressor,
    MondrianKernelRegressor,
    MondrianKernelSVR,
    OnlineDummyRegressor,
    RandomBinningFeatures,
)
from mondrian_bo.surrogates.estimators.base import SupervisedEstimator


class Interrupted(OnlineDummyRegressor):
    """Learns until a user presses a key."""

    def _learn(self, data, targets, sample_weight):
        super()._learn(data, targets, sample_weight)
        if len(targets) > 2:
            raise KeyboardInterrupt
        return self


@pytest.mark.parametrize("learn", ["fit", "partial_fit"])
def test_interrupted_first_batch_leaves_nothing(learn):
    estimator = Interrupted()
    with pytest.raises(KeyboardInterrupt):
        getattr(estimator, learn)(np.zeros((3, 1)), np.ones(3))
    assert vars(estimator).keys() <= {"_readers_lock"}


def test_interrupted_fit_keeps_what_was_learnt():
    estimator = Interrupted().fit(np.zeros((2, 1)), [1.0, 3.0])
    with pytest.raises(KeyboardInterrupt):
        estimator.fit(np.zeros((3, 2)), np.ones(3))
    assert estimator.n_features_in_ == 1
    assert estimator.mean_ == 2.0


def test_parameters_are_checked_before_data():
    density = MondrianForestDensity(n_estimators=0)
    with pytest.raises(ValueError, match="n_estimators"):
        density.fit("no data")


def test_fit_is_documented_once():
    assert OnlineDummyRegressor.fit is SupervisedEstimator.fit


@pytest.mark.parametrize(
    ("model", "method"),
    [
        (MondrianForestRegressor(weigh_trees=True), "predict"),
        (AMFRegressor(), "weighted_depth"),
        (AMFClassifier(), "weighted_depth"),
        (MondrianForestDensity(), "score_samples"),
        (MondrianForestDensity(), "score"),
    ],
)
def test_methods_of_estimators_that_are_not_fitted(model, method):
    with pytest.raises(NotFittedError, match="not fitted"):
        getattr(model, method)([[0.0]])


@pytest.mark.parametrize("kind", [MondrianForestRegressor, GaussianProcessForestRegressor])
def test_numbers_of_draws(kind):
    model = kind(2, random_state=0).fit([[0.0], [1.0]], [0.0, 1.0])
    assert model.sample_y([[0.5]], np.int64(3)).shape == (1, 3)
    with pytest.raises(ValueError, match="n_samples == 0, must be >= 1"):
        model.sample_y([[0.5]], 0)
    with pytest.raises(TypeError, match="n_samples must be an instance of"):
        model.sample_y([[0.5]], 2.0)
    with pytest.raises(ValueError, match=r"quantiles must be numbers in \(0, 1\), got \[\]"):
        model.predict_quantiles([[0.5]], [])


_CDF = uniform(2.0, 5.0).cdf
"""The distribution function of another prior over the lifetime."""


@pytest.mark.parametrize(
    ("estimator", "later"),
    [
        (MondrianFeatures(6), {"lifetime_shape": 2.0, "n_estimators": 3}),
        (MondrianFeatures(6, lifetime_shape=2.0), {"lifetime_shape": None}),
        (LaplaceFourierFeatures(6), {"n_estimators": 3}),
        (RandomBinningFeatures(6), {"n_estimators": 3}),
        (MondrianForestRegressor(6), {"weigh_trees": True}),
        (MondrianForestRegressor(6, weigh_trees=True), {"weigh_trees": False}),
        (MondrianKernelRegressor(6), {"prior_variance": 9.0, "noise_variance": 2.0}),
        (MondrianKernelRegressor(6), {"normalize_y": False}),
        (MondrianKernelMixtureRegressor(6), {"prior_variance": 9.0, "noise_variance": 2.0}),
        (MondrianKernelMixtureRegressor(6), {"normalize_y": False}),
        (MondrianKernelMixtureRegressor(6), {"max_models": 1, "lifetime_cdf": _CDF}),
    ],
)
def test_parameters_that_are_set_later_count_from_the_next_fit_on(estimator, later):
    X = np.random.default_rng(0).random((30, 2))
    y = X.sum(axis=1)
    one, other = (clone(estimator).set_params(random_state=0).fit(X, y) for _ in range(2))
    other.set_params(**later)
    for _ in range(2):
        if hasattr(one, "predict"):
            for found, expected in zip(
                other.predict(X, return_std=True), one.predict(X, return_std=True), strict=True
            ):
                assert np.array_equal(found, expected)
        else:
            difference = other.transform(X) - one.transform(X)
            assert abs(difference).max() == 0.0
        if hasattr(one, "partial_fit"):
            for model in (one, other):
                model.partial_fit(X + 0.1, y)


@pytest.mark.parametrize("starts_with", ["fit", "partial_fit"])
@pytest.mark.parametrize(
    ("estimator", "later"),
    [
        (MondrianKernelSVR(6), {"prior_variance": 9.0}),
        (MondrianKernelSVR(6), {"epsilon": 1.0}),
        (MondrianKernelClassifier(n_estimators=6), {"prior_variance": 9.0}),
        (MondrianKernelClassifier(n_estimators=6), {"loss": "log_loss"}),
        (MondrianKernelClassifier("log_loss", n_estimators=6), {"loss": "hinge"}),
        (MondrianForestClassifier(6), {"feature_relevance": True}),
        (MondrianForestClassifier(6, feature_relevance=True), {"feature_relevance": False}),
        (MondrianForestClassifier(6, feature_relevance=True), {"feature_weights": [9.0, 1.0]}),
    ],
)
def test_online_learning_has_the_parameters_of_its_beginning(estimator, later, starts_with):
    rng = np.random.default_rng(0)
    X = rng.random((400, 2))
    y = (X[:, 0] > 0.5).astype(int)
    new = 1.4 * rng.random((200, 2)) - 0.2
    one, other = (clone(estimator).set_params(random_state=0) for _ in range(2))
    for model in (one, other):
        getattr(model, starts_with)(X[:60], y[:60])
    other.set_params(**later)
    methods = [
        name for name in ("decision_function", "predict_proba", "predict") if hasattr(one, name)
    ]
    for name in ("decision_function", "predict_proba", "predict"):
        assert hasattr(other, name) == (name in methods)
    for _ in range(3):
        for name in methods:
            assert np.array_equal(getattr(other, name)(new), getattr(one, name)(new))
        for model in (one, other):
            model.partial_fit(X[60:], y[60:])
    model = clone(estimator).set_params(random_state=0, **later).fit(X, y)
    other.fit(X, y)
    assert np.array_equal(other.predict(X), model.predict(X))
