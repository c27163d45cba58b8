"""Logs of finished runs, so that an interrupted program goes on where it has stopped.

A log is a file of JSON lines. It is compressed if its name ends in ``.gz``: each result is then a
member of the file, so that all members but the last one are whole if the program is killed.
"""

from __future__ import annotations

import gzip
import json
import zlib
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from joblib import Parallel, delayed
from tqdm import tqdm

__all__ = ["archived_runs", "in_parallel", "keep", "known_logs", "read_log", "write_whole"]

Result = TypeVar("Result")
"""What a run returns."""

Run = Callable[[str, int, int | None], list[dict[str, Any]]]
"""Searches a problem with a seed and a number of trials, or the usual one, and returns records."""

_REQUESTED = "requested_trials"
"""Key of the number of trials that the user asked for; absent where it is the usual one."""

_GZIP = b"\x1f\x8b"
"""First bytes of a compressed file."""


def read_log(path: Path) -> list[Any]:
    """Return the decoded lines of a log; none if there is no file.

    A program that is killed while it writes leaves half a line, which does not count.

    Raises
    ------
    ValueError
        If the file is not a log.
    """
    if not path.is_file():
        return []
    try:
        return [json.loads(line) for line in _whole_lines(path)[0].splitlines()]
    except (ValueError, zlib.error) as error:
        raise ValueError(f"{path} is not a log of finished runs: {error}") from None


def _whole_lines(path: Path) -> tuple[bytes, bool]:
    """Return the text of a log up to its last whole line, and whether the file ends there."""
    text = path.read_bytes()
    is_whole = True
    if text.startswith(_GZIP):
        rest, text = text, b""
        while rest:
            member = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
            text += member.decompress(rest)
            rest, is_whole = member.unused_data, member.eof
    n_whole = text.rfind(b"\n") + 1
    return text[:n_whole], is_whole and n_whole == len(text)


def write_whole(path: Path, content: bytes) -> None:
    """Write a file, which is replaced only when the new one is whole."""
    partial = path.with_name(path.name + ".partial")
    partial.write_bytes(content)
    partial.replace(path)


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
    if log.is_file():
        text, is_whole = _whole_lines(log)
        if not is_whole:
            # What follows half a line could not be read.
            write_whole(log, gzip.compress(text) if is_compressed else text)
    with log.open("ab") as stream:
        for result in tqdm(results, total=n_results, desc=label):
            finished.append(result)
            new = [result] if lines is None else lines(result)
            text = "".join(json.dumps(line) + "\n" for line in new).encode()
            stream.write(gzip.compress(text) if is_compressed else text)
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
        Returns the records of one run, which have at least the keys ``problem`` and ``seed``. With
        ``trials`` they get the key ``requested_trials``, and only runs with the same request count
        as known.
    label : str
        What the progress bar says.

    Returns
    -------
    list of dict
        All records, by problem and seed.

    Raises
    ------
    ValueError
        If a known archive is missing, or has no runs of this program.
    """
    n_trials = arguments.trials
    log = arguments.out / archive
    done: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for path in [*known_logs(arguments.known, archive), log]:
        for line in read_log(path):
            # A line is the record of a run, or a list of its records.
            records = [line] if isinstance(line, dict) else line
            try:
                key = records[0]["problem"], records[0]["seed"]
                if records[0].get(_REQUESTED) == n_trials:
                    done[key] = records
            except (AttributeError, KeyError, IndexError, TypeError):
                raise ValueError(f"{path} has runs of another program") from None
    arguments.out.mkdir(parents=True, exist_ok=True)
    todo = [(n, s) for s in range(arguments.seeds) for n in names if (n, s) not in done]
    results = in_parallel(run, ((*one, n_trials) for one in todo), arguments.jobs)
    if n_trials is not None:
        results = ([{**one, _REQUESTED: n_trials} for one in records] for records in results)
    for records in keep(results, log, n_results=len(todo), lines=_lines, label=label):
        done[records[0]["problem"], records[0]["seed"]] = records
    return [one for n in names for s in range(arguments.seeds) for one in done[n, s]]


def known_logs(known: Iterable[Path], archive: str) -> list[Path]:
    """Return the logs of known runs; a directory has one of the archive's name.

    Raises
    ------
    ValueError
        If one of them is missing.
    """
    logs = [path / archive if path.is_dir() else path for path in known]
    for path in logs:
        if not path.is_file():
            raise ValueError(f"there is no archive {path}")
    return logs


def _lines(records: list[dict[str, Any]]) -> list[Any]:
    return records if len(records) == 1 else [records]
