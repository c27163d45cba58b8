"""Counts and probabilities of classes against slow, plain computations from their definition."""

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from trees.oracles import one_tree

from mondrian_bo.surrogates.mondrian_forest.class_forest import ClassForest
from mondrian_bo.surrogates.shared.ensemble import Ensemble
from mondrian_bo.trees.kneser_ney import expected_discount
from mondrian_bo.trees.layout import LEFT, LOWER, NONE, PAUSED, RIGHT, ROOT, UPPER

N_CLASSES = 3
GAMMA = 4.0
RATES = np.array([1.0, 0.5])


def make_forest(n_trees=2, seed=0, **options):
    settings = {"n_classes": N_CLASSES, "discount": GAMMA, **options}
    return ClassForest(Ensemble(n_trees, len(RATES), np.random.SeedSequence(seed)), **settings)


def make_data(n=50, seed=0):
    rng = np.random.default_rng(seed)
    points = rng.random((n, len(RATES))).round(1 if seed % 2 else 8)  # duplicates for odd seeds
    classes = np.where(rng.random(n) < 0.2, rng.integers(0, N_CLASSES, n), 2 * (points[:, 0] > 0.5))
    return points, classes.astype(np.int32), rng.choice([0.25, 0.6, 1.0, 2.5], n)


def slow_counts(tree, points, classes, sample_weights):
    """Return {node: customers of each class}, with the points routed from the root."""
    counts = {}

    def visit(node, members):
        left, right = tree.children[node]
        if left == NONE:
            counts[node] = np.array(
                [sample_weights[members][classes[members] == k].sum() for k in range(N_CLASSES)]
            )
        else:
            goes_left = points[members, tree.dimension[node]] <= tree.threshold[node]
            visit(left, members[goes_left])
            visit(right, members[~goes_left])
            counts[node] = np.minimum(counts[left], 1) + np.minimum(counts[right], 1)

    visit(tree.counters[ROOT], np.arange(len(points)))
    return counts


def interpolated(counts, tables, discount, above):
    """Return G_jk, equation by equation."""
    return [
        (counts[k] - discount * tables[k] + discount * sum(tables) * above[k]) / sum(counts)
        for k in range(N_CLASSES)
    ]


def slow_prediction(tree, counts, x, integrate=False):
    """Return one tree's probabilities at x: Algorithm 8, or its integral over split times."""
    result = np.zeros(N_CLASSES)
    above, node, unstopped, parent_time = [1 / N_CLASSES] * N_CLASSES, tree.counters[ROOT], 1.0, 0.0
    while True:
        tables = np.minimum(counts[node], 1.0)
        span = tree.split_time[node] - parent_time
        outside = np.maximum(x - tree.box[node, UPPER], 0) + np.maximum(
            tree.box[node, LOWER] - x, 0
        )
        eta = float(RATES @ outside)
        if eta > 0.0:
            branching = 1.0 - math.exp(-eta * span)
            if integrate:

                def density(time, k, eta=eta, tables=tables, above=above):
                    discount = math.exp(-GAMMA * time)
                    new = interpolated(tables, tables, discount, above)
                    return eta * math.exp(-eta * time) * new[k]

                for k in range(N_CLASSES):
                    part = quad(density, 0.0, span, args=(k,), epsabs=1e-12, epsrel=1e-12)[0]
                    result[k] += unstopped * part
            else:
                discount = eta / (eta + GAMMA) * (1.0 - math.exp(-(eta + GAMMA) * span)) / branching
                new = interpolated(tables, tables, discount, above)
                result += unstopped * branching * np.array(new)
            unstopped *= 1.0 - branching
        own = interpolated(counts[node], tables, math.exp(-GAMMA * span), above)
        if tree.children[node, LEFT] == NONE:
            return result + unstopped * np.array(own)
        above, parent_time = own, tree.split_time[node]
        side = LEFT if x[tree.dimension[node]] <= tree.threshold[node] else RIGHT
        node = tree.children[node, side]


