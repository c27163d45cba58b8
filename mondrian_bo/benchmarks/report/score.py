"""The score of a suite: normalised regret and rank over problems, and tests against a reference.

All comparisons are paired: they use, for each problem, the seeds that all compared samplers have.
Runs with the same seed have the same function and the same noise.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from scipy.stats import rankdata

from mondrian_bo.benchmarks.harness.results import ProblemFacts
from mondrian_bo.benchmarks.report.paired_tests import (
    SIGNIFICANCE,
    holm_corrected,
    signed_rank_test,
)
from mondrian_bo.benchmarks.report.summary import ProblemResults
from mondrian_bo.shared.array_types import FloatArray

__all__ = [
    "POINTS",
    "Estimate",
    "Outcome",
    "PairedRuns",
    "bootstrap",
    "common_seeds",
    "compare",
    "compare_all",
    "pair",
]

Outcome: TypeAlias = Literal["win", "tie", "loss"]
"""Result of a test against the reference on one problem."""

POINTS = (24, 49, 99)
"""Percentages of the budget that tables show, as indices into the percentages 1, ..., 100."""

_N_RESAMPLES = 2000
"""Bootstrap resamples: the ends of a 95 % interval then vary by a few percent of its width."""

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


def _test(
    results: ProblemResults, sampler: str, reference: str, percent: int
) -> tuple[float, float]:
    """Return sum of signed ranks and p-value of the regrets of a sampler against a reference's."""
    seeds = common_seeds(results, (sampler, reference))
    trial = int(np.ceil(percent / 100 * results.n_trials)) - 1
    own, other = (results.relative_regrets(name, seeds)[:, trial] for name in (sampler, reference))
    return signed_rank_test(own, other)
