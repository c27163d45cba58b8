"""Streams: however they are divided, whatever goes wrong on the way, nothing learnt is lost."""

from itertools import pairwise

import numpy as np
import pytest
from amf_streams import make_data, probes
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import is_classifier
from sklearn.exceptions import NotFittedError
from trees.oracles import assert_same_bits
from trees.prunings import arrays

from mondrian_bo.surrogates import AMFClassifier, AMFRegressor

BOX = [[-0.5, 1.5], [0.0, 1.0]]
NAMES = np.array(["blue", "green", "red"])


def answers(model, X):
    """Return all that a model says at X, and the state that it has come to."""
    if is_classifier(model):
        parts = [model.predict_proba(X)]
    else:
        # Quantiles take long. These points are some of each kind.
        parts = [*model.predict(X, return_std=True), model.predict_quantiles(X[::5])]
    if model.model_.predictor.n_points > 0:
        parts.append(model.weighted_depth(X))
    return {str(i): part for i, part in enumerate(parts)} | arrays(model.model_.forest)


def learn(model, X, y, ends, weights=None, **first):
    for start, end in pairwise([0, *ends, len(y)]):
        part = None if weights is None else weights[start:end]
        model.partial_fit(X[start:end], y[start:end], sample_weight=part, **first)
    return model


# Divisions ----------------------------------------------------------------------------------------

SHARED = {
    "n_estimators": st.integers(1, 3),
    "use_aggregation": st.booleans(),
    "bounds": st.sampled_from([None, BOX]),
    "feature_weights": st.sampled_from([None, [1.0, 3.0]]),
    "feature_relevance": st.booleans(),
    "online_to_batch": st.booleans(),
    "record_losses": st.booleans(),
    "random_state": st.integers(0, 1000),
}
REGRESSOR = {**SHARED, "step": st.sampled_from(["corollary", "adaptive", 0.7])}
CLASSIFIER = {
    **SHARED,
    "step": st.sampled_from([1.0, 0.3]),
    "split_pure": st.booleans(),
    "pooling": st.sampled_from(["geometric", "arithmetic"]),
}
# The relevance of features is learnt from 64 points on.
N = 140
ENDS = st.sets(st.integers(1, N - 1), max_size=12).map(sorted)
WEIGHTS = st.sampled_from([None, (1.0,), (0.0, 1.0, 2.5), (0.5, 0.5, 0.0, 4.0)])


def check_divisions(kind, options, y, ends, weights, n_jobs):
    X, _ = make_data(N)
    weights = None if weights is None else np.resize(weights, N)
    first = {"classes": np.unique(y)} if kind is AMFClassifier else {}
    one = learn(kind(**options), X, y, [], weights, **first)
    several = learn(kind(n_jobs=n_jobs, **options), X, y, ends, weights, **first)
    expected, found = answers(one, probes(X)), answers(several, probes(X))
    if options.get("step") == "adaptive":
        # See test_losses_of_the_first_samples.
        for content in (expected, found):
            content["trace"] = content["trace"].copy()
    assert_same_bits(expected, found)
    assert one.model_.predictor.n_points == several.model_.predictor.n_points
    assert np.array_equal(one.model_.scales.rates, several.model_.scales.rates)


