"""The statistics of a benchmark, from its directory of results."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from mondrian_bo.benchmarks.results import ProblemFacts, TrialRecord, read_facts, read_run

__all__ = ["ProblemResults", "SamplerSummary", "load_results", "summarize"]


@dataclass(frozen=True)
class ProblemResults:
    """All finished runs on one problem, cut to the length of the shortest.

    Attributes
    ----------
    facts : ProblemFacts
        The problem.
    best : dict of str to dict of int to ndarray
        Per sampler and seed: the best noise-free value after each trial.
    seconds : dict of str to dict of int to ndarray
        Per sampler and seed: the wall time of ask and tell of each trial.
    """

    facts: ProblemFacts
    best: Mapping[str, Mapping[int, NDArray[np.float64]]]
    seconds: Mapping[str, Mapping[int, NDArray[np.float64]]]

    @property
    def n_trials(self) -> int:
        """Trials per run."""
        return len(next(iter(next(iter(self.best.values())).values())))

    def regrets(self, sampler: str) -> NDArray[np.float64]:
        """Return the distance to the optimum, shape (runs, trials)."""
        return np.array(list(self.best[sampler].values())) - self.facts.optimum


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
        Mean rank among the samplers, seed by seed over the seeds all of them finished; samplers
        that hit the optimum tie. NaN if there is no such seed.
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


def load_results(directory: Path) -> list[ProblemResults]:
    """Read the finished runs of a directory.

    Parameters
    ----------
    directory : Path
        Where ``mondrian-bo bench run`` wrote to.

    Returns
    -------
    list of ProblemResults
        By name of the problem; problems without a finished run are left out.

    Raises
    ------
    ValueError
        If there is no finished run at all.
    """
    results = []
    for facts in read_facts(directory):
        runs: dict[str, dict[int, list[TrialRecord]]] = {}
        for path in sorted((directory / facts.name).glob("*/*.jsonl")):
            runs.setdefault(path.parent.name, {})[int(path.stem)] = read_run(path)
        if runs:
            results.append(_cut(facts, runs))
    if not results:
        raise ValueError(f"there is no finished run in {directory}")
    return results


def _cut(
    facts: ProblemFacts, runs: Mapping[str, Mapping[int, list[TrialRecord]]]
) -> ProblemResults:
    length = min(len(run) for by_seed in runs.values() for run in by_seed.values())
    best, seconds = (
        {
            sampler: {
                seed: np.array([getattr(record, field) for record in by_seed[seed][:length]])
                for seed in sorted(by_seed)
            }
            for sampler, by_seed in runs.items()
        }
        for field in ("best", "seconds")
    )
    return ProblemResults(facts, best, seconds)


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
                hits=int(np.sum(_excess(results, final) == 0)),
                mean_rank=ranks[sampler],
                milliseconds=float(np.median(per_run)),
            )
        )
    return sorted(summaries, key=lambda summary: summary.final_mean)


def _excess(results: ProblemResults, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """How far values are above the optimum, 0 for those within the tolerance of it."""
    regret = values - results.facts.optimum
    return np.where(regret <= results.facts.tolerance, 0.0, regret)


def _mean_ranks(results: ProblemResults) -> dict[str, float]:
    samplers = list(results.best)
    seeds = sorted(set.intersection(*(set(by_seed) for by_seed in results.best.values())))
    if not seeds:
        return dict.fromkeys(samplers, math.nan)
    final = np.array([[results.best[sampler][seed][-1] for seed in seeds] for sampler in samplers])
    ranks = rankdata(_excess(results, final), axis=0).mean(axis=1)
    return dict(zip(samplers, ranks.tolist(), strict=True))
