"""Proposition 1 by brute force: after every update, all prunings are enumerated and weighted."""

import numpy as np
import pytest
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
    prunings,
    without_trace,
)

from mondrian_bo.trees.aggregation_nodes import REAL
from mondrian_bo.trees.aggregation_predict import AGGREGATED, SUM
from mondrian_bo.trees.layout import N_NODES, ROOT

N_UPDATES = 50
N_DISTINCT = 8
TASKS = {
    "real": {"n_classes": REAL, "step": 0.8},
    "real, small step": {"n_classes": REAL, "step": 0.05},
    "two classes": {"n_classes": 2},
    "three classes": {"n_classes": 3, "dirichlet": 0.2, "step": 0.6},
    "two classes, paused": {"n_classes": 2, "split_pure": False},
    "three classes, paused": {"n_classes": 3, "dirichlet": 1.0, "split_pure": False},
}


def make_stream(d, n_classes, seed):
    """A few distinct points, many times each; some of them share coordinates."""
    rng = np.random.default_rng([seed, d, n_classes])
    distinct = rng.random((N_DISTINCT, d)).astype(np.float32)
    distinct[1::2] = np.round(distinct[1::2], 1)
    chosen = rng.integers(N_DISTINCT, size=N_UPDATES)
    targets = draw_targets(rng, N_UPDATES, n_classes)
    if n_classes == REAL:
        targets = (targets + 2.0 * (distinct[chosen, 0] > 0.5)).round(2)
    else:
        # Mostly the class of the point, so that leaves of one class stay paused for a while.
        own = rng.integers(n_classes, size=N_DISTINCT)[chosen]
        targets = np.where(rng.random(N_UPDATES) < 0.8, own, targets).astype(np.int32)
    sample_weights = rng.choice([0.0, 0.3, 1.0, 2.5], size=N_UPDATES, p=[0.1, 0.3, 0.3, 0.3])
    queries = np.concatenate([distinct[:3], rng.random((5, d)).astype(np.float32)])
    return distinct[chosen], targets, sample_weights, queries


def check_against_all_prunings(forest, sample_weights, queries):
    points, targets, n_classes = forest.points[0], forest.targets, forest.n_classes
    expected = np.zeros((len(queries), max(n_classes, 1)))
    for t in range(forest.n_trees):
        tree = one_tree(forest, t)
        known = history(tree, points, targets, sample_weights, n_classes, forest.dirichlet)
        loss = forest.node_stats.loss[t]
        np.testing.assert_allclose(
            [loss[node] for node in known.losses], list(known.losses.values()), atol=1e-10
        )
        mixture = posterior(tree, known.losses, forest.step)
        average = forest.node_stats.log_averaged_weight[t, tree.counters[ROOT]]
        np.testing.assert_allclose(average, mixture.log_average, rtol=0, atol=1e-10)
        own = np.zeros_like(expected)
        squares = np.zeros(len(queries))
        for i, query in enumerate(queries):
            path = path_to(tree, query)
            for node, share in zip(path, mixture.stops(path), strict=True):
                own[i] += share * np.asarray(known.forecasts[node])
                if n_classes == REAL:
                    mean, variance = known.forecasts[node], known.variances[node]
                    squares[i] += share * (variance + mean**2)
        expected += own / forest.n_trees
        if n_classes == REAL:
            means, variances = forest.predict(queries[None], NO_RATES, AGGREGATED)
            np.testing.assert_allclose(means[t], own[:, 0], rtol=0, atol=1e-10)
            np.testing.assert_allclose(variances[t], squares - own[:, 0] ** 2, rtol=0, atol=1e-10)
    if n_classes != REAL:
        found = forest.predict_proba(queries[None], NO_RATES, AGGREGATED, SUM)
        np.testing.assert_allclose(expected.sum(axis=1), 1.0, rtol=0, atol=1e-10)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("restricted", [True, False])
@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("task", TASKS)
def test_all_prunings_after_every_update(task, d, restricted, weighted):
    options = TASKS[task] | {"restricted": restricted, "n_trees": 2 if d == 2 else 1, "seed": d}
    points, targets, sample_weights, queries = make_stream(d, options["n_classes"], seed=weighted)
    if not weighted:
        sample_weights = None
    rates = np.linspace(0.5, 2.0, d)
    forest = make_forest(d, **options)
    recorded = make_forest(d, record=True, **options)
    for i in range(N_UPDATES):
        part = slice(i, i + 1)
        for one in (forest, recorded):
            weight = None if sample_weights is None else sample_weights[part]
            one.extend(points[None, part], targets[part], rates[None], weight)
        past = None if sample_weights is None else sample_weights[: i + 1]
        check_against_all_prunings(forest, past, queries)
    if options.get("split_pure", True):
        assert len(prunings(one_tree(forest))) > N_DISTINCT
    # The batch learns all targets at the end; the recorded one never does.
    at_once = make_forest(d, **options)
    learn(at_once, points, targets, rates=rates, sample_weights=sample_weights, steps=[])
    assert_same_bits(arrays(at_once), arrays(forest))
    assert_same_bits(without_trace(arrays(recorded)), without_trace(arrays(forest)))
    recorded_at_once = make_forest(d, record=True, **options)
    learn(recorded_at_once, points, targets, rates=rates, sample_weights=sample_weights, steps=[])
    assert_same_bits(arrays(recorded_at_once), arrays(recorded))


@pytest.mark.parametrize("restricted", [True, False])
def test_forecast_recorded_before_the_target(restricted):
    # On the partition updated with the point: what a forest that has learnt the point with no
    # weight at all predicts there.
    for n_classes in (REAL, 3):
        points, targets, _, _ = make_stream(2, n_classes, seed=5)
        options = {"n_classes": n_classes, "restricted": restricted, "n_trees": 2, "step": 0.4}
        recorded = learn(make_forest(2, record=True, **options), points, targets)
        for i in range(1, N_UPDATES):
            sample_weights = np.ones(i + 1)
            sample_weights[i] = 0.0
            forest = make_forest(2, **options)
            learn(
                forest, points[: i + 1], targets[: i + 1], sample_weights=sample_weights, steps=[]
            )
            here = points[None, i : i + 1]
            if n_classes == REAL:
                found = forest.predict(here, NO_RATES, AGGREGATED)[0][:, 0]
                expected = recorded.trace[:, i, 0]
            else:
                found = forest.predict_proba(here, NO_RATES, AGGREGATED, SUM)[0, targets[i]]
                expected = recorded.trace[:, i, 0].mean()
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


def test_prunings_of_a_known_tree():
    # Two points in one dimension: the root alone, or both leaves. By hand.
    points = np.array([[0.25], [0.75]], dtype=np.float32)
    forest = learn(make_forest(1, step=0.5), points, np.array([1.0, 3.0]))
    assert forest.arrays.counters[0, N_NODES] == 3
    assert len(prunings(one_tree(forest))) == 2
    # The root pays (3 - 1)^2; the right leaf, empty until then, forecasts as the root does.
    root, loss = forest.arrays.counters[0, ROOT], forest.node_stats.loss[0]
    assert loss[:3].sum() == 8.0
    assert loss[root] == 4.0
    assert forest.node_stats.log_averaged_weight[0, root] == pytest.approx(-2.0, abs=1e-15)
    means, _ = forest.predict(points[None], NO_RATES, AGGREGATED)
    # Half of the weight with the mean of both.
    np.testing.assert_allclose(means, [[0.5 * 2.0 + 0.5 * 1.0, 0.5 * 2.0 + 0.5 * 3.0]])
