"""Runs of a special suite in parallel, which an archive keeps."""

from __future__ import annotations

import gzip
import json
from argparse import Namespace
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tqdm import tqdm

Run = Callable[[str, int, int | None], list[dict[str, Any]]]
"""Searches a problem with a seed and a number of trials, or the usual one, and returns records."""


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
        Name of the file in the directory of results, which finished runs are added to.
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
    from joblib import Parallel, delayed

    arguments.out.mkdir(parents=True, exist_ok=True)
    log = arguments.out / archive
    done = {key: records for path in [*arguments.known, log] for key, records in _read(path)}
    todo = [(n, s) for s in range(arguments.seeds) for n in names if (n, s) not in done]
    workers = Parallel(n_jobs=arguments.jobs, return_as="generator_unordered")
    results = workers(delayed(run)(*one, arguments.trials) for one in todo)
    with gzip.open(log, "at", encoding="utf-8") as stream:
        for records in tqdm(results, total=len(todo), desc=label):
            done[_key(records)] = records
            stream.write(json.dumps(records if len(records) > 1 else records[0]) + "\n")
            stream.flush()
    return [one for n in names for s in range(arguments.seeds) for one in done[n, s]]


def _key(records: list[dict[str, Any]]) -> tuple[str, int]:
    return records[0]["problem"], records[0]["seed"]


def _read(path: Path) -> list[tuple[tuple[str, int], list[dict[str, Any]]]]:
    """Return the runs of an archive; none if there is no file. A line is a record, or several."""
    if not path.is_file():
        return []
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        lines = [json.loads(line) for line in stream]
    runs = [[line] if isinstance(line, dict) else line for line in lines]
    return [(_key(records), records) for records in runs]
