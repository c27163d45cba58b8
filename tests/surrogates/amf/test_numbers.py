"""Streams whose nodes are numbered anew on the way."""

import numpy as np
import pytest
from trees.oracles import assert_same_bits
from trees.prunings import arrays

from mondrian_bo.surrogates import AMFClassifier, AMFRegressor
from mondrian_bo.surrogates.amf import model as aggregation_model


@pytest.mark.parametrize("bounds", [None, [[0.0, 1.0]] * 2])
@pytest.mark.parametrize("record", [False, True])
@pytest.mark.parametrize("kind", [AMFRegressor, AMFClassifier])
def test_nothing_depends_on_when_nodes_are_numbered(kind, record, bounds, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.random((140, 2)).round(2)  # some repeat
    y = np.sin(6.0 * X[:, 0]) + 0.3 * rng.normal(size=140)
    y = y if kind is AMFRegressor else np.digitize(y, [-0.5, 0.5])
    models = []
    for first in (8, 32, 10**9):
        monkeypatch.setattr(aggregation_model, "_RENUMBERED_FROM", first)
        options = {"record_losses": record, "feature_relevance": True, "bounds": bounds}
        model = kind(n_estimators=3, random_state=0, **options)
        for i in range(140):
            known = {"classes": [0, 1, 2]} if i == 0 and kind is AMFClassifier else {}
            model.partial_fit(X[i : i + 1], y[i : i + 1], **known)
        models.append(model)
    numbers = [model.model_.forest.arrays.parent for model in models]
    assert not np.array_equal(numbers[0], numbers[2])
    for model in models[:2]:
        assert np.array_equal(model.predict(X), models[2].predict(X))
        assert_same_bits(arrays(model.model_.forest), arrays(models[2].model_.forest))