@settings(max_examples=35, derandomize=True)
@given(st.fixed_dictionaries(REGRESSOR), ENDS, WEIGHTS, st.sampled_from([1, 1, 2]))
def test_divisions_of_a_regression_stream(options, ends, weights, n_jobs):
    check_divisions(AMFRegressor, options, make_data(N)[1], ends, weights, n_jobs)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("n", "n_equal"), [(3, 0), (3, 3), (7, 0), (7, 4), (7, 6), (13, 4), (13, 6), (40, 0), (40, 6)]
)
@pytest.mark.parametrize(
    "options",
    [
        {"stacking": False},
        {"stacking": False, "record_losses": True},
        {"stacking": False, "max_nodes": 7},
        {"stacking": True},
        {"stacking": True, "record_losses": True},
        {"stacking": True, "max_nodes": 7},
        {"step": "corollary", "stacking": True},
    ],
    ids=str,
)
def test_divisions_of_a_short_stream(options, n, n_equal, weighted):
    """The learning rate changes with each of the first samples."""
    rng = np.random.default_rng(n)
    X, y = rng.random((n, 2)), rng.normal(size=n) * np.arange(1, n + 1)
    y[:n_equal] = 1.0
    weights = rng.uniform(0.2, 5.0, n) if weighted else None
    one = AMFRegressor(3, random_state=0, **options)
    if weighted:
        # The first samples may have no weights: these are 1.
        weights[:2] = 1.0
        one.partial_fit(X[:2], y[:2])
        learn(one, X[2:], y[2:], [], weights[2:])
    else:
        learn(one, X, y, [])
    several = AMFRegressor(3, random_state=0, **options)
    learn(several, X, y, range(1, n), weights)
    models = [one]
    if weighted:
        models.append(learn(AMFRegressor(3, random_state=0, **options), X, y, [], weights))
    for model in models:
        assert model.model_.forest.step == several.model_.forest.step
        assert_same_bits(answers(model, probes(X)), answers(several, probes(X)))


@settings(max_examples=35, derandomize=True)
@given(st.fixed_dictionaries(CLASSIFIER), ENDS, WEIGHTS, st.sampled_from([1, 1, 2]))
def test_divisions_of_a_classification_stream(options, ends, weights, n_jobs):
    y = NAMES[np.digitize(make_data(N)[1], [-0.5, 0.5])]
    check_divisions(AMFClassifier, options, y, ends, weights, n_jobs)


def test_losses_of_the_first_samples():
    X, y = make_data(4)
    models = [AMFRegressor(step="adaptive", record_losses=True, random_state=0) for _ in range(2)]
    learn(models[0], X, y, [])
    learn(models[1], X, y, [1, 2, 3])
    assert np.array_equal(models[0].loss_trace().loss, models[1].loss_trace().loss)


@pytest.mark.parametrize("use_aggregation", [True, False])
def test_recorded_losses_are_those_of_the_predictions(use_aggregation):
    """With one tree and in a box, whose partition a sample that is not learnt does not change."""
    X, y = make_data(60)
    options = {"use_aggregation": use_aggregation, "bounds": BOX, "stacking": False}
    model = AMFRegressor(1, record_losses=True, random_state=0, **options)
    model.partial_fit(X[:1], y[:1])
    losses = []
    for x, target in zip(X[1:], y[1:], strict=True):
        losses.append((model.predict([x])[0] - target) ** 2)
        model.partial_fit([x], [target])
    np.testing.assert_allclose(model.loss_trace().loss[0, 1:], losses, rtol=1e-10)


@pytest.mark.parametrize("split_pure", [True, False])
@pytest.mark.parametrize("bounds", [None, BOX])
def test_recorded_losses_of_classes_without_aggregation(split_pure, bounds):
    """The frequencies are those of the earlier samples in the leaf of each sample."""
    X, y = make_data(60)
    numbers = np.digitize(y, [-0.5, 0.5])
    model = AMFClassifier(
        2, use_aggregation=False, split_pure=split_pure, dirichlet=0.5, bounds=bounds,
        record_losses=True, random_state=0,
    )  # fmt: skip
    losses = np.empty((2, 60))
    for i in range(60):
        model.partial_fit(X[i : i + 1], numbers[i : i + 1], classes=[0, 1, 2])
        leaves = model.apply(X[: i + 1])
        for tree, leaf in enumerate(leaves[-1]):
            counts = np.bincount(numbers[:i][leaves[:i, tree] == leaf], minlength=3)
            losses[tree, i] = -np.log((counts[numbers[i]] + 0.5) / (counts.sum() + 1.5))
    np.testing.assert_allclose(model.loss_trace().loss, losses, rtol=1e-10)


