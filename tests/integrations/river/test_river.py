"""The wrappers pass river's own checks, and learn what the forests learn."""

from __future__ import annotations

import datetime
import time
import warnings

import numpy as np
import pytest

pytest.importorskip("river")

from river import checks

from mondrian_bo.integrations.river import RiverClassifier, RiverRegressor
from mondrian_bo.integrations.river.features import FeatureTable
from mondrian_bo.surrogates import (
    AMFClassifier,
    AMFRegressor,
    GaussianProcessForestRegressor,
    MondrianForestClassifier,
    MondrianForestRegressor,
    MondrianKernelClassifier,
    MondrianKernelRegressor,
    OnlineDummyClassifier,
    OnlineDummyRegressor,
)

MODELS = {
    "AMFRegressor": lambda: RiverRegressor(AMFRegressor(3, random_state=0)),
    "MondrianForestRegressor": lambda: RiverRegressor(MondrianForestRegressor(3, random_state=0)),
    "AMFClassifier": lambda: RiverClassifier(AMFClassifier(3, random_state=0)),
    "MondrianForestClassifier": lambda: RiverClassifier(
        MondrianForestClassifier(3, random_state=0)
    ),
}


def named_checks(make):
    for number, check in enumerate(checks.yield_checks(make())):
        yield f"{check.__name__}-{number}", check


CASES = [
    pytest.param(make, check, id=f"{name}-{label}")
    for name, make in MODELS.items()
    for label, check in named_checks(make)
]


@pytest.mark.parametrize(("make", "check"), CASES)
def test_checks_of_river(make, check):
    check(make().clone())


@pytest.mark.parametrize("name", ["AMFRegressor", "MondrianForestRegressor"])
def test_a_stream_is_learnt_as_by_the_forest(name):
    rng = np.random.default_rng(0)
    X, y = rng.random((80, 3)), rng.normal(size=80)
    model = MODELS[name]()
    forest = model.estimator.__class__(**model.estimator.get_params())
    for row, target in zip(X, y, strict=True):
        model.learn_one(dict(zip("abc", row.tolist(), strict=True)), target)
        forest.partial_fit(row[None], [target])
    query = {"c": 0.3, "a": 0.1, "b": 0.9, "unknown": 7.0}
    assert model.predict_one(query) == pytest.approx(forest.predict([[0.1, 0.9, 0.3]])[0])
    assert not hasattr(model.estimator, "model_")


@pytest.mark.parametrize(
    ("wrapper", "other"),
    [
        (RiverRegressor, AMFClassifier()),
        (RiverRegressor, GaussianProcessForestRegressor()),
        (RiverRegressor, MondrianKernelRegressor()),
        (RiverRegressor, OnlineDummyRegressor()),
        (RiverRegressor, AMFRegressor),
        (RiverRegressor, None),
        (RiverClassifier, AMFRegressor()),
        (RiverClassifier, MondrianKernelClassifier()),
        (RiverClassifier, OnlineDummyClassifier()),
    ],
)
def test_other_estimators_are_refused(wrapper, other):
    with pytest.raises(TypeError, match=r"`estimator` must be an AMF.* or a MondrianF.*, got "):
        wrapper(other)


@pytest.mark.parametrize("leaf", ["constant", "linear"])
def test_a_new_feature_keeps_the_targets(leaf):
    rng = np.random.default_rng(0)
    X = rng.random((40, 2))
    y = 100.0 + X @ [1.0, 2.0]
    X[:30, 1] = X[30, 1]
    forest = MondrianForestRegressor(3, leaf=leaf, random_state=0)
    model = RiverRegressor(forest)
    for i in range(40):
        model.learn_one({"a": X[i, 0], **({"b": X[i, 1]} if i >= 30 else {})}, y[i])
    forest.fit(X[:30], y[:30])
    for i in range(30, 40):
        forest.partial_fit(X[i : i + 1], y[i : i + 1])
    assert model.predict_one({"a": 0.3, "b": 0.4}) == pytest.approx(forest.predict([[0.3, 0.4]])[0])


