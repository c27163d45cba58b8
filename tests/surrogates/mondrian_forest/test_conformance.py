"""scikit-learn's own checks, and its tools."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from trees.oracles import assert_same_bits, snapshot

from mondrian_bo.surrogates import MondrianForestRegressor


@parametrize_with_checks(
    [
        MondrianForestRegressor(n_estimators=3),
        MondrianForestRegressor(n_estimators=1, min_samples_split=10, posterior="empirical"),
        MondrianForestRegressor(n_estimators=2, lifetime=3.0, branch_off="paper", n_jobs=2),
        MondrianForestRegressor(n_estimators=2, branch_off="remaining", hyperparameters="paper"),
        MondrianForestRegressor(n_estimators=2, feature_relevance="lengthscales"),
        MondrianForestRegressor(n_estimators=2, leaf="linear"),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def make_data(n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((n, 3))
    return X, X @ [1.0, -2.0, 0.5] + 0.1 * rng.normal(size=n)


def test_pickle_goes_on_learning():
    X, y = make_data()
    forest = MondrianForestRegressor(random_state=0, min_samples_split=4).fit(X[:30], y[:30])
    replica = pickle.loads(pickle.dumps(forest))
    assert_same_bits(snapshot(forest.model_.forest), snapshot(replica.model_.forest))
    for model in (forest, replica):
        model.partial_fit(X[30:], y[30:])
    assert_same_bits(snapshot(forest.model_.forest), snapshot(replica.model_.forest))
    for own, other in zip(
        forest.predict(X, return_std=True), replica.predict(X, return_std=True), strict=True
    ):
        assert np.array_equal(own, other)
    assert np.array_equal(forest.sample_y(X, 3), replica.sample_y(X, 3))


def test_clone_has_parameters_and_no_memory():
    options = {
        "n_estimators": 3,
        "leaf": "constant",
        "min_samples_split": 5,
        "lifetime": 2.0,
        "posterior": "empirical",
        "branch_off": "paper",
        "hyperparameters": "leave_one_out",
        "weigh_trees": True,
        "bounds": [[0.0, 1.0]] * 3,
        "feature_weights": [1.0, 2.0, 0.0],
        "feature_relevance": True,
        "max_nodes": 50,
        "random_state": 7,
        "n_jobs": 1,
    }
    X, y = make_data()
    forest = MondrianForestRegressor(**options).fit(X, y)
    copy = clone(forest)
    assert copy.get_params() == options
    assert not hasattr(copy, "model_")
    assert np.array_equal(copy.fit(X, y).predict(X), forest.predict(X))


@pytest.mark.parametrize("options", [{"leaf": "gaussian_process"}, {"block_size": 50}])
def test_former_options_name_the_other_estimator(options):
    with pytest.raises(TypeError, match="GaussianProcessForestRegressor"):
        MondrianForestRegressor(**options)
    with pytest.raises(TypeError, match="unexpected keyword argument 'n_trees'"):
        MondrianForestRegressor(n_trees=3)


def test_random_state():
    X, y = make_data()
    forest = MondrianForestRegressor(random_state=3)
    first = forest.fit(X, y).predict(X + 0.05)
    assert np.array_equal(forest.fit(X, y).predict(X + 0.05), first)
    other = MondrianForestRegressor(random_state=4).fit(X, y).predict(X + 0.05)
    assert not np.array_equal(other, first)
    state = np.random.RandomState(3)
    drawn = [
        MondrianForestRegressor(random_state=state).fit(X, y).predict(X + 0.05) for _ in range(2)
    ]
    assert np.array_equal(drawn[0], first)
    assert not np.array_equal(drawn[1], first)
    without = [MondrianForestRegressor().fit(X, y).predict(X + 0.05) for _ in range(2)]
    assert not np.array_equal(*without)


@pytest.mark.parametrize("n_jobs", [2, -1])
def test_n_jobs(n_jobs):
    X, y = make_data()
    one = MondrianForestRegressor(random_state=0, n_jobs=1)
    several = MondrianForestRegressor(random_state=0, n_jobs=n_jobs)
    for forest in (one, several):
        forest.fit(X[:40], y[:40]).partial_fit(X[40:], y[40:])
    assert_same_bits(snapshot(one.model_.forest), snapshot(several.model_.forest))
    assert np.array_equal(
        one.predict(X + 0.01, return_std=True), several.predict(X + 0.01, return_std=True)
    )


def test_pipeline_and_grid_search():
    X, y = make_data(80)
    model = MondrianForestRegressor(posterior="empirical", random_state=0)
    pipeline = make_pipeline(StandardScaler(), model)
    name = "mondrianforestregressor__min_samples_split"
    search = GridSearchCV(pipeline, {name: [2, 60]}, cv=3).fit(X, y)
    # Blocks of up to 60 points see next to nothing of the function.
    assert search.best_params_ == {name: 2}
    assert search.best_score_ > 0.4
    mean, std = search.best_estimator_.predict(X, return_std=True)
    assert mean.shape == std.shape == (80,)


@pytest.mark.parametrize(("posterior", "worst"), [("empirical", 0.95), ("exact", 0.55)])
def test_score_on_a_smooth_function(posterior, worst):
    rng = np.random.default_rng(0)
    X = rng.random((400, 2))
    y = np.sin(4.0 * X[:, 0]) + X[:, 1]
    forest = MondrianForestRegressor(posterior=posterior, random_state=0)
    scores = cross_val_score(forest, X, y, cv=4)
    assert np.all(scores > worst)
    # More data, better predictions.
    assert np.all(scores > cross_val_score(forest, X[:80], y[:80], cv=4))


def test_data_frames():
    pandas = pytest.importorskip("pandas")
    X, y = make_data()
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    forest = MondrianForestRegressor(random_state=0).fit(frame[:30], y[:30])
    forest.partial_fit(frame[30:], pandas.Series(y[30:]))
    assert forest.feature_names_in_.tolist() == ["a", "b", "c"]
    plain = MondrianForestRegressor(random_state=0).fit(X[:30], y[:30]).partial_fit(X[30:], y[30:])
    assert np.array_equal(forest.predict(frame), plain.predict(X))
    with pytest.raises(ValueError, match="feature names"):
        forest.partial_fit(frame[["b", "a", "c"]], y)