@pytest.mark.parametrize("step", ["corollary", "adaptive"])
@pytest.mark.parametrize("n", [5, 20, 70])
def test_recorded_losses_do_not_look_ahead(n, step):
    X, y = make_data(80)
    y[n:] *= 100.0
    options = {"step": step, "record_losses": True, "random_state": 0}
    short = AMFRegressor(**options).fit(X[:n], y[:n]).loss_trace()
    long = AMFRegressor(**options).fit(X, y).loss_trace()
    for own, other in zip(short, long, strict=True):
        assert np.array_equal(own, other[:, :n])


@pytest.mark.parametrize("ends", [[], [1], [30], list(range(1, 70))])
@pytest.mark.parametrize("kind", [AMFRegressor, AMFClassifier])
def test_fit_is_partial_fit_from_scratch(kind, ends):
    X, y = make_data(70)
    y = y if kind is AMFRegressor else NAMES[np.digitize(y, [-0.5, 0.5])]
    first = {} if kind is AMFRegressor else {"classes": NAMES}
    fitted = kind(random_state=0).fit(X, y)
    assert_same_bits(
        answers(fitted, probes(X)),
        answers(learn(kind(random_state=0), X, y, ends, **first), probes(X)),
    )


def test_the_order_of_a_stream_matters():
    """What the tests above compare would differ, were the streams not the same."""
    X, y = make_data(70)
    swapped = np.r_[1, 0, 2:70]
    for step in ("corollary", "adaptive"):
        one = AMFRegressor(step=step, random_state=0).fit(X, y)
        two = AMFRegressor(step=step, random_state=0).fit(X[swapped], y[swapped])
        assert not np.array_equal(one.predict(probes(X)), two.predict(probes(X)))


# Weights of samples -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [AMFRegressor, AMFClassifier])
@pytest.mark.parametrize("options", [{}, {"online_to_batch": True}, {"feature_relevance": True}])
def test_weight_zero_is_absence(kind, options):
    X, y = make_data(100)
    y = y if kind is AMFRegressor else (y > 0.0).astype(int)
    weights = np.where(np.arange(100) % 3 == 0, 0.0, 1.0)
    far = np.where(weights[:, None] == 0.0, 50.0 + X, X)
    targets = np.where(weights == 0.0, 1 - y, y)
    one = learn(kind(random_state=0, **options), far, targets, [40], weights)
    two = learn(
        kind(random_state=0, **options), X[weights > 0], y[weights > 0], [26], weights[weights > 0]
    )
    assert_same_bits(answers(one, probes(X)), answers(two, probes(X)))
    before = answers(one, probes(X))
    one.partial_fit(far, targets, sample_weight=np.zeros(100))
    assert_same_bits(answers(one, probes(X)), before)


@pytest.mark.parametrize("kind", [AMFRegressor, AMFClassifier])
def test_nothing_but_weight_zero(kind):
    X, y = make_data(10)
    y = y if kind is AMFRegressor else (y > 0.0).astype(int)
    model = kind(random_state=0).partial_fit(X, y, sample_weight=np.zeros(10))
    assert model.model_.n_points == 0
    if kind is AMFRegressor:
        assert np.array_equal(model.predict(X), np.zeros(10))
    else:
        assert np.array_equal(model.predict_proba(X), np.full((10, 2), 0.5))
    model.partial_fit(X, y)
    assert_same_bits(answers(model, probes(X)), answers(kind(random_state=0).fit(X, y), probes(X)))


