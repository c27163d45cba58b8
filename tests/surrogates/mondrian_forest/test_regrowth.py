"""Streams of data of unknown range: trees grown anew have the distribution of a batch."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from trees.oracles import shapes

from mondrian_bo.surrogates import MondrianForestClassifier, MondrianForestRegressor
from mondrian_bo.surrogates.shared.regrowth import Regrowth
from mondrian_bo.surrogates.shared.scales import Scales

N_TREES = 1000
SIGNIFICANCE = 1e-4  # of 56 comparisons


def make_data(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2)) * [1.0, 100.0]
    return X, (X[:, 0] > 0.0).astype(int) + (X[:, 1] > 50.0)


def forest_of(estimator):
    return estimator.forest_ if hasattr(estimator, "forest_") else estimator.model_.forest


# Up to 64 samples every change of the range counts. After 100 samples the milestones are 80 and
# 100, and 125 is the next one.
@pytest.mark.parametrize(
    ("kind", "n"),
    [
        *((MondrianForestRegressor, n) for n in (2, 24, 64, 100)),
        *((MondrianForestClassifier, n) for n in (2, 100)),
    ],
)
def test_a_stream_from_the_first_sample_has_the_distribution_of_a_batch(kind, n):
    X, y = make_data(n)
    order = np.argsort(np.abs(X[:, 0]))  # the range grows until the last sample
    X, y = X[order], y[order]
    batch = kind(N_TREES, random_state=1).fit(X, y)
    stream = kind(N_TREES, random_state=2)
    known = {"classes": np.unique(y)} if kind is MondrianForestClassifier else {}
    stream.partial_fit(X[:1], y[:1], **known)
    stream.partial_fit(X[1:], y[1:])
    one, two = shapes(forest_of(batch)), shapes(forest_of(stream))
    for name in ("leaves", "depth", "root_time", "root_left_size", "last_time", "first_leaf_size"):
        pvalue = stats.ks_2samp(getattr(one, name), getattr(two, name)).pvalue
        assert pvalue > SIGNIFICANCE, (name, pvalue)


@pytest.mark.parametrize("kind", [MondrianForestRegressor, MondrianForestClassifier])
def test_the_division_of_a_stream_does_not_matter(kind):
    X, y = make_data(300, seed=1)
    whole = kind(5, random_state=0)
    known = {"classes": np.unique(y)} if kind is MondrianForestClassifier else {}
    whole.partial_fit(X[:1], y[:1], **known).partial_fit(X[1:], y[1:])
    parts = kind(5, random_state=0).partial_fit(X[:1], y[:1], **known)
    for start, end in ((1, 2), (2, 30), (30, 70), (70, 79), (79, 80), (80, 81), (81, 200)):
        parts.partial_fit(X[start:end], y[start:end])
    for i in range(200, 300):
        parts.partial_fit(X[i : i + 1], y[i : i + 1])
    assert np.array_equal(whole.predict(X), parts.predict(X))
    assert np.array_equal(whole.apply(X), parts.apply(X))


def test_weights_are_kept():
    X, y = make_data(40, seed=2)
    weights = np.random.default_rng(0).integers(1, 4, size=40).astype(float)
    forest = MondrianForestClassifier(5, random_state=0, lifetime=0.0001)
    for i in range(40):
        forest.partial_fit(X[i : i + 1], y[i : i + 1], [0, 1, 2], weights[i : i + 1])
    # A lifetime of next to nothing: one leaf, whose frequencies are those of the samples.
    assert np.array_equal(forest.forest_.sample_weights, weights)
    assert np.array_equal(forest.forest_.points[0], X)


@pytest.mark.parametrize("order", ["exchangeable", "sorted"])
def test_the_cost_is_amortised(order):
    points = np.random.default_rng(3).normal(size=(1, 20_000, 3))
    if order == "sorted":
        points = np.sort(points, axis=1)
    scales = Scales(3)
    scales.follow(points[:, :1])
    regrowth = Regrowth(scales)
    regrowth.grown(1)
    known, grown, sizes = 1, 0, []
    while known < points.shape[1]:
        count, is_due = regrowth.until_next(points[:, known:], known)
        scales.follow(points[:, known : known + count])
        known += count
        if is_due:
            regrowth.grown(known)
            grown += known
            sizes.append(known)
    assert grown < 5 * known + 64**2
    assert max(sizes) > known / 2 if order == "sorted" else len(sizes) > 10


def test_given_bounds_and_a_constant_range_need_no_growth():
    points = np.random.default_rng(4).random((1, 500, 2))
    fixed = Scales(2, (np.zeros(2), np.ones(2)))
    assert Regrowth(fixed).until_next(points, 0) == (500, False)
    scales = Scales(2)
    scales.follow(points)
    regrowth = Regrowth(scales)
    regrowth.grown(1000)
    assert regrowth.until_next(points, 1000) == (250, False)
    assert regrowth.until_next(points[:, 250:], 1250) == (250, False)
