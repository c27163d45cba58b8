"""What AMF says: mixtures, pooled probabilities, depths, losses; how well it learns."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.datasets import load_digits, load_iris
from sklearn.metrics import accuracy_score, log_loss, r2_score
from trees.oracles import leaf_of, one_tree, points_of
from trees.prunings import cheapest, history, path_to, posterior

from mondrian_bo.surrogates import AMFClassifier, AMFRegressor

# Of all p-values and their kin the smallest is far above this.
SIGNIFICANCE = 1e-4
SQUARE = [[0.0, 1.0]] * 2
LEVELS = (0.001, 0.05, 0.2, 0.5, 0.8, 0.95, 0.999)


def make_data(n=60, seed=0, noise=0.3):
    rng = np.random.default_rng(seed)
    X = rng.random((n, 2))
    return X, np.sin(6.0 * X[:, 0]) + noise * rng.normal(size=n)


def oracle(model, t, targets):
    """Return a tree, the posterior over all its prunings and what its nodes have learnt."""
    forest = model.model_.forest
    tree = one_tree(forest, t)
    known = history(tree, points_of(forest, t), targets, None, forest.n_classes, forest.dirichlet)
    return tree, posterior(tree, known.losses, forest.step), known


# Mixtures -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("bounds", [None, SQUARE])
@pytest.mark.parametrize("step", [0.5, "corollary", "adaptive"])
def test_moments_of_all_prunings(step, bounds):
    X, y = make_data(7)
    model = AMFRegressor(3, step=step, stacking=False, bounds=bounds, random_state=0).fit(X, y)
    # Unrestricted trees need no extension; others none at the data.
    queries = X if bounds is None else np.random.default_rng(1).random((9, 2))
    means, squares = np.zeros((2, 3, len(queries)))
    for t in range(3):
        tree, weights, known = oracle(model, t, y)
        assert known.masses
        for i, x in enumerate(queries.astype(np.float32)):
            path = path_to(tree, x)
            share = np.array(weights.stops(path))
            assert share.sum() == pytest.approx(1.0)
            mean = np.array([known.forecasts[node] for node in path])
            variance = np.array([known.variances[node] for node in path])
            means[t, i] = share @ mean
            squares[t, i] = share @ (variance + mean**2)
    mean, std = model.predict(queries, return_std=True)
    assert np.allclose(mean, means.mean(axis=0), rtol=1e-9, atol=1e-12)
    assert np.allclose(std**2, squares.mean(axis=0) - mean**2, rtol=1e-8)
    assert np.array_equal(model.predict(queries), mean)


@pytest.mark.parametrize("options", [{}, {"step": "corollary"}, {"use_aggregation": False}])
def test_mixture(options):
    X, y = make_data(60)
    model = AMFRegressor(n_estimators=3, random_state=0, **options).fit(X, y)
    queries = np.concatenate([X[:2], X[:2] + 0.03, X[:1] + 5.0])
    mean, std = model.predict(queries, return_std=True)
    quantiles = model.predict_quantiles(queries, LEVELS)
    assert np.all(np.diff(quantiles, axis=1) > 0.0)
    for i, x in enumerate(queries):
        grid = np.linspace(mean[i] - 12.0 * std[i], mean[i] + 12.0 * std[i], 8001)
        density = np.exp(model.logpdf(np.repeat(x[None], len(grid), axis=0), grid))
        assert np.trapezoid(density, grid) == pytest.approx(1.0, abs=1e-5)
        assert np.trapezoid(grid * density, grid) == pytest.approx(mean[i], abs=1e-4)
        spread = np.trapezoid((grid - mean[i]) ** 2 * density, grid)
        assert math.sqrt(spread) == pytest.approx(std[i], rel=1e-3)
        cumulative = np.cumsum(density) * (grid[1] - grid[0])
        assert np.interp(quantiles[i], grid, cumulative) == pytest.approx(LEVELS, abs=2e-3)


@pytest.mark.parametrize("use_aggregation", [False, True])
def test_points_on_a_tree_of_many_levels(use_aggregation):
    # The cells of a sequence that halves are nested: at most levels one point leaves the others,
    # and all of them wait while the smallest is followed down.
    x = 0.5 ** np.arange(140.0)
    X, y = x[:, None], np.cos(np.arange(140.0))
    options = {"use_aggregation": use_aggregation, "step": 5.0, "random_state": 0}
    model = AMFRegressor(n_estimators=2, **options).fit(X, y)
    if not use_aggregation:  # of the leaf
        assert np.all(model.weighted_depth(X[-1:]) > 64)
    queries = np.concatenate([X, 0.7 * X])
    together = model.predict(queries, return_std=True)
    alone = [model.predict(query[None], return_std=True) for query in queries]
    assert np.allclose(together, np.array(alone)[:, :, 0].T, rtol=1e-12, atol=1e-14)


def test_far_from_the_data():
    X, y = make_data(200, noise=0.1)
    model = AMFRegressor(step="adaptive", stacking=False, random_state=0).fit(X, y)
    inside = model.predict(X, return_std=True)[1]
    ways = [0.0, 0.1, 0.3, 1.0, 10.0, 1e4]
    std = [model.predict(X + way, return_std=True)[1].mean() for way in ways]
    assert np.all(np.diff(std[:-1]) > 0.0)
    # Far away only the root predicts: mean of all targets, deviation of its one-step-ahead errors.
    mean, far = model.predict(X + 1e4, return_std=True)
    before = np.concatenate([[y[0]], np.cumsum(y)[:-1] / np.arange(1, 200)])
    assert mean == pytest.approx(np.full(200, y.mean()), abs=1e-3)
    assert far == pytest.approx(np.full(200, math.sqrt(np.mean((y - before) ** 2))), rel=1e-3)
    assert far.min() > 1.5 * np.median(inside)


@pytest.mark.parametrize("step", [0.5, "corollary", "adaptive"])
@pytest.mark.parametrize("bounds", [None, SQUARE])
def test_one_sample_says_nothing_of_the_deviation(step, bounds):
    model = AMFRegressor(random_state=0, step=step, bounds=bounds)
    model.partial_fit([[0.3, 0.4]], [5.0])
    queries = [[0.3, 0.4], [0.9, 0.1]]
    mean, std = model.predict(queries, return_std=True)
    assert np.array_equal(mean, [5.0, 5.0])
    # The same as of a forest that has learnt nothing.
    assert np.array_equal(std, [1.0, 1.0])
    unit = stats.norm(5.0, 1.0)
    assert model.logpdf(queries, [5.0, 7.0]) == pytest.approx(unit.logpdf([5.0, 7.0]))
    assert model.predict_quantiles(queries, LEVELS) == pytest.approx(
        np.tile(unit.ppf(LEVELS), (2, 1))
    )
    # Two samples do: those that differ, and those that do not.
    model.partial_fit([[0.6, 0.5]], [5.5])
    assert np.all(model.predict(queries, return_std=True)[1] < 1.0)
    same = AMFRegressor(random_state=0, step=step, bounds=bounds).fit(queries, [5.0, 5.0])
    assert np.array_equal(same.predict(queries, return_std=True)[1], [0.0, 0.0])


def test_one_sample_of_the_past():
    X, y = make_data(30)
    models = (
        AMFRegressor(online_to_batch=True, random_state=seed).fit(X, y) for seed in range(200)
    )
    model = next(model for model in models if model.model_.predictor.n_points == 1)
    mean, std = model.predict(X, return_std=True)
    assert mean == pytest.approx(np.full(30, y[0]), rel=1e-12)
    # Half the range of the targets, with the slack of B.
    assert np.all((std >= 0.5 * np.ptp(y)) & (std <= 1.1 * 0.5 * np.ptp(y)))


@pytest.mark.parametrize("step", ["corollary", "adaptive"])
@pytest.mark.parametrize("bounds", [None, SQUARE])
def test_equivariance(step, bounds):
    X, y = make_data(150)
    queries = np.concatenate([X[:20], np.clip(X[:20] + 0.05, 0.0, 1.0)])

    def predicted(targets, factor=1.0, quantiles=True):
        box = None if bounds is None else np.multiply(bounds, factor)
        model = AMFRegressor(step=step, bounds=box, random_state=0).fit(factor * X, targets)
        points = factor * queries
        moments = model.predict(points, return_std=True)
        return (*moments, model.predict_quantiles(points)) if quantiles else moments

    base = predicted(y)
    for shift in (1.0, -50.0, 1e6):
        for own, other, moved in zip(base, predicted(y + shift), (shift, 0.0, shift), strict=True):
            assert other - moved == pytest.approx(own, abs=1e-8)
    for scale in (1024.0, 2.0**-30):  # powers of 2: to the last bit
        for own, other in zip(base[:2], predicted(y * scale, quantiles=False), strict=True):
            assert np.array_equal(other, own * scale)
    for scale in (-1.0, 3.7, 1e-9, 1e9):
        mean, std = predicted(y * scale, quantiles=False)
        assert mean == pytest.approx(base[0] * scale, rel=1e-8, abs=1e-8 * abs(scale))
        assert std == pytest.approx(base[1] * abs(scale), rel=1e-8)
    # Features too have no unit.
    for own, other in zip(base, predicted(y, 8.0), strict=True):
        assert np.array_equal(own, other)


@pytest.mark.parametrize(
    ("step", "stacking"), [("corollary", "auto"), ("adaptive", False), ("adaptive", "auto")]
)
@pytest.mark.parametrize(
    ("noise", "least", "most", "widest"), [(1.0, 0.87, 0.95, 1.3), (0.3, 0.92, 0.995, 2.4)]
)
def test_coverage(step, stacking, noise, least, most, widest):
    """Of 90 % intervals: with little noise, what is not known of the function adds to them."""
    covered, widths = [], []
    for seed in range(4):
        X, y = make_data(1150, seed, noise)
        model = AMFRegressor(step=step, stacking=stacking, random_state=seed)
        model.fit(X[:1000], y[:1000])
        low, high = model.predict_quantiles(X[1000:], (0.05, 0.95)).T
        covered.extend((low < y[1000:]) & (y[1000:] < high))
        widths.extend((high - low) / (2.0 * 1.645 * noise))
    if step == "corollary" or not stacking:
        assert model.model_.stacking is None
        assert least < np.mean(covered) < most
        assert 1.0 < np.mean(widths) < widest
    else:
        assert model.model_.stacking is not None
        assert 0.83 < np.mean(covered) < 0.95
        assert 0.9 < np.mean(widths) < 1.9


# Probabilities ------------------------------------------------------------------------------------


@pytest.mark.parametrize("pooling", ["geometric", "arithmetic"])
@pytest.mark.parametrize("options", [{}, {"split_pure": True}, {"bounds": SQUARE, "step": 0.4}])
def test_probabilities_of_all_prunings(pooling, options):
    X, y = make_data(8, seed=2)
    y = np.digitize(y, [-0.4, 0.4])
    model = AMFClassifier(n_estimators=3, pooling=pooling, random_state=0, **options).fit(X, y)
    queries = np.concatenate([X, np.random.default_rng(1).random((10, 2))])
    apart = np.empty((3, len(queries), 3))
    for t in range(3):
        tree, weights, known = oracle(model, t, y)
        for i, x in enumerate(queries.astype(np.float32)):
            path = path_to(tree, x)
            apart[t, i] = weights.stops(path) @ np.array([known.forecasts[node] for node in path])
    expected = apart.mean(axis=0)
    if pooling == "geometric":
        expected = np.exp(np.log(apart).mean(axis=0))
        expected /= expected.sum(axis=1, keepdims=True)
    found = model.predict_proba(queries)
    assert np.allclose(found, expected, rtol=1e-6)
    assert found.sum(axis=1) == pytest.approx(np.ones(len(queries)), rel=1e-14)
    assert np.array_equal(model.predict_log_proba(queries), np.log(found))
    assert np.array_equal(model.predict(queries), found.argmax(axis=1))


@pytest.mark.parametrize("use_aggregation", [True, False])
def test_a_forest_loses_no_more_than_its_trees(use_aggregation):
    X, y = make_data(300)
    y = np.digitize(y, [-0.4, 0.4])
    options = {"use_aggregation": use_aggregation, "random_state": 0}
    geometric = AMFClassifier(**options).fit(X[:200], y[:200])
    arithmetic = AMFClassifier(pooling="arithmetic", **options).fit(X[:200], y[:200])
    rows, targets = np.arange(100), y[200:]
    # One tree at a time, by giving the pool the arrays of one tree.
    forest, trees = geometric.model_.forest, []
    everything = forest._arrays, forest._node_stats
    for t in range(10):
        forest._arrays, forest._node_stats = (
            type(part)(*(field[t : t + 1] for field in part)) for part in everything
        )
        trees.append(geometric.predict_proba(X[200:]))
    forest._arrays, forest._node_stats = everything
    apart = -np.log(np.array(trees)[:, rows, targets])
    pooled = [-model.predict_log_proba(X[200:])[rows, targets] for model in (geometric, arithmetic)]
    for own in pooled:
        assert np.all(own <= apart.mean(axis=0) + 1e-9)
        assert own.mean() < apart.mean() - 0.01
    assert np.allclose(np.exp(-pooled[1]), np.exp(-apart).mean(axis=0), rtol=1e-9)


# Depths and losses --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [AMFRegressor, AMFClassifier])
def test_weighted_depth(kind):
    X, y = make_data(100)
    y = y if kind is AMFRegressor else np.digitize(y, [-0.4, 0.4])
    model = kind(n_estimators=4, random_state=0).fit(X, y)
    depth = model.weighted_depth(X)
    leaf = kind(n_estimators=4, use_aggregation=False, random_state=0).fit(X, y).weighted_depth(X)
    assert depth.shape == leaf.shape == (100, 4)
    assert np.all(depth >= 0.0)
    assert np.all(depth <= leaf * (1.0 + 1e-12))
    assert np.mean(depth < leaf - 0.5) > 0.5
    for t in range(4):
        tree = one_tree(model.model_.forest, t)
        for i, x in enumerate(X.astype(np.float32)):
            assert path_to(tree, x)[-1] == leaf_of(tree, x)
            assert leaf[i, t] == len(path_to(tree, x)) - 1


@pytest.mark.parametrize("seed", range(3))
def test_prunings_are_deeper_where_a_signal_is_rough(seed):
    rng = np.random.default_rng(seed)
    X = rng.random((2000, 1))
    y = np.where(X[:, 0] < 0.5, 0.0, np.sin(50.0 * X[:, 0])) + 0.1 * rng.normal(size=2000)
    model = AMFRegressor(step="adaptive", bounds=[[0.0, 1.0]], random_state=seed).fit(X, y)
    smooth, rough = (
        model.weighted_depth(np.linspace(low, low + 0.3, 50)[:, None]).mean() for low in (0.1, 0.6)
    )
    assert rough > smooth + 3.0


@pytest.mark.parametrize("kind", [AMFRegressor, AMFClassifier])
@pytest.mark.parametrize("bounds", [None, SQUARE])
def test_loss_trace(kind, bounds):
    X, y = make_data(60)
    y = np.clip(y, -1.0, 1.0) if kind is AMFRegressor else np.digitize(y, [-0.4, 0.4])
    step = 0.125 if kind is AMFRegressor else 1.0
    options = {"step": step, "bounds": bounds, "n_estimators": 5, "random_state": 0}
    model = kind(record_losses=True, **options).fit(X, y)
    loss, cumulative, best, regret = trace = model.loss_trace()
    assert all(part.shape == (5, 60) for part in trace)
    assert np.all(loss >= 0.0)
    assert np.array_equal(np.cumsum(loss, axis=1), cumulative)
    assert np.array_equal(cumulative - best, regret)
    # All prunings forecast the first target alike, so their losses are equal.
    assert np.allclose(regret[:, 0], 0.0, atol=1e-12)
    for t in range(5):
        forest = model.model_.forest
        tree = one_tree(forest, t)
        losses = history(
            tree, points_of(forest, t), y, None, forest.n_classes, forest.dirichlet
        ).losses
        assert best[t, -1] == pytest.approx(cheapest(tree, losses), rel=1e-5)
        # Lemma 1 bounds the loss of all samples by that of any pruning T and |T| log(2) / step.
        bound = cheapest(tree, losses, price=math.log(2.0) / step)
        assert cumulative[t, -1] <= bound * (1.0 + 1e-6)
    # Recording changes nothing.
    assert np.array_equal(kind(**options).fit(X, y).weighted_depth(X), model.weighted_depth(X))


@settings(max_examples=30, derandomize=True)
@given(
    st.lists(st.floats(-1e3, 1e3).map(lambda y: round(y, 3)), min_size=2, max_size=30),
    st.booleans(),
)
def test_the_step_follows_the_range_of_targets(targets, record):
    options = {"step": "corollary", "record_losses": record, "random_state": 0}
    model = AMFRegressor(n_estimators=1, **options)
    for i, target in enumerate(targets, start=1):
        model.partial_fit([[float(i)]], [target])
        half = 0.5 * (max(targets[:i]) - min(targets[:i]))
        if half > 0.0:
            step = model.model_.forest.step
            assert step <= 0.125 / half**2 * (1.0 + 1e-12)
            assert step >= 0.125 / (1.1 * half) ** 2 * (1.0 - 1e-12)


def test_the_adaptive_step_follows_the_noise():
    for noise in (0.1, 1.0):
        X, _ = make_data(1024)
        y = noise * np.random.default_rng(1).normal(size=1024)
        step = AMFRegressor(step="adaptive", random_state=0).fit(X, y).model_.forest.step
        # exp(-step loss) is the likelihood of a Gaussian with a variance just below the noise's.
        assert 1.0 < step * 2.0 * noise**2 < 1.5


# Learning -----------------------------------------------------------------------------------------


def test_scores():
    X, y = make_data(1500, noise=0.0)
    model = AMFRegressor(step="adaptive", random_state=0).fit(X[:1000], y[:1000])
    assert r2_score(y[1000:], model.predict(X[1000:])) > 0.98
    for load, least in ((load_iris, 0.9), (load_digits, 0.9)):
        X, y = load(return_X_y=True)
        order = np.random.default_rng(0).permutation(len(y))
        train, test = order[: 2 * len(y) // 3], order[2 * len(y) // 3 :]
        model = AMFClassifier(random_state=0).fit(X[train], y[train])
        assert accuracy_score(y[test], model.predict(X[test])) > least
        assert log_loss(y[test], model.predict_proba(X[test])) < 0.6


@pytest.mark.parametrize("seed", range(3))
def test_the_adaptive_step_predicts_better_where_noise_is_small(seed):
    X, y = make_data(800, seed, noise=0.02)
    X_test, truth = make_data(300, seed + 100, noise=0.0)
    errors = {}
    for step in ("corollary", "adaptive"):
        model = AMFRegressor(step=step, random_state=seed).fit(X, y)
        errors[step] = np.sqrt(np.mean((model.predict(X_test) - truth) ** 2))
    assert errors["adaptive"] < 0.7 * errors["corollary"]


@pytest.mark.parametrize("seed", range(3))
def test_relevance_of_features(seed):
    rng = np.random.default_rng(seed)
    X = rng.random((1500, 10))
    signal = np.sin(6.0 * X[:, 3]) + X[:, 7]
    y = signal + 0.05 * rng.normal(size=1500)
    names = np.digitize(signal, [-0.2, 0.6, 1.2])
    for kind, targets in ((AMFRegressor, y), (AMFClassifier, names)):
        options = {"step": "adaptive"} if kind is AMFRegressor else {}
        errors = []
        for relevance in (False, True):
            model = kind(feature_relevance=relevance, random_state=seed, **options)
            model.fit(X[:1000], targets[:1000])
            if kind is AMFRegressor:
                errors.append(np.sqrt(np.mean((model.predict(X[1000:]) - signal[1000:]) ** 2)))
            else:
                errors.append(1.0 - accuracy_score(names[1000:], model.predict(X[1000:])))
        weights = model.model_.scales.feature_weights
        assert errors[1] < 0.8 * errors[0]
        assert weights.mean() == pytest.approx(1.0)
        assert set(np.argsort(weights)[-2:]) == {3, 7}
        assert min(weights[[3, 7]]) > 3.0 * np.delete(weights, [3, 7]).max()
        assert weights.min() > 0.0


def test_relevance_is_a_factor_of_given_weights():
    X, y = make_data(300)
    given = [0.0, 4.0]
    model = AMFRegressor(feature_relevance=True, feature_weights=given, random_state=0).fit(X, y)
    assert model.model_.scales.feature_weights[0] == 0.0
    assert model.model_.scales.feature_weights[1] > 0.0
    for t in range(10):
        dimension = one_tree(model.model_.forest, t).dimension
        assert np.any(dimension == 1)
        assert not np.any(dimension == 0)


# Online to batch ----------------------------------------------------------------------------------


def test_online_to_batch_chooses_any_time():
    """The tests of divided streams compare the times with those of one batch."""
    X, y = make_data(6)
    times = []
    for seed in range(200):
        model = AMFRegressor(n_estimators=1, online_to_batch=True, random_state=seed)
        for part in (slice(0, 1), slice(1, 3), slice(3, 6)):
            model.partial_fit(X[part], y[part])
        times.append(model.model_.predictor.n_points)
    assert stats.chisquare(np.bincount(times, minlength=6)).pvalue > SIGNIFICANCE
    assert max(times) == 5


@pytest.mark.parametrize("kind", [AMFRegressor, AMFClassifier])
def test_online_to_batch_predicts_with_an_earlier_forest(kind):
    X, y = make_data(60)
    y = y if kind is AMFRegressor else np.digitize(y, [-0.4, 0.4])
    options = {"bounds": SQUARE, "n_estimators": 3}
    seen = set()
    for seed in range(8):
        model = kind(online_to_batch=True, random_state=seed, **options).fit(X, y)
        time = model.model_.predictor.n_points
        seen.add(time)
        early = kind(random_state=seed, **options)
        if kind is AMFRegressor:
            early.set_params(stacking=False)
            early.fit(X[:time], y[:time])
            found, expected = (m.predict(X, return_std=True) for m in (model, early))
        else:
            early.partial_fit(X[:time], y[:time], classes=[0, 1, 2])
            found, expected = (m.predict_proba(X) for m in (model, early))
        assert np.array_equal(found, expected)
        assert np.array_equal(model.weighted_depth(X), early.weighted_depth(X))
        # It goes on learning with the current forest.
        assert model.model_.n_points == 60
    assert len(seen) > 4
