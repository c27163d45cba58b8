"""A tree restricted to some points has the distribution of a tree over those points alone."""

import numpy as np
import pytest
from scipy import stats
from trees.oracles import grow

from mondrian_bo.trees.layout import LEFT, RIGHT, ROOT
from mondrian_bo.trees.tree import tree_at

N_TREES = 5000
RATES = np.array([2.0, 0.7])
# 36 tests, the smallest p-value is 0.02.
SIGNIFICANCE = 1e-4


def restriction(tree, subset):
    """Return time, dimension and place of the first split that separates the subset."""
    node = tree.counters[ROOT]
    while True:
        dimension, threshold = tree.dimension[node], tree.threshold[node]
        goes_left = subset[:, dimension] <= threshold
        if goes_left.any() and not goes_left.all():
            low, high = subset[:, dimension].min(), subset[:, dimension].max()
            return tree.split_time[node], dimension, (threshold - low) / (high - low)
        node = tree.children[node, LEFT if goes_left[0] else RIGHT]


def restrictions(forest, subset):
    rows = [restriction(tree_at(forest.arrays, t), subset) for t in range(forest.n_trees)]
    time, dimension, place = np.array(rows).T
    return time, dimension.astype(int), place


@pytest.mark.parametrize("first", [20, 0, 6])
@pytest.mark.parametrize("chosen", [[0, 1], [3, 7, 11], [2, 5, 13, 19]])
def test_restriction_to_a_subset(first, chosen):
    points = np.random.default_rng(8).random((20, 2))
    subset = points[chosen]
    forest = grow(points, first=first, n_trees=N_TREES, seed=first + len(chosen), rates=RATES)
    time, dimension, place = restrictions(forest, subset)
    extents = RATES * np.ptp(subset, axis=0)
    assert stats.kstest(time, "expon", args=(0.0, 1.0 / extents.sum())).pvalue > SIGNIFICANCE
    observed = np.bincount(dimension, minlength=2)
    assert stats.chisquare(observed, N_TREES * extents / extents.sum()).pvalue > SIGNIFICANCE
    assert stats.kstest(place, "uniform").pvalue > SIGNIFICANCE
    assert stats.spearmanr(time, place).pvalue > SIGNIFICANCE


@pytest.mark.parametrize("first", [15, 5])
def test_later_points_leave_the_restriction_alone(first):
    # Inserting points never changes the splits of earlier points, in every single tree.
    points = np.random.default_rng(9).random((30, 3))
    forest = grow(points[:15], first=first, n_trees=20, seed=1)
    before = [restriction(tree_at(forest.arrays, t), points[:15]) for t in range(20)]
    forest.extend(3.0 * points[None, 15:] - 1.0, np.zeros(15), np.ones((1, 3)))
    after = [restriction(tree_at(forest.arrays, t), points[:15]) for t in range(20)]
    assert before == after