@pytest.mark.parametrize("kind", [AMFRegressor, AMFClassifier])
@pytest.mark.parametrize("online_to_batch", [False, True])
def test_depth_before_anything_is_known(kind, online_to_batch):
    X, y = make_data(2)
    y = y if kind is AMFRegressor else [0, 1]
    if online_to_batch:
        models = [kind(online_to_batch=True, random_state=seed).fit(X, y) for seed in range(20)]
        model = next(model for model in models if model.model_.predictor.n_points == 0)
    else:
        model = kind().partial_fit(X, y, sample_weight=[0.0, 0.0])
    assert np.array_equal(model.weighted_depth(X), np.zeros((2, 10)))


@pytest.mark.parametrize("bounds", [None, BOX])
def test_weights_are_factors_of_losses_and_counts(bounds):
    X, y = make_data(60)
    twos, options = np.full(60, 2.0), {"bounds": bounds, "record_losses": True, "random_state": 0}
    light = AMFRegressor(step=1.0, **options).fit(X, y)
    heavy = AMFRegressor(step=0.5, **options).partial_fit(X, y, sample_weight=twos)
    assert np.array_equal(light.predict(probes(X)), heavy.predict(probes(X)))
    for own, other in zip(light.loss_trace(), heavy.loss_trace(), strict=True):
        assert np.array_equal(2.0 * own, other)
        assert own[:, -1].max() > 0.0
    # Of a node, the frequencies are the same only if smoothing counts as much too.
    targets = y > 0.0
    light = AMFClassifier(step=1.0, dirichlet=0.5, **options).fit(X, targets)
    heavy = AMFClassifier(step=0.5, dirichlet=1.0, **options)
    heavy.partial_fit(X, targets, sample_weight=twos)
    assert np.array_equal(light.predict_proba(probes(X)), heavy.predict_proba(probes(X)))
    for own, other in zip(light.loss_trace(), heavy.loss_trace(), strict=True):
        assert np.array_equal(2.0 * own, other)


def test_the_adaptive_step_does_not_depend_on_the_unit_of_weights():
    X, y = make_data(100)
    one = AMFRegressor(stacking=False, random_state=0).fit(X, y)
    four = AMFRegressor(stacking=False, random_state=0)
    four.partial_fit(X, y, sample_weight=np.full(100, 4.0))
    assert four.model_.forest.step == one.model_.forest.step / 4.0
    assert np.array_equal(one.predict(probes(X)), four.predict(probes(X)))


def test_heavy_samples_attract():
    X, y = np.zeros((4, 2)), np.array([0.0, 1.0, 0.0, 1.0])
    model = AMFRegressor(random_state=0).partial_fit(X, y, sample_weight=[1.0, 3.0, 1.0, 3.0])
    assert model.predict(X[:1])[0] == pytest.approx(0.75, rel=1e-12)
    clf = AMFClassifier(dirichlet=0.5, random_state=0)
    clf.partial_fit(X, y.astype(int), sample_weight=[1.0, 3.0, 1.0, 3.0])
    assert clf.predict_proba(X[:1])[0] == pytest.approx([2.5 / 9.0, 6.5 / 9.0], rel=1e-12)


# What goes wrong ----------------------------------------------------------------------------------

