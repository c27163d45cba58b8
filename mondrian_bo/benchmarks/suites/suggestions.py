"""The suite ``suggestions``: what a user waits for, by space, number of trials and storage."""

from __future__ import annotations

import gc
import os
import tracemalloc
import warnings
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial, wraps
from itertools import chain
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple
from unittest import mock

import optuna
from optuna.samplers import BaseSampler, RandomSampler, TPESampler
from tqdm import tqdm

from mondrian_bo.benchmarks.harness.threads import one_thread
from mondrian_bo.benchmarks.report.text_table import publish
from mondrian_bo.benchmarks.suites.speed.clock import Cost, mean, timed
from mondrian_bo.benchmarks.suites.speed.growing_studies import GrowingStudies, Objective, floats
from mondrian_bo.benchmarks.suites.speed.rows import Limit, Row, time_row
from mondrian_bo.benchmarks.suites.speed.suite import write_tables
from mondrian_bo.integrations.optuna.sampler import MondrianSampler
from mondrian_bo.optimizer.row_optimizer import RowOptimizer
from mondrian_bo.optimizer.search import search

__all__ = ["SPACES", "URL_VARIABLE", "beside_running", "grow", "joining", "run"]

URL_VARIABLE = "MONDRIAN_BO_POSTGRESQL_URL"
"""Environment variable with the URL of an empty PostgreSQL database; without it, PostgreSQL is not
measured."""

_IN_MEMORY = (100, 200, 1_000, 10_000, 100_000)
"""Numbers of trials in memory."""

_IN_DATABASES = (100, 200, 1_000, 10_000)
"""Numbers of trials in databases, which take minutes to store 100,000."""

_TIMED = 30
"""Measured trials of each study with up to 1,000 trials."""

_SEEDS = 4
"""Studies in memory of each sampler with up to 1,000 trials. The cost of a suggestion depends on
what is drawn for it, and the means of single studies differ by 10 %."""

_SEVERAL_UP_TO = 1_000
"""Largest number of trials at which several studies in memory of each sampler are measured."""

_FEWER = 10
"""Measured trials of TPE in larger studies, where it takes up to 2 s for each."""

_OURS_IN_A_TURN = 10
"""Measured trials of ours in a turn in larger studies, for one of TPE."""

_FASTER_AT = 10_000
"""Number of trials from which on the target is a tenth of TPE's cost. Below it is TPE's cost."""

_JOINED = 30_000
"""Trials of the study that a worker joins."""

_GROWTH = 1.5
"""Largest ratio of the cost at 100,000 trials to that at 10,000: our target."""


def _mixed(trial: optuna.Trial) -> float:
    values = [trial.suggest_float(f"x{i}", 0.0, 1.0) for i in range(4)]
    rates = [trial.suggest_float(f"rate{i}", 1e-5, 1.0, log=True) for i in range(2)]
    sizes = [trial.suggest_int(f"size{i}", 1, 64, log=True) for i in range(2)]
    kinds = [trial.suggest_categorical(f"kind{i}", ["a", "b", "c"]) for i in range(2)]
    smooth = sum((x - 0.3) ** 2 for x in values) + sum((rate - 0.01) ** 2 for rate in rates)
    return smooth + sum(abs(size - 9) / 64 for size in sizes) + 0.2 * kinds.count("a")


def _conditional(trial: optuna.Trial) -> float:
    model = trial.suggest_categorical("model", ["forest", "boosting", "network"])
    own = [trial.suggest_float(f"{model}{i}", 0.0, 1.0) for i in range(3)]
    common = trial.suggest_float("share", 0.0, 1.0)
    return len(model) / 10 + sum((x - 0.3) ** 2 for x in own) + (common - 0.5) ** 2


SPACES: dict[str, Objective] = {
    **{f"{n} floats": partial(floats, n_parameters=n) for n in (5, 10, 20)},
    "10 mixed parameters": _mixed,
    "3 branches of 3 floats": _conditional,
}
"""Objectives by name of their search space."""


class Parts(NamedTuple):
    """CPU times of the parts of a trial, in milliseconds; they add up to the trial's.

    Attributes
    ----------
    optuna : float
        Optuna's own work in ``ask``, ``suggest`` and ``tell``.
    reading : float
        The sampler's reading of the study and of the search space.
    model : float
        Learning of the latest trials, fits of hyper-parameters included.
    candidates : float
        Candidates and their acquisition.
    ascent : float
        Ascent of the acquisition from the best candidates.
    """

    optuna: float
    reading: float
    model: float
    candidates: float
    ascent: float


