"""What the classifier accepts and refuses: labels, weights, errors; wrong input changes nothing."""

import pickle

import numpy as np
import pytest
from classifier_data import assert_same, make_data
from scipy import stats
from sklearn.exceptions import NotFittedError
from trees.oracles import shapes

from mondrian_bo.surrogates.mondrian_forest.classifier import MondrianForestClassifier

# Of 3 p-values the smallest is 0.9.
SIGNIFICANCE = 1e-4


# Labels -------------------------------------------------------------------------------------------


def test_strings_and_late_classes():
    X, y = make_data()
    names = np.array(["red", "green", "blue"])[y]
    order = np.argsort(y, kind="stable")  # one class after the other
    forest = MondrianForestClassifier(random_state=0)
    forest.partial_fit(X[order[:1]], names[order[:1]], classes=["red", "white", "green", "blue"])
    assert forest.classes_.tolist() == ["blue", "green", "red", "white"]
    for i in order[1:]:
        forest.partial_fit(X[[i]], names[[i]])
    assert (forest.predict(X) == names).all()
    # Smoothing alone makes a class possible that was never met.
    inside, outside = forest.predict_proba(X), forest.predict_proba(X + 0.3)
    assert np.all(inside[:, 3] == 0.0)
    assert np.all(outside[:, 3] > 0.0)
    assert np.all(outside[:, 3] < 0.25)
    numbers = MondrianForestClassifier(random_state=0)
    numbers.partial_fit(X[order], 2 - y[order], classes=[0, 1, 2, 3])
    assert np.array_equal(numbers.predict_proba(X + 0.3), outside)


def test_one_class():
    X, _ = make_data()
    for forest in (
        MondrianForestClassifier().fit(X, ["a"] * 60),
        MondrianForestClassifier().partial_fit(X, ["a"] * 60),
        MondrianForestClassifier().fit(X[:1], ["a"]).partial_fit(X[1:], ["a"] * 59),
    ):
        assert set(forest.predict(X)) == {"a"}
        assert np.array_equal(forest.predict_proba(5.0 * X), np.ones((60, 1)))
        assert np.all(forest.apply(X) == 0)


def test_label_types():
    X, y = make_data(20)
    for labels in (
        y > 0,
        y.astype(float),
        y.astype(np.int8),
        y.astype(str),
        y.astype(str).astype(object),
    ):
        forest = MondrianForestClassifier(random_state=0).fit(X, labels)
        assert np.array_equal(forest.predict(X), labels)
        assert forest.partial_fit(X, list(labels)).forest_.n_points == 40


def test_constant_and_duplicate_points():
    X, y = np.ones((30, 2)), np.repeat([0, 1, 1], 10)
    for forest in (
        MondrianForestClassifier(random_state=0).fit(X, y),
        MondrianForestClassifier(random_state=0).partial_fit(X, y),
    ):
        np.testing.assert_allclose(forest.predict_proba(X[:1]), [[1 / 3, 2 / 3]])


# Weights ------------------------------------------------------------------------------------------


def test_weights_are_repetitions():
    X, y = make_data(80)
    times = np.random.default_rng(1).integers(0, 4, 80)
    weighted = MondrianForestClassifier(random_state=0)
    weighted.partial_fit(X, y, classes=[0, 1, 2], sample_weight=times)
    # Repetitions of learnt points neither cut nor draw: these trees are the same.
    repeated = MondrianForestClassifier(random_state=0)
    for again in range(3):
        chosen = times > again
        repeated.partial_fit(X[chosen], y[chosen], classes=[0, 1, 2])
    assert repeated.forest_.n_points == times.sum()
    assert weighted.forest_.n_points == (times > 0).sum()
    probes = np.concatenate([X, X + 0.2])
    assert np.array_equal(weighted.apply(probes), repeated.apply(probes))
    np.testing.assert_allclose(
        weighted.predict_proba(probes), repeated.predict_proba(probes), rtol=0, atol=1e-12
    )
    ones = MondrianForestClassifier(random_state=0).partial_fit(X, y, sample_weight=np.ones(80))
    assert_same(ones, MondrianForestClassifier(random_state=0).partial_fit(X, y))


def test_weights_in_place_of_repetitions_in_distribution():
    X, y = make_data(20, seed=3)
    times = np.random.default_rng(1).integers(1, 4, 20)
    options = {"bounds": [[0.0, 1.0]] * 2}
    one = MondrianForestClassifier(3000, random_state=0, **options)
    one.partial_fit(X, y, sample_weight=times)
    two = MondrianForestClassifier(3000, random_state=1, **options)
    two.partial_fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    shape_one, shape_two = shapes(one.forest_), shapes(two.forest_)
    for name in ("leaves", "depth", "root_time"):
        pvalue = stats.ks_2samp(getattr(shape_one, name), getattr(shape_two, name)).pvalue
        assert pvalue > SIGNIFICANCE, name
    gap = one.predict_proba(X + 0.1) - two.predict_proba(X + 0.1)
    assert np.abs(gap).max() < 5.0 * np.sqrt(2 * 0.25 / 3000)