@pytest.mark.parametrize("name", ["AMFClassifier", "MondrianForestClassifier"])
@pytest.mark.parametrize(
    "label", [float("nan"), np.float64("nan"), np.datetime64("NaT"), ["a"], {}]
)
def test_labels_that_are_no_classes(name, label):
    model = MODELS[name]()
    for _ in range(2):
        with pytest.raises(ValueError, match=r"y must be a class: a hashable value.*; got "):
            model.learn_one({"x": 1.0, "new": 2.0}, label)
        model.learn_one({"x": 1.0}, "one")
    assert model.predict_proba_one({"x": 1.0}) == {"one": 1.0}


def test_features_and_classes_that_appear():
    rng = np.random.default_rng(0)
    model = RiverClassifier(AMFClassifier(10, random_state=0))
    assert model.predict_one({"x": 1.0}) is None
    for i in range(300):
        x = {"x": rng.random()}
        y = "low" if x["x"] < 0.5 else "high"
        if i > 100:
            x["kind"] = rng.choice(["a", "b"])
            y = "b" if x["kind"] == "b" else y
        model.learn_one(x, str(y))
    assert [model.predict_one({"x": v, "kind": "a"}) for v in (0.1, 0.9)] == ["low", "high"]
    assert model.predict_one({"x": 0.1, "kind": "b"}) == "b"
    assert set(model.predict_proba_one({})) == {"low", "high", "b"}


@pytest.mark.parametrize("name", MODELS)
def test_strings_that_appear_are_columns_of_zero_and_one(name):
    model = MODELS[name]()
    kinds = ["a", "b", "a", "c", "b", "d", "a", "c"]
    targets = [0.0, 1.0, 1.0, 0.0, 1.0, 0.0, 1.0, 1.0]
    for i, (kind, target) in enumerate(zip(kinds, targets, strict=True)):
        # The number appears together with the third string, and is constant before.
        model.learn_one({"kind": kind, **({"x": 0.5 + i} if i >= 3 else {})}, target)
    numbers = [3.5, 3.5, 3.5, 3.5, 4.5, 5.5, 6.5, 7.5]
    first, second, third, fourth = ([float(kind == value) for kind in kinds] for value in "abcd")
    found, _ = model._stream.learnt()
    assert np.array_equal(found, np.transpose([first, second, numbers, third, fourth]))


def test_columns():
    table = FeatureTable()
    assert table.learn({"a": 1, "b": True, "day": datetime.date(1970, 1, 3)}).tolist() == [1, 1, 2]
    assert table.learn({"a": 3.0, "c": "red"}).tolist() == [3, 1, 2, 1]
    assert table.row({"c": "blue", "d": 5.0}).tolist() == [2, 1, 2, 0]
    moment = datetime.datetime(1970, 1, 3, tzinfo=datetime.UTC)
    assert table.row({"a": moment})[0] == 2.0
    with pytest.raises(ValueError, match="'a' must be finite"):
        table.row({"a": float("nan")})
    assert len(table) == 4


def test_invalid_samples_change_nothing():
    model = MODELS["AMFClassifier"]()
    model.learn_one({"x": 1.0}, "one")
    with pytest.raises(ValueError, match="finite"):
        model.learn_one({"x": float("inf"), "y": 2.0}, "two")
    assert model.predict_proba_one({"x": 1.0}) == {"one": 1.0}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("value", [1 + 2j, np.complex128(3.0), [1.0, 2.0], np.ones(2), {"b": 1}])
