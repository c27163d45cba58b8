"""Long streams, divisions of streams, and identities between what an aggregated forest returns."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trees.oracles import assert_same_bits, one_tree
from trees.prunings import (
    NO_RATES,
    arrays,
    draw_targets,
    history,
    learn,
    make_forest,
    path_to,
    posterior,
    without_trace,
)

from mondrian_bo.trees.aggregation_nodes import REAL
from mondrian_bo.trees.aggregation_predict import AGGREGATED, AT_LEAF, SUM, SUM_OF_LOGS

TASKS = {
    "real": {"n_classes": REAL, "step": 0.3},
    "classes": {"n_classes": 3},
    "paused": {"n_classes": 3, "split_pure": False, "dirichlet": 0.1},
}
MANY = 1_000_000


def make_stream(n, d, n_classes, seed=0):
    """Points of which a third are repeated, with targets that depend on them."""
    rng = np.random.default_rng(seed)
    points = rng.random((n, d)).astype(np.float32)
    points[rng.random(n) < 0.3] = points[rng.integers(n)]
    points[n // 2 :: 3] = points[: len(points[n // 2 :: 3])]
    targets = draw_targets(rng, n, n_classes)
    clear = points[:, 0] > 0.4
    targets = targets + 3.0 * clear if n_classes == REAL else np.where(clear, 0, targets)
    return points, targets.astype(np.float64 if n_classes == REAL else np.int32)


def used_values(forest):
    return {name: field for name, field in arrays(forest).items() if name.startswith("0.")}


@pytest.mark.parametrize("one_by_one", [True, False])
@pytest.mark.parametrize(
    ("task", "restricted"),
    # Unrestricted paused leaves look through all of their points at each insertion.
    [("real", True), ("real", False), ("classes", True), ("classes", False), ("paused", True)],
)
def test_a_million_samples(task, restricted, one_by_one):
    rng = np.random.default_rng(3)
    distinct = np.array([[0.1, 0.2], [0.9, 0.8], [0.9, 0.3], [0.4, 0.4], [0.41, 0.4]], np.float32)
    chosen = rng.integers(5, size=MANY)
    options = TASKS[task]
    if task == "real":
        targets = 100.0 * chosen + rng.normal(size=MANY)
    else:
        targets = np.where(rng.random(MANY) < 0.8, chosen % 3, rng.integers(3, size=MANY))
        targets = targets.astype(np.int32)
    forest = make_forest(2, restricted=restricted, record=one_by_one, **options)
    learn(forest, distinct[chosen], targets, steps=[])
    values = used_values(forest)
    for name in ("0.loss", "0.log_averaged_weight", "0.statistics", "trace"):
        assert np.all(np.isfinite(values.get(name, 0.0))), name
    assert forest.node_stats.log_averaged_weight[0].min() < -10 * 745  # whose exp would be 0
    queries = np.concatenate([distinct, rng.random((200, 2)).astype(np.float32)])[None]
    for rates in (NO_RATES, np.ones(2)):
        for rule in (AGGREGATED, AT_LEAF):
            if task == "real":
                means, variances = forest.predict(queries, rates, rule)
                assert np.all((means > -5.0) & (means < 405.0))
                assert np.all((variances >= 0.0) & (variances < 1e5))
                np.testing.assert_allclose(means[0, :5], 100.0 * np.arange(5), atol=0.05)
                assert np.all(np.isfinite(forest.components(queries, rates, rule)))
                continue
            for pooling in (SUM, SUM_OF_LOGS):
                found = forest.predict_proba(queries, rates, rule, pooling)
                assert np.all((found >= 0.0) & (found <= 1.0))
                np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=0, atol=1e-14)
                expected = (0.8 * np.eye(3) + 0.2 / 3.0)[np.arange(5) % 3]
                np.testing.assert_allclose(found[:5], expected, atol=0.01)
        assert np.all(np.isfinite(forest.weighted_depths(queries, AGGREGATED)))


@pytest.mark.parametrize("step", [0.0, 1e-300, 1e300])
def test_extreme_steps(step):
    points, targets = make_stream(300, 2, REAL)
    for restricted in (True, False):
        forest = make_forest(2, n_trees=3, restricted=restricted, step=step)
        learn(forest, points, targets, steps=[])
        means, variances = forest.predict(points[None], NO_RATES, AGGREGATED)
        assert np.all((means >= targets.min()) & (means <= targets.max()))
        assert np.all(np.isfinite(variances))
        depths = forest.weighted_depths(points[None], AGGREGATED)
        if step < 1e-100:
            # The prior alone: each node stops half of what reaches it.
            leaf = forest.weighted_depths(points[None], AT_LEAF)
            np.testing.assert_allclose(depths, 1.0 - 0.5**leaf, atol=1e-12)


stream_options = {
    "task": st.sampled_from(sorted(TASKS)),
    "restricted": st.booleans(),
    "weighted": st.booleans(),
    "seed": st.integers(0, 10**6),
}


@settings(max_examples=60, derandomize=True)
@given(
    **stream_options,
    record=st.booleans(),
    steps=st.lists(st.integers(1, 200), max_size=6).map(sorted),
    n_jobs=st.sampled_from([1, 2]),
)
def test_any_division_of_a_stream(task, restricted, weighted, seed, record, steps, n_jobs):
    options = TASKS[task] | {"restricted": restricted, "record": record, "n_trees": 3}
    points, targets = make_stream(200, 3, options["n_classes"], seed)
    sample_weights = np.random.default_rng(seed).exponential(size=200) if weighted else None
    one_by_one = learn(make_forest(3, **options), points, targets, sample_weights=sample_weights)
    forest = make_forest(3, **options)
    learn(forest, points, targets, sample_weights=sample_weights, steps=steps, n_jobs=n_jobs)
    assert_same_bits(arrays(forest), arrays(one_by_one))


@pytest.mark.parametrize("restricted", [True, False])
@pytest.mark.parametrize("task", TASKS)
def test_a_longer_stream(task, restricted):
    options = TASKS[task] | {"restricted": restricted, "n_trees": 4}
    points, targets = make_stream(4000, 2, options["n_classes"])
    at_once = learn(make_forest(2, **options), points, targets, steps=[])
    recorded = learn(make_forest(2, record=True, **options), points, targets, steps=[])
    assert_same_bits(without_trace(arrays(at_once)), without_trace(arrays(recorded)))
    portions = learn(make_forest(2, **options), points, targets, steps=[1000, 1100, 3900], n_jobs=2)
    assert_same_bits(arrays(at_once), arrays(portions))
    queries = np.random.default_rng(1).random((1, 500, 2)).astype(np.float32)
    for rates in (NO_RATES, np.ones(2)):
        for n_jobs in (1, 2):
            if task == "real":
                one = at_once.predict(queries, rates, AGGREGATED, n_jobs)
                two = portions.predict(queries, rates, AGGREGATED, 1)
                assert np.array_equal(one, two)
            else:
                one = at_once.predict_proba(queries, rates, AGGREGATED, n_jobs=n_jobs)
                two = portions.predict_proba(queries, rates, AGGREGATED)
                # Workers' sums are added up in another order.
                np.testing.assert_allclose(one, two, rtol=0, atol=1e-15)


def test_rates_and_views_of_each_point():
    rng = np.random.default_rng(2)
    views = rng.random((3, 150, 2)).astype(np.float32)
    targets, rates = rng.normal(size=150), rng.uniform(0.5, 2.0, size=(150, 2))
    rates[70:90] = rates[70]
    for restricted in (True, False):
        found = []
        for steps in ([150], [3, 70, 90, 150], range(1, 151)):
            forest, start = make_forest(2, n_trees=3, restricted=restricted), 0
            for end in steps:
                part = slice(start, end)
                forest.extend(views[:, part], targets[part], rates[part], n_jobs=1 + (start == 70))
                start = end
            found.append(arrays(forest) | {"points": forest.points.copy()})
        assert_same_bits(found[0], found[1])
        assert_same_bits(found[0], found[2])


@pytest.mark.parametrize("restricted", [True, False])
@pytest.mark.parametrize("task", TASKS)
def test_weighted_depth_by_brute_force(task, restricted):
    options = TASKS[task] | {"restricted": restricted, "n_trees": 3}
    points, targets = make_stream(12, 2, options["n_classes"], seed=4)
    forest = learn(make_forest(2, **options), points, targets)
    queries = np.random.default_rng(5).random((20, 2)).astype(np.float32)
    found = forest.weighted_depths(queries[None], AGGREGATED)
    at_leaf = forest.weighted_depths(queries[None], AT_LEAF)
    assert found.shape == (20, 3)
    for t in range(3):
        tree = one_tree(forest, t)
        known = history(tree, points, targets, None, forest.n_classes, forest.dirichlet)
        mixture = posterior(tree, known.losses, forest.step)
        for i, query in enumerate(queries):
            path = path_to(tree, query)
            expected = np.dot(mixture.stops(path), np.arange(len(path)))
            assert found[i, t] == pytest.approx(expected, abs=1e-10)
            assert at_leaf[i, t] == len(path) - 1


@pytest.mark.parametrize("rule", [AGGREGATED, AT_LEAF])
@pytest.mark.parametrize("restricted", [True, False])
def test_components(restricted, rule):
    points, targets = make_stream(200, 2, REAL)
    forest = make_forest(2, n_trees=4, restricted=restricted, step=0.01)
    learn(forest, points, targets + 1000.0, steps=[])
    queries = np.random.default_rng(6).uniform(-0.5, 1.5, size=(1, 40, 2)).astype(np.float32)
    for rates in (NO_RATES, np.array([1.0, 3.0])):
        means, variances = forest.predict(queries, rates, rule)
        index, weight, mean, variance = forest.components(queries, rates, rule).T
        assert np.all(np.diff(index) >= 0)
        assert np.all(weight > 0.0)
        index = index.astype(int)

        def total(values, index=index, weight=weight):
            return np.bincount(index, weight * values, minlength=40)

        np.testing.assert_allclose(total(1.0), 4.0, rtol=0, atol=1e-13)
        np.testing.assert_allclose(total(mean) / 4.0, means.mean(axis=0), rtol=1e-12)
        squares = total(variance + (mean - 1000.0) ** 2) / 4.0
        expected = np.mean(variances + (means - 1000.0) ** 2, axis=0)
        np.testing.assert_allclose(squares, expected, rtol=1e-9)
        if rule == AT_LEAF and len(rates) == 0:
            assert len(weight) == 4 * 40


@pytest.mark.parametrize("weighted", [True, False])
def test_extended_leaves_no_trace(weighted):
    rng = np.random.default_rng(7)
    for seed in range(12):
        n = int(rng.integers(1, 60))
        points, targets = make_stream(n, 2, REAL, seed)
        sample_weights = rng.exponential(size=n) if weighted else None
        forest = make_forest(2, n_trees=3, seed=seed)
        learn(forest, points, targets, sample_weights=sample_weights, steps=[])
        before = arrays(forest)
        m = int(rng.integers(1, 12)) if seed < 10 else 300
        more = np.concatenate([points[:1], rng.uniform(-1.0, 2.0, (m, 2))]).astype(np.float32)
        labels_of_more = rng.normal(size=m + 1)
        with forest.extended(more[None], labels_of_more, np.ones((1, 2))):
            during = arrays(forest)
            assert forest.n_points == n + m + 1
        assert_same_bits(arrays(forest), before)
        # As if nothing had been: the same points lead to the same forest.
        learn(forest, more, labels_of_more)
        assert_same_bits(arrays(forest), during)


def test_extended_restores_after_an_error():
    points, targets = make_stream(40, 2, REAL)
    forest = learn(make_forest(2, n_trees=3), points, targets)
    before = arrays(forest)
    with (
        pytest.raises(RuntimeError, match="inside"),
        forest.extended(points[None, :5] + 0.1, targets[:5], np.ones((1, 2))),
    ):
        raise RuntimeError("inside")
    assert_same_bits(arrays(forest), before)


@pytest.mark.parametrize("restricted", [True, False])
def test_set_targets(restricted):
    points, targets = make_stream(150, 2, REAL)
    for sample_weights in (None, np.random.default_rng(8).exponential(size=150)):
        options = {"n_trees": 3, "restricted": restricted, "step": 0.2}
        forest = make_forest(2, **options)
        learn(forest, points, targets, sample_weights=sample_weights, steps=[40])
        others = 5.0 - targets**2
        expected = make_forest(2, **options)
        learn(expected, points, others, sample_weights=sample_weights, steps=[40])
        forest.set_targets(others)
        assert_same_bits(arrays(forest), arrays(expected))
        # It may go on.
        for one in (forest, expected):
            one.extend(points[None, :3] * 0.5, targets[:3], np.ones((1, 2)))
        assert_same_bits(arrays(forest), arrays(expected))


@pytest.mark.parametrize("restricted", [True, False])
@pytest.mark.parametrize("task", TASKS)
def test_set_step(task, restricted):
    options = TASKS[task] | {"restricted": restricted, "n_trees": 3}
    points, targets = make_stream(150, 2, options["n_classes"])
    for record in (True, False):
        forest = make_forest(2, record=record, **options)
        learn(forest, points, targets, steps=[40])
        expected = make_forest(2, record=record, **(options | {"step": 0.07}))
        learn(expected, points, targets, steps=[40])
        forest.set_step(0.07)
        # But for the forecasts on the way, made with the old step.
        assert_same_bits(without_trace(arrays(forest)), without_trace(arrays(expected)))
        for one in (forest, expected):
            learn(one, points[:60] * 0.5, targets[:60], steps=[7])
        assert_same_bits(without_trace(arrays(forest)), without_trace(arrays(expected)))
        assert np.array_equal(forest.trace[:, 150:], expected.trace[:, 150:])
    untaught = make_forest(2, **options)
    untaught.set_step(0.5)
    assert untaught.step == 0.5


@pytest.mark.parametrize("rates", [NO_RATES, np.array([1.0, 2.0])])
@pytest.mark.parametrize("rule", [AGGREGATED, AT_LEAF])
def test_functions_have_the_mean_of_the_mixture(rule, rates):
    # 8000 keys, 12 points, 2 trees, 4 cases: one z-score above 4.5 has p = 7e-6 each, 7e-4 for all.
    points, targets = make_stream(30, 2, REAL)
    forest = learn(make_forest(2, n_trees=2, step=0.05), points, targets)
    queries = np.random.default_rng(9).uniform(-0.3, 1.3, size=(1, 12, 2)).astype(np.float32)
    queries[0, 0] = points[0]
    means, _ = forest.predict(queries, rates, rule)
    for tree in range(2):
        draws = [forest.sample_function(tree, 77 * k, queries, rates, rule) for k in range(8000)]
        error = np.std(draws, axis=0) / np.sqrt(8000)
        assert np.all(np.abs(np.mean(draws, axis=0) - means[tree]) < 4.5 * error)
        assert np.all(error > 0.0)


def test_functions_continue():
    points, targets = make_stream(100, 2, REAL)
    for restricted in (True, False):
        forest = learn(make_forest(2, n_trees=2, restricted=restricted, step=0.1), points, targets)
        queries = np.random.default_rng(10).random((1, 50, 2)).astype(np.float32)
        for rates in (NO_RATES, np.ones(2)):
            together = forest.sample_function(1, 5, queries, rates, AGGREGATED)
            apart = [
                forest.sample_function(1, 5, queries[:, [i]], rates, AGGREGATED)[0]
                for i in reversed(range(50))
            ][::-1]
            assert np.array_equal(together, apart)
            for tree, key in ((1, 6), (0, 5)):
                other = forest.sample_function(tree, key, queries, rates, AGGREGATED)
                assert np.mean(other == together) < 0.1
        # One value for each leaf of a pruning.
        values = forest.sample_function(1, 5, queries, NO_RATES, AT_LEAF)
        leaves = forest.leaves(queries)[:, 1]
        n_pairs = len(set(zip(values, leaves, strict=True)))
        assert len(np.unique(values)) == len(np.unique(leaves)) == n_pairs