def grow(
    space: str,
    storage: str | optuna.storages.BaseStorage | None,
    sizes: Sequence[int],
    n_seeds: int = 1,
) -> Iterator[tuple[int, list[Cost], list[Cost], Parts]]:
    """Measure trials of growing studies of each sampler, ours and TPE's in turns.

    The trials between the measured ones are random, and the same in all studies.

    Parameters
    ----------
    space : str
        A key of `SPACES`.
    storage : str, storage or None
        Where the studies are stored; None is in memory.
    sizes : sequence of int
        Numbers of trials at which to measure, increasing.
    n_seeds : int, default=1
        Number of studies of each sampler, with different seeds.

    Yields
    ------
    n_trials : int
        One of `sizes`.
    ours, theirs : list of Cost
        Costs of single trials in milliseconds.
    parts : Parts
        Means over our trials.
    """
    samplers: list[BaseSampler] = []
    for seed in range(n_seeds):
        samplers += [MondrianSampler(seed=seed), TPESampler(seed=seed)]
    studies = GrowingStudies(samplers, SPACES[space], storage)
    for size in sizes:
        n_turns, n_ours = (_TIMED, 1) if size <= _SEVERAL_UP_TO else (_FEWER, _OURS_IN_A_TURN)
        studies.fill(size, n_turns * n_ours)
        with _stopwatch() as seconds:
            costs = studies.take_turns(n_turns, n_ours)
        ours, theirs = list(chain(*costs[::2])), list(chain(*costs[1::2]))
        in_all = sum(cost.cpu for cost in ours)
        yield (
            size,
            [cost.in_milliseconds() for cost in ours],
            [cost.in_milliseconds() for cost in theirs],
            _parts(in_all, seconds, len(ours)),
        )


def beside_running(n_trials: int, n_running: int, n_parameters: int, below: float) -> Row:
    """Measure trials that are suggested while others run.

    Parameters
    ----------
    n_trials : int
        Number of finished trials, suggested by the sampler itself.
    n_running : int
        Number of running trials.
    n_parameters : int
        Number of float parameters.
    below : float
        Our target in milliseconds.

    Returns
    -------
    Row
        One row, compared with TPE and its constant liar.
    """
    objective = partial(floats, n_parameters=n_parameters)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        liar = TPESampler(seed=0, constant_liar=True)
    studies = GrowingStudies([MondrianSampler(seed=0), liar], objective)
    studies.take_turns(n_trials - _TIMED)
    for study in studies.studies:
        for _ in range(n_running):
            objective(study.ask())
    costs = studies.take_turns(_TIMED)
    ours, theirs = ([cost.in_milliseconds() for cost in one] for one in costs)
    name = f"{n_parameters} floats, in memory, at {n_trials} trials, {n_running} running"
    limit = Limit("ours", below)
    return time_row(name, mean(ours), "TPE", mean(theirs), unit="ms", limit=limit)


def joining(n_trials: int, space: str = "10 floats", below: float = 5.0) -> list[Row]:
    """Measure the first suggestion of a worker in a study in memory, and what the worker holds.

    Parameters
    ----------
    n_trials : int
        Number of random trials of the study.
    space : str, default="10 floats"
        A key of `SPACES`.
    below : float, default=5.0
        Our target for the first suggestion in seconds.

    Returns
    -------
    list of Row
        The time beside TPE's, and the bytes that a worker holds for each trial, beside the study.
    """
    objective = SPACES[space]
    study = optuna.create_study(sampler=RandomSampler(seed=0))
    study.optimize(objective, n_trials=n_trials)

    def join(sampler: BaseSampler) -> None:
        joined = optuna.load_study(
            study_name=study.study_name, storage=study._storage, sampler=sampler
        )
        objective(joined.ask())

    ours = timed(partial(join, MondrianSampler(seed=0)))
    theirs = timed(partial(join, TPESampler(seed=0)))
    gc.collect()
    tracemalloc.start()
    try:
        sampler = MondrianSampler(seed=0)
        join(sampler)
        gc.collect()
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    what = f"first suggestion of a worker, {space}, at {n_trials:,} trials"
    return [
        time_row(what, ours, "TPE", theirs, limit=Limit("ours", below)),
        Row(f"memory of a worker, {space}, at {n_trials:,} trials", "B/trial", held / n_trials),
    ]


