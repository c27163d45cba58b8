"""Logs of finished runs, so that an interrupted program goes on where it has stopped.

A log is a file of JSON lines. It is compressed if its name ends in ``.gz``.
"""

from __future__ import annotations

import gzip
import json
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from joblib import Parallel, delayed
from tqdm import tqdm

__all__ = ["archived_runs", "in_parallel", "keep", "read_log"]

Result = TypeVar("Result")
"""What a run returns."""

Run = Callable[[str, int, int | None], list[dict[str, Any]]]
"""Searches a problem with a seed and a number of trials, or the usual one, and returns records."""

_GZIP = b"\x1f\x8b"
"""First bytes of a compressed file."""


def read_log(path: Path) -> list[Any]:
    """Return the decoded lines of a log; none if there is no file."""
    if not path.is_file():
        return []
    content = path.read_bytes()
    if content.startswith(_GZIP):
        content = gzip.decompress(content)
    return [json.loads(line) for line in content.splitlines()]


def in_parallel(
    run: Callable[..., Result], calls: Iterable[Sequence[Any]], n_jobs: int
) -> Iterator[Result]:
    """Run a function with each of some arguments, several at a time.

    Parameters
    ----------
    run : callable
        The function.
    calls : iterable of sequences
        Positional arguments of each call.
    n_jobs : int
        Number of processes. With one, the calls are made in this process, one by one.

    Returns
    -------
    iterator
        The results, each as soon as it is there.
    """
    workers = Parallel(n_jobs=n_jobs, return_as="generator_unordered")
    results: Iterator[Result] = workers(delayed(run)(*call) for call in calls)
    return results


def keep(
    results: Iterable[Result],
    log: Path,
    *,
    n_results: int,
    lines: Callable[[Result], Iterable[Any]] | None = None,
    label: str | None = None,
) -> list[Result]:
    """Append each result to a log as soon as it is there, and show the progress.

    Parameters
    ----------
    results : iterable
        The results of runs that the log lacks.
    log : Path
        The file, which is created if there is none.
    n_results : int
        The number of results.
    lines : callable, optional
        Takes a result and returns its lines, as JSON has them. By default a result is a line.
    label : str, optional
        What the progress bar says.

    Returns
    -------
    list
        The results.
    """
    finished = []
    is_compressed = log.suffix == ".gz"
    with gzip.open(log, "at") if is_compressed else log.open("a") as stream:
        for result in tqdm(results, total=n_results, desc=label):
            finished.append(result)
            new = [result] if lines is None else lines(result)
            stream.write("".join(json.dumps(line) + "\n" for line in new))
            stream.flush()
    return finished


def archived_runs(
    arguments: Namespace, archive: str, names: Sequence[str], run: Run, label: str
) -> list[dict[str, Any]]:
    """Search problems over all seeds, except for runs that archives hold already.

    Parameters
    ----------
    arguments : argparse.Namespace
        The parsed arguments of ``mondrian-bo bench run``, of which ``seeds``, ``trials``, ``jobs``,
        ``known`` and ``out`` count.
    archive : str
        Name of the log in the directory of results.
    names : sequence of str
        The problems.
    run : callable
        Returns the records of one run, which have at least the keys ``problem`` and ``seed``.
    label : str
        What the progress bar says.

    Returns
    -------
    list of dict
        All records, by problem and seed.
    """
    arguments.out.mkdir(parents=True, exist_ok=True)
    log = arguments.out / archive
    # A line is the record of a run, or a list of its records.
    lines = [line for path in [*arguments.known, log] for line in read_log(path)]
    known = [[line] if isinstance(line, dict) else line for line in lines]
    done = {(records[0]["problem"], records[0]["seed"]): records for records in known}
    todo = [(n, s) for s in range(arguments.seeds) for n in names if (n, s) not in done]
    results = in_parallel(run, ((*one, arguments.trials) for one in todo), arguments.jobs)
    for records in keep(results, log, n_results=len(todo), lines=_lines, label=label):
        done[records[0]["problem"], records[0]["seed"]] = records
    return [one for n in names for s in range(arguments.seeds) for one in done[n, s]]


def _lines(records: list[dict[str, Any]]) -> list[Any]:
    return records if len(records) == 1 else [records]
