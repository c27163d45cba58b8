"""Random points, the same ones each time, whose values are the scale of a problem."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from mondrian_bo.search_space import SearchSpace
from mondrian_bo.shared.array_types import FloatArray

__all__ = ["N_POINTS", "new_generator", "random_values"]

N_POINTS = 500
"""Number of random points that determine a problem's scale, our choice."""

_SEED = 5
"""Seed of the points, our choice."""


def new_generator() -> np.random.Generator:
    """Return the generator of the points, which always draws the same ones."""
    return np.random.default_rng(_SEED)


def random_values(space: SearchSpace, function: Callable[[Mapping[str, Any]], float]) -> FloatArray:
    """Return the values of a function at 500 random points of a space."""
    rows = space.sample(N_POINTS, new_generator())
    return np.array([function(space.from_unit(row)) for row in rows])
