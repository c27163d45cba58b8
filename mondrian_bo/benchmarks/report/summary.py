"""Statistics of each problem of a benchmark, computed from its results."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from scipy.stats import rankdata

from mondrian_bo.benchmarks.harness.archive import Curve, Results
from mondrian_bo.benchmarks.harness.results import ProblemFacts
from mondrian_bo.shared.array_types import BoolArray, FloatArray

__all__ = ["ProblemResults", "SamplerSummary", "per_problem", "summarize"]

_Runs: TypeAlias = Mapping[str, Mapping[int, Curve]]
"""Curves by name of the sampler and seed."""

_RESOLUTION = 1e-6
"""Relative regrets below this count as 0, so that samplers that only polish the optimum tie."""

_N_START_TRIALS = 10
"""Random trials after which the median regret is the unit of relative regrets: the usual number of
startup trials of the compared samplers."""


@dataclass(frozen=True)
class ProblemResults:
    """All finished runs on one problem, truncated to the length of the shortest.

    Attributes
    ----------
    facts : ProblemFacts
        The problem.
    optimum : float
        The problem's optimum; if it is unknown, the smallest value found by any run.
    start : float
        The median regret after ten random trials, the unit of `relative_regrets`. It is taken from
        runs of the sampler "random" if there are any, else from all runs, which start at random.
    best : dict of str to dict of int to ndarray
        By sampler and seed: the best noise-free value after each trial.
    seconds : dict of str to dict of int to ndarray
        By sampler and seed: the wall time of ask and tell of each trial.
    feasible : dict of str to dict of int to ndarray
        By sampler and seed: whether each trial met all constraints.
    """

    facts: ProblemFacts
    optimum: float
    start: float
    best: Mapping[str, Mapping[int, FloatArray]]
    seconds: Mapping[str, Mapping[int, FloatArray]]
    feasible: Mapping[str, Mapping[int, BoolArray]]

    @property
    def n_trials(self) -> int:
        """Trials per run."""
        return len(next(iter(next(iter(self.best.values())).values())))

    def regrets(self, sampler: str) -> FloatArray:
        """Return the distance to the optimum, shape (runs, trials)."""
        return np.array(list(self.best[sampler].values())) - self.optimum

    def relative_regrets(self, sampler: str, seeds: Sequence[int]) -> FloatArray:
        """Return the regrets of some runs in units of `start`, shape (seeds, trials).

        Values below a millionth are set to 0, so that runs that reached the optimum tie.
        """
        best = np.array([self.best[sampler][seed] for seed in seeds])
        relative = (best - self.optimum) / self.start
        return np.where(relative < _RESOLUTION, 0.0, relative)


@dataclass(frozen=True, kw_only=True)
class SamplerSummary:
    """Statistics of one sampler on one problem.

    Attributes
    ----------
    sampler : str
        Its name.
    n_runs : int
        Number of finished runs.
    final_mean, final_std : float
        Mean and sample standard deviation of the best value at the end; the deviation of a single
        run is NaN.
    quarter_mean, half_mean : float
        Mean best value after a quarter and after half of the trials.
    hits : int
        Number of runs that ended within the problem's tolerance of the optimum.
    mean_rank : float
        Rank among the samplers by relative regret, averaged over the seeds that all of them
        finished; ties share their mean rank. NaN if there is no such seed.
    milliseconds : float
        Wall time of ask and tell per trial: the mean over each run, then the median over runs,
        because the first run of each worker process includes imports and compilation.
    """

    sampler: str
    n_runs: int
    final_mean: float
    final_std: float
    quarter_mean: float
    half_mean: float
    hits: int
    mean_rank: float
    milliseconds: float


def per_problem(
    results: Results, *, samplers: Sequence[str] | None = None, half: str | None = None
) -> list[ProblemResults]:
    """Group finished runs by problem.

    Parameters
    ----------
    results : Results
        From `mondrian_bo.benchmarks.harness.archive.read_results`.
    samplers : sequence of str, optional
        Keep only the runs of these; by default all. The other runs still contribute to `optimum`
        and `start`.
    half : {"development", "held-out"}, optional
        Keep only the problems of this half; by default both.

    Returns
    -------
    list of ProblemResults
        In alphabetical order of problems; those without a finished run are omitted.

    Raises
    ------
    ValueError
        If there is no such run.
    """
    by_problem: dict[str, dict[str, dict[int, Curve]]] = {}
    for (problem, sampler, seed), curve in sorted(results.runs.items(), key=lambda item: item[0]):
        by_problem.setdefault(problem, {}).setdefault(sampler, {})[seed] = curve
    kept_results = []
    for problem, runs in by_problem.items():
        facts = results.facts[problem]
        if half not in (None, facts.half):
            continue
        kept = {name: runs[name] for name in samplers or runs if name in runs}
        if kept:
            optimum = _optimum(facts, runs)
            kept_results.append(_truncated(facts, optimum, _start(runs, optimum), kept))
    if not kept_results:
        raise ValueError("there is no finished run to report on")
    return kept_results


def _optimum(facts: ProblemFacts, runs: _Runs) -> float:
    if facts.optimum is not None:
        return facts.optimum
    return min(float(run.best[-1]) for by_seed in runs.values() for run in by_seed.values())


def _start(runs: _Runs, optimum: float) -> float:
    starts = {"random": runs["random"]} if "random" in runs else runs
    regret = float(
        np.median(
            [
                run.best[:_N_START_TRIALS][-1] - optimum
                for by_seed in starts.values()
                for run in by_seed.values()
            ]
        )
    )
    # Ten random trials may find the optimum of a small table: its regrets are not rescaled.
    return regret if regret > 0.0 else 1.0


def _truncated(facts: ProblemFacts, optimum: float, start: float, runs: _Runs) -> ProblemResults:
    """Return the results with all runs truncated to the length of the shortest."""
    length = min(len(run.best) for by_seed in runs.values() for run in by_seed.values())
    best, seconds, feasible = (
        {
            sampler: {seed: getattr(by_seed[seed], field)[:length] for seed in sorted(by_seed)}
            for sampler, by_seed in runs.items()
        }
        for field in Curve._fields
    )
    return ProblemResults(facts, optimum, start, best, seconds, feasible)


def summarize(results: ProblemResults) -> list[SamplerSummary]:
    """Compute the statistics of every sampler on a problem, best final mean first."""
    ranks = _mean_ranks(results)
    n_trials = results.n_trials
    summaries = []
    for sampler, by_seed in results.best.items():
        best = np.array(list(by_seed.values()))
        final = best[:, -1]
        per_run = [1e3 * float(seconds.mean()) for seconds in results.seconds[sampler].values()]
        summaries.append(
            SamplerSummary(
                sampler=sampler,
                n_runs=len(best),
                final_mean=float(final.mean()),
                final_std=float(final.std(ddof=1)) if len(best) > 1 else math.nan,
                quarter_mean=float(best[:, math.ceil(n_trials / 4) - 1].mean()),
                half_mean=float(best[:, math.ceil(n_trials / 2) - 1].mean()),
                hits=int(np.sum(final - results.optimum <= results.facts.tolerance)),
                mean_rank=ranks[sampler],
                milliseconds=float(np.median(per_run)),
            )
        )
    return sorted(summaries, key=lambda summary: summary.final_mean)


def _mean_ranks(results: ProblemResults) -> dict[str, float]:
    samplers = list(results.best)
    seeds = sorted(set.intersection(*(set(by_seed) for by_seed in results.best.values())))
    if not seeds:
        return dict.fromkeys(samplers, math.nan)
    final = np.array([results.relative_regrets(sampler, seeds)[:, -1] for sampler in samplers])
    ranks = rankdata(final, axis=0).mean(axis=1)
    return dict(zip(samplers, ranks.tolist(), strict=True))
