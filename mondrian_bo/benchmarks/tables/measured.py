"""Tables that are being measured, and how they are saved."""

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
    """A grid whose cells are measured during iteration.

    Attributes
    ----------
    name : str
        Name of the files without their suffix.
    columns : tuple of str
        The grid columns.
    objective : str
        The measured column, to be minimised.
    n_cells : int
        Number of cells.
    cells : iterator of tuple
        Values on the axes, objective and seconds of each cell.
    facts : dict
        Further entries of the record, about the data.
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
        The table to measure.
    directory : Path
        Where to write; created if needed.
    command : str
        Command that repeats the measurement, for the record.
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
