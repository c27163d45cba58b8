"""Data for the tests of the classifier, and what makes two classifiers the same."""

import numpy as np
from trees.oracles import one_tree


def make_data(n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((n, 2))
    y = (X[:, 0] > 0.5).astype(int) + (X[:, 1] > 0.7)
    return X, np.where(rng.random(n) < 0.1, rng.integers(0, 3, n), y)


def assert_same(one, two):
    """Both estimators hold the same bits."""
    assert np.array_equal(one.classes_, two.classes_)
    assert one.forest_.n_points == two.forest_.n_points
    for t in range(one.forest_.n_trees):
        trees = one_tree(one.forest_, t), one_tree(two.forest_, t)
        for own, other in zip(*trees, strict=True):
            assert own.tobytes() == other.tobytes()
        counts = (e.forest_.node_stats.counts[t, : len(trees[0].parent)] for e in (one, two))
        assert np.array_equal(*counts)
