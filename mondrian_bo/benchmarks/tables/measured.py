"""A table while it is being measured, and how it is written."""

from __future__ import annotations

import csv
import json
import platform
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from tqdm import tqdm

__all__ = ["MeasuredTable", "write_table"]


@dataclass(frozen=True)
class MeasuredTable:
    """A grid whose cells are measured as they are iterated.

    Attributes
    ----------
    name : str
        Stem of the files.
    columns : tuple of str
        The grid columns.
    objective : str
        The measured column, to be minimised.
    n_cells : int
        How many cells the grid has.
    cells : iterator of tuple
        Per cell: its grid values, the objective, the seconds it took.
    facts : dict
        What else the record should say about the data.
    """

    name: str
    columns: tuple[str, ...]
    objective: str
    n_cells: int
    cells: Iterator[tuple[float, ...]]
    facts: dict[str, str | int | float]


def write_table(table: MeasuredTable, directory: Path, command: str) -> None:
    """Measure every cell and write ``<name>.csv`` and the record ``<name>.json``.

    Parameters
    ----------
    table : MeasuredTable
        What to measure.
    directory : Path
        Where to; created if needed.
    command : str
        The command to repeat the measurement, for the record.
    """
    rows = sorted(tqdm(table.cells, total=table.n_cells, desc=table.name))
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / f"{table.name}.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*table.columns, table.objective, "seconds"])
        for *cell, value, seconds in rows:
            writer.writerow([*cell, f"{value:.8g}", f"{seconds:.4f}"])
    record = {
        "command": command,
        "date": datetime.now(UTC).date().isoformat(),
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("numpy", "scikit-learn", "scipy")},
        },
        "cells": len(rows),
        "total_seconds": round(sum(row[-1] for row in rows), 1),
        **table.facts,
    }
    (directory / f"{table.name}.json").write_text(json.dumps(record, indent=2) + "\n")
