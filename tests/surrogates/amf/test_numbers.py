"""Streams whose nodes are numbered anew on the way, and counts in single precision."""

import pickle

import numpy as np
import pytest
from trees.oracles import assert_same_bits
from trees.prunings import arrays

from mondrian_bo.surrogates import AMFClassifier, AMFRegressor
from mondrian_bo.surrogates.amf import model as aggregation_model
from mondrian_bo.trees.layout import ROOT


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


def counts_of_root(model):
    forest = model.model_.forest
    roots = forest.arrays.counters[:, ROOT]
    return forest.node_stats.statistics[np.arange(forest.n_trees), roots]


@pytest.mark.parametrize("weights", [[1e8, 4.0], [0.1, 0.2], [2.0**24, 1.0]])
def test_counts_of_classes_are_exact_with_weights(weights):
    X, y = np.array([[0.2], [0.7]]), [0, 0]
    model = AMFClassifier(2, random_state=0).partial_fit(X, y, [0, 1], sample_weight=weights)
    assert counts_of_root(model).tolist() == [[sum(weights), 0.0]] * 2
    # Weights of 1 after others.
    model.partial_fit(X, [0, 1])
    assert counts_of_root(model).tolist() == [[sum(weights) + 1.0, 1.0]] * 2


def test_counts_of_classes_do_not_stop_at_the_end_of_single_precision():
    rng = np.random.default_rng(0)
    X, y = rng.random((200, 2)), rng.integers(2, size=200)
    model = AMFClassifier(2, max_nodes=9, random_state=0).partial_fit(X, y)
    forest = model.model_.forest
    assert forest.node_stats.statistics.dtype == np.float32
    # As after 2^25 more samples, half of each class.
    forest.n_dropped += 2**25
    forest.node_stats.statistics[:] = 2.0**24
    model = pickle.loads(pickle.dumps(model))
    model.partial_fit(X, np.zeros(200, dtype=int))
    assert counts_of_root(model).tolist() == [[2.0**24 + 200.0, 2.0**24]] * 2
    assert np.all(model.predict(X) == 0)


@pytest.mark.parametrize("max_nodes", [None, 31])
def test_precision_of_counts_changes_no_prediction(max_nodes):
    """Whole weights are exact in single precision; others change the type on the way."""
    rng = np.random.default_rng(1)
    X, y = rng.random((120, 2)), rng.integers(3, size=120)
    models = []
    for dtype in (np.float32, np.float64):
        model = AMFClassifier(3, max_nodes=max_nodes, random_state=0)
        model.partial_fit(X[:5], y[:5], [0, 1, 2])
        forest = model.model_.forest
        stats = forest._node_stats
        forest._node_stats = stats._replace(statistics=stats.statistics.astype(dtype))
        for i in range(5, 100):
            model.partial_fit(X[i : i + 1], y[i : i + 1], sample_weight=[float(1 + i % 3)])
        assert forest.node_stats.statistics.dtype == dtype
        models.append(model)
    for last in (1.0, 0.3):
        probabilities = [
            model.partial_fit(X[100:], y[100:], sample_weight=np.full(20, last)).predict_proba(X)
            for model in models
        ]
        assert np.array_equal(*probabilities)
