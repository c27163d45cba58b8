"""Threads that share an estimator: what a reader gets is the answer of some moment."""

import copy
import inspect
import os
import pickle
import signal
import sys
import threading

import numpy as np
import pytest
from online_estimators import answer, n_learnt
from sklearn.base import BaseEstimator, is_classifier

from mondrian_bo import surrogates
from mondrian_bo.surrogates import (
    AMFClassifier,
    AMFRegressor,
    GaussianProcessForestRegressor,
    MondrianForestClassifier,
    MondrianForestRegressor,
    MondrianKernelMixtureRegressor,
    MondrianKernelRegressor,
    MondrianKernelSVR,
)
from mondrian_bo.surrogates.estimators.locks import learns, lock_of, reads

SEED = {"random_state": 0}
N_FIRST, N_ALL = 40, 80

CASES = {
    "forest": MondrianForestRegressor(3, **SEED),
    "few nodes": MondrianForestRegressor(3, max_nodes=41, **SEED),
    "processes": GaussianProcessForestRegressor(2, block_size=25, **SEED),
    "amf": AMFRegressor(3, **SEED),
    "amf with few nodes": AMFRegressor(3, max_nodes=61, **SEED),
    "classes": MondrianForestClassifier(3, **SEED),
    "amf of classes": AMFClassifier(3, **SEED),
    "kernel": MondrianKernelRegressor(5, lifetime=2.0, **SEED),
    "mixture": MondrianKernelMixtureRegressor(4, max_lifetime=2.0, max_models=3, **SEED),
    "support vectors": MondrianKernelSVR(5, lifetime=2.0, **SEED),
}

ESTIMATORS = [
    one
    for one in (getattr(surrogates, name) for name in surrogates.__all__)
    if isinstance(one, type) and issubclass(one, BaseEstimator)
]


def make_data(estimator):
    X = np.random.default_rng(0).random((N_ALL, 2))
    X[N_FIRST:] *= 1.2
    y = X.sum(axis=1)
    return X, (y > np.median(y)).astype(int) if is_classifier(estimator) else y


def is_one_of(answers, moments):
    """Gaussian processes learn points one by one or several at a time: they agree to rounding."""
    moments = np.array(moments)
    close = (np.isclose(moments, one, rtol=0.0, atol=1e-9) for one in answers)
    return all(one.reshape(len(moments), -1).all(axis=1).any() for one in close)


def run_beside(work, others):
    """Run `work` here while threads repeat `others`, and return their results."""
    is_over, found, errors = threading.Event(), [], []

    def repeat(call):
        while not is_over.is_set():
            try:
                found.append(call())
            except Exception as error:  # reported by the caller
                errors.append(error)
                return

    threads = [threading.Thread(target=repeat, args=(call,)) for call in others]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        work()
    finally:
        is_over.set()
        for thread in threads:
            thread.join()
        sys.setswitchinterval(interval)
    assert not errors
    return found


@pytest.mark.parametrize("name", CASES)
def test_a_prediction_beside_learning_is_that_of_a_moment(name):
    X, y = make_data(CASES[name])
    estimator = copy.deepcopy(CASES[name]).fit(X[:N_FIRST], y[:N_FIRST])
    other = copy.deepcopy(estimator)
    moments = [answer(other, X[:5])]
    for k in range(N_FIRST, N_ALL):
        moments.append(answer(other.partial_fit(X[k : k + 1], y[k : k + 1]), X[:5]))

    def learn():
        for k in range(N_FIRST, N_ALL):
            estimator.partial_fit(X[k : k + 1], y[k : k + 1])

    calls = [
        lambda: answer(estimator, X[:5]),
        lambda: answer(estimator, X[:5]),
        lambda: answer(copy.deepcopy(estimator), X[:5]),
        lambda: answer(pickle.loads(pickle.dumps(estimator)), X[:5]),
    ]
    found = run_beside(learn, calls)
    assert is_one_of(found, moments)
    assert is_one_of([answer(estimator, X[:5])], moments[-1:])


