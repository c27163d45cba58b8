"""scikit-learn's own checks, and the classifier."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from mondrian_bo.surrogates import MondrianDensityClassifier, MondrianForestDensity


@parametrize_with_checks(
    [
        MondrianForestDensity(5),
        MondrianForestDensity(3, lifetime=4.0),
        MondrianDensityClassifier(20, random_state=0),
        MondrianDensityClassifier(20, lifetime=20.0, random_state=0),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_grid_search_and_pickle():
    X = np.random.default_rng(0).normal(size=(120, 2))
    model = MondrianForestDensity(20, bounds=[[-5, 5]] * 2, random_state=0)
    search = GridSearchCV(model, {"lifetime": [0.0, 10.0]}, cv=3).fit(X)
    assert search.best_params_ == {"lifetime": 10.0}
    fitted = clone(model).fit(X)
    assert np.array_equal(
        pickle.loads(pickle.dumps(fitted)).score_samples(X), fitted.score_samples(X)
    )
    other = clone(model).set_params(random_state=1).fit(X)
    assert not np.array_equal(other.score_samples(X), fitted.score_samples(X))


def test_classifier_is_bayes_rule():
    X, y = load_iris(return_X_y=True)
    names = np.array(["a", "b", "c"])[y]
    model = MondrianDensityClassifier(10, random_state=0).fit(X, names)
    assert model.classes_.tolist() == ["a", "b", "c"]
    joint = np.stack([np.exp(density.score_samples(X)) for density in model.densities_], axis=1)
    assert np.allclose(model.predict_proba(X), joint / joint.sum(axis=1, keepdims=True))
    tilted = MondrianDensityClassifier(10, priors=[0.5, 0.5, 0.0], random_state=0).fit(X, names)
    joint *= [0.5, 0.5, 0.0]
    assert np.allclose(tilted.predict_proba(X), joint / joint.sum(axis=1, keepdims=True))
    assert set(tilted.predict(X)) == {"a", "b"}
    # The classes share one set of partitions, so far as they have data in common cells.
    roots = [density.model_.trees.threshold[:, 0] for density in model.densities_]
    assert np.array_equal(roots[0], roots[1])


def test_classifier_scores():
    X, y = load_iris(return_X_y=True)
    pipeline = make_pipeline(StandardScaler(), MondrianDensityClassifier(random_state=0))
    assert cross_val_score(pipeline, X, y, cv=3).mean() > 0.9


def test_points_outside_of_the_box_are_moved_to_it():
    X, y = load_iris(return_X_y=True)
    model = MondrianDensityClassifier(10, random_state=0).fit(X, y)
    low, high = model.densities_[0].bounds_.T
    proba = model.predict_proba([low - 5.0, high + 5.0])
    assert np.array_equal(proba, model.predict_proba([low, high]))
    assert np.all(np.isfinite(proba))


@pytest.mark.parametrize(
    ("priors", "message"),
    [([0.5, 0.5], r"shape \(3,\), got \(2,\)"), ([0.5, 0.6, -0.1], "non-negative and add up to 1")],
)
def test_bad_priors(priors, message):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=message):
        MondrianDensityClassifier(2, priors=priors).fit(X, y)


@pytest.mark.parametrize("estimator", [MondrianForestDensity, MondrianDensityClassifier])
@pytest.mark.parametrize(
    ("largest", "options", "message"),
    [
        (1e308, {}, "X has values beyond 8.99e.307"),
        (1.0, {"margin": 1e308}, r"X, widened by margin=1e\+308, must have a finite width"),
        (8e307, {"margin": 0.1}, r"X, widened by margin=0.1, must have a finite width"),
        (1.0, {"bounds": [[-1e308, 1e308]]}, r"^bounds must have a finite width .* feature 0"),
    ],
)
def test_boxes_without_a_finite_width(estimator, largest, options, message):
    X, y = np.array([[-largest], [0.0], [largest]]), [0, 1, 0]
    with pytest.raises(ValueError, match=message):
        estimator(2, **options).fit(X, y)
    model = estimator(2, random_state=0).fit(X / largest * 1e307, y)
    assert np.all(np.isfinite(model.score(X / largest, y)))
