"""Features far from 0, whose differences single precision would round away."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from mondrian_bo.surrogates import AMFClassifier, AMFRegressor
from mondrian_bo.trees.layout import NONE, ROOT

FAR = np.array([2.0**20, -(2.0**30), 0.0])
"""Distances from 0. Sums with multiples of 2^-16 are exact in double precision."""


def make_data(kind, n=120):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 64, (n, 3)) / 2.0**16
    y = X[:, 0] + np.sin(1e4 * X[:, 1])
    return X, (y if kind is AMFRegressor else (y > np.median(y)).astype(int))


def answers(model, X):
    return model.predict(X) if isinstance(model, AMFRegressor) else model.predict_proba(X)


@pytest.mark.parametrize("options", [{}, {"max_nodes": 40}, {"feature_relevance": True}])
@pytest.mark.parametrize("kind", [AMFRegressor, AMFClassifier])
def test_an_offset_changes_nothing(kind, options):
    X, y = make_data(kind)
    # The third feature has no offset, and keeps its values.
    first = X[0] * [1.0, 1.0, 0.0]
    near = kind(random_state=0, **options).fit(X - first, y)
    far = kind(random_state=0, **options).fit(X + FAR, y)
    assert np.array_equal(near.offset_, np.zeros(3))
    assert np.array_equal(far.offset_, first + FAR)
    probes = X[::3] + 2.0**-15
    expected = answers(near, probes - first)
    assert np.array_equal(answers(far, probes + FAR), expected)
    assert len(np.unique(expected)) > 10
    restored = pickle.loads(pickle.dumps(far))
    assert np.array_equal(answers(restored, probes + FAR), expected)


@pytest.mark.parametrize("kind", [AMFRegressor, AMFClassifier])
def test_leaves_and_paths(kind):
    X, y = make_data(kind)
    forest = kind(n_estimators=4, random_state=0).fit(X + FAR, y)
    leaves = forest.apply(X + FAR)
    indicator, ends = forest.decision_path(X + FAR)
    assert leaves.shape == (len(X), 4) and indicator.shape == (len(X), ends[-1])
    trees, points = forest.model_.forest.arrays, X + FAR - forest.offset_
    for t in range(4):
        assert len(np.unique(leaves[:, t])) > 10
        for i, x in enumerate(points):
            path = [int(trees.counters[t, ROOT])]
            while trees.children[t, path[-1], 0] != NONE:
                side = int(x[trees.dimension[t, path[-1]]] > trees.threshold[t, path[-1]])
                path.append(int(trees.children[t, path[-1], side]))
            assert leaves[i, t] == path[-1]
            own = np.flatnonzero(indicator[[i]].toarray()[0, ends[t] : ends[t + 1]])
            assert np.array_equal(own, np.sort(path))
    known = {"classes": [0, 1]} if kind is AMFClassifier else {}
    empty = kind().partial_fit(X, y, sample_weight=np.zeros(len(X)), **known)
    for paths in (empty.apply, empty.decision_path):
        with pytest.raises(ValueError, match="no trees yet"):
            paths(X)


@pytest.mark.parametrize("kind", [AMFRegressor, AMFClassifier])
def test_an_offset_does_not_depend_on_batches_and_weights(kind):
    X, y = make_data(kind)
    X = X + FAR
    one = kind(random_state=0).fit(X, y)
    known = {"classes": [0, 1]} if kind is AMFClassifier else {}
    several = kind(random_state=0)
    several.partial_fit(X[:1] + 99.0, y[:1], sample_weight=[0.0], **known)
    for part in (slice(0, 1), slice(1, 50), slice(50, None)):
        several.partial_fit(X[part], y[part])
    assert np.array_equal(one.offset_, several.offset_)
    assert np.array_equal(answers(one, X), answers(several, X))


@pytest.mark.parametrize("kind", [AMFRegressor, AMFClassifier])
def test_bounds_far_from_zero(kind):
    X, y = make_data(kind)
    bounds = np.array([[0.0, 2.0**-10]] * 3)
    near = kind(random_state=0, bounds=bounds).fit(X, y)
    far = kind(random_state=0, bounds=bounds + FAR[:, None]).fit(X + FAR, y)
    assert np.array_equal(near.offset_, np.zeros(3)) and np.array_equal(far.offset_, FAR)
    assert np.array_equal(answers(near, X), answers(far, X + FAR))
    with pytest.raises(ValueError, match=r"outside of the given bounds in the features \[0\]"):
        far.partial_fit(X[:1] + FAR - [2.0**-5, 0.0, 0.0], y[:1])


@pytest.mark.parametrize("kind", [AMFRegressor, AMFClassifier])
def test_values_that_single_precision_makes_equal(kind):
    X, y = make_data(kind)
    tiny = X * [1.0, 1e-60, 1.0]
    message = r"too small for single precision: the features \[1\] vary.* below 1.18e-38"
    with pytest.raises(ValueError, match=message):
        kind(random_state=0).fit(tiny, y)
    # Some are held with fewer digits, and others are 0 beside larger ones.
    for accepted in (X * 2.0**-120, np.where(X > 2.0**-11, X, X * 1e-60)):
        model = kind(random_state=0).fit(accepted, y)
        assert np.ptp(answers(model, accepted)) > 0.0
    constant = kind(random_state=0).fit(np.full((len(X), 3), 1e-60), y)
    assert np.isfinite(answers(constant, X[:5])).all()


@pytest.mark.parametrize("kind", [AMFRegressor, AMFClassifier])
def test_later_batches_may_be_constant_or_tiny(kind):
    X, y = make_data(kind)
    model = kind(random_state=0).fit(X, y)
    for later in (np.full((5, 3), 0.25), X[:5] * 1e-60, np.full((5, 3), 1e-60), X[:1] * 1e-60):
        model.partial_fit(later, y[:5][: len(later)])
    zeros = X * [1.0, 0.0, 1.0]
    unseen = kind(random_state=0).fit(zeros, y)
    expected = answers(unseen, X)
    with pytest.raises(ValueError, match="too small for single precision"):
        unseen.partial_fit(X[:5] * 1e-60, y[:5])
    assert np.array_equal(answers(unseen, X), expected)
    unseen.partial_fit(zeros[:5], y[:5])


@pytest.mark.filterwarnings("ignore:overflow encountered in cast")
@pytest.mark.parametrize("kind", [AMFRegressor, AMFClassifier])
def test_values_beyond_single_precision_change_nothing(kind):
    X, y = make_data(kind)
    model = kind(random_state=0).fit(X + FAR, y)
    expected = answers(model, X + FAR)
    with pytest.raises(ValueError, match="too large for single precision"):
        model.predict(np.full((1, 3), 1e200))
    for wrong, message in ((1e200, "too large for single"), (-3e38, "overflow in float32")):
        with pytest.raises(ValueError, match=message):
            model.partial_fit(np.full((1, 3), wrong), y[:1])
    assert np.array_equal(answers(model, X + FAR), expected)