GOOD = np.full((2, 2), 0.25)
WRONG = {
    "NaN in X": ({"X": [[0.5, np.nan], [0.0, 0.0]]}, "NaN"),
    "inf in X": ({"X": [[0.5, -np.inf], [0.0, 0.0]]}, "infinity"),
    "too large for float32": ({"X": np.array([[0.5, 1e39], [0.0, 0.0]])}, "too large"),
    "too large, in a list": ({"X": [[0.5, -1e39], [0.0, 0.0]]}, "too large"),
    "too few features": ({"X": GOOD[:, :1]}, "features"),
    "too many features": ({"X": np.ones((2, 3))}, "features"),
    "no samples of other features": ({"X": np.ones((0, 3)), "y": []}, "features|0 sample"),
    "a flat X": ({"X": [0.5, 0.5]}, "2D array"),
    "too few targets": ({"y": [0]}, "y must|inconsistent"),
    "too many targets": ({"y": [0, 1, 0]}, "y must|inconsistent"),
    "NaN in y": ({"y": [0.0, np.nan]}, "(?i)nan"),
    "inf in y": ({"y": [0.0, np.inf]}, "inf"),
    "words in X": ({"X": [["a", "b"]] * 2}, "could not convert"),
    "targets of two columns": ({"y": np.zeros((2, 2), dtype=int)}, "1d array|y must"),
    "a negative weight": ({"sample_weight": [1.0, -1e-9]}, "non-negative"),
    "a weight of NaN": ({"sample_weight": [np.nan, 1.0]}, "finite"),
    "an infinite weight": ({"sample_weight": [np.inf, 1.0]}, "finite"),
    "too few weights": ({"sample_weight": [1.0]}, r"shape \(2,\)"),
    "a scalar weight": ({"sample_weight": 1.0}, r"shape \(2,\)"),
    "below the bounds": ({"X": np.array([[0.5, 0.5], [-0.51, 0.0]])}, r"features \[0\]"),
    "above the bounds": ({"X": np.array([[9.0, 0.5], [0.5, 1.01]])}, r"features \[0, 1\]"),
}


@pytest.mark.filterwarnings("ignore:overflow encountered in cast")
@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("kind", [AMFRegressor, AMFClassifier])
def test_wrong_input_changes_nothing(name, kind):
    arguments, message = WRONG[name]
    X, y = make_data(30)
    y = y if kind is AMFRegressor else (y > 0.0).astype(int)
    options = {"bounds": BOX if "bounds" in name else None, "random_state": 0}
    forest, replica = kind(**options).fit(X, y), kind(**options).fit(X, y)
    with pytest.raises(ValueError, match=message):
        forest.partial_fit(**{"X": GOOD, "y": [0, 1], **arguments})
    assert forest.n_features_in_ == 2
    # Later samples find the forest as it was.
    for ends in (np.array([[0.1, 0.9], [1.4, 0.1]]), GOOD):
        for model in (forest, replica):
            model.partial_fit(ends, [1, 0])
        assert_same_bits(answers(forest, probes(X)), answers(replica, probes(X)))
        assert np.array_equal(forest.model_.scales.rates, replica.model_.scales.rates)
    if "features" in name:
        return  # fine for a forest that has learnt nothing
    fresh = kind(**options)
    with pytest.raises(ValueError):
        fresh.partial_fit(**{"X": GOOD, "y": [0, 1], **arguments})
    assert vars(fresh).keys() - {"_readers_lock"} == fresh.get_params().keys()
    if kind is AMFClassifier and "weight" not in name:
        # Nor does a failed fit to other data lose what was learnt.
        before = answers(forest, probes(X))
        with pytest.raises(ValueError):
            forest.fit(**{"X": GOOD, "y": [0, 1], **arguments})
        assert_same_bits(answers(forest, probes(X)), before)


@pytest.mark.parametrize("kind", [AMFRegressor, AMFClassifier])
def test_empty_batches(kind):
    X, y = make_data(20)
    y = y if kind is AMFRegressor else (y > 0.0).astype(int)
    for options in ({}, {"online_to_batch": True, "record_losses": True}):
        forest, replica = (kind(random_state=0, **options).fit(X, y) for _ in range(2))
        assert forest.partial_fit(X[:0], y[:0]) is forest
        assert forest.partial_fit(X[:0].tolist() or X[:0], [], sample_weight=[]) is forest
        for model in (forest, replica):
            model.partial_fit(X, y)
        assert_same_bits(answers(forest, probes(X)), answers(replica, probes(X)))
    for start in (kind.fit, kind.partial_fit):
        with pytest.raises(ValueError, match="0 sample"):
            start(kind(), X[:0], y[:0])


