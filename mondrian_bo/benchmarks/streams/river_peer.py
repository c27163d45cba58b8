"""river's AMFRegressor, where river is installed, and its published speed."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from numpy.typing import NDArray

from mondrian_bo.benchmarks.speed.clock import Cost, timed

__all__ = ["PUBLISHED", "is_installed", "learn"]

PUBLISHED = {5: 820.0, 20: 450.0}
"""Samples per second that it learns one by one, by d."""


def is_installed() -> bool:
    """Tell whether river can be imported."""
    return find_spec("river") is not None


def learn(X: NDArray[Any], y: NDArray[Any]) -> Cost:
    """Measure how a new forest of 10 trees learns samples one by one, from dictionaries.

    Parameters
    ----------
    X : array of shape (n, d)
        Inputs.
    y : array of shape (n,)
        Labels.
    """
    from river.forest import AMFRegressor  # type: ignore[import-not-found,unused-ignore]

    rows = [dict(enumerate(row)) for row in X.tolist()]
    labels = y.tolist()
    forest = AMFRegressor(n_estimators=10, seed=0)

    def learn_all() -> None:
        for row, label in zip(rows, labels, strict=True):
            forest.learn_one(row, label)

    return timed(learn_all)
