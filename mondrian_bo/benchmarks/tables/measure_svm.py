"""Validation error of a support vector machine over penalty, kernel width and number of inputs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.svm import SVC

from mondrian_bo.benchmarks.tables.measured import MeasuredTable
from mondrian_bo.shared.array_types import FloatArray, IntArray

__all__ = ["svm_table"]

GRID: dict[str, tuple[float, ...]] = {
    "C": tuple(float(f"{10 ** (k / 4):.4g}") for k in range(-8, 17)),
    "gamma": tuple(2.0**k for k in range(-10, 4)),
    "components": (4, 8, 16, 32),
}
"""Levels of the axes: 1,400 cells, as many as the table of Lakshminarayanan2016."""

_SPLITS = 10
"""Random splits over which the error is averaged."""

_TRAINING = 150
"""Training samples of a split; the other samples validate."""

_WRONG_TARGETS = 0.1
"""Share of training targets that are redrawn. The digits themselves are separable, so that every
large C gives the same error; wrong targets give C a best value and the grid few ties."""


class _Split(NamedTuple):
    train_x: FloatArray
    train_y: IntArray
    valid_x: FloatArray
    valid_y: IntArray


def svm_table() -> MeasuredTable:
    """Prepare the table ``svm_grid``: penalty, kernel width and input dimension on the digits.

    An RBF support vector machine learns the leading principal ``components`` of scikit-learn's
    digits; a tenth of the training targets are redrawn. The objective is the mean validation error
    over random splits.

    Returns
    -------
    MeasuredTable
        The table, whose cells are measured during iteration.
    """
    pixels, digits = load_digits(return_X_y=True)
    return MeasuredTable(
        name="svm_grid",
        columns=tuple(GRID),
        objective="error",
        n_cells=int(np.prod([len(levels) for levels in GRID.values()])),
        cells=_cells(pixels / 16.0, digits),
        facts={
            "corpus": "scikit-learn digits",
            "training_points": _TRAINING,
            "validation_points": len(digits) - _TRAINING,
            "splits": _SPLITS,
            "wrong_labels": _WRONG_TARGETS,
        },
    )


def _splits(pixels: Any, digits: Any, components: int) -> list[_Split]:
    splits = []
    for seed in range(_SPLITS):
        rng = np.random.default_rng(seed)
        order = rng.permutation(len(digits))
        train, valid = order[:_TRAINING], order[_TRAINING:]
        targets = digits[train].copy()
        wrong = rng.random(_TRAINING) < _WRONG_TARGETS
        targets[wrong] = rng.integers(0, 10, int(wrong.sum()))
        pca = PCA(components, svd_solver="full").fit(pixels[train])
        splits.append(
            _Split(
                pca.transform(pixels[train]), targets, pca.transform(pixels[valid]), digits[valid]
            )
        )
    return splits


def _cells(pixels: Any, digits: Any) -> Iterator[tuple[float, ...]]:
    for components in GRID["components"]:
        splits = _splits(pixels, digits, int(components))
        for c in GRID["C"]:
            for gamma in GRID["gamma"]:
                started = time.perf_counter()
                errors = [
                    np.mean(
                        SVC(C=c, gamma=gamma).fit(s.train_x, s.train_y).predict(s.valid_x)
                        != s.valid_y
                    )
                    for s in splits
                ]
                yield c, gamma, components, float(np.mean(errors)), time.perf_counter() - started
