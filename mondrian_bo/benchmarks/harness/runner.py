"""Runs problems with samplers over seeds, in parallel and resumable."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import traceback
import warnings
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from optuna.samplers import BaseSampler
from tqdm import tqdm

from mondrian_bo.benchmarks.harness.archive import Curve, read_results
from mondrian_bo.benchmarks.harness.ax_run import AxRun
from mondrian_bo.benchmarks.harness.directory_lock import only_writer
from mondrian_bo.benchmarks.harness.optuna_run import OptunaRun
from mondrian_bo.benchmarks.harness.outcome_score import OutcomeScore
from mondrian_bo.benchmarks.harness.peer_run import PeerRun
from mondrian_bo.benchmarks.harness.results import (
    TrialRecord,
    append_session,
    facts_of,
    record_problem,
    run_path,
)
from mondrian_bo.benchmarks.harness.samplers import get_sampler
from mondrian_bo.benchmarks.harness.schedule import Schedule
from mondrian_bo.benchmarks.harness.threads import THREAD_VARIABLES
from mondrian_bo.benchmarks.problems import OutcomeProblem, Problem, any_problem

__all__ = ["Failure", "Run", "execute", "is_finished", "run_benchmark"]


@dataclass(frozen=True)
class Run:
    """One sampler on one problem with one seed.

    Attributes
    ----------
    problem, sampler : str
        Their names.
    seed : int
        Seed of the sampler and of the noise.
    n_trials : int
        How many trials.
    directory : Path
        Directory of the results of all runs.
    tables : Path or None
        Directory of the original tables; None for the project's own.
    """

    problem: str
    sampler: str
    seed: int
    n_trials: int
    directory: Path
    tables: Path | None = None

    @property
    def path(self) -> Path:
        """Path of the file of its trials."""
        return run_path(self.directory, self.problem, self.sampler, self.seed)


@dataclass(frozen=True)
class Failure:
    """A run that raised an exception, and its traceback."""

    run: Run
    error: str
    traceback: str


def run_benchmark(
    problems: Sequence[str],
    samplers: Sequence[str],
    seeds: Sequence[int],
    directory: Path,
    *,
    n_trials: int | None = None,
    tables: Path | None = None,
    n_jobs: int = 1,
    known: Sequence[Path] = (),
) -> list[Failure]:
    """Run every problem with every sampler and seed, except the runs that are finished.

    Each run has a process with one thread, so that times are comparable. An interrupted run starts
    again from its first trial.

    Parameters
    ----------
    problems, samplers : sequence of str
        Names of problems and samplers.
    seeds : sequence of int
        Each pair of problem and sampler is run once per seed.
    directory : Path
        Where to write the results.
    n_trials : int, optional
        Trials per run; by default each problem's budget.
    tables : Path, optional
        Directory of the original tables; by default the project's own are used.
    n_jobs : int, default=1
        How many runs at a time.
    known : sequence of Path, default=()
        Archives or directories whose runs are not repeated.

    Returns
    -------
    list of Failure
        The runs that raised an exception; the others are complete.

    Raises
    ------
    ValueError
        If a name is unknown, a number is below 1, `known` cannot be read, the directory or
        `known` hold runs of a different problem of the same name, or another process writes runs
        to the directory.
    """
    if n_jobs < 1 or (n_trials is not None and n_trials < 1) or not seeds:
        raise ValueError("jobs, trials and seeds must be at least 1")
    for sampler in samplers:
        get_sampler(sampler)
    resolved = [any_problem(name, tables) for name in problems]
    kept = read_results(known)
    for facts in map(facts_of, resolved):
        if kept.facts.get(facts.name, facts) != facts:
            raise ValueError(f"the known runs are of another problem called {facts.name}")
    with only_writer(directory):
        for problem in resolved:
            record_problem(directory, problem)
        # Seeds come first, so that an interrupted benchmark has comparable runs of every sampler.
        runs = [
            Run(problem.name, sampler, seed, n_trials or problem.budget, directory, tables)
            for seed, problem, sampler in product(seeds, resolved, samplers)
        ]
        unfinished = [run for run in runs if not (is_finished(run) or _is_kept(run, kept.runs))]
        if not unfinished:
            return []
        append_session(directory)
        return _execute_all(unfinished, len(runs), n_jobs)


def is_finished(run: Run) -> bool:
    """Whether the run's file holds as many trials as it should have."""
    if not run.path.exists():
        return False
    with run.path.open("rb") as file:
        return sum(1 for _ in file) >= run.n_trials


def _is_kept(run: Run, kept: Mapping[tuple[str, str, int], Curve]) -> bool:
    curve = kept.get((run.problem, run.sampler, run.seed))
    return curve is not None and len(curve.best) >= run.n_trials


