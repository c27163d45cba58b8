"""The numeric problems of the default suite whose minimisers lie near or on the bounds."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mondrian_bo.benchmarks.problems import functions
from mondrian_bo.benchmarks.problems.base import Objective, Problem
from mondrian_bo.benchmarks.problems.synthetic import box, of_vector
from mondrian_bo.shared.array_types import BoolArray, FloatArray

__all__ = ["NEAR_BOUNDS_PROBLEMS", "CornerProblem"]


@dataclass(frozen=True, kw_only=True)
class CornerProblem(Problem):
    """A function on the unit cube that each seed places in another way.

    A seed draws, for every coordinate, the distance of the minimiser from a bound, and whether this
    is the lower or the upper bound. `function` has coordinates of its own: `minimiser` plus
    `widths` times how much farther than the minimiser a point lies from the bound. Further
    attributes are those of :class:`Problem`.

    Attributes
    ----------
    minimiser : tuple of float
        The minimiser of `function`.
    widths : tuple of float
        What the edges of the cube are in the coordinates of `function`; below 0 if the bound is
        above the minimiser there.
    distances : tuple of (float, float)
        Least and largest distance of the minimiser from its bound.
    """

    minimiser: tuple[float, ...]
    widths: tuple[float, ...]
    distances: tuple[tuple[float, float], ...]

    def place(self, seed: int) -> tuple[FloatArray, BoolArray]:
        """Return the distances of the minimiser from its bounds, and which are upper bounds."""
        rng = np.random.default_rng([seed, zlib.crc32(self.name.encode())])
        low, high = np.transpose(self.distances)
        return rng.uniform(low, high), rng.random(len(low)) < 0.5

    def instance(self, seed: int) -> Objective:
        """Return the function as the seed of a run places it."""
        distances, is_upper = self.place(seed)
        minimiser, widths, names = np.array(self.minimiser), np.array(self.widths), list(self.space)

        def placed(params: Mapping[str, Any]) -> float:
            x = np.array([params[name] for name in names])
            from_bound = np.where(is_upper, 1.0 - x, x)
            z = minimiser + widths * (from_bound - distances)
            return self.function(dict(zip(names, z, strict=True)))

        return placed


_SCHWEFEL = (0.07, 0.105)
"""Distances with which the second best basin of Schwefel's function is that of its usual box, whose
distance is 0.079. With less, the function would be lower on the opposite bound."""

_NEAR = (0.01, 0.03)
"""Distances of a minimiser near its bounds."""

_ON = (0.0, 0.0)
"""Distance of a minimiser on its bound."""

_INSIDE = (0.2, 0.5)
"""Distances of a minimiser away from the bounds."""

_ROSENBROCK_WIDTH = 3.0
"""Edge of the cube in the coordinates of Rosenbrock's function: about from -2 to 1."""

_FACE_MINIMISER = (0.35, 0.16797208, 0.6, 0.27919563, 0.30666007, 0.75)
"""Minimiser of Hartmann's function of six inputs where the first is at least 0.35, the third at
least 0.6 and the last at least 0.75; found numerically to eight digits."""

_FACE_MINIMUM = -2.7630205223
"""The minimum there, found numerically."""

NEAR_BOUNDS_PROBLEMS: tuple[Problem, ...] = (
    CornerProblem(
        name="schwefel5",
        space=box(0, 1, 5),
        function=of_vector(functions.schwefel, 5),
        optimum=5 * functions.SCHWEFEL_MINIMUM,
        group="near the bounds",
        tolerance=1.0,
        description="Schwefel function, the best basin near a corner and far from the second best",
        minimiser=(functions.SCHWEFEL_MINIMISER,) * 5,
        widths=(-1000.0,) * 5,
        distances=(_SCHWEFEL,) * 5,
    ),
    CornerProblem(
        name="corner_rosenbrock4",
        space=box(0, 1, 4),
        function=of_vector(functions.rosenbrock, 4),
        optimum=0.0,
        group="near the bounds",
        half="held-out",
        tolerance=0.1,
        description="Rosenbrock function, its valley ends near a corner",
        minimiser=(1.0,) * 4,
        widths=(-_ROSENBROCK_WIDTH,) * 4,
        distances=(_NEAR,) * 4,
    ),
    CornerProblem(
        name="face_hartmann6",
        space=box(0, 1, 6),
        function=of_vector(functions.hartmann6, 6),
        optimum=_FACE_MINIMUM,
        group="near the bounds",
        half="held-out",
        description="Hartmann function of six inputs, three of them best on a bound",
        minimiser=_FACE_MINIMISER,
        widths=(0.65, 1.0, 0.4, 1.0, 1.0, 0.25),
        distances=(_ON, _INSIDE, _ON, _INSIDE, _INSIDE, _ON),
    ),
)
"""Problems whose minimisers lie near or on the bounds."""
