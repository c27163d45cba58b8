"""scikit-learn's own checks, and its tools."""

import pickle

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from mondrian_bo.surrogates import (
    LaplaceFourierFeatures,
    MondrianFeatures,
    MondrianKernelClassifier,
    MondrianKernelMixtureRegressor,
    MondrianKernelRegressor,
    MondrianKernelSVR,
    RandomBinningFeatures,
)


@parametrize_with_checks(
    [
        MondrianFeatures(n_estimators=5, random_state=0),
        RandomBinningFeatures(n_estimators=5, random_state=0),
        LaplaceFourierFeatures(n_estimators=5, random_state=0),
        MondrianKernelRegressor(n_estimators=5, random_state=0),
        MondrianKernelMixtureRegressor(n_estimators=2, max_models=5, random_state=0),
        MondrianKernelRegressor(n_estimators=5, lifetime=20.0, normalize_y=False),
        MondrianKernelClassifier(n_estimators=5, random_state=0),
        MondrianKernelClassifier("log_loss", n_estimators=5, lifetime=5.0, random_state=0),
        MondrianKernelSVR(n_estimators=5, random_state=0),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("make", [MondrianFeatures, RandomBinningFeatures, LaplaceFourierFeatures])
def test_in_a_pipeline_and_a_search(make):
    rng = np.random.default_rng(0)
    X = rng.random((150, 2))
    y = np.sin(8.0 * X[:, 0])
    pipeline = make_pipeline(MinMaxScaler(), make(60, random_state=0), Ridge(0.1))
    name = f"{make.__name__.lower()}__lifetime"
    search = GridSearchCV(pipeline, {name: [1e-3, 3.0]}).fit(X, y)
    assert search.best_params_ == {name: 3.0}
    assert search.best_score_ > 0.6


@pytest.mark.parametrize("classifier", [LinearSVC(C=10.0), LogisticRegression(C=10.0)])
def test_svm_and_logistic_regression_on_features(classifier):
    rng = np.random.default_rng(0)
    X = rng.random((300, 2))
    y = (np.floor(3.0 * X[:, 0]) + np.floor(3.0 * X[:, 1])) % 2
    model = make_pipeline(MondrianFeatures(100, 5.0, random_state=0), classifier)
    assert model.fit(X[:200], y[:200]).score(X[200:], y[200:]) > 0.75
    assert type(classifier)().fit(X, y).score(X, y) < 0.65


@pytest.mark.parametrize(
    "estimator",
    [
        MondrianFeatures(3, 2.0, random_state=0),
        MondrianKernelRegressor(3, 2.0, random_state=0),
        MondrianKernelMixtureRegressor(2, 2.0, max_models=3, random_state=0),
        MondrianKernelClassifier(n_estimators=3, random_state=0),
        MondrianKernelSVR(3, random_state=0),
    ],
)
def test_empty_batches_change_nothing(estimator):
    X = np.random.default_rng(0).random((30, 2))
    y = (X[:, 0] > 0.5).astype(float)
    with pytest.raises(ValueError, match="0 sample"):
        estimator.partial_fit(X[:0], y[:0])
    estimator.fit(X, y)
    replica = pickle.loads(pickle.dumps(estimator))
    assert estimator.partial_fit(X[:0], y[:0]) is estimator
    assert estimator.partial_fit(X[:0], []) is estimator
    for one in (estimator, replica):
        one.partial_fit(X[:5] + 0.01, y[:5])
    if hasattr(estimator, "predict"):
        assert np.array_equal(estimator.predict(X), replica.predict(X))
    else:
        assert (estimator.transform(X) != replica.transform(X)).nnz == 0
    with pytest.raises(ValueError, match=r"features|0 sample"):
        estimator.partial_fit(X[:0, :1], y[:0])


def test_pickle_goes_on_learning():
    X = np.random.default_rng(0).random((60, 3))
    features = MondrianFeatures(5, 2.0, random_state=0).fit(X[:30])
    replica = pickle.loads(pickle.dumps(features))
    for one in (features, replica):
        one.partial_fit(X[30:])
    assert (features.transform(X) != replica.transform(X)).nnz == 0
