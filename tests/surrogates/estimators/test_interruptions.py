"""A `partial_fit` that is interrupted is undone: nothing is half learnt, and nothing is lost."""

import copy
import pickle
import threading

import numpy as np
import pytest
from interrupts import Interrupted, count_events, interrupt_at
from online_estimators import answer, n_learnt
from sklearn.base import is_classifier

from mondrian_bo.surrogates import (
    AMFClassifier,
    AMFRegressor,
    GaussianProcessForestRegressor,
    MondrianFeatures,
    MondrianForestClassifier,
    MondrianForestRegressor,
    MondrianKernelClassifier,
    MondrianKernelMixtureRegressor,
    MondrianKernelRegressor,
    MondrianKernelSVR,
    OnlineDummyClassifier,
    OnlineDummyRegressor,
)

N_FIRST, N_KNOWN, N_STREAM, N_ALL = 25, 30, 50, 70
SEED = {"random_state": 0}

CASES = {
    "forest": MondrianForestRegressor(3, **SEED),
    "linear": MondrianForestRegressor(2, leaf="linear", **SEED),
    "evidence": MondrianForestRegressor(
        3, hyperparameters="marginal_likelihood", weigh_trees=True, **SEED
    ),
    "lengthscales": MondrianForestRegressor(2, feature_relevance="lengthscales", **SEED),
    "few nodes": MondrianForestRegressor(3, max_nodes=9, **SEED),
    "processes": GaussianProcessForestRegressor(2, block_size=40, **SEED),
    "leaves": GaussianProcessForestRegressor(2, block_size=15, **SEED),
    "amf": AMFRegressor(3, **SEED),
    "amf of the past": AMFRegressor(3, online_to_batch=True, record_losses=True, **SEED),
    "amf in a box": AMFRegressor(3, bounds=[[-2.0, 3.0]] * 2, **SEED),
    "amf with few nodes": AMFRegressor(3, max_nodes=200, **SEED),
    "dummy": OnlineDummyRegressor(),
    "kernel": MondrianKernelRegressor(5, lifetime=2.0, **SEED),
    "few cells": MondrianKernelRegressor(3, lifetime=0.1, **SEED),
    "mixture": MondrianKernelMixtureRegressor(4, max_lifetime=2.0, max_models=3, **SEED),
    "support vectors": MondrianKernelSVR(5, lifetime=2.0, **SEED),
    "classes": MondrianForestClassifier(3, **SEED),
    "relevant classes": MondrianForestClassifier(3, feature_relevance=True, **SEED),
    "amf of classes": AMFClassifier(3, **SEED),
    "dummy of classes": OnlineDummyClassifier(),
    "logistic": MondrianKernelClassifier("log_loss", n_estimators=5, lifetime=2.0, **SEED),
    "features": MondrianFeatures(5, lifetime=2.0, **SEED),
    "rational features": MondrianFeatures(5, lifetime=2.0, lifetime_shape=2.0, **SEED),
}


def make_data(estimator):
    rng = np.random.default_rng(0)
    X = rng.random((N_ALL, 2))
    X[N_FIRST:] *= 1.2  # so that trees are grown anew
    y = X.sum(axis=1) + 0.1 * rng.normal(size=N_ALL)
    return X, (y > np.median(y)).astype(int) if is_classifier(estimator) else y


def fitted(estimator, X, y):
    estimator = copy.deepcopy(estimator).fit(X[:N_FIRST], y[:N_FIRST])
    return estimator.partial_fit(X[N_FIRST:N_KNOWN], y[N_FIRST:N_KNOWN])


def assert_close(found, expected):
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def moments(n_events, n_moments=10):
    """Return events from the first to beyond the last one, the early ones closer together."""
    return np.unique(np.geomspace(1, n_events + 1, n_moments).astype(int)).tolist()


@pytest.mark.parametrize("name", CASES)
def test_interrupted_learning_is_undone(name):
    X, y = make_data(CASES[name])
    before = fitted(CASES[name], X, y)
    expected = answer(before, X)
    batch = X[N_KNOWN:], y[N_KNOWN:]
    whole = copy.deepcopy(before)
    whole.partial_fit(*batch)  # compiles
    _, n_events = count_events(lambda: copy.deepcopy(before).partial_fit(*batch))
    retried, n_undone = answer(whole, X), 0
    for event in moments(n_events):
        estimator = copy.deepcopy(before)
        try:
            interrupt_at(event, lambda e=estimator: e.partial_fit(*batch))
        except Interrupted:
            if n_learnt(estimator) == N_ALL:
                continue
            n_undone += 1
            # The first call may be a prediction, or learning.
            if event % 2:
                assert_close(answer(estimator, X), expected)
            estimator.partial_fit(*batch)
        assert_close(answer(estimator, X), retried)
    assert n_undone > 3


STREAMS = ["forest", "amf", "classes", "amf of classes", "kernel", "leaves", "support vectors"]