def execute(run: Run) -> None:
    """Run one sampler on one problem and write its trials.

    The file gets its final name when it is complete, so that a partial file is not taken for a run.

    Parameters
    ----------
    run : Run
        What to run.
    """
    problem = any_problem(run.problem, run.tables)
    if isinstance(problem, OutcomeProblem):
        trials = _outcome_trials(run, problem)
    else:
        trials = _trials(run, problem)
    run.path.parent.mkdir(parents=True, exist_ok=True)
    partial = run.path.with_suffix(".partial")
    with partial.open("w") as file:
        for record in trials:
            file.write(json.dumps(asdict(record)) + "\n")
    partial.replace(run.path)


def _finished(
    schedule: Schedule, run: Run, harness: AxRun | OptunaRun | PeerRun
) -> Iterator[tuple[int, dict[str, Any], float]]:
    """Yield each trial when it ends: its number, its parameters, and the seconds of asking."""
    running: dict[int, tuple[dict[str, Any], float]] = {}
    for is_asked, number in schedule.steps(run.n_trials, run.seed):
        if is_asked:
            running[number] = harness.ask()
        else:
            yield (number, *running.pop(number))


def _trials(run: Run, problem: Problem) -> Iterator[TrialRecord]:
    """Yield the trials of a run on a problem with one objective and no constraint."""
    chosen = get_sampler(run.sampler)
    sampler = chosen.factory(seed=run.seed)
    harness: AxRun | OptunaRun | PeerRun
    if isinstance(sampler, BaseSampler):
        harness = OptunaRun(sampler, problem.space)
    else:
        harness = sampler(problem.space, run.n_trials)
    function = problem.instance(run.seed)
    lowest, best = np.inf, np.inf
    for number, params, seconds in _finished(chosen.schedule, run, harness):
        exact = function(params)
        value = problem.observe(exact, run.seed, number)
        if value < lowest:
            lowest, best = value, exact
        seconds += harness.tell(number, value)
        yield TrialRecord(number, params, value, exact, best, round(seconds, 7))


def _outcome_trials(run: Run, problem: OutcomeProblem) -> Iterator[TrialRecord]:
    """Yield the trials of a run on a problem of :class:`OutcomeProblem`."""
    chosen = get_sampler(run.sampler)
    if chosen.peer is not None:
        raise ValueError(
            f"{chosen.peer.title} is not run on problems with constraints or several objectives"
        )
    sampler, n_objectives = chosen.factory(seed=run.seed), problem.n_objectives
    harness: AxRun | OptunaRun | PeerRun
    if isinstance(sampler, BaseSampler):
        harness = OptunaRun(sampler, problem.space, n_objectives)
    else:
        harness = sampler(
            problem.space,
            run.n_trials,
            n_objectives=n_objectives,
            n_constraints=problem.n_constraints,
        )
    assert not isinstance(harness, PeerRun)
    score = OutcomeScore(problem)
    for number, params, seconds in _finished(chosen.schedule, run, harness):
        outcomes = problem.function(params)
        seconds += harness.tell(number, outcomes.values, outcomes.constraints)
        values = list(outcomes.values) if problem.n_objectives > 1 else outcomes.values[0]
        yield TrialRecord(
            number,
            params,
            values,
            values,
            score.update(outcomes),
            round(seconds, 7),
            list(outcomes.constraints),
        )


def _execute_all(runs: Sequence[Run], n_total: int, n_jobs: int) -> list[Failure]:
    failures = []
    with (
        _worker_pool(min(n_jobs, len(runs))) as pool,
        tqdm(total=n_total, initial=n_total - len(runs), unit="run") as progress,
    ):
        futures = {pool.submit(execute, run): run for run in runs}
        for future in as_completed(futures):
            run = futures[future]
            progress.set_postfix_str(f"{run.problem} {run.sampler} {run.seed}", refresh=False)
            progress.update()
            if (error := future.exception()) is not None:
                failures.append(
                    Failure(run, repr(error), "".join(traceback.format_exception(error)))
                )
    return failures


@contextmanager
def _worker_pool(n_jobs: int) -> Iterator[ProcessPoolExecutor]:
    other_children = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(
        n_jobs, mp_context=multiprocessing.get_context("spawn"), initializer=_prepare_worker
    )
    before = {name: os.environ.get(name) for name in THREAD_VARIABLES}
    # Numerical libraries read these variables when they are loaded: workers must inherit them.
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, "1"))
    try:
        yield pool
        pool.shutdown()
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for worker in set(multiprocessing.active_children()) - other_children:
            worker.terminate()
        raise
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _prepare_worker() -> None:
    # Ctrl-C ends workers without a traceback; the parent reports the interruption.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
