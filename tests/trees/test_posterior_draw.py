"""Random functions of a tree's posterior have its distribution."""

import numpy as np
import pytest
from scipy import stats
from trees.dense import RULES, DenseTree, moments, probes
from trees.oracles import boxes_of, grow

from mondrian_bo.trees.layout import N_NODES, NONE, ROOT, UPPER
from mondrian_bo.trees.predict import PAPER, REMAINING

MEAN_PRIOR, GAMMA_1 = 0.3, 1.4
RATES = np.array([1.0, 2.0])
N_DRAWS = 4000
# Bound on the deviation of a sample moment in standard errors. The largest below is 3.4, among
# 1500.
MOST_ERRORS = 5.0


def make_forest(seed=0, *, lifetime=np.inf, min_samples_split=2, first=8):
    rng = np.random.default_rng(seed)
    points = rng.random((18, 2))
    targets = rng.normal(size=18)
    return grow(
        points,
        targets,
        first=first,
        n_trees=2,
        seed=seed,
        rates=RATES,
        lifetime=lifetime,
        min_samples_split=min_samples_split,
    )


def draw(forest, tree, key, points, rule=REMAINING):
    return forest.sample_function(
        tree, key, points[None], RATES, forest.prediction_settings(MEAN_PRIOR, GAMMA_1, rule)
    )


def draws(forest, tree, points, rule=REMAINING, n_draws=N_DRAWS, seed=1):
    keys = np.random.default_rng(seed).integers(2**63, size=n_draws)
    return np.stack([draw(forest, tree, int(key), points, rule) for key in keys])


def without_noise(rows, dense):
    """Return the mixture's components for the function instead of its targets."""
    rows = rows.copy()
    rows[:, 2] = np.maximum(rows[:, 2] - dense.noise, 0.0)
    return rows


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(
    ("min_samples_split", "lifetime"), [(2, np.inf), (4, np.inf), (2, 2.0), (4, 2.0)]
)
def test_distribution_at_one_point(rule, min_samples_split, lifetime):
    forest = make_forest(lifetime=lifetime, min_samples_split=min_samples_split)
    dense = DenseTree(forest, 1, mean_prior=MEAN_PRIOR, gamma_1=GAMMA_1)
    points = probes(forest.points[0], 5, np.random.default_rng(3))
    found = draws(forest, 1, points, rule)
    for i, x in enumerate(points):
        rows = without_noise(dense.components(x, RATES, rule), dense)
        mean, variance = moments(rows)
        error = np.sqrt(variance / N_DRAWS)
        assert abs(found[:, i].mean() - mean) < MOST_ERRORS * error + 1e-9
        fourth = np.mean((found[:, i] - mean) ** 4)
        error = np.sqrt(max(fourth - variance**2, 0.0) / N_DRAWS)
        deviation = np.mean((found[:, i] - mean) ** 2) - variance
        assert abs(deviation) < MOST_ERRORS * error + 1e-9
        weight, centre, spread = rows[rows[:, 0] > 1e-9].T
        if spread.min() > 1e-9:
            scale = np.sqrt(spread)

            def cdf(y, weight=weight, centre=centre, scale=scale):
                return stats.norm.cdf((y[:, None] - centre) / scale) @ weight

            # The smallest p-value of 250 is 0.02.
            assert stats.kstest(found[:, i], cdf).pvalue > 1e-5


@pytest.mark.parametrize("lifetime", [np.inf, 2.0])
def test_joint_distribution_at_the_data(lifetime):
    # A data point is inside all boxes on its path, so its leaf is certain and the draw is Gaussian.
    forest = make_forest(1, lifetime=lifetime, first=18)
    dense = DenseTree(forest, 0, mean_prior=MEAN_PRIOR, gamma_1=GAMMA_1)
    found = draws(forest, 0, forest.points[0])
    expected = dense.covariance[np.ix_(dense.leaves, dense.leaves)]
    spread = np.diag(expected)
    # Standard error of a Gaussian sample covariance.
    error = np.sqrt((np.outer(spread, spread) + expected**2) / N_DRAWS)
    assert np.all(np.abs(np.cov(found.T) - expected) < MOST_ERRORS * error)
    assert np.all(
        np.abs(found.mean(axis=0) - dense.mean[dense.leaves])
        < MOST_ERRORS * np.sqrt(spread / N_DRAWS)
    )
    # The comparison needs correlated values.
    assert np.abs(expected - np.diag(spread)).max() > 10.0 * error.max()