@pytest.mark.parametrize("name", [*STREAMS, "logistic"])
def test_streams_go_on_after_interruptions(name):
    """Samples that arrive one by one: each is repeated until it is learnt."""
    X, y = make_data(CASES[name])
    whole, estimator = fitted(CASES[name], X, y), fitted(CASES[name], X, y)
    rng = np.random.default_rng(1)
    for i in range(N_KNOWN, N_STREAM):
        sample = X[i : i + 1], y[i : i + 1]
        expected = answer(whole.partial_fit(*sample), X)
        for event in np.exp(rng.uniform(0.0, 6.0, size=2)).astype(int).tolist():
            try:
                # The second interruption may come while the first is undone.
                interrupt_at(event, lambda e=estimator, s=sample: e.partial_fit(*s))
                break
            except Interrupted:
                # Pickles and copies know that the call has not ended.
                estimator = pickle.loads(pickle.dumps(estimator))
                if n_learnt(estimator) == i + 1:
                    break
        else:
            estimator.partial_fit(*sample)
        assert_close(answer(estimator, X), expected)


@pytest.mark.parametrize("weights", [None, np.linspace(0.0, 2.0, N_ALL)])
@pytest.mark.parametrize("name", ["classes", "amf", "amf of classes"])
def test_weights_and_first_batches_are_learnt_again(name, weights):
    X, y = make_data(CASES[name])
    own = np.ones(N_ALL) if weights is None else weights
    options = {"classes": [0, 1]} if is_classifier(CASES[name]) else {}
    estimator = copy.deepcopy(CASES[name])
    estimator.partial_fit(X[:40], y[:40], sample_weight=own[:40], **options)
    expected = answer(estimator, X)
    with pytest.raises(Interrupted):
        interrupt_at(150, lambda: estimator.partial_fit(X[40:], y[40:], sample_weight=own[40:]))
    estimator.set_params(random_state=9, n_estimators=7)  # the trees are those of the first call
    np.testing.assert_array_equal(answer(estimator, X), expected)


@pytest.mark.parametrize("name", CASES)
def test_an_interrupted_estimator_can_be_fitted(name):
    X, y = make_data(CASES[name])
    estimator = fitted(CASES[name], X, y)
    with pytest.raises(Interrupted):
        interrupt_at(7, lambda: estimator.partial_fit(X[N_KNOWN:], y[N_KNOWN:]))
    expected = answer(copy.deepcopy(CASES[name]).fit(X, y), X)
    np.testing.assert_array_equal(answer(estimator.fit(X, y), X), expected)


def test_samples_that_were_not_kept_cannot_be_learnt_again():
    X, y = make_data(CASES["amf"])
    estimator = AMFRegressor(3, max_nodes=5, **SEED).fit(X[:50], y[:50])
    with pytest.raises(Interrupted):
        interrupt_at(150, lambda: estimator.partial_fit(X[50:], y[50:]))
    for call in (lambda: estimator.predict(X), lambda: estimator.partial_fit(X, y)):
        with pytest.raises(RuntimeError, match=r"interrupted.*call `fit`"):
            call()
    assert np.isfinite(estimator.fit(X, y).predict(X)).all()


@pytest.mark.parametrize("name", ["forest", "amf", "amf with few nodes", "classes"])
def test_a_prediction_beside_learning_undoes_nothing(name):
    """Another thread is not interrupted: it learns."""
    estimator = copy.deepcopy(CASES[name])
    rng = np.random.default_rng(0)
    X = rng.random((1500, 2))
    y = (X[:, 0] > 0.5).astype(int) if is_classifier(estimator) else X.sum(axis=1)
    estimator.fit(X[:1000], y[:1000])
    is_over, errors = threading.Event(), []

    def read():
        while not is_over.is_set():
            try:
                answer(estimator, X[:3])
            except Exception as error:
                errors.append(error)

    reader = threading.Thread(target=read)
    reader.start()
    for k in range(1000, 1500):
        estimator.partial_fit(X[k : k + 1], y[k : k + 1])
    is_over.set()
    reader.join()
    assert not errors
    assert getattr(estimator, estimator._learnt).n_points == 1500


@pytest.mark.parametrize("name", ["forest", "amf", "classes", "kernel", "features"])
def test_a_new_fit_forgets_an_interrupted_call(name):
    estimator = CASES[name]
    X, y = make_data(estimator)
    broken = fitted(estimator, X, y)
    batch = X[N_KNOWN:], y[N_KNOWN:]
    other = copy.deepcopy(broken)
    _, n_events = count_events(lambda: other.partial_fit(*batch))
    with pytest.raises(Interrupted):
        interrupt_at(n_events // 2, lambda: broken.partial_fit(*batch))
    assert broken._unfinished is not None
    again = broken.fit(X, y)
    assert again._unfinished is None
    assert "_unfinished" not in vars(again)
