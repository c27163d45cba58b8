"""What tests ask of any online estimator."""

import copy

from sklearn.base import is_classifier

from mondrian_bo.surrogates import (
    MondrianFeatures,
    MondrianForestClassifier,
    MondrianKernelMixtureRegressor,
    OnlineDummyClassifier,
    OnlineDummyRegressor,
)


def answer(estimator, X):
    if is_classifier(estimator):
        return estimator.predict_proba(X)
    return (
        estimator.predict(X) if hasattr(estimator, "predict") else estimator.transform(X).toarray()
    )


def n_learnt(estimator):
    """Return the number of samples; after a call, an interruption may come when all is done."""
    # Of a copy: an access undoes what has not ended.
    estimator = copy.deepcopy(estimator)
    if isinstance(estimator, OnlineDummyRegressor):
        return estimator.weight_
    if isinstance(estimator, OnlineDummyClassifier):
        return estimator.counts_.sum()
    if isinstance(estimator, MondrianKernelMixtureRegressor):
        return estimator.models_[0].partitions.n_points
    if isinstance(estimator, MondrianForestClassifier):
        return estimator.forest_.n_points
    features = getattr(estimator, "features_", estimator)
    if isinstance(features, MondrianFeatures):
        return features.partitions_.n_points
    return getattr(estimator.model_, "partitions", estimator.model_).n_points
