"""Tests of paired numbers, by hand and by enumeration of all signs."""

from itertools import product

import numpy as np
import pytest

from mondrian_bo.benchmarks.report.paired_tests import (
    holm_corrected,
    log_difference_cells,
    signed_rank_test,
    wilcoxon_p_value,
)


def test_corrected_p_values_by_hand():
    np.testing.assert_allclose(holm_corrected([0.04, 0.01, 0.03]), [0.06, 0.03, 0.06])
    np.testing.assert_allclose(holm_corrected([0.6, 0.5]), [1.0, 1.0])
    assert holm_corrected([]).shape == (0,)


def _larger(signed_ranks):
    """Probability of at least this sum of signed ranks, if both signs are equally likely."""
    ranks = np.abs(signed_ranks)
    sums = np.array([np.dot(signs, ranks) for signs in product([-1, 1], repeat=len(ranks))])
    return float(np.mean(sums >= signed_ranks.sum()))


def test_p_values_enumerate_the_signs():
    differences = np.array([3.0, -1.0, 2.0, 5.0, 4.0, -6.0, 7.0])
    larger = _larger(differences)
    for zero_method in ("wilcox", "zsplit"):
        assert wilcoxon_p_value(differences, zero_method) == pytest.approx(2.0 * larger)
        assert wilcoxon_p_value(differences, zero_method, "greater") == pytest.approx(larger)
    rank_sum, p_value = signed_rank_test(differences, np.zeros(7))
    assert (rank_sum, p_value) == (differences.sum(), pytest.approx(2.0 * larger))


def test_pairs_without_a_difference():
    for zero_method in ("wilcox", "zsplit"):
        assert wilcoxon_p_value(np.zeros(20), zero_method) == 1.0
    ranks = np.array([1.0, -2.0, -3.0, 4.0, 5.0, 6.0, 7.0])
    differences = np.append(ranks, np.zeros(6))
    assert wilcoxon_p_value(differences, "wilcox") == pytest.approx(2.0 * _larger(ranks))
    # Zeros that are not dropped have the lowest ranks.
    split = ranks + 6.0 * np.sign(ranks)
    assert wilcoxon_p_value(differences, "zsplit") == pytest.approx(2.0 * _larger(split))
    assert _larger(split) > _larger(ranks)


def test_cells_of_log_differences():
    # Mean -0.7 and variance 0.9: 0.9 / 10 is the square of the standard error.
    cells = log_difference_cells(np.array([-1.0] * 9 + [2.0]), 0.034)
    assert cells == ["9 of 10", "-0.70 ± 0.30", "0.2", "0.03"]
    assert log_difference_cells(np.array([1.0]), 1.0) == ["0 of 1", "+1.00 ± nan", "10", "1"]