def test_values_that_are_no_features_are_named(name, value):
    model = MODELS[name]()
    with pytest.raises(ValueError, match=r"the feature 'a' must be a real number.*; got "):
        model.learn_one({"a": value}, 1.0)
    model.learn_one({"a": 1.0}, 1.0)
    with pytest.raises(ValueError, match=r"the feature 'a' must be a real number.*; got "):
        (getattr(model, "predict_proba_one", None) or model.predict_one)({"a": value})


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo"])
def test_dates_with_and_without_a_time(zone, monkeypatch):
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    table = FeatureTable()
    table.learn({"day": datetime.date(2026, 3, 1)})
    day = table.row({"day": datetime.date(2026, 3, 2)})
    assert np.array_equal(table.row({"day": datetime.datetime(2026, 3, 2)}), day)
    half = datetime.datetime(2026, 3, 2, 12, tzinfo=datetime.UTC)
    assert np.array_equal(table.row({"day": half}), day + 0.5)
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize("unit", ["Y", "M", "D", "h", "s", "us", "ns"])
def test_dates_and_durations_of_numpy(unit):
    table = FeatureTable()
    table.learn({"day": datetime.date(1970, 1, 1), "gap": datetime.timedelta(hours=36)})
    for text in ("2026-03-02", "1969-07-20T20:17:40"):
        day = np.datetime64(np.datetime64(text), unit)
        seconds = float(day.astype("datetime64[s]").astype(np.int64))
        assert table.row({"day": day})[0] == pytest.approx(seconds / 86400.0, rel=1e-12)
    assert table.row({})[1] == 1.5
    if unit not in ("Y", "M"):
        gap = np.timedelta64(48, "h").astype(f"timedelta64[{unit}]")
        assert table.row({"gap": gap})[1] == 2.0
    for name, value in (("day", np.datetime64("NaT")), ("gap", np.timedelta64("NaT", unit))):
        with pytest.raises(ValueError, match=f"{name!r} must be finite"):
            table.row({name: value})
    assert len(table) == 2
    if unit in ("Y", "M"):
        table.learn({"gap": np.timedelta64(2, unit)})
        assert len(table) == 3  # a category, beside the column of days


@pytest.mark.parametrize("name", MODELS)
def test_integers_that_no_float_holds(name):
    model = MODELS[name]()
    model.learn_one({"a": 1.0}, 1.0)
    for number in (10**400, -(10**5000)):
        with pytest.raises(ValueError, match="'a' is too large"):
            model.learn_one({"a": number}, 1.0)


@pytest.mark.parametrize("name", MODELS)
def test_samples_that_cannot_be_learnt_change_nothing(name):
    models = [MODELS[name](), MODELS[name]()]
    is_regressor = isinstance(models[0], RiverRegressor)
    for i in range(30):
        x, y = {"a": i / 30}, (float(i) if is_regressor else "xyz"[i % 3])
        for model in models:
            model.learn_one(x, y)
    wrong = [({"a": 0.5, "new": 1.0}, np.nan), ({"b": 1.0}, 1e200)] if is_regressor else []
    for x, y in [*wrong, ({"a": 1e308, "b": -1.0}, 1.0)]:
        with pytest.raises(ValueError, match=r"NaN|overflow|too large"), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # scikit-learn's, of the conversion to float32
            models[0].learn_one(x, y)
    for model in models:
        model.learn_one({"c": 0.5}, 1.0)
    answers = [
        (model.predict_one if is_regressor else model.predict_proba_one)({}) for model in models
    ]
    assert answers[0] == answers[1]


@pytest.mark.parametrize("name", ["AMFRegressor", "AMFClassifier"])
def test_points_far_from_zero_survive_a_new_feature(name):
    """The forest is made anew from the points that it keeps."""
    far = 2.0**30
    models = [MODELS[name](), MODELS[name]()]
    for model, shift in zip(models, (far, 0.0), strict=True):
        for i in range(40):
            x = {"a": shift + i % 7 / 2.0**10, **({"b": i / 64} if i > 30 else {})}
            model.learn_one(x, float(i % 7 > 3))
    queries = [{"a": i / 2.0**10, "b": 0.5} for i in range(7)]
    found = [
        [model.predict_one({**query, "a": query["a"] + shift}) for query in queries]
        for model, shift in zip(models, (far, 0.0), strict=True)
    ]
    assert found[0] == found[1]
    assert len(set(found[0])) > 1


def test_a_new_feature_and_few_samples():
    model = RiverRegressor(AMFRegressor(3, max_nodes=9, random_state=0))
    for i in range(50):
        model.learn_one({"a": i / 50}, float(i))
    with pytest.warns(UserWarning, match=r"from 5 of 50 samples: with max_nodes=9") as record:
        model.learn_one({"a": 0.5, "b": 1.0}, 25.0)
    assert record[0].filename == __file__