def test_weight_zero_is_absence():
    X, y = make_data()
    weights = np.where(np.arange(60) % 3 == 0, 0.0, 1.0)
    far = np.where(weights[:, None] == 0.0, 100.0 * X, X)
    one = MondrianForestClassifier(random_state=0)
    one.partial_fit(far, y, classes=[0, 1, 2], sample_weight=weights)
    two = MondrianForestClassifier(random_state=0)
    two.partial_fit(X[weights > 0], y[weights > 0], classes=[0, 1, 2])
    assert_same(one, two)
    assert np.array_equal(one.scales_.rates, two.scales_.rates)
    assert_same(one.partial_fit(far, y, sample_weight=np.zeros(60)), two)


def test_first_samples_may_all_have_weight_zero():
    X, y = make_data()
    forest = MondrianForestClassifier(random_state=0).partial_fit(X, y, sample_weight=np.zeros(60))
    assert np.array_equal(forest.predict_proba(X), np.full((60, 3), 1.0 / 3.0))
    for paths in (forest.apply, forest.decision_path):
        with pytest.raises(ValueError, match="no trees yet"):
            paths(X)
    assert_same(
        forest.partial_fit(X, y), MondrianForestClassifier(random_state=0).partial_fit(X, y)
    )


# Errors -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"y": [0, 1, 7]}, r"\[7\]"),
        ({"y": ["a", "b", "c"]}, "a"),
        ({"y": [0, 1]}, "y must|inconsistent"),
        ({"y": [0.0, 1.0, np.nan]}, "nan|NaN"),
        ({"X": [[0.0, 1.0], [np.nan, 1.0], [0.0, 0.0]]}, "NaN"),
        ({"X": np.zeros((3, 4))}, "4 features"),
        ({"X": np.zeros((0, 4)), "y": []}, "4 features|0 sample"),
        ({"X": []}, "2D|1D"),
        ({"classes": [0, 1]}, "classes"),
        ({"sample_weight": [1.0, -1.0, 1.0]}, "negative"),
        ({"sample_weight": [1.0, np.nan, 1.0]}, "finite|NaN"),
        ({"sample_weight": [1.0]}, "shape"),
    ],
)
def test_invalid_samples_change_nothing(arguments, message):
    X, y = make_data()
    forest = MondrianForestClassifier(random_state=0).partial_fit(X, y)
    replica = pickle.loads(pickle.dumps(forest))
    sound = {"X": 9.0 * X[:3], "y": y[:3]}
    with pytest.raises(ValueError, match=message):
        forest.partial_fit(**{**sound, **arguments})
    assert_same(forest, replica)
    assert np.array_equal(forest.scales_.rates, replica.scales_.rates)
    if "classes" in arguments or np.shape(arguments.get("X")) == (3, 4):
        return  # fine for a forest that has learnt nothing
    fresh = MondrianForestClassifier(random_state=0)
    with pytest.raises(ValueError):
        fresh.partial_fit(**{**sound, "classes": [0, 1, 2], **arguments})
    assert vars(fresh).keys() - {"_readers_lock"} == fresh.get_params().keys()


@pytest.mark.parametrize(
    "parameters",
    [
        {"n_estimators": 0},
        {"min_samples_split": 1},
        {"lifetime": 0.0},
        {"discount": 0.0},
        {"discount": np.inf},
        {"bounds": [[0.0, 1.0]]},
        {"bounds": [[1.0, 0.0]] * 2},
        {"feature_weights": [0.0, 0.0]},
        {"feature_weights": [1.0]},
    ],
)
def test_invalid_parameters(parameters):
    X, y = make_data()
    for method in ("fit", "partial_fit"):
        forest = MondrianForestClassifier(**parameters)
        with pytest.raises(ValueError, match=next(iter(parameters))):
            getattr(forest, method)(X, y)
        with pytest.raises(NotFittedError):
            forest.predict_proba(X)


def test_failed_fit_leaves_what_was_learnt():
    X, y = make_data()
    forest = MondrianForestClassifier(random_state=0).fit(X, y)
    expected = forest.predict_proba(X)
    with pytest.raises(ValueError, match="Unknown label type"):
        forest.fit(np.ones((60, 3)), X[:, 0])
    assert np.array_equal(forest.predict_proba(X), expected)
    with pytest.raises(ValueError, match="Unknown label type"):
        MondrianForestClassifier().partial_fit(X, X[:, 0])


def test_not_fitted():
    forest = MondrianForestClassifier()
    for method in ("predict", "predict_proba", "predict_log_proba", "apply", "decision_path"):
        with pytest.raises(NotFittedError):
            getattr(forest, method)([[0.0]])
