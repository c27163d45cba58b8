"""The points of each tree agree with the definition of the encoding."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.stats import kstest

from mondrian_bo.surrogates.shared.encoding import TreeEncoding

N_CHOICES = np.array([0, 4, 0, 1, 2])


def encoding(n_trees, seed=0):
    return TreeEncoding(N_CHOICES, n_trees, np.random.default_rng(seed))


def rows(n, seed=1):
    rng = np.random.default_rng(seed)
    drawn = rng.random((n, 5))
    return np.where(N_CHOICES > 0, np.floor(drawn * np.maximum(N_CHOICES, 1)), drawn)


def test_numeric_columns_are_unchanged():
    some = rows(20)
    some[3, 0], some[4, 2] = -0.25, 1.5
    points = encoding(6)(some)
    assert points.shape == (6, 20, 5)
    for tree in points:
        assert np.array_equal(tree[:, [0, 2]], some[:, [0, 2]])


@pytest.mark.parametrize(("column", "k"), [(1, 4), (4, 2)])
def test_choices_are_evenly_spaced_in_a_random_order_for_each_tree(column, k):
    some = np.zeros((k, 5))
    some[:, column] = np.arange(k)
    positions = encoding(400)(some)[:, :, column]
    assert np.allclose(np.sort(positions, axis=1), np.linspace(0.0, 1.0, k))
    # All orders occur, equally often: 4 standard deviations of a binomial.
    orders = [tuple(order) for order in np.argsort(positions, axis=1)]
    expected = 400 / len(list(itertools.permutations(range(k))))
    for order in itertools.permutations(range(k)):
        assert abs(orders.count(order) - expected) < 4.0 * np.sqrt(expected)


def test_a_single_choice():
    assert np.unique(encoding(50)(np.zeros((3, 5)))[:, :, 3]).tolist() == [0.0]


def test_inactive_values_have_one_position_per_tree_and_column():
    some = rows(30)
    gaps = np.random.default_rng(2).random(some.shape) < 0.3
    some[gaps] = np.nan
    points = encoding(300)(some)
    assert np.isfinite(points).all()
    positions = np.full((300, 5), np.nan)
    for j in range(5):
        column = points[:, gaps[:, j], j]
        assert (column == column[:, :1]).all()
        positions[:, j] = column[:, 0]
        # Uniform over the trees, at 1e-4.
        assert kstest(positions[:, j], "uniform").pvalue > 1e-4
    # No two columns or trees share a position.
    assert len(np.unique(positions)) == 300 * 5


def test_the_input_is_not_modified_and_results_are_repeatable():
    some = rows(10)
    some[2] = np.nan
    before = some.copy()
    encode = encoding(5)
    first = encode(some)
    expected = first.copy()
    first += 1.0
    assert np.array_equal(some, before, equal_nan=True)
    assert np.array_equal(encode(some), expected)
    # Row by row as in one call.
    assert np.array_equal(np.concatenate([encode(row[None]) for row in some], axis=1), encode(some))


def test_the_seed_determines_the_encoding():
    some = rows(10)
    assert np.array_equal(encoding(5, seed=3)(some), encoding(5, seed=3)(some))
    assert not np.array_equal(encoding(5, seed=3)(some), encoding(5, seed=4)(some))


def test_no_rows():
    assert encoding(3)(np.empty((0, 5))).shape == (3, 0, 5)
