"""The Mondrian forest classifier: scikit-learn's checks, online against batch, labels, weights."""

import pickle
import warnings
from functools import partial

import numpy as np
import pytest
from classifier_data import assert_same, make_data
from scipy import stats
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris
from sklearn.model_selection import cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks
from trees.oracles import one_tree, shapes

from mondrian_bo.surrogates.mondrian_forest.class_forest import ClassForest
from mondrian_bo.surrogates.mondrian_forest.classifier import MondrianForestClassifier
from mondrian_bo.surrogates.shared.scales import Scales

# Of 26 p-values the smallest is 0.1.
SIGNIFICANCE = 1e-4


@parametrize_with_checks(
    [
        MondrianForestClassifier(n_estimators=3),
        MondrianForestClassifier(n_estimators=2, min_samples_split=5, n_jobs=2),
        MondrianForestClassifier(n_estimators=5, lifetime=20.0, discount=3.0),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# Distribution -------------------------------------------------------------------------------------


def reference_shapes(X, y, n_trees, lifetime, seed=5):
    """Return leaves, depth and root time of trees whose blocks of one class are not split."""
    rng = np.random.default_rng(seed)

    def sample_block(own, labels, time, depth):
        extents = np.ptp(own, axis=0)
        split = time
        if len(np.unique(labels)) > 1:
            split += rng.exponential(1.0 / extents.sum())
        if split == time or split >= lifetime:
            return 1, depth, lifetime
        dimension = rng.choice(len(extents), p=extents / extents.sum())
        place = own[:, dimension]
        left = place <= rng.uniform(place.min(), place.max())
        one = sample_block(own[left], labels[left], split, depth + 1)
        two = sample_block(own[~left], labels[~left], split, depth + 1)
        return one[0] + two[0], max(one[1], two[1]), split

    return np.array([sample_block(X, y, 0.0, 0) for _ in range(n_trees)]).T


@pytest.mark.parametrize("lifetime", [np.inf, 4.0])
def test_online_and_batch_have_the_distribution_of_the_definition(lifetime):
    X, y = make_data(25, seed=2)
    options = {"bounds": [[0.0, 1.0]] * 2, "lifetime": lifetime}
    batch = MondrianForestClassifier(3000, random_state=0, **options).fit(X, y)
    online = MondrianForestClassifier(3000, random_state=1, **options).partial_fit(X, y)
    both = MondrianForestClassifier(3000, random_state=2, **options).fit(X[:10], y[:10])
    assert len(np.unique(y[:10])) == 3
    both.partial_fit(X[10:], y[10:])
    reference = reference_shapes(X, y, 3000, lifetime)
    for forest in (batch, online, both):
        found = shapes(forest.forest_)
        for own, expected in zip(
            (found.leaves, found.depth, found.root_time), reference, strict=True
        ):
            assert stats.ks_2samp(own, expected).pvalue > SIGNIFICANCE
    one, two = shapes(batch.forest_), shapes(online.forest_)
    for name in ("first_leaf_depth", "first_leaf_size", "root_left_size", "last_time"):
        pvalue = stats.ks_2samp(getattr(one, name), getattr(two, name)).pvalue
        assert pvalue > SIGNIFICANCE, name
    # Probabilities of single trees have variances of at most 1/4.
    probes = np.random.default_rng(3).random((50, 2)) * 1.4 - 0.2
    gap = batch.predict_proba(probes) - online.predict_proba(probes)
    assert np.abs(gap).max() < 5.0 * np.sqrt(2 * 0.25 / 3000)


# Streams ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"min_samples_split": 6}, {"lifetime": 5.0}])
def test_how_a_stream_is_divided_does_not_matter(options):
    X, y = make_data(90)
    X *= [1e3, 1e-3]
    whole = MondrianForestClassifier(random_state=0, **options).partial_fit(X, y)
    for ends in ([1, 2, 3, 50, 90], list(range(1, 91)), [30, 30, 60, 90]):
        parts = MondrianForestClassifier(random_state=0, **options)
        start = 0
        for end in ends:
            parts.partial_fit(X[start:end], y[start:end], classes=[0, 1, 2])
            start = end
        assert_same(whole, parts)
        assert np.array_equal(whole.predict_proba(X + 0.01), parts.predict_proba(X + 0.01))


@pytest.mark.parametrize("n_jobs", [2, -1])
def test_n_jobs(n_jobs):
    X, y = make_data(1500)
    for first in ("fit", "partial_fit"):
        one = MondrianForestClassifier(3, random_state=0, n_jobs=1)
        several = MondrianForestClassifier(3, random_state=0, n_jobs=n_jobs)
        for forest in (one, several):
            getattr(forest, first)(X[:700], y[:700])
            forest.partial_fit(X[700:], y[700:])
        assert_same(one, several)
        assert np.array_equal(one.predict_proba(X + 0.1), several.predict_proba(X + 0.1))


def test_empty_batches_change_nothing():
    X, y = make_data()
    forest = MondrianForestClassifier(random_state=0).fit(X, y)
    replica = pickle.loads(pickle.dumps(forest))
    forest.partial_fit(X[:0], y[:0])
    forest.partial_fit(X[:0], y[:0], classes=[0, 1, 2], sample_weight=[])
    assert_same(forest, replica)
    with pytest.raises(ValueError, match="0 sample"):
        MondrianForestClassifier().partial_fit(X[:0], y[:0])


def test_pickle_goes_on_learning():
    X, y = make_data()
    forest = MondrianForestClassifier(random_state=0).fit(X[:30], y[:30])
    replica = pickle.loads(pickle.dumps(forest))
    for model in (forest, replica):
        model.partial_fit(X[30:], y[30:])
    assert_same(forest, replica)


@pytest.mark.parametrize("is_interrupted", [False, True])
def test_a_pickle_of_an_earlier_version_goes_on(is_interrupted):
    X, y = make_data()
    forest = MondrianForestClassifier(random_state=0, feature_relevance=True).fit(X[:30], y[:30])
    state = pickle.loads(pickle.dumps(forest)).__getstate__()
    model, settings = state.pop("model_"), state.pop("_settings")
    scales = 2, settings.pop("bounds"), settings.pop("feature_weights")
    state["_kept_settings"] = {
        "feature_relevance": settings.pop("feature_relevance"),
        "feature_weights": scales[2],
    }
    state["_new_scales"] = partial(Scales, *scales)
    state["_new_forest"] = partial(ClassForest, settings.pop("ensemble"), **settings)
    state.update({"scales_": model.scales, "_regrowth": model._regrowth})
    if is_interrupted:
        state["_unfinished"] = 30, model.forest
        model.learn(X[None, 30:40], y[30:40].astype(np.int32))
    else:
        state["forest_"] = model.forest
    loaded = MondrianForestClassifier.__new__(MondrianForestClassifier)
    loaded.__setstate__(state)
    assert_same(loaded.partial_fit(X[30:], y[30:]), forest.partial_fit(X[30:], y[30:]))
    assert np.array_equal(loaded.scales_.rates, forest.scales_.rates)


def test_random_state_and_clone():
    X, y = make_data()
    forest = MondrianForestClassifier(4, random_state=3, discount=2.0, feature_weights=[1.0, 2.0])
    first = forest.fit(X, y).predict_proba(X + 0.05)
    assert np.array_equal(forest.fit(X, y).predict_proba(X + 0.05), first)
    copy = clone(forest)
    assert not hasattr(copy, "forest_")
    assert np.array_equal(copy.fit(X, y).predict_proba(X + 0.05), first)
    copy.set_params(random_state=4).fit(X, y)
    assert not np.array_equal(copy.predict_proba(X + 0.05), first)


# Scales -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_units_do_not_matter(method):
    X, y = make_data()
    one = getattr(MondrianForestClassifier(random_state=0), method)(X, y)
    # Powers of two change no bit of the ratios.
    units = np.array([2.0**30, 2.0**-20])
    two = getattr(MondrianForestClassifier(random_state=0), method)(X * units, y)
    probes = np.random.default_rng(0).random((40, 2)) * 1.5
    np.testing.assert_allclose(
        one.predict_proba(probes), two.predict_proba(probes * units), rtol=0, atol=1e-9
    )
    twice = MondrianForestClassifier(random_state=0, feature_weights=[2.0, 2.0])
    np.testing.assert_allclose(
        getattr(twice, method)(X, y).predict_proba(probes), one.predict_proba(probes), atol=1e-9
    )


def test_a_feature_of_weight_zero_is_ignored():
    X, y = make_data(200)
    noise = np.random.default_rng(1).random((200, 1))
    forest = MondrianForestClassifier(random_state=0, feature_weights=[1.0, 1.0, 0.0])
    forest.fit(np.hstack([X, noise]), y)
    plain = MondrianForestClassifier(random_state=0).fit(X, y)
    assert forest.forest_.discount == plain.forest_.discount == 20.0
    one = forest.predict_proba(np.hstack([X, 9.0 * noise]))
    two = forest.predict_proba(np.hstack([X, noise]))
    assert np.array_equal(one, two)


# Predictions --------------------------------------------------------------------------------------


def test_probabilities():
    X, y = make_data(300)
    forest = MondrianForestClassifier(random_state=0).fit(X, y)
    proba = forest.predict_proba(X)
    assert np.allclose(proba.sum(axis=1), 1.0, atol=1e-12)
    # Inside of a leaf's box every tree is sure.
    assert np.array_equal(proba, np.eye(3)[y])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        logs = forest.predict_log_proba(X)
    assert np.array_equal(logs, np.where(np.eye(3)[y] > 0, 0.0, -np.inf))
    np.testing.assert_allclose(forest.predict_proba([[1e9, 1e9]]), 1 / 3, atol=1e-6)
    # A finite lifetime leaves leaves with several classes, and smooths all.
    smooth = MondrianForestClassifier(random_state=0, lifetime=5.0).fit(X, y)
    assert smooth.predict_proba(X).min() > 0.0


def test_larger_discounts_trust_leaves():
    X, y = make_data(300)
    probes = np.random.default_rng(1).random((200, 2))
    entropy = []
    for discount in (0.1, 10.0, 1e4):
        forest = MondrianForestClassifier(random_state=0, discount=discount).fit(X, y)
        proba = np.clip(forest.predict_proba(probes), 1e-300, 1.0)
        entropy.append(-(proba * np.log(proba)).sum(axis=1).mean())
    assert entropy[0] > entropy[1] > entropy[2]


def test_apply_and_decision_path():
    X, y = make_data()
    forest = MondrianForestClassifier(3, random_state=0).fit(X, y)
    leaves = forest.apply(X)
    indicator, offsets = forest.decision_path(X)
    assert leaves.shape == (60, 3)
    assert indicator.shape == (60, offsets[-1])
    for t in range(3):
        tree = one_tree(forest.forest_, t)
        own = indicator[:, offsets[t] : offsets[t + 1]].toarray()
        # Every sample was learnt, so a node is passed as often as it has points.
        assert np.array_equal(own.sum(axis=0), tree.size)
        assert np.all(own[np.arange(60), leaves[:, t]] == 1)


@pytest.mark.parametrize("online", [False, True])
def test_accuracy(online):
    # Each seed of the digits has twelve times the tests of one of the irises.
    for (X, y), n_trees, floor in (
        (load_iris(return_X_y=True), 10, 0.92),
        (load_digits(return_X_y=True), 30, 0.9),
    ):
        forest = MondrianForestClassifier(n_trees, random_state=0)
        if not online:
            assert cross_val_score(forest, X, y, cv=3).mean() > floor
            continue
        scores = []
        for seed in range(8 if len(y) < 1000 else 2):
            forest = MondrianForestClassifier(n_trees, random_state=seed)
            order = np.random.default_rng(seed).permutation(len(y))
            train, test = order[: 2 * len(y) // 3], order[2 * len(y) // 3 :]
            for part in np.array_split(train, 7):
                forest.partial_fit(X[part], y[part], classes=np.unique(y))
            scores.append(forest.score(X[test], y[test]))
        assert np.mean(scores) > floor


def test_data_frames():
    pandas = pytest.importorskip("pandas")
    X, y = make_data()
    frame = pandas.DataFrame(X, columns=["a", "b"])
    forest = MondrianForestClassifier(random_state=0).fit(frame[:30], pandas.Series(y[:30]))
    forest.partial_fit(frame[30:], pandas.Series(y[30:]))
    assert forest.feature_names_in_.tolist() == ["a", "b"]
    plain = MondrianForestClassifier(random_state=0).fit(X[:30], y[:30]).partial_fit(X[30:], y[30:])
    assert np.array_equal(forest.predict_proba(frame), plain.predict_proba(X))
    with pytest.raises(ValueError, match="feature names"):
        forest.partial_fit(frame[["b", "a"]], y)
