"""The suite ``speed``: all measurements, with the sizes of our targets, and the tables."""

from __future__ import annotations

import json
import os
from argparse import Namespace
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from tqdm import tqdm

from mondrian_bo.benchmarks.harness.threads import one_thread
from mondrian_bo.benchmarks.report.text_table import to_markdown, to_text
from mondrian_bo.benchmarks.suites.speed.machine import describe_machine, machine_line
from mondrian_bo.benchmarks.suites.speed.onelearn_process import PYTHON_VARIABLE, OnelearnProcess
from mondrian_bo.benchmarks.suites.speed.rows import HEADER, LEGEND, Row, cells, record

__all__ = ["measurements", "run", "write_tables"]

_PACKAGES = ("mondrian-bo", "numpy", "numba", "optuna", "scikit-learn")
"""Packages whose versions stand under the table: those whose time is measured."""


def run(arguments: Namespace) -> None:
    """Run the suite: ``mondrian-bo bench run --suite speed --out DIR``.

    Writes ``speed.json``, ``speed.md`` and ``speed.txt`` and prints the last.

    Parameters
    ----------
    arguments : argparse.Namespace
        The parsed arguments: ``out``, and optionally ``onelearn_python``, an interpreter that has
        onelearn; by default the value of the environment variable ``MONDRIAN_BO_ONELEARN_PYTHON``.
        Without either, onelearn is not measured.

    Raises
    ------
    ValueError
        If that interpreter cannot run onelearn.
    """
    arguments.out.mkdir(parents=True, exist_ok=True)
    python = getattr(arguments, "onelearn_python", None) or os.environ.get(PYTHON_VARIABLE)
    rows: list[Row] = []
    with ExitStack() as stack:
        stack.enter_context(one_thread())
        onelearn = stack.enter_context(OnelearnProcess(Path(python))) if python else None
        for name, measure in (progress := tqdm(measurements(onelearn), desc="speed")):
            progress.set_postfix_str(name)
            rows += measure()
    write_tables(rows, arguments.out)
    print((arguments.out / "speed.txt").read_text(encoding="utf-8"), end="")


def measurements(onelearn: OnelearnProcess | None) -> list[tuple[str, Callable[[], list[Row]]]]:
    """Return all measurements, with names for the progress bar.

    Parameters
    ----------
    onelearn : OnelearnProcess or None
        The process that measures onelearn, if there is one.

    Returns
    -------
    list of (str, callable)
        Names, and functions that measure and return rows.
    """
    from mondrian_bo.benchmarks.suites.speed import ask_and_tell, learning, memory, startup

    def prepare() -> list[Row]:
        learning.warm_up()
        ask_and_tell.warm_up()
        return []

    def learn(n: int, d: int, step: int, at_least: float) -> Callable[[], list[Row]]:
        return partial(learning.partial_fit, n, d, step, onelearn, at_least=at_least)

    def remember(d: int, step: int) -> Callable[[], list[Row]]:
        return lambda: [memory.memory_row(50_000, d, step)]

    return [
        ("warm-up", prepare),
        *((f"batch, d={d}", learn(50_000, d, 50_000, 4.0)) for d in (5, 20)),
        *((f"one by one, d={d}", learn(10_000, d, 1, 3.0)) for d in (5, 20)),
        ("fit and predict", partial(learning.against_extra_trees, 100_000, 8)),
        *(
            (f"updates, n={n}, m={m}", partial(learning.process_updates, n, 8, m))
            for m in (200, 500)
            for n in (2_000, 20_000, 100_000)
        ),
        *(
            (f"ask and tell, n={n}", partial(ask_and_tell.ask_and_tell, n, below=below))
            for n, below in ((100, None), (200, 10.0), (1_000, 15.0), (10_000, 25.0))
        ),
        *(
            (
                f"ask and tell, forest, {d} floats, n={n}",
                partial(ask_and_tell.ask_and_tell, n, d, below=below, surrogate="forest"),
            )
            for n, below in ((200, 5.0), (10_000, 8.0))
            for d in (5, 10)
        ),
        ("a whole study", partial(ask_and_tell.whole_study, 1_000, below=15.0)),
        *(
            (f"memory, d={d}, {step} at a time", remember(d, step))
            for d in (5, 10, 20)
            for step in (50_000, 100)
        ),
        ("start-up", startup.startup_rows),
        ("sampler", lambda: [startup.sampler_row()]),
    ]


def write_tables(rows: Sequence[Row], directory: Path, stem: str = "speed") -> None:
    """Write the table as JSON, Markdown and text.

    Parameters
    ----------
    rows : sequence of Row
        The measured rows.
    directory : Path
        Where to write.
    stem : str, default="speed"
        Name of the three files, without ending.
    """
    machine = describe_machine(_PACKAGES)
    body = [cells(row) for row in rows]
    (directory / f"{stem}.json").write_text(
        json.dumps({**machine, "rows": record(rows)}, indent=1) + "\n", encoding="utf-8"
    )
    for suffix, table in (("md", to_markdown(HEADER, body)), ("txt", to_text(HEADER, body))):
        text = f"{LEGEND}\n\n{table}\n\n{machine_line(machine)}\n"
        (directory / f"{stem}.{suffix}").write_text(text, encoding="utf-8")