@pytest.mark.parametrize(
    ("unit", "step"), [(1e200, "corollary"), (1e200, "adaptive"), (1e-200, "corollary")]
)
def test_targets_in_extreme_units(unit, step):
    """They may be refused, if that loses nothing."""
    X, y = make_data(20)
    forest, replica = (AMFRegressor(step=step, random_state=0).fit(X, y) for _ in range(2))
    fresh = AMFRegressor(step=step, random_state=0)
    try:
        assert np.isfinite(fresh.fit(X, y * unit).predict(X)).all()
        assert np.isfinite(forest.partial_fit(X, y * unit).predict(X)).all()
    except ValueError:
        assert not hasattr(fresh, "model_")
        for model in (forest, replica):
            model.partial_fit(X, 2.0 * y)
        assert_same_bits(answers(forest, X), answers(replica, X))


def test_targets_that_have_been_equal_for_long():
    X = np.random.default_rng(0).random((100, 1))
    y = np.where(np.arange(100) < 70, 0.0, X[:, 0] > 0.5)
    forest = AMFRegressor(step="adaptive", random_state=0).fit(X, y)
    assert np.isfinite(forest.model_.forest.step)
    assert np.isfinite(forest.model_.forest.node_stats.log_averaged_weight[:, :50]).all()
    mean = forest.predict(X[70:])
    assert mean[y[70:] == 1.0].mean() > mean[y[70:] == 0.0].mean() + 0.1


@pytest.mark.parametrize("kind", [AMFRegressor, AMFClassifier])
def test_bounds_beyond_single_precision(kind):
    X, y = make_data(5)
    with pytest.raises(ValueError, match="bounds"):
        kind(bounds=[[-1e300, 1e300]] * 2).fit(X, y > 0.0)


def test_losses_that_were_not_recorded():
    X, y = make_data(5)
    with pytest.raises(ValueError, match="record_losses=True"):
        AMFRegressor().fit(X, y).loss_trace()
    with pytest.raises(NotFittedError):
        AMFRegressor(record_losses=True).loss_trace()


# Parameters ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_estimators": 0}, "n_estimators"),
        ({"n_estimators": 2.5}, "n_estimators"),
        ({"step": 0.0}, "step"),
        ({"step": -1.0}, "step"),
        ({"step": np.nan}, "step"),
        ({"step": np.inf}, "step"),
        ({"step": "fast"}, "step"),
        ({"use_aggregation": "no"}, "use_aggregation"),
        ({"feature_relevance": None}, "feature_relevance"),
        ({"online_to_batch": 2}, "online_to_batch"),
        ({"record_losses": "yes"}, "record_losses"),
        ({"random_state": "seed"}, "random_state"),
        ({"n_jobs": 1.5}, "n_jobs"),
        ({"bounds": [[0.0, 1.0]]}, r"bounds must have shape \(2, 2\)"),
        ({"bounds": [[0.0, 1.0], [1.0, 1.0]]}, "lower < upper"),
        ({"bounds": [[0.0, 1.0], [0.0, np.nan]]}, "finite"),
        ({"feature_weights": [1.0]}, r"feature_weights must have shape \(2,\)"),
        ({"feature_weights": [0.0, 0.0]}, "not all zero"),
    ],
)
def test_wrong_parameters(options, message):
    X, y = make_data(20)
    for kind, targets in ((AMFRegressor, y), (AMFClassifier, y > 0.0)):
        learnt = kind(random_state=0).fit(X, targets)
        before = arrays(learnt.model_.forest)
        for model in (kind(**options), learnt.set_params(**options)):
            with pytest.raises(ValueError, match=message):
                model.fit(X, targets)
        assert_same_bits(arrays(learnt.model_.forest), before)
        with pytest.raises(ValueError, match=message):
            kind(**options).partial_fit(X, targets)
    for own in ({"step": "adaptive"}, {"dirichlet": 0.0}, {"split_pure": 1.5}, {"pooling": "max"}):
        with pytest.raises(ValueError, match=next(iter(own))):
            AMFClassifier(**own).fit(X, y > 0.0)
