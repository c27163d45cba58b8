"""CPU time of the Mondrian kernel: features, and a path of lifetimes compared with one fit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mondrian_bo.benchmarks.suites.speed.clock import best, timed
from mondrian_bo.surrogates.mondrian_kernel.features import MondrianFeatures
from mondrian_bo.surrogates.mondrian_kernel.lifetime_paths.cuts import CutSequence
from mondrian_bo.surrogates.mondrian_kernel.lifetime_paths.kernel_path import kernel_path
from mondrian_bo.surrogates.mondrian_kernel.lifetime_paths.path_data import (
    PathData,
    sample_path_data,
)
from mondrian_bo.surrogates.mondrian_kernel.lifetime_paths.solvers import DualSolver, PrimalSolver

__all__ = ["measure_features", "measure_path"]

_NOISE = 1e-4
"""Noise variance of the fits, small compared with the targets' variance of about 0.5."""


def _best_of(repeats: int, function: Callable[[], object]) -> float:
    return best([timed(function) for _ in range(repeats)]).cpu


def measure_features(
    n_points: int = 1000, n_estimators: int = 50, lifetime: float = 10.0, repeats: int = 10
) -> tuple[float, int]:
    """Return the CPU seconds to compute features of uniform points, and the number of features."""
    X = np.random.default_rng(0).random((n_points, 2))
    features = MondrianFeatures(n_estimators, lifetime, random_state=0)
    columns = features.fit_transform(X).shape[1]
    return _best_of(repeats, lambda: features.fit_transform(X)), columns


def _data(n_training: int, n_validation: int, n_estimators: int, lifetime: float) -> PathData:
    rng = np.random.default_rng(0)
    X = rng.random((n_training + n_validation, 2))
    y = np.sin(8.0 * X[:, 0]) + X[:, 1] + 0.1 * rng.normal(size=len(X))
    return sample_path_data(
        X[:n_training],
        y[:n_training],
        X[n_training:],
        y[n_training:],
        n_estimators=n_estimators,
        max_lifetime=lifetime,
        random_state=0,
    )


def measure_path(
    n_training: int = 500,
    n_validation: int = 500,
    n_estimators: int = 50,
    lifetime: float = 10.0,
    repeats: int = 3,
) -> dict[str, float]:
    """Return the CPU seconds of a path and of one fit at its end, in primal and smaller form."""
    data = _data(n_training, n_validation, n_estimators, lifetime)
    kernel_path(_data(30, 10, 3, 5.0), _NOISE, 1.0)  # compile
    path = kernel_path(data, _NOISE, 1.0)
    cuts = CutSequence(data.partitions, n_training)
    cells = cuts.last_cells()[:n_training]
    n_cells = int(path.n_cells[-1])
    solver = DualSolver if n_cells > n_training else PrimalSolver
    return {
        "cuts": len(cuts),
        "cells": n_cells,
        "path": _best_of(repeats, lambda: kernel_path(data, _NOISE, 1.0)),
        "primal fit": _best_of(
            repeats, lambda: PrimalSolver(cells, cuts.n_numbers, data.targets, _NOISE).fit()
        ),
        "smaller fit": _best_of(
            repeats, lambda: solver(cells, cuts.n_numbers, data.targets, _NOISE).fit()
        ),
    }
