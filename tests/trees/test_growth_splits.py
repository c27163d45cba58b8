"""Every split of a tree has the distribution of Algorithm 2 given the splits above it.

By Algorithm 2 the transformed time and place of each split are independent uniform numbers and its
dimension is drawn with known probabilities, in a batch and online alike. This is an exact test,
of one sample rather than two, and pools all nodes of thousands of trees.
"""

import numpy as np
import pytest
from scipy import stats
from trees.oracles import boxes_of, grow

from mondrian_bo.trees.layout import LEFT, LOWER, N_NODES, NONE, UPPER

N_TREES = 5000
RATES = np.array([0.5, 3.0, 1.0])
# The smallest p-value over all cases below is 0.009; there are 124, so that a sound program fails
# with probability 0.01 when its stream of random numbers changes. Online trees that split paused
# leaves (Algorithm 4 as printed) give p < 1e-100 at min_samples_split=5.
SIGNIFICANCE = 1e-4


def make_points(n=30):
    """Points of uneven spread, some of them twice."""
    rng = np.random.default_rng(12)
    points = rng.normal(size=(n, 3)) * [1.0, 0.3, 2.0]
    points[-5:] = points[:5]
    return points


def splits(forest, rates):
    """Return what Algorithm 2 drew at each node with enough points to split, as flat arrays."""
    trees, rows = forest.arrays, np.arange(forest.n_trees)[:, None]
    used = np.arange(trees.parent.shape[1]) < trees.counters[:, N_NODES, None]
    box = boxes_of(trees)
    extents = rates * (box[:, :, UPPER] - box[:, :, LOWER])
    rate = extents.sum(axis=2)
    may_split = used & (trees.size >= forest.min_samples_split) & (rate > 0.0)
    parent = trees.parent
    parent_time = np.where(parent == NONE, 0.0, trees.split_time[rows, parent])
    return {
        "split": (trees.children[:, :, LEFT] != NONE)[may_split],
        "waited": (trees.split_time - parent_time)[may_split],
        "longest": (forest.lifetime - parent_time)[may_split],
        "rate": rate[may_split],
        "extents": extents[may_split],
        "box": box[may_split],
        "dimension": trees.dimension[may_split],
        "threshold": trees.threshold[may_split],
    }


def check_splits(forest, rates):
    drawn = splits(forest, rates)
    # Whether a node splits before the lifetime.
    probability = -np.expm1(-drawn["rate"] * drawn["longest"])
    if forest.lifetime == np.inf:
        assert np.all(drawn["split"])
    else:
        assert 0.2 < drawn["split"].mean() < 0.99
        excess = np.sum(drawn["split"] - probability)
        score = excess / np.sqrt(np.sum(probability * (1.0 - probability)))
        assert 2.0 * stats.norm.sf(abs(score)) > SIGNIFICANCE
    drawn = {name: value[drawn["split"]] for name, value in drawn.items()}
    assert len(drawn["rate"]) > 2 * forest.n_trees
    # When: exponential, cut off at the lifetime.
    elapsed = np.expm1(-drawn["rate"] * drawn["waited"])
    elapsed /= np.expm1(-drawn["rate"] * drawn["longest"])
    assert stats.kstest(elapsed, "uniform").pvalue > SIGNIFICANCE
    # In which dimension: in proportion to the weighted extents.
    shares = drawn["extents"] / drawn["rate"][:, None]
    for d in range(len(rates)):
        excess = np.sum((drawn["dimension"] == d) - shares[:, d])
        spread = np.sqrt(np.sum(shares[:, d] * (1.0 - shares[:, d])))
        assert 2.0 * stats.norm.sf(abs(excess) / spread) > SIGNIFICANCE
    # Where: uniformly over the box, in each dimension.
    box = drawn["box"][np.arange(len(drawn["rate"])), :, drawn["dimension"]]
    place = (drawn["threshold"] - box[:, LOWER]) / (box[:, UPPER] - box[:, LOWER])
    for d in range(len(rates)):
        chosen = drawn["dimension"] == d
        assert stats.kstest(place[chosen], "uniform").pvalue > SIGNIFICANCE
    # The numbers of a node are independent of each other.
    assert stats.spearmanr(elapsed, place).pvalue > SIGNIFICANCE


@pytest.mark.parametrize("lifetime", [np.inf, 0.4])
@pytest.mark.parametrize("min_samples_split", [2, 5])
@pytest.mark.parametrize("first", [30, 8, 0])
def test_each_split_given_those_above(first, min_samples_split, lifetime):
    forest = grow(
        make_points(),
        first=first,
        n_trees=N_TREES,
        seed=first + min_samples_split,
        rates=RATES,
        min_samples_split=min_samples_split,
        lifetime=lifetime,
    )
    check_splits(forest, RATES)


def test_each_split_where_trees_see_different_points():
    points = np.random.default_rng(5).random((N_TREES, 15, 2))
    rates = np.array([1.0, 2.0])
    check_splits(grow(points, first=15, n_trees=N_TREES, rates=rates), rates)
    check_splits(grow(points, first=4, n_trees=N_TREES, rates=rates), rates)


@pytest.mark.parametrize("first", [30, 0])
def test_root_of_a_tree(first):
    points = make_points()
    extents = RATES * np.ptp(points, axis=0)
    forest = grow(points, first=first, n_trees=N_TREES, seed=77, rates=RATES)
    root = forest.arrays.counters[:, 1]
    rows = np.arange(N_TREES)
    time = forest.arrays.split_time[rows, root]
    assert stats.kstest(time, "expon", args=(0.0, 1.0 / extents.sum())).pvalue > SIGNIFICANCE
    dimension = forest.arrays.dimension[rows, root]
    observed = np.bincount(dimension, minlength=3)
    assert stats.chisquare(observed, N_TREES * extents / extents.sum()).pvalue > SIGNIFICANCE
    for d in range(3):
        location = forest.arrays.threshold[rows, root][dimension == d]
        uniform = stats.uniform(points[:, d].min(), np.ptp(points[:, d]))
        assert stats.kstest(location, uniform.cdf).pvalue > SIGNIFICANCE