@pytest.mark.parametrize("rule", [REMAINING, PAPER])
def test_joint_distribution_of_a_branch_and_the_data(rule):
    # A branch-off before a node shares the value of that node with the data and nothing else: the
    # variance below the node is its own. The place of the branch-off does not depend on values.
    forest = make_forest(6, first=18)
    dense = DenseTree(forest, 0, mean_prior=MEAN_PRIOR, gamma_1=GAMMA_1)
    data = forest.points[0]
    beside = data + np.random.default_rng(7).normal(scale=0.15, size=data.shape)
    n_draws = 2 * N_DRAWS
    found = draws(forest, 0, np.concatenate([beside, data]), rule, n_draws=n_draws)
    covariance = np.cov(found.T)
    for i, x in enumerate(beside):
        expected = sum(
            weight * dense.covariance[node, dense.leaves]
            for weight, node, stays in dense.path(x, RATES)
            if stays or dense.tree.parent[node] != NONE  # above the root there is the prior
        )
        spread = np.diag(covariance)
        error = np.sqrt((spread[i] * spread[18:] + expected**2) / n_draws)
        assert np.all(np.abs(covariance[i, 18:] - expected) < MOST_ERRORS * error)


@pytest.mark.parametrize("rule", RULES)
def test_a_key_names_one_function(rule):
    forest = make_forest(2)
    points = probes(forest.points[0], 20, np.random.default_rng(4))
    for key in (0, 1, 2**63 - 1, 2**64 - 1):
        values = draw(forest, 0, key, points, rule)
        assert np.array_equal(values, draw(forest, 0, key, points, rule))
        order = np.random.default_rng(key).permutation(len(points))
        assert np.array_equal(values[order], draw(forest, 0, key, points[order], rule))
        one_by_one = [draw(forest, 0, key, points[i : i + 1], rule)[0] for i in range(len(points))]
        assert np.array_equal(values, one_by_one)
    several = [draw(forest, 0, key, points, rule) for key in range(10)]
    assert len({values.tobytes() for values in several}) == 10


@pytest.mark.parametrize("rule", RULES)
def test_functions_are_piecewise_constant(rule):
    forest = make_forest(3, min_samples_split=5)
    tree = forest.arrays
    leaves = forest.leaves(forest.points)[:, 0]
    counts = np.bincount(leaves)
    shared = int(np.argmax(counts))
    assert counts[shared] > 1
    rng = np.random.default_rng(5)
    low, high = boxes_of(tree)[0, shared]
    inside = rng.uniform(low, high, size=(30, 2))
    for key in range(20):
        assert len(np.unique(draw(forest, 0, key, inside, rule))) == 1
    # Far away in one direction, all points branch off before the root.
    far = 1e6 + rng.random((30, 2))
    for key in range(20):
        assert len(np.unique(draw(forest, 0, key, far, rule))) == 1
    # On a fine line there are few values: those of nodes, and of branches before them.
    line = np.linspace([-2.0, 0.5], [3.0, 0.5], 3000)
    assert len(np.unique(draw(forest, 0, 7, line, rule))) <= 2 * tree.counters[0, N_NODES]


def test_distance_of_the_last_branch_off():
    # On a ray away from all data a function ends with the value of a branch-off before the root,
    # from a distance on that is exponential with rate tau_root (Algorithm 5).
    forest = make_forest(4)
    root = forest.arrays.counters[0, ROOT]
    rate = RATES[0] * forest.arrays.split_time[0, root]
    corner = boxes_of(forest.arrays)[0, root, UPPER]
    distances = np.linspace(0.0, 20.0 / rate, 2001)
    ray = corner + distances[:, None] * [1.0, 0.0]
    found = []
    for values in draws(forest, 0, ray, n_draws=500):
        changes = np.flatnonzero(np.diff(values))
        # It may pass the nodes of one path only.
        assert len(changes) <= 18
        found.append(distances[changes[-1] + 1])
    # p = 0.13; rounding up to the grid moves the distribution function by 0.01.
    assert stats.kstest(np.array(found), "expon", args=(0.0, 1.0 / rate)).pvalue > 1e-4