def check_against_definition(forest, probes):
    points, classes = forest.points[0], forest.targets
    sample_weights = (
        forest.sample_weights if len(forest.sample_weights) > 0 else np.ones(len(points))
    )
    expected = np.zeros((len(probes), N_CLASSES))
    for t in range(forest.n_trees):
        tree = one_tree(forest, t)
        counts = slow_counts(tree, points, classes, sample_weights)
        assert sorted(counts) == list(range(len(tree.parent)))
        for node, count in counts.items():
            np.testing.assert_allclose(forest.node_stats.counts[t, node], count, rtol=1e-12, atol=0)
        expected += [slow_prediction(tree, counts, x) for x in probes]
    found = forest.predict_proba(probes[None], RATES)
    np.testing.assert_allclose(found, expected / forest.n_trees, rtol=0, atol=1e-12)


def inner_nodes(forest):
    """Return {(tree, node): size} of the nodes that are not leaves."""
    trees = forest.arrays
    return {
        (t, node): int(trees.size[t, node])
        for t in range(forest.n_trees)
        for node in range(trees.counters[t, 0])
        if trees.children[t, node, LEFT] != NONE
    }


OPTIONS = [{}, {"min_samples_split": 5}, {"lifetime": 8.0}, {"lifetime": 1.0}]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("options", OPTIONS)
def test_after_each_insertion(options, seed, weighted):
    points, classes, sample_weights = make_data(seed=seed)
    probes = np.concatenate([points[::10], 3.0 * np.random.default_rng(9).random((4, 2)) - 1.0])
    forest = make_forest(seed=seed, **options)
    reopened, before, n_before = 0, {}, np.zeros(forest.n_trees)
    for i in range(len(points)):
        weight = sample_weights[i : i + 1] if weighted else None
        forest.extend(points[None, i : i + 1], classes[i : i + 1], RATES[None], weight)
        check_against_definition(forest, probes)
        # A node that was a leaf with several points, and is one no more.
        now = inner_nodes(forest)
        reopened += sum(
            size > 2 and node < n_before[t]
            for (t, node), size in now.items()
            if (t, node) not in before
        )
        before, n_before = now, forest.arrays.counters[:, 0].copy()
    assert reopened >= (1 if "lifetime" in options else 2) or options.get("lifetime") == 1.0


@pytest.mark.parametrize("options", OPTIONS)
def test_batch_and_more(options):
    points, classes, sample_weights = make_data(80, seed=2)
    probes = np.random.default_rng(3).random((10, 2)) * 1.4 - 0.2
    forest = make_forest(**options)
    forest.build(points[None, :40].copy(), classes[:40].copy(), RATES)
    check_against_definition(forest, probes)
    forest.extend(points[None, 40:60], classes[40:60], RATES[None])
    check_against_definition(forest, probes)
    # The first weights come late: what was learnt before has the weight 1.
    forest.extend(points[None, 60:], classes[60:], RATES[None], sample_weights[60:])
    assert np.array_equal(forest.sample_weights, np.append(np.ones(60), sample_weights[60:]))
    check_against_definition(forest, probes)


def test_leaves_hold_one_class_unless_they_cannot_be_split():
    points, classes, _ = make_data(60, seed=1)
    forest = make_forest(5)
    for i in range(len(points)):
        forest.extend(points[None, i : i + 1], classes[i : i + 1], RATES[None])
    for t in range(forest.n_trees):
        tree = one_tree(forest, t)
        leaves = forest.leaves(forest.points)[:, t]
        for leaf in np.unique(leaves):
            members = leaves == leaf
            pure = len(np.unique(classes[members])) == 1
            assert (tree.dimension[leaf] == PAUSED) == pure
            assert pure or len(np.unique(points[members], axis=0)) == 1
        for node in range(len(tree.parent)):
            if tree.children[node, LEFT] != NONE:
                assert np.count_nonzero(forest.node_stats.counts[t, node]) > 1


def test_customers_are_at_most_the_weight_of_the_class():
    points, classes, sample_weights = make_data(seed=0)
    forest = make_forest(1)
    forest.extend(points[None], classes, RATES[None], sample_weights)
    root = forest.node_stats.counts[0, forest.arrays.counters[0, ROOT]]
    totals = np.bincount(classes, sample_weights, N_CLASSES)
    assert np.allclose(np.minimum(root, 1.0), np.minimum(totals, 1.0), atol=1e-12)


