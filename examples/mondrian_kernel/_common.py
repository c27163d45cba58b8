"""What the figures of Balog2016 and Balog2016thesis on the Mondrian kernel share."""

from __future__ import annotations

import sys
from itertools import pairwise
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from _figures import arguments, progress, save, say

from mondrian_bo.surrogates import (
    LaplaceFourierFeatures,
    LaplaceKernel,
    MondrianFeatures,
    RandomBinningFeatures,
)

__all__ = [
    "MAPS",
    "RIDGE",
    "arguments",
    "cpu",
    "progress",
    "relative_error",
    "save",
    "say",
    "smooth_data",
    "table",
]

RIDGE = 1e-4
"""Regularisation delta^2 of the papers, in raw units of the targets."""

MAPS = {
    "Mondrian kernel": MondrianFeatures,
    "random binning": RandomBinningFeatures,
    "Fourier features": LaplaceFourierFeatures,
}
"""Feature maps that Balog2016 compares."""


def table(folder, name, target, synthetic, quick):
    """Return shuffled inputs and targets of FOLDER/NAME.csv.gz, or synthetic ones."""
    if folder is None:
        X, y = synthetic(np.random.default_rng(0))
        say("Synthetic data; --data DIR names the folder of the real data")
    else:
        path = folder / f"{name}.csv.gz"
        names = np.char.strip(np.genfromtxt(path, delimiter=",", max_rows=1, dtype=str), '" ')
        rows = np.genfromtxt(path, delimiter=",", skip_header=1)
        column = int(np.flatnonzero(names == target)[0])
        X, y = np.delete(rows, column, axis=1), rows[:, column]
    order = np.random.default_rng(1).permutation(len(y))[: 250 if quick else None]
    return X[order], y[order]


def counters(rng, n=8192):
    """Make synthetic activities of a computer and its idle time, similar to comp-activ."""
    load = rng.gamma(1.5, size=n)
    scales = 10.0 ** rng.uniform(0.0, 3.0, 19)
    X = np.empty((n, 21))
    for j, scale in enumerate(scales):
        X[:, j] = scale * load ** rng.uniform(0.3, 1.5) * rng.lognormal(0.0, 0.5, n)
    X[:, 19] = 1e4 * rng.random(n) * np.exp(-load)
    X[:, 20] = 2e6 * (rng.random(n) ** 0.3) * np.exp(-0.2 * load)
    busy = np.log1p(X[:, :8] / scales[:8]).mean(axis=1)
    y = 100.0 * np.exp(-0.5 * busy) * np.tanh(0.5 + X[:, 20] / 3e5)
    return X, y + rng.normal(size=n)


def cpu(options):
    """Return training, validation and test parts of the CPU data, in raw units."""
    X, y = table(options.data, "cpu_act", "target", counters, options.quick)
    ends = [0, round(0.8 * len(y)), round(0.9 * len(y)), len(y)]
    return [(X[a:b], y[a:b]) for a, b in pairwise(ends)]


def relative_error(predictions, targets):
    """Return the error in per cent of the root mean square of the targets."""
    return 100.0 * np.linalg.norm(predictions - targets) / np.linalg.norm(targets)


def smooth_data(n, n_features, lifetime, noise, seed):
    """Draw inputs in the unit cube, and targets from a Laplace kernel with noise."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, n_features))
    covariance = LaplaceKernel(lifetime)(X) + 1e-10 * np.eye(n)
    values = np.linalg.cholesky(covariance) @ rng.normal(size=n)
    return X, values + noise * rng.normal(size=n)
