"""AMF estimators and online dummies: scikit-learn's checks and tools, parameters, labels."""

import pickle
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from trees.oracles import assert_same_bits
from trees.prunings import arrays

from mondrian_bo.surrogates import (
    AMFClassifier,
    AMFRegressor,
    OnlineDummyClassifier,
    OnlineDummyRegressor,
)

BOX = [[0.0, 1.0]] * 3
SQUARE = BOX[:2]
NAMES = np.array(["blue", "green", "red"])
FORESTS = [
    AMFRegressor(random_state=0),
    AMFRegressor(step="adaptive", bounds=BOX, feature_relevance=True, random_state=0),
    AMFRegressor(online_to_batch=True, record_losses=True, random_state=1),
    AMFClassifier(random_state=0),
    AMFClassifier(split_pure=True, pooling="arithmetic", bounds=BOX, random_state=0),
    AMFClassifier(feature_relevance=True, online_to_batch=True, random_state=1),
]
DUMMIES = [OnlineDummyRegressor(), OnlineDummyClassifier(dirichlet=2.0)]


@parametrize_with_checks(
    [
        AMFRegressor(n_estimators=3),
        AMFRegressor(n_estimators=3, step="adaptive", n_jobs=2),
        AMFRegressor(n_estimators=1, step=0.5, record_losses=True, use_aggregation=False),
        AMFClassifier(n_estimators=3),
        AMFClassifier(
            n_estimators=2, split_pure=True, pooling="arithmetic", feature_relevance=True
        ),
        OnlineDummyRegressor(),
        OnlineDummyClassifier(),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def make_data(n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((n, 3))
    return X, X @ [1.0, -2.0, 0.5] + 0.1 * rng.normal(size=n)


def labels_for(model, y):
    return np.digitize(y, [-0.5, 0.0]).astype(str) if is_classifier(model) else y


def make_noisy(n=40, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((n, 2))
    return X, np.sin(6.0 * X[:, 0]) + rng.normal(size=n) * np.linspace(0.1, 1.0, n)


def predictions(model, X):
    if is_classifier(model):
        return model.predict_proba(X)
    return np.stack(model.predict(X, return_std=True), axis=1)


@pytest.mark.parametrize("model", FORESTS + DUMMIES, ids=repr)
def test_pickle_goes_on_learning(model):
    X, y = make_data(120)
    y = labels_for(model, y)
    model = clone(model).fit(X[:60], y[:60])
    replica = pickle.loads(pickle.dumps(model))
    before = predictions(model, X)
    assert np.array_equal(predictions(replica, X), before)
    for one in (model, replica):
        one.partial_fit(X[60:], y[60:])
    after = predictions(model, X)
    assert np.array_equal(predictions(replica, X), after)
    if model not in DUMMIES and not getattr(model, "online_to_batch", False):
        assert not np.array_equal(after, before)
    if hasattr(model, "model_"):
        assert model.model_.n_points == 120
        assert_same_bits(arrays(model.model_.forest), arrays(replica.model_.forest))


@pytest.mark.parametrize("model", FORESTS + DUMMIES, ids=repr)
def test_clone_has_parameters_and_no_memory(model):
    X, y = make_data()
    y = labels_for(model, y)
    fitted = clone(model).fit(X, y)
    copy = clone(fitted)
    assert copy.get_params() == model.get_params()
    assert vars(copy).keys() == model.get_params().keys()
    assert np.array_equal(predictions(copy.fit(X, y), X), predictions(fitted, X))
    # Fitting anew forgets what was learnt.
    assert np.array_equal(predictions(copy.fit(X[:9], y[:9]).fit(X, y), X), predictions(fitted, X))


def test_clone_of_all_options():
    shared = {
        "n_estimators": 3,
        "use_aggregation": False,
        "bounds": BOX,
        "feature_weights": [1.0, 2.0, 0.0],
        "feature_relevance": True,
        "online_to_batch": True,
        "record_losses": True,
        "max_nodes": 99,
        "random_state": 7,
        "n_jobs": 1,
    }
    for kind, own in (
        (AMFRegressor, {"step": "adaptive", "stacking": False}),
        (
            AMFClassifier,
            {"step": 0.5, "split_pure": True, "dirichlet": 0.5, "pooling": "arithmetic"},
        ),
    ):
        assert clone(kind(**shared, **own)).get_params() == {**shared, **own}


@pytest.mark.parametrize("kind", [AMFRegressor, AMFClassifier])
def test_random_state(kind):
    X, y = make_data()
    y = labels_for(kind(), y)

    def fitted(random_state=None):
        return predictions(kind(random_state=random_state).fit(X, y), X + 0.05)

    first = fitted(3)
    assert np.array_equal(fitted(3), first)
    assert not np.array_equal(fitted(4), first)
    state = np.random.RandomState(3)
    assert np.array_equal(fitted(state), first)
    assert not np.array_equal(fitted(state), first)
    assert not np.array_equal(fitted(), fitted())


def test_regressor_in_pipeline_and_grid_search():
    X, y = make_data(150)
    pipeline = make_pipeline(StandardScaler(), AMFRegressor(random_state=0))
    search = GridSearchCV(pipeline, {"amfregressor__step": [1e-6, "adaptive"]}, cv=3).fit(X, y)
    # At a step of next to nothing the prunings near the root keep half of the weight.
    assert search.best_params_ == {"amfregressor__step": "adaptive"}
    assert search.best_score_ > 0.7
    mean, std = search.best_estimator_.predict(X, return_std=True)
    assert mean.shape == std.shape == (150,)


def test_classifier_in_pipeline_and_grid_search():
    X, y = make_data(150)
    y = labels_for(AMFClassifier(), y)
    pipeline = make_pipeline(MinMaxScaler(), AMFClassifier(random_state=0))
    grid = {"amfclassifier__feature_weights": [[1.0, 1.0, 1.0], [0.0, 0.0, 1.0]]}
    search = GridSearchCV(pipeline, grid, cv=3, scoring="neg_log_loss").fit(X, y)
    # Without the columns that matter there is nothing to learn.
    assert search.best_params_ == {"amfclassifier__feature_weights": [1.0, 1.0, 1.0]}
    assert search.predict_proba(X).shape == (150, 3)
    assert np.mean(search.predict(X) == y) > 0.9


@pytest.mark.parametrize(
    ("model", "dummy"),
    [
        (AMFRegressor(step="adaptive", random_state=0), OnlineDummyRegressor()),
        (AMFClassifier(random_state=0), OnlineDummyClassifier()),
    ],
    ids=["regressor", "classifier"],
)
def test_cross_val_score(model, dummy):
    X, y = make_data(300)
    y = labels_for(model, y)
    scores = cross_val_score(model, X, y, cv=4)
    assert np.all(scores > 0.75)
    assert np.all(scores > cross_val_score(dummy, X, y, cv=4) + 0.15)
    # More data, better predictions.
    assert scores.mean() > cross_val_score(model, X[:40], y[:40], cv=4).mean()


@pytest.mark.parametrize("model", FORESTS + DUMMIES, ids=repr)
def test_data_frames(model):
    pandas = pytest.importorskip("pandas")
    X, y = make_data(90)
    y = labels_for(model, y)
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    named, plain = clone(model), clone(model)
    named.fit(frame[:30], pandas.Series(y[:30]))
    named.partial_fit(frame[30:80], pandas.Series(y[30:80]))
    # Labels count by position, whatever index they have.
    named.partial_fit(frame[80:], pandas.Series(y[80:], index=range(9, -1, -1)))
    plain.fit(X[:30], y[:30]).partial_fit(X[30:], y[30:])
    assert named.feature_names_in_.tolist() == ["a", "b", "c"]
    assert not hasattr(plain, "feature_names_in_")
    assert np.array_equal(predictions(named, frame), predictions(plain, X))
    before = predictions(named, frame)
    with pytest.raises(ValueError, match="feature names"):
        named.partial_fit(frame[["b", "a", "c"]], y)
    with pytest.raises(ValueError, match="feature names"):
        named.predict(frame[["b", "a", "c"]])
    assert np.array_equal(predictions(named, frame), before)
    with pytest.warns(UserWarning, match="feature names"):
        assert np.array_equal(predictions(named, X), before)
    # Fitted anew, to data without names.
    assert not hasattr(named.fit(X, y), "feature_names_in_")


@pytest.mark.parametrize("step", [2, np.float32(2.0)])
@pytest.mark.parametrize(
    "kind",
    [
        AMFRegressor,
        AMFClassifier,
    ],
)
def test_a_step_of_any_type_of_number(kind, step):
    X, y = make_noisy()
    y = y if kind is AMFRegressor else (y > 0.0).astype(int)
    one, two = (kind(step=s, random_state=0).fit(X, y) for s in (2.0, step))
    assert_same_bits(arrays(one.model_.forest), arrays(two.model_.forest))
    assert np.array_equal(predictions(one, X), predictions(two, X))


# Labels of classes --------------------------------------------------------------------------------


def test_late_classes_are_those_of_other_names():
    X, y = make_noisy(60)
    numbers = np.digitize(y, [-0.5, 0.5])
    order = np.argsort(numbers, kind="stable")  # one class after the other
    X, numbers = X[order], numbers[order]
    forest = AMFClassifier(random_state=0)
    forest.partial_fit(X[:1], NAMES[numbers[:1]], classes=["red", "white", "green", "blue"])
    assert forest.classes_.tolist() == ["blue", "green", "red", "white"]
    assert np.array_equal(forest.predict(X), np.full(60, "blue"))
    for i in range(1, 60):
        forest.partial_fit(X[[i]], NAMES[numbers[[i]]])
    assert np.mean(forest.predict(X) == NAMES[numbers]) > 0.8
    # A class never met has a probability, the smallest.
    probabilities = forest.predict_proba(X + 0.02)
    assert np.all(probabilities[:, 3] > 0.0)
    assert np.all(probabilities[:, 3:] <= probabilities)
    replica = AMFClassifier(random_state=0)
    replica.partial_fit(X, numbers, classes=[3, 2, 1, 0])
    assert np.array_equal(replica.predict_proba(X + 0.02), probabilities)


@pytest.mark.parametrize("split_pure", [False, True])
@pytest.mark.parametrize("bounds", [None, SQUARE])
def test_one_class(split_pure, bounds):
    X, _ = make_noisy()
    options = {"split_pure": split_pure, "bounds": bounds, "record_losses": True}
    forest = AMFClassifier(**options).fit(X[:1], ["a"]).partial_fit(X[1:], ["a"] * 39)
    assert forest.predict(X + 0.02).tolist() == ["a"] * 40
    assert np.array_equal(forest.predict_proba(X + 0.02), np.ones((40, 1)))
    assert np.array_equal(forest.loss_trace().loss, np.zeros((10, 40)))
    # It takes a second class to make cuts.
    assert np.all(forest.weighted_depth(X) > 0.0) == split_pure


def test_classes_repeated_and_changed():
    X, y = make_noisy()
    y = NAMES[np.digitize(y, [-0.5, 0.5])]
    forest = AMFClassifier(random_state=0).partial_fit(X, y)
    replica = AMFClassifier(random_state=0).partial_fit(X, y)
    for again in (NAMES, NAMES[::-1].tolist(), [*NAMES, "red"]):
        forest.partial_fit(X, y, classes=again)
        replica.partial_fit(X, y)
    before = replica.predict_proba(X)
    for other in (["red", "blue"], [*NAMES, "white"], [0, 1, 2], ["red", "green", "white"]):
        for rows in (slice(None), slice(0)):
            with pytest.raises(ValueError, match="first call"):
                forest.partial_fit(X[rows], y[rows], classes=other)
    assert forest.model_.n_points == 160
    assert np.array_equal(forest.predict_proba(X), before)
    with pytest.raises(ValueError, match=r"among the classes \['red'\].*\['blue', 'green'\]"):
        AMFClassifier().partial_fit(X, y, classes=["red"])


@pytest.mark.parametrize("unknown", ["white", "", "bluegreen", "zebra"])
def test_unknown_labels_are_named(unknown):
    X, y = make_noisy()
    y = NAMES[np.digitize(y, [-0.5, 0.5])].astype(object)
    forest = AMFClassifier(random_state=0).fit(X, y)
    before = arrays(forest.model_.forest)
    y[[3, 7]] = unknown
    with pytest.raises(ValueError, match=rf"not among the classes .*: \['{unknown}'\]"):
        forest.partial_fit(X + 9.0, y)
    assert_same_bits(arrays(forest.model_.forest), before)


def test_label_types():
    X, y = make_noisy()
    for labels in (y > 0, (y > 0).astype(float), (y > 0).astype(str).astype(object)):
        forest = AMFClassifier(random_state=0).fit(X, labels)
        forest.partial_fit(X, labels.tolist())
        assert forest.classes_.dtype == labels.dtype
        assert np.mean(forest.predict(X) == labels) > 0.9
    for continuous in (y, np.column_stack([y > 0, y > 0]).astype(int)):
        with pytest.raises(ValueError, match=r"label type|y should be a 1d array"):
            AMFClassifier().fit(X, continuous)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("n_classes", [1, 2, 5])
def test_largest_smoothing_makes_classes_equally_probable(n_classes):
    X, _ = make_noisy(50)
    labels = np.arange(50) % n_classes
    for kind in (partial(AMFClassifier, 2), OnlineDummyClassifier):
        for dirichlet in (1e90, np.finfo(np.float64).max):
            model = kind(dirichlet=dirichlet)
            model.partial_fit(X, labels, sample_weight=np.full(50, 1e30))
            assert np.all(model.predict_proba(X) == pytest.approx(1.0 / n_classes, rel=1e-15))


# Dummies ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
def test_dummies_are_means_and_frequencies(weighted):
    X, y = make_noisy(50, seed=1)
    y += 1e6  # the variance does not drown
    names = NAMES[np.digitize(y - 1e6, [-0.5, 0.5])]
    weights = np.random.default_rng(2).choice([0.0, 0.5, 3.0], 50) if weighted else None
    w = np.ones(50) if weights is None else weights
    for ends in ([], [1], [7, 7, 30], range(1, 50)):
        regressor, classifier = OnlineDummyRegressor(), OnlineDummyClassifier(dirichlet=0.7)
        for start, end in pairwise([0, *ends, 50]):
            part = None if weights is None else weights[start:end]
            regressor.partial_fit(X[start:end], y[start:end], sample_weight=part)
            classifier.partial_fit(X[start:end], names[start:end], NAMES, sample_weight=part)
        mean, std = regressor.predict(X + 9.0, return_std=True)
        expected = np.average(y, weights=w)
        assert mean == pytest.approx(np.full(50, expected), rel=1e-14)
        spread = np.sqrt(np.average((y - expected) ** 2, weights=w))
        assert std == pytest.approx(np.full(50, spread), rel=1e-8)
        counts = np.array([w[names == name].sum() for name in NAMES])
        shares = (counts + 0.7) / (w.sum() + 3 * 0.7)
        assert classifier.predict_proba(X) == pytest.approx(np.tile(shares, (50, 1)), rel=1e-12)
        assert set(classifier.predict(X)) == {NAMES[counts.argmax()]}
    fitted = OnlineDummyRegressor().fit(X[:9], y[:9]).fit(X, y).predict(X)
    assert fitted == pytest.approx(np.full(50, y.mean()), rel=1e-14)


@pytest.mark.parametrize("factor", [0.25, 7.0])
def test_dummies_and_uniform_weights(factor):
    X, y = make_noisy(50)
    uniform = np.full(50, factor)
    one, two = OnlineDummyRegressor().fit(X, y), OnlineDummyRegressor()
    two.partial_fit(X, y, sample_weight=uniform)
    assert np.allclose(predictions(one, X), predictions(two, X), rtol=1e-13, atol=0.0)
    one, two = OnlineDummyClassifier().fit(X, y > 0), OnlineDummyClassifier(dirichlet=0.5 * factor)
    two.partial_fit(X, y > 0, sample_weight=uniform)
    assert np.allclose(predictions(one, X), predictions(two, X), rtol=1e-13, atol=0.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"X": [[0.0, np.nan]] * 2}, "NaN"),
        ({"X": np.ones((2, 3))}, "features"),
        ({"y": [0]}, "inconsistent|y must"),
        ({"y": [0.0, np.nan]}, "(?i)nan"),
        ({"sample_weight": [1.0, -1.0]}, "non-negative"),
        ({"sample_weight": [1.0, np.nan]}, "finite"),
        ({"sample_weight": [1.0]}, "shape"),
    ],
)
@pytest.mark.parametrize("kind", [OnlineDummyRegressor, OnlineDummyClassifier])
def test_dummies_forget_nothing_by_wrong_input(kind, arguments, message):
    X, y = make_noisy()
    y = (y > 0.0).astype(int)
    dummy = kind().fit(X, y)
    before = predictions(dummy, X)
    with pytest.raises(ValueError, match=message):
        dummy.partial_fit(**{"X": np.ones((2, 2)), "y": [0, 1], **arguments})
    assert np.array_equal(predictions(dummy, X), before)
    assert dummy.partial_fit(X[:0], y[:0]) is dummy
    assert np.array_equal(predictions(dummy, X), before)
    with pytest.raises(ValueError, match="0 sample"):
        kind().partial_fit(X[:0], y[:0])


def test_dummy_classifier_and_unknown_labels():
    dummy = OnlineDummyClassifier().partial_fit(
        [[0.0]] * 3, ["a", "b", "b"], classes=["c", "b", "a"]
    )
    for labels in (["a", "d"], ["d", "d"]):
        with pytest.raises(ValueError, match=r"not among the classes \['a', 'b', 'c'\]: \['d'\]"):
            dummy.partial_fit([[0.0]] * 2, labels)
    assert dummy.counts_.tolist() == [1.0, 2.0, 0.0]
    with pytest.raises(ValueError, match="first call"):
        dummy.partial_fit([[0.0]], ["a"], classes=["a", "b"])
    with pytest.raises(ValueError, match="dirichlet"):
        OnlineDummyClassifier(dirichlet=0.0).fit([[0.0]], ["a"])
