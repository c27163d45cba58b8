"""Problems whose values are looked up in tables: full grids that were measured beforehand."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from mondrian_bo.benchmarks.problems.base import Half, Problem
from mondrian_bo.search_space import Int, SearchSpace
from mondrian_bo.shared.array_types import FloatArray

__all__ = ["TABULAR_PROBLEMS", "Table", "load_table", "tabular_problem"]

_BUDGETS = {"svm_grid": 100, "lda_grid": 50}
"""Trials by table, as in the experiment of Lakshminarayanan2016 (section 5.3)."""

_HALVES: dict[str, Half] = {"svm_grid": "development", "lda_grid": "held-out"}
"""Half of the suite that each table belongs to."""

_CONTENTS = {
    "svm_grid": "error of a support vector machine",
    "lda_grid": "perplexity of online latent Dirichlet allocation",
}
"""Objective of each table, for descriptions."""

_ORIGINAL_FILES = {"svm_grid": "svm_on_grid.csv", "lda_grid": "lda_on_grid.csv"}
"""File names of the original tables, as they are distributed."""

TABULAR_PROBLEMS = tuple(_BUDGETS)
"""Names of the tabular problems."""


@dataclass(frozen=True)
class Table:
    """A function measured on every cell of a grid.

    Attributes
    ----------
    columns : tuple of str
        Names of the axes.
    levels : tuple of tuple of float
        Values of each axis, ascending.
    values : ndarray
        The measured objective; one axis per column.
    """

    columns: tuple[str, ...]
    levels: tuple[tuple[float, ...], ...]
    values: FloatArray


def load_table(name: str, tables: Path | None = None) -> Table:
    """Read a table.

    Parameters
    ----------
    name : {"svm_grid", "lda_grid"}
        Name of the table.
    tables : Path, optional
        Directory of the original tables (``svm_on_grid.csv``, ``lda_on_grid.csv``); by default the
        project's own measurement is read.

    Returns
    -------
    Table
        The measured grid.

    Raises
    ------
    ValueError
        If the file does not exist or is not a full grid.
    """
    if tables is None:
        source = f"{name}.csv"
        text = (resources.files("mondrian_bo.benchmarks") / "tables" / source).read_text()
    else:
        source = _ORIGINAL_FILES[name]
        if not (tables / source).is_file():
            raise ValueError(f"there is no table {source} in {tables}")
        text = (tables / source).read_text()
    return _parse(text, source)


def _parse(text: str, source: str) -> Table:
    header, *rows = csv.reader(text.splitlines())
    columns = tuple(header[:-2])  # the last two are the objective and the seconds
    cells = np.array(rows, dtype=np.float64)
    levels, positions = [], []
    for axis in range(len(columns)):
        level, position = np.unique(cells[:, axis], return_inverse=True)
        levels.append(tuple(level.tolist()))
        positions.append(position)
    values = np.full([len(level) for level in levels], np.nan)
    values[tuple(positions)] = cells[:, -2]
    if values.size != len(cells) or np.isnan(values).any():
        raise ValueError(f"{source} is not a full grid with one finite value per cell")
    return Table(columns, tuple(levels), values)


def tabular_problem(name: str, tables: Path | None = None) -> Problem:
    """Return the problem of a table.

    Each axis is an integer parameter: the index of one of its ascending levels. Some levels fit no
    grid with a step or on a log scale; indices treat all axes alike and admit measured cells only.

    Parameters
    ----------
    name : {"svm_grid", "lda_grid"}
        Name of the table.
    tables : Path, optional
        Directory of the original tables, as in `load_table`.

    Returns
    -------
    Problem
        The problem; its optimum is the smallest value of the table.
    """
    table = load_table(name, tables)

    def look_up(params: Mapping[str, Any]) -> float:
        return float(table.values[tuple(params[column] for column in table.columns)])

    axes = " x ".join(
        f"{column} ({len(levels)})"
        for column, levels in zip(table.columns, table.levels, strict=True)
    )
    origin = "own measurement" if tables is None else "original table"
    return Problem(
        name=name,
        space=SearchSpace(
            {
                column: Int(0, len(levels) - 1)
                for column, levels in zip(table.columns, table.levels, strict=True)
            }
        ),
        function=look_up,
        optimum=float(table.values.min()),
        budget=_BUDGETS[name],
        group="tabular",
        half=_HALVES[name],
        tolerance=0.0,
        description=f"{_CONTENTS[name]} over {axes}, {origin}",
    )
