"""Tests of paired numbers: differences of two methods on the same seeds, functions or tasks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from scipy.stats import permutation_test, rankdata, wilcoxon

from mondrian_bo.shared.array_types import FloatArray

__all__ = [
    "SIGNIFICANCE",
    "holm_corrected",
    "log_difference_cells",
    "signed_rank_test",
    "standard_error",
    "wilcoxon_p_value",
]

SIGNIFICANCE = 0.05
"""Level of the tests against the reference, by convention."""

_FEWEST_SEEDS = 6
"""Number of unequal pairs below which a two-sided test cannot reach `SIGNIFICANCE`: the smallest
p-value is 2 ** (1 - n)."""

_EXACT_SEEDS = 13
"""Largest number of pairs for which p-values are exact; `wilcoxon` has the same limit for ties."""


def signed_rank_test(own: FloatArray, other: FloatArray) -> tuple[float, float]:
    """Return the sum of signed ranks of differences and the two-sided p-value of Wilcoxon's test.

    Parameters
    ----------
    own, other : float64 arrays of shape (n,)
        Paired numbers. Equal pairs are dropped; with fewer than six unequal ones p is 1.

    Returns
    -------
    rank_sum : float
        Negative where `own` tends to be smaller.
    p_value : float
        Two-sided.
    """
    difference = own - other
    difference = difference[difference != 0]
    signed_ranks = np.sign(difference) * rankdata(np.abs(difference))
    return float(signed_ranks.sum()), _p_value(signed_ranks)


def _p_value(signed_ranks: FloatArray) -> float:
    n = len(signed_ranks)
    if n < _FEWEST_SEEDS:
        return 1.0
    if n > _EXACT_SEEDS:
        return float(wilcoxon(signed_ranks).pvalue)
    # Exact with ties like `wilcoxon`, in a thousandth of its time.
    test = permutation_test(
        (signed_ranks,),
        np.sum,
        permutation_type="samples",
        vectorized=True,
        n_resamples=2**_EXACT_SEEDS,
    )
    return float(test.pvalue)


def wilcoxon_p_value(
    differences: FloatArray,
    zero_method: Literal["wilcox", "zsplit"],
    alternative: Literal["two-sided", "greater"] = "two-sided",
) -> float:
    """Return the p-value of Wilcoxon's signed-rank test as scipy has it, for tables of suites.

    Parameters
    ----------
    differences : float64 array of shape (n,)
        A difference for each pair.
    zero_method : {"wilcox", "zsplit"}
        Whether pairs without a difference are dropped, or count half for each side. If all of them
        are dropped, p is 1.
    alternative : {"two-sided", "greater"}, default="two-sided"
        Whether the differences tend to be other than 0, or larger.

    Returns
    -------
    float
        Not corrected for the number of tests.
    """
    if zero_method == "wilcox" and not differences.any():
        return 1.0
    return float(wilcoxon(differences, zero_method=zero_method, alternative=alternative).pvalue)


def holm_corrected(p_values: Sequence[float]) -> FloatArray:
    """Return p-values corrected by Holm's method for the number of tests.

    Parameters
    ----------
    p_values : sequence of float
        One for each test.

    Returns
    -------
    float64 array of shape (n_tests,)
        At most 1. The probability that any true null hypothesis has a corrected p-value below a
        level is at most this level.
    """
    order = np.argsort(p_values, kind="stable")
    factors = np.arange(len(order), 0, -1)
    corrected = np.empty(len(order))
    corrected[order] = np.maximum.accumulate(np.minimum(np.asarray(p_values)[order] * factors, 1.0))
    return corrected


def standard_error(differences: FloatArray) -> float:
    """Return the standard error of a mean; NaN for a single number."""
    n = len(differences)
    return float(differences.std(ddof=1) / np.sqrt(n)) if n > 1 else np.nan


def log_difference_cells(differences: FloatArray, p_value: float) -> list[str]:
    """Return the cells of a table of regrets.

    Parameters
    ----------
    differences : float64 array of shape (n,)
        Differences of log10 regrets; negative is better.
    p_value : float
        That of the test that the differences are 0.

    Returns
    -------
    list of str
        The number of negative differences, their mean with its standard error, the geometric mean
        of the ratios of regrets, and p.
    """
    mean = differences.mean()
    return [
        f"{(differences < 0.0).sum()} of {len(differences)}",
        f"{mean:+.2f} ± {standard_error(differences):.2f}",
        f"{10.0**mean:.2g}",
        f"{p_value:.1g}",
    ]