@pytest.mark.parametrize("name", CASES)
def test_a_prediction_beside_a_new_fit(name):
    """Fits on two and on five features take turns."""
    X, y = make_data(CASES[name])
    wide = np.hstack([X, X, X[:, :1]])
    estimator = copy.deepcopy(CASES[name]).fit(X, y)

    def read():
        try:
            return answer(estimator, X[:5])
        except ValueError as error:
            return str(error)

    def learn():
        for _ in range(5):
            estimator.fit(wide, y)
            estimator.fit(X, y)

    found = run_beside(learn, [read, read])
    refusals = [one for one in found if isinstance(one, str)]
    assert all("X has 2 features" in one for one in refusals)
    answers = [one for one in found if not isinstance(one, str)]
    assert is_one_of(answers, [answer(estimator, X[:5])])


@pytest.mark.parametrize("name", CASES)
def test_threads_learn_one_after_the_other(name):
    X, y = make_data(CASES[name])
    estimator = copy.deepcopy(CASES[name]).fit(X[:N_FIRST], y[:N_FIRST])
    todo = list(range(N_FIRST, N_ALL))

    def learn():
        while todo:
            try:
                k = todo.pop()
            except IndexError:
                return
            estimator.partial_fit(X[k : k + 1], y[k : k + 1])

    run_beside(learn, [learn])
    assert n_learnt(estimator) == N_ALL
    assert np.isfinite(answer(estimator, X)).all()


def decorator_of(method):
    while method is not None:
        if method.__code__.co_filename.endswith("locks.py"):
            return method.__code__.co_qualname.partition(".")[0]
        method = getattr(method, "__wrapped__", None)  # scikit-learn wraps some methods, too
    return None


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_every_public_method_of_ours_takes_the_lock(estimator):
    for name, method in inspect.getmembers(estimator, inspect.isfunction):
        if not name.startswith("_") and method.__module__.startswith("mondrian_bo"):
            assert decorator_of(method) == ("learns" if "fit" in name.split("_") else "reads"), name


class Counter(BaseEstimator):
    """Notes how many calls are inside at a time."""

    _unfinished = None
    _readers_take_turns = False

    def __init__(self):
        self.is_full = threading.Event()
        self.n_inside = self.most = 0

    def note(self, patience):
        self.n_inside += 1
        self.most = max(self.most, self.n_inside)
        if self.n_inside > 1:
            self.is_full.set()
        self.is_full.wait(patience)
        self.n_inside -= 1

    @reads
    def read(self):
        self.note(10.0)

    @reads
    def read_briefly(self):
        self.note(0.01)

    @learns
    def learn(self):
        self.note(0.01)


def in_threads(calls):
    threads = [threading.Thread(target=call) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_readers_are_together_and_learners_alone():
    counter = Counter()
    in_threads([counter.read] * 8)
    assert counter.most > 1
    counter = Counter()
    in_threads([counter.learn, counter.learn, counter.learn])
    assert counter.most == 1
    counter = Counter()
    counter._readers_take_turns = True
    in_threads([counter.learn, counter.read_briefly, counter.read_briefly, counter.learn])
    assert counter.most == 1


def test_copies_have_a_lock_of_their_own():
    X, y = make_data(CASES["amf"])
    estimator = copy.deepcopy(CASES["amf"]).fit(X, y)
    for other in (copy.copy(estimator), copy.deepcopy(estimator)):
        assert lock_of(other) is not lock_of(estimator)
        assert other.model_ is not estimator.model_
        np.testing.assert_array_equal(answer(other, X), answer(estimator, X))


class OwnState(AMFRegressor):
    """Pickles all attributes."""

    def __getstate__(self):
        return self.__dict__.copy()


def test_an_estimator_that_pickles_all_its_attributes():
    X, y = make_data(CASES["amf"])
    estimator = OwnState(3, **SEED).fit(X, y)
    for other in (copy.deepcopy(estimator), pickle.loads(pickle.dumps(estimator))):
        assert lock_of(other) is not lock_of(estimator)
        np.testing.assert_array_equal(answer(other, X), answer(estimator, X))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_process_does_not_wait_for_a_thread_of_its_parent():
    X, y = make_data(CASES["forest"])
    estimator = copy.deepcopy(CASES["forest"]).fit(X, y)
    is_held, is_forked = threading.Event(), threading.Event()

    @learns
    def hold(_):
        is_held.set()
        is_forked.wait()

    thread = threading.Thread(target=hold, args=(estimator,))
    thread.start()
    is_held.wait()
    if (child := os.fork()) == 0:
        signal.alarm(60)  # ends a child that waits for ever
        estimator.partial_fit(X[:1], y[:1])
        os._exit(0)
    is_forked.set()
    thread.join()
    assert os.waitpid(child, 0)[1] == 0
