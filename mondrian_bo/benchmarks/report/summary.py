"""The statistics of a benchmark, from its results."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from scipy.stats import rankdata

from mondrian_bo.array_types import FloatArray
from mondrian_bo.benchmarks.harness.archive import Curve, Results
from mondrian_bo.benchmarks.harness.results import ProblemFacts

__all__ = ["ProblemResults", "SamplerSummary", "per_problem", "summarize"]

_Runs: TypeAlias = Mapping[str, Mapping[int, Curve]]

_RESOLUTION = 1e-6
_N_START_TRIALS = 10


@dataclass(frozen=True)
class ProblemResults:
    """All finished runs on one problem, cut to the length of the shortest.

    Attributes
    ----------
    facts : ProblemFacts
        The problem.
    optimum : float
        The problem's; where it is not known, the smallest value that any run has found.
    start : float
        The median regret after ten random trials, the unit of `relative_regrets`: of the sampler
        "random" if it was run, else of all samplers, which start at random.
    best : dict of str to dict of int to ndarray
        Per sampler and seed: the best noise-free value after each trial.
    seconds : dict of str to dict of int to ndarray
        Per sampler and seed: the wall time of ask and tell of each trial.
    """

    facts: ProblemFacts
    optimum: float
    start: float
    best: Mapping[str, Mapping[int, FloatArray]]
    seconds: Mapping[str, Mapping[int, FloatArray]]

    @property
    def n_trials(self) -> int:
        """Trials per run."""
        return len(next(iter(next(iter(self.best.values())).values())))

    def regrets(self, sampler: str) -> FloatArray:
        """Return the distance to the optimum, shape (runs, trials)."""
        return np.array(list(self.best[sampler].values())) - self.optimum

    def relative_regrets(self, sampler: str, seeds: Sequence[int]) -> FloatArray:
        """Return the regrets of some runs in units of `start`, shape (seeds, trials).

        Regrets below a millionth of it are 0: nobody cares who polished the optimum further, so
        they tie.
        """
        best = np.array([self.best[sampler][seed] for seed in seeds])
        relative = (best - self.optimum) / self.start
        return np.where(relative < _RESOLUTION, 0.0, relative)


@dataclass(frozen=True)
class SamplerSummary:
    """One sampler on one problem.

    Attributes
    ----------
    sampler : str
        Its name.
    n_runs : int
        How many finished runs there are.
    final_mean, final_std : float
        Of the best value at the end; the deviation is that of a sample, NaN for a single run.
    quarter_mean, half_mean : float
        Mean best value after a quarter and half of the trials.
    hits : int
        Runs that ended at the optimum, within the problem's tolerance.
    mean_rank : float
        Mean rank among the samplers, seed by seed over the seeds all of them finished; ties share
        their mean (see `ProblemResults.relative_regrets`). NaN if there is no such seed.
    milliseconds : float
        Of ask and tell per trial: mean over each run, then the median over runs, because one run of
        each worker process pays for imports and compilation.
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
    """Sort finished runs by problem.

    Parameters
    ----------
    results : Results
        From `mondrian_bo.benchmarks.harness.archive.read_results`.
    samplers : sequence of str, optional
        Keep the runs of these; by default of all. The other runs still count for what is known of
        the optimum and of random starts.
    half : {"development", "held-out"}, optional
        Keep the problems of this half; by default of both.

    Returns
    -------
    list of ProblemResults
        By name of the problem; problems without a finished run are left out.

    Raises
    ------
    ValueError
        If there is no such run at all.
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
            kept_results.append(_cut(facts, optimum, _start(runs, optimum), kept))
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
    # A table so small that ten trials find its optimum has no scale of its own.
    return regret if regret > 0.0 else 1.0


def _cut(facts: ProblemFacts, optimum: float, start: float, runs: _Runs) -> ProblemResults:
    length = min(len(run.best) for by_seed in runs.values() for run in by_seed.values())
    best, seconds = (
        {
            sampler: {seed: getattr(by_seed[seed], field)[:length] for seed in sorted(by_seed)}
            for sampler, by_seed in runs.items()
        }
        for field in Curve._fields
    )
    return ProblemResults(facts, optimum, start, best, seconds)


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
