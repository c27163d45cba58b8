"""Archives: the results of a benchmark in one small file.

An archive holds what a report needs of each run: the best value so far wherever it changes, and the
time of a suggestion. It is gzip-compressed JSON lines: the sessions first, then one line per
problem, then one per run.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mondrian_bo.benchmarks.harness.results import (
    ProblemFacts,
    TrialRecord,
    read_facts,
    read_run,
    read_sessions,
    run_paths,
)
from mondrian_bo.benchmarks.harness.run_log import write_whole
from mondrian_bo.shared.array_types import BoolArray, FloatArray

__all__ = ["Curve", "Results", "read_results", "write_archive"]


_N_PARTS = 10
"""Times per archived run, one for each tenth of its trials: reports show the mean over the whole
run and over its last tenth."""

_DIGITS = 8
"""Significant digits of archived regrets: more than reports print. Values of problems whose optimum
is unknown are kept unrounded."""


_ENTRIES = frozenset({"run", "n_trials", "changes", "regrets", "milliseconds"})
"""What the line of a run has at least."""


class Curve(NamedTuple):
    """The part of one run that a report needs.

    Attributes
    ----------
    best : float64 array of shape (n_trials,)
        Noise-free value of the best trial so far; "best" is judged by the noisy values that the
        sampler was told.
    seconds : float64 array of shape (n_trials,)
        Wall time of ask and tell; read from an archive, the mean over a tenth of the run.
    feasible : bool array of shape (n_trials,)
        Whether each trial met all constraints.
    """

    best: FloatArray
    seconds: FloatArray
    feasible: BoolArray


@dataclass
class Results:
    """The finished runs of a benchmark.

    Attributes
    ----------
    facts : dict of str to ProblemFacts
        The problems by name.
    runs : dict of tuple (problem, sampler, seed) to Curve
        Their runs.
    sessions : list of dict
        When, on which machine and with which versions the runs were made.
    """

    facts: dict[str, ProblemFacts] = field(default_factory=dict)
    runs: dict[tuple[str, str, int], Curve] = field(default_factory=dict)
    sessions: list[dict[str, Any]] = field(default_factory=list)


def read_results(sources: Iterable[Path]) -> Results:
    """Read finished runs from directories and archives.

    Parameters
    ----------
    sources : iterable of Path
        Directories that ``mondrian-bo bench run`` wrote to, and archives. Where several hold a run
        with the same problem, sampler and seed, the last one counts.

    Returns
    -------
    Results
        All of them together.

    Raises
    ------
    ValueError
        If a source is neither a directory nor an archive, or if two sources use one name for
        different problems.
    """
    results = Results()
    for source in sources:
        if source.is_dir():
            part = _read_directory(source)
        elif source.is_file():
            part = _read_archive(source)
        else:
            raise ValueError(f"there is neither a directory nor an archive {source}")
        for name, facts in part.facts.items():
            if results.facts.setdefault(name, facts) != facts:
                raise ValueError(
                    f"{source} holds runs of another problem called {name} (a different table, an "
                    "older version?) than the sources before it"
                )
        results.runs.update(part.runs)
        results.sessions += [s for s in part.sessions if s not in results.sessions]
    return results


def write_archive(sources: Iterable[Path], path: Path) -> None:
    """Write all finished runs of some directories and archives into one archive.

    The same runs give the same file, byte for byte.

    Parameters
    ----------
    sources : iterable of Path
        As `read_results` takes them; the archive itself may be among them.
    path : Path
        Where to write; its name should end with ``.jsonl.gz``.

    Raises
    ------
    ValueError
        If there is no finished run in the sources, or they contradict each other.
    """
    results = read_results(sources)
    if not results.runs:
        raise ValueError("there is no finished run to archive")
    lines: list[Mapping[str, Any]] = [{"sessions": results.sessions}]
    lines += [{"problem": asdict(results.facts[name])} for name in sorted(results.facts)]
    lines += [
        _run_line(key, results.runs[key], results.facts[key[0]].optimum)
        for key in sorted(results.runs)
    ]
    text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
    path.parent.mkdir(parents=True, exist_ok=True)
    # The archive may be one of its own sources.
    write_whole(path, gzip.compress(text.encode(), mtime=0))


def _read_directory(directory: Path) -> Results:
    results = Results(sessions=read_sessions(directory))
    for facts in read_facts(directory):
        results.facts[facts.name] = facts
        for sampler, seed, path in run_paths(directory, facts.name):
            results.runs[facts.name, sampler, seed] = _curve(read_run(path))
    return results


def _curve(records: Iterable[TrialRecord]) -> Curve:
    best, seconds, feasible = zip(
        *((record.best, record.seconds, record.is_feasible) for record in records), strict=True
    )
    return Curve(np.array(best), np.array(seconds), np.array(feasible))


def _read_archive(path: Path) -> Results:
    results = Results()
    try:
        for text in gzip.decompress(path.read_bytes()).decode().splitlines():
            line = json.loads(text)
            entries = line.keys() if isinstance(line, dict) else ()
            if "sessions" in entries:
                results.sessions += line["sessions"]
            elif "problem" in entries and isinstance(line["problem"], dict):
                facts = ProblemFacts(**line["problem"])
                results.facts[facts.name] = facts
            elif not _ENTRIES.issubset(entries):
                raise ValueError(
                    "it has runs of a program with tables of its own; the page of the "
                    "documentation that links to it has the command that prints them"
                )
            else:
                problem, sampler, seed = line["run"]
                results.runs[problem, sampler, seed] = _unpack(line, results.facts[problem].optimum)
    except (OSError, EOFError, KeyError, TypeError, ValueError, zlib.error) as error:
        raise ValueError(f"{path} is not an archive of results: {_reason(error)}") from None
    return results


def _reason(error: Exception) -> str:
    """Return the message of an error of ours, and type and message of another."""
    return str(error) if type(error) is ValueError else repr(error)


def _run_line(key: tuple[str, str, int], curve: Curve, optimum: float | None) -> dict[str, Any]:
    changes = np.flatnonzero(np.diff(curve.best, prepend=np.nan) != 0)
    best = curve.best[changes].tolist()
    # Rounding keeps a regret of 0 exactly: problems with tolerance 0 count as solved only then.
    regrets = best if optimum is None else [_rounded(value - optimum, _DIGITS) for value in best]
    parts = np.array_split(curve.seconds, _N_PARTS)
    line = {
        "run": key,
        "n_trials": len(curve.best),
        "changes": changes.tolist(),
        "regrets": regrets,
        "milliseconds": [_rounded(1e3 * part.mean(), 4) if len(part) else None for part in parts],
    }
    if not curve.feasible.all():
        line["feasible"] = np.packbits(curve.feasible).tobytes().hex()
    return line


def _rounded(value: float, digits: int) -> float:
    return float(f"{value:.{digits}g}")


def _unpack(line: Mapping[str, Any], optimum: float | None) -> Curve:
    lengths = np.diff(line["changes"], append=line["n_trials"])
    parts = [len(part) for part in np.array_split(np.empty(line["n_trials"]), _N_PARTS)]
    milliseconds = np.array(line["milliseconds"], dtype=np.float64)
    best = np.array(line["regrets"]) + (optimum or 0.0)
    feasible = np.ones(line["n_trials"], dtype=np.bool_)
    if "feasible" in line:
        bits = np.frombuffer(bytes.fromhex(line["feasible"]), dtype=np.uint8)
        feasible = np.unpackbits(bits, count=line["n_trials"]).astype(np.bool_)
    return Curve(np.repeat(best, lengths), np.repeat(milliseconds, parts) / 1e3, feasible)