@pytest.mark.parametrize("span", [1e-9, 0.3, 4.0, 50.0, np.inf])
@pytest.mark.parametrize("rate", [1e-6, 0.2, 3.0, 40.0])
@pytest.mark.parametrize("gamma", [0.1, 5.0, 100.0])
def test_expected_discount(gamma, rate, span):
    probability, discount = expected_discount(gamma, rate, span)

    def integral(function):
        # Beyond 50 scales nothing is left.
        end, scale = min(span, 50.0 / rate), 1.0 / (rate + gamma)
        marks = sorted({min(m, end) for m in (0.0, scale, 5 * scale, 40 * scale, end)})
        return sum(quad(function, *ends, epsabs=0, epsrel=1e-11)[0] for ends in pairwise(marks))

    mass = integral(lambda time: rate * math.exp(-rate * time))
    assert probability == pytest.approx(mass, rel=1e-9)
    mean = integral(lambda time: rate * math.exp(-(rate + gamma) * time)) / mass
    assert discount == pytest.approx(mean, rel=1e-9)


def test_expected_discount_at_the_extremes():
    assert expected_discount(5.0, np.inf, 1.0) == (1.0, 1.0)
    assert expected_discount(5.0, np.inf, np.inf) == (1.0, 1.0)
    assert expected_discount(5.0, 1e-200, 1e-200) == (0.0, 1.0)
    assert expected_discount(5.0, 1.0, 0.0) == (0.0, 1.0)
    probability, discount = expected_discount(1e-300, 1.0, 2.0)
    assert 0.0 < probability < discount == pytest.approx(1.0)


@pytest.mark.parametrize("lifetime", [np.inf, 3.0])
def test_branching_off_is_an_integral_over_split_times(lifetime):
    points, classes, sample_weights = make_data(12, seed=4)
    forest = make_forest(1, lifetime=lifetime)
    forest.extend(points[None], classes, RATES[None], sample_weights)
    tree = one_tree(forest)
    counts = slow_counts(tree, points, classes, sample_weights)
    probes = np.array([[0.5, 0.5], [1.1, 0.4], [-0.3, 1.5], [3.0, 3.0]])
    expected = [slow_prediction(tree, counts, x, integrate=True) for x in probes]
    found = forest.predict_proba(probes[None], RATES)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)


def test_far_away_all_classes_are_alike():
    points, classes, _ = make_data()
    forest = make_forest()
    forest.extend(points[None], classes, RATES[None])
    far = forest.predict_proba(np.array([[[1e9, -1e9], [1e308, 1e308]]]), 1e3 * RATES)
    np.testing.assert_allclose(far, 1.0 / N_CLASSES, atol=1e-8)


@pytest.mark.parametrize("distance", [5e-324, 1e-315, 1e-305, 1e-290])
def test_just_outside_of_the_data(distance):
    points, classes, _ = make_data()
    forest = make_forest(lifetime=2.0)
    points[0] = points.min(axis=0)
    points -= points[0]
    forest.extend(points[None], classes, RATES[None])
    probes = np.array([[[0.0, 0.0], [-distance, -distance]]])
    inside, outside = forest.predict_proba(probes, RATES)
    np.testing.assert_allclose(outside, inside, atol=1e-12)


def test_points_do_not_influence_each_other():
    points, classes, _ = make_data(200)
    forest = make_forest(3)
    forest.extend(points[None], classes, RATES[None])
    probes = np.random.default_rng(5).random((1, 40000, 2)) * 1.2 - 0.1
    together = forest.predict_proba(probes, RATES)
    assert np.array_equal(forest.predict_proba(probes, RATES, n_jobs=2), together)
    for start in (0, 16380, 39990):
        for i in range(start, start + 10):
            assert np.array_equal(forest.predict_proba(probes[:, i : i + 1], RATES)[0], together[i])
    assert np.allclose(together.sum(axis=1), 1.0, atol=1e-12)
    assert together.min() >= 0.0


def test_views_of_their_own():
    # Trees that see other coordinates are as good as forests of their own.
    points, classes, _ = make_data(40)
    views = np.stack([points, points[:, ::-1] ** 2, 1.0 - points])
    forest = make_forest(3, seed=7)
    forest.extend(views, classes, RATES[None])
    probes = np.random.default_rng(6).random((3, 7, 2))
    total = np.zeros((7, N_CLASSES))
    for t in range(3):
        tree = one_tree(forest, t)
        counts = slow_counts(tree, views[t], classes, np.ones(40))
        total += [slow_prediction(tree, counts, x) for x in probes[t]]
    np.testing.assert_allclose(forest.predict_proba(probes, RATES), total / 3, rtol=0, atol=1e-12)
