"""The score of a suite: normalised regret and rank over problems, and tests against a reference.

All comparisons are paired: per problem on the seeds that all compared samplers have, which met the
same function and the same noise.
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
    "pair",
    "signed_rank_test",
]

Outcome: TypeAlias = Literal["win", "tie", "loss"]

# Percentages of the budget that tables show, as indices into the percentages 1, ..., 100.
POINTS = (24, 49, 99)
SIGNIFICANCE = 0.05

_N_RESAMPLES = 2000
# With fewer, even 2 ** (1 - n) is above the level of significance.
_FEWEST_SEEDS = 6
# Up to here `wilcoxon` is exact when differences tie; beyond, the normal approximation will do.
_EXACT_SEEDS = 13
_COVERAGE = 0.95


@dataclass(frozen=True)
class PairedRuns:
    """The runs of the compared samplers on one problem.

    Attributes
    ----------
    facts : ProblemFacts
        The problem.
    seeds : tuple of int
        Those all the samplers have.
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
    """A mean over problems, and its bootstrap interval of 95 %; arrays of one shape."""

    mean: FloatArray
    low: FloatArray
    high: FloatArray


def common_seeds(results: ProblemResults, samplers: Iterable[str]) -> tuple[int, ...]:
    """Return the seeds of a problem that each of some samplers has, ascending."""
    owned = [set(results.best.get(sampler, {})) for sampler in samplers]
    return tuple(sorted(set.intersection(*owned)))


def pair(results: ProblemResults, samplers: Sequence[str]) -> PairedRuns | None:
    """Line up the runs of samplers on one problem.

    Parameters
    ----------
    results : ProblemResults
        The runs.
    samplers : sequence of str
        Whom to compare.

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

    The interval answers how much the score would differ with other seeds on the same problems. The
    seeds of each problem are resampled on their own, those of its samplers together.

    Parameters
    ----------
    problems : sequence of ndarray
        Per problem an array of shape (samplers, seeds, points); seeds may differ in number.

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

    Two-sided at the 5 % level, seed by seed on the seeds both have; not corrected for the number of
    problems. Fewer than six seeds cannot differ at this level.

    Parameters
    ----------
    results : ProblemResults
        The runs on the problem.
    sampler, reference : str
        Whom to compare.
    percent : int
        After so much of the budget, 1 to 100.

    Returns
    -------
    {"win", "tie", "loss"}
        What the sampler achieves; "tie" if there is no significant difference.
    """
    seeds = common_seeds(results, (sampler, reference))
    trial = int(np.ceil(percent / 100 * results.n_trials)) - 1
    own, other = (results.relative_regrets(name, seeds)[:, trial] for name in (sampler, reference))
    rank_sum, p_value = signed_rank_test(own, other)
    if p_value >= SIGNIFICANCE:
        return "tie"
    return "win" if rank_sum < 0 else "loss"


def signed_rank_test(own: FloatArray, other: FloatArray) -> tuple[float, float]:
    """Return the sum of signed ranks of differences and the two-sided p-value of Wilcoxon's test.

    Parameters
    ----------
    own, other : float64 arrays of shape (n,)
        Paired numbers. Pairs that are equal do not count; with fewer than six others p is 1.
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
    # Exact in spite of ties, as `wilcoxon` is too, but at a thousandth of its time.
    test = permutation_test(
        (signed_ranks,),
        np.sum,
        permutation_type="samples",
        vectorized=True,
        n_resamples=2**_EXACT_SEEDS,
    )
    return float(test.pvalue)
