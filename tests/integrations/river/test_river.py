"""The wrappers pass river's own checks, and learn what the forests learn."""

from __future__ import annotations

import datetime

import numpy as np
import pytest

pytest.importorskip("river")

from river import checks

from mondrian_bo.integrations.river import RiverClassifier, RiverRegressor
from mondrian_bo.integrations.river.features import FeatureTable
from mondrian_bo.surrogates import (
    AMFClassifier,
    AMFRegressor,
    MondrianForestClassifier,
    MondrianForestRegressor,
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


def test_columns():
    table = FeatureTable()
    assert table.learn({"a": 1, "b": True, "day": datetime.date(1, 1, 2)}).tolist() == [1, 1, 2]
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
