"""The regression data that all libraries learn."""

from __future__ import annotations

import numpy as np

from mondrian_bo.shared.array_types import FloatArray

__all__ = ["regression_data"]


def regression_data(n: int, d: int, seed: int = 0) -> tuple[FloatArray, FloatArray]:
    """Draw uniform inputs and noisy targets that depend on up to three features.

    Parameters
    ----------
    n, d : int
        Numbers of points and features.
    seed : int, default=0
        Seed.

    Returns
    -------
    X : float64 array of shape (n, d)
        Inputs in the unit cube.
    y : float64 array of shape (n,)
        Targets.
    """
    rng = np.random.default_rng(seed)
    X = rng.random((n, d))
    signal = np.sin(6.0 * X[:, :3]).sum(axis=1)
    return X, signal + 0.1 * rng.standard_normal(n)