def run(arguments: Namespace) -> None:
    """Run the suite: ``mondrian-bo bench run --suite suggestions --out DIR``.

    Writes ``suggestions.json``, ``suggestions.md`` and ``suggestions.txt``, and the parts of our
    trials in ``parts.md``.

    Parameters
    ----------
    arguments : argparse.Namespace
        The parsed arguments, of which ``out`` and ``trials`` count: no study has more than
        ``trials`` trials.
    """
    arguments.out.mkdir(parents=True, exist_ok=True)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    rows: list[Row] = []
    parts: list[list[str]] = []
    with ExitStack() as stack:
        stack.enter_context(one_thread())
        folder = stack.enter_context(TemporaryDirectory())
        for _ in grow("10 mixed parameters", None, [300]):
            pass  # compiled code is loaded
        # The name of a database is part of the row, its address is not.
        studies: list[tuple[str, str, str | None, tuple[int, ...]]] = [
            *((space, "in memory", None, _IN_MEMORY) for space in SPACES),
            ("10 floats", "SQLite", f"sqlite:///{folder}/study.db", _IN_DATABASES),
        ]
        if url := os.environ.get(URL_VARIABLE):
            studies.append(("10 floats", "PostgreSQL", url, _IN_DATABASES))
        # Before databases, which take longest.
        alone = [beside_running(128, 32, n_parameters, 10.0) for n_parameters in (5, 10)]
        alone += joining(min(_JOINED, arguments.trials or _JOINED))
        for space, name, storage, sizes in tqdm(studies, desc="suggestions"):
            kept = [n for n in sizes if arguments.trials is None or n <= arguments.trials]
            former = None
            measured = [grow(space, storage, kept)]
            if storage is None:
                few = [n for n in kept if n <= _SEVERAL_UP_TO]
                # Larger ones are studies of their own: where a search has restarted it seldom
                # restarts again, and trials of a restart cost less.
                measured = [grow(space, storage, [n]) for n in kept[len(few) :]]
                measured.insert(0, grow(space, storage, few, _SEEDS))
            for n_trials, ours, theirs, part in chain(*measured):
                what = f"{space}, {name}, at {n_trials:,} trials"
                limit = Limit("ratio", 10.0 if n_trials >= _FASTER_AT else 1.0)
                row = time_row(what, mean(ours), "TPE", mean(theirs), unit="ms", limit=limit)
                rows.append(row)
                parts.append([what, *(f"{value:.2f}" for value in part)])
                if former is not None and n_trials == 10 * _FASTER_AT:
                    most = Limit("ours", _GROWTH * former)
                    what = f"{space}, {name}, at {n_trials:,} trials beside {_FASTER_AT:,}"
                    rows.append(time_row(what, mean(ours), unit="ms", limit=most))
                former = row.ours
            # After each study: an interrupted run leaves what it has measured.
            write_tables(rows + alone, arguments.out, "suggestions")
            publish(arguments.out / "parts.md", ["CPU time in ms", *Parts._fields], parts)


_CLOCKED: dict[str, tuple[Any, str]] = {
    "space": (MondrianSampler, "infer_relative_search_space"),
    "sample": (MondrianSampler, "sample_relative"),
    "tell": (RowOptimizer, "tell_rows"),
    "suggest": (RowOptimizer, "suggest"),
    "maximize": (search, "maximize"),
    "improve": (search, "improve"),
}
"""Functions whose CPU time is added up: their owner and their name."""


@contextmanager
def _stopwatch() -> Iterator[dict[str, float]]:
    """Add up the CPU seconds in the functions of `_CLOCKED`."""
    seconds = dict.fromkeys(_CLOCKED, 0.0)

    def clocked(key: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            result: list[Any] = []
            seconds[key] += timed(lambda: result.append(function(*args, **kwargs))).cpu
            return result[0]

        return call

    with ExitStack() as stack:
        for key, (owner, name) in _CLOCKED.items():
            replaced = clocked(key, getattr(owner, name))
            stack.enter_context(mock.patch.object(owner, name, replaced))
        yield seconds


def _parts(in_all: float, seconds: dict[str, float], n_trials: int) -> Parts:
    """Return the means of the parts, from CPU seconds of functions that contain each other."""
    sampler = seconds["space"] + seconds["sample"]
    parts = (
        in_all - sampler,
        sampler - seconds["tell"] - seconds["suggest"],
        seconds["tell"] + seconds["suggest"] - seconds["maximize"],
        seconds["maximize"] - seconds["improve"],
        seconds["improve"],
    )
    return Parts(*(1e3 * part / n_trials for part in parts))
