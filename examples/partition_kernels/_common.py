"""What the figures of Davies2014 share: data sets and their splits."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_wine,
    make_friedman1,
    make_friedman2,
    make_friedman3,
)
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from _figures import arguments, progress, save, say

__all__ = [
    "FILES",
    "SHIPPED",
    "arguments",
    "data_set",
    "names_of",
    "progress",
    "save",
    "say",
    "split",
]


def _column(load, column):
    """Return a regression set made of a classification set: one input from the others."""
    X = load().data
    return np.delete(X, column, axis=1), X[:, column]


SHIPPED = {
    "diabetes": lambda: load_diabetes(return_X_y=True),
    "wine (alcohol)": lambda: _column(load_wine, 0),
    "breast cancer (texture)": lambda: _column(load_breast_cancer, 1),
    "friedman1": lambda: make_friedman1(500, noise=1.0, random_state=0),
    "friedman2": lambda: make_friedman2(500, noise=50.0, random_state=0),
    "friedman3": lambda: make_friedman3(500, noise=0.1, random_state=0),
}

FILES = {
    "bodyfat": 0,
    "concreteStrength": 0,
    "wine_quality": 0,
    "california": 0,
    "ccpp": -1,
    "cpu_act": 0,
}
"""Gzipped CSV files in the folder that ``--data`` names, and the column of their targets."""


def names_of(directory):
    return list(SHIPPED) if directory is None else list(FILES)


def data_set(name, directory=None):
    """Return inputs and targets, from scikit-learn or from a file in a folder."""
    if directory is None:
        if name not in SHIPPED:
            raise SystemExit(f"no data set {name!r}; there are {', '.join(SHIPPED)}")
        return SHIPPED[name]()
    path = directory / f"{name}.csv.gz"
    if not path.is_file():
        raise SystemExit(f"no file {path}")
    table = np.genfromtxt(path, delimiter=",", skip_header=1)
    return np.delete(table, FILES[name], axis=1), table[:, FILES[name]]


def split(X, y, seed, largest=500):
    """Return training and test data, scaled to mean 0 and variance 1 in training."""
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(X))[: 2 * largest]
    X, X_test, y, y_test = train_test_split(
        X[rows], y[rows], test_size=0.3 if len(rows) < 2 * largest else 0.5, random_state=seed
    )
    scaler = StandardScaler().fit(X)
    mean, std = y.mean(), y.std()
    return scaler.transform(X), (y - mean) / std, scaler.transform(X_test), (y_test - mean) / std
