"""The `fit` that all estimators share: what it checks, and what an exception leaves behind."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from mondrian_bo.surrogates import (
    AMFClassifier,
    AMFRegressor,
    GaussianProcessForestRegressor,
    LaplaceFourierFeatures,
    MondrianFeatures,
    MondrianForestDensity,
    MondrianForestRegressor,
    MondrianKernelRegressor,
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
