"""The score of a suite: normalised regret and rank over problems, and tests against a reference.

All comparisons are paired: they use, for each problem, the seeds that all compared samplers have.
Runs with the same seed have the same function and the same noise.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from scipy.stats import permutation_test, rankdata, wilcoxon

from mondrian_bo.array_types import FloatArray
from mondrian_bo.benchmarks.harness.results import ProblemFacts
from mondrian_bo.benchmarks.report.summary import ProblemResults

__all__ = [
    "POINTS",
    "SIGNIFICANCE",
    "Estimate",
    "Outcome",
    "PairedRuns",
    "bootstrap",
    "common_seeds",
    "compare",
    "compare_all",
    "holm_corrected",
    "pair",
    "signed_rank_test",
]

Outcome: TypeAlias = Literal["win", "tie", "loss"]
"""Result of a test against the reference on one problem."""

POINTS = (24, 49, 99)
"""Percentages of the budget that tables show, as indices into the percentages 1, ..., 100."""

SIGNIFICANCE = 0.05
"""Level of the tests against the reference, by convention."""

_N_RESAMPLES = 2000
"""Bootstrap resamples: the ends of a 95 % interval then vary by a few percent of its width."""

_FEWEST_SEEDS = 6
"""Number of unequal pairs below which a two-sided test cannot reach `SIGNIFICANCE`: the smallest
p-value is 2 ** (1 - n)."""

_EXACT_SEEDS = 13
"""Largest number of pairs for which p-values are exact; `wilcoxon` has the same limit for ties."""

_COVERAGE = 0.95
"""Coverage of bootstrap intervals, by convention."""


@dataclass(frozen=True)
class PairedRuns:
    """The runs of the compared samplers on one problem.

    Attributes
    ----------
    facts : ProblemFacts
        The problem.
    seeds : tuple of int
        The seeds that all samplers have.
    regrets : ndarray of shape (samplers, seeds, 100)
        Normalised regret after 1, ..., 100 % of the budget, at most 1.
    ranks : ndarray of shape (samplers, seeds, 100)
        Rank among the samplers, 1 is best; ties share their mean.
    """

    facts: ProblemFacts
    seeds: tuple[int, ...]
    regrets: FloatArray
    ranks: FloatArray


class Estimate(NamedTuple):
    """A mean over problems and its 95 % bootstrap interval; three arrays of one shape."""

    mean: FloatArray
    low: FloatArray
    high: FloatArray


def common_seeds(results: ProblemResults, samplers: Iterable[str]) -> tuple[int, ...]:
    """Return the seeds for which all given samplers have run on a problem, ascending."""
    owned = [set(results.best.get(sampler, {})) for sampler in samplers]
    return tuple(sorted(set.intersection(*owned)))


def pair(results: ProblemResults, samplers: Sequence[str]) -> PairedRuns | None:
    """Pair the runs of samplers on one problem by seed.

    Parameters
    ----------
    results : ProblemResults
        The runs.
    samplers : sequence of str
        Samplers to compare.

    Returns
    -------
    PairedRuns or None
        None if there is no seed that all of them have.
    """
    seeds = common_seeds(results, samplers)
    if not seeds:
        return None
    trials = np.ceil(np.arange(1, 101) / 100 * results.n_trials).astype(np.int64) - 1
    excess = np.array([results.relative_regrets(sampler, seeds)[:, trials] for sampler in samplers])
    return PairedRuns(
        results.facts, seeds, np.minimum(excess, 1.0), np.asarray(rankdata(excess, axis=0))
    )


def bootstrap(problems: Sequence[FloatArray]) -> Estimate:
    """Average over seeds, then over problems; resample the seeds, keep the problems.

    The interval tells how much the score would vary with other seeds on the same problems. The
    seeds of each problem are resampled independently, and jointly for its samplers.

    Parameters
    ----------
    problems : sequence of ndarray
        One array of shape (samplers, seeds, points) per problem; the number of seeds may differ.

    Returns
    -------
    Estimate
        Arrays of shape (samplers, points): percentiles of 2,000 resamples around the mean.
    """
    rng = np.random.default_rng(0)
    n_samplers, _, n_points = problems[0].shape
    resampled = np.zeros((_N_RESAMPLES, n_samplers * n_points))
    for values in problems:
        n_seeds = values.shape[1]
        weights = rng.multinomial(n_seeds, np.full(n_seeds, 1 / n_seeds), _N_RESAMPLES) / n_seeds
        resampled += weights @ values.transpose(1, 0, 2).reshape(n_seeds, -1)
    tail = (1 - _COVERAGE) / 2
    low, high = np.quantile(resampled / len(problems), [tail, 1 - tail], axis=0)
    mean = np.mean([values.mean(axis=1) for values in problems], axis=0)
    return Estimate(mean, low.reshape(mean.shape), high.reshape(mean.shape))


def compare(results: ProblemResults, sampler: str, reference: str, percent: int) -> Outcome:
    """Test whether a sampler's regret differs from a reference's, by Wilcoxon's signed-rank test.

    Two-sided at the 5 % level, over the seeds both have; not corrected for the number of problems.
    With fewer than six seeds the result is always a tie.

    Parameters
    ----------
    results : ProblemResults
        The runs on the problem.
    sampler, reference : str
        Samplers to compare.
    percent : int
        Percentage of the budget, 1 to 100.

    Returns
    -------
    {"win", "tie", "loss"}
        Result for the sampler; "tie" if the difference is not significant.
    """
    rank_sum, p_value = _test(results, sampler, reference, percent)
    if p_value >= SIGNIFICANCE:
        return "tie"
    return "win" if rank_sum < 0 else "loss"


def compare_all(
    problems: Sequence[ProblemResults], sampler: str, reference: str, percent: int
) -> list[Outcome]:
    """Test as `compare` does on each problem, with Holm's correction for the number of problems.

    The probability of any false win or loss is at most 5 % (S. Holm. A Simple Sequentially
    Rejective Multiple Test Procedure. Scandinavian Journal of Statistics 6(2):65-70, 1979).

    Parameters
    ----------
    problems : sequence of ProblemResults
        The runs on each problem.
    sampler, reference, percent
        See :func:`compare`.

    Returns
    -------
    list of {"win", "tie", "loss"}
        Results for the sampler, in the order of the problems.
    """
    tests = [_test(results, sampler, reference, percent) for results in problems]
    corrected = holm_corrected([p_value for _, p_value in tests])
    return [
        "tie" if p_value >= SIGNIFICANCE else "win" if rank_sum < 0 else "loss"
        for (rank_sum, _), p_value in zip(tests, corrected, strict=True)
    ]


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


def _test(
    results: ProblemResults, sampler: str, reference: str, percent: int
) -> tuple[float, float]:
    """Return sum of signed ranks and p-value of the regrets of a sampler against a reference's."""
    seeds = common_seeds(results, (sampler, reference))
    trial = int(np.ceil(percent / 100 * results.n_trials)) - 1
    own, other = (results.relative_regrets(name, seeds)[:, trial] for name in (sampler, reference))
    return signed_rank_test(own, other)


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
