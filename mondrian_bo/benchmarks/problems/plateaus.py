"""Plateaus: nearly all settings do equally badly, for example because a model does not learn.

Values are better where the first two parameters lie in a small square, of 6 % of the space.
Everywhere else the value is 1, and some problems add a little noise. Each seed has the square
elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mondrian_bo.benchmarks.problems.base import Objective, Problem
from mondrian_bo.benchmarks.problems.synthetic import box, of_vector
from mondrian_bo.shared.array_types import FloatArray

__all__ = ["PLATEAU_PROBLEMS", "PlateauProblem"]

_SHARE = 0.06
"""Share of the space that is better: random search misses it in 60 trials with probability 0.02."""

_N_RELEVANT = 2
"""Number of parameters that decide, or 1 where there is one only."""

_BEST = 0.5
"""Value in the middle of the square, of which all values are at least 0.2 better than 1."""

_SLOPE = 0.3
"""Increase of the value from the middle of the square to its corners."""

_NOISE = 1e-3
"""Standard deviation of the noise: small beside the gain, and all that there is elsewhere."""

_BUDGET = 60
"""Trials per run."""

_DIMENSIONS = (1, 2, 3, 4, 6)
"""Dimensions of the suite."""


@dataclass(frozen=True, kw_only=True)
class PlateauProblem(Problem):
    """A plateau with a better square, whose place is drawn from the seed of a run."""

    def instance(self, seed: int) -> Objective:
        """Return the noise-free function of a seed."""
        return _plateau(len(self.space), seed)


def _plateau(d: int, seed: int) -> Objective:
    """Return a function of d parameters.

    The middle of the space, which some samplers try first, is on the plateau.
    """
    k = min(d, _N_RELEVANT)
    half = 0.5 * _SHARE ** (1.0 / k)
    rng = np.random.default_rng([seed, d])
    middle = rng.uniform(half, 1.0 - half, k)
    while np.abs(middle - 0.5).max() <= half:
        middle = rng.uniform(half, 1.0 - half, k)

    def function(point: FloatArray) -> float:
        distances = np.abs(point[:k] - middle)
        on_plateau = distances.max() > half
        return 1.0 if on_plateau else _BEST + _SLOPE * float(distances.mean() / half)

    return of_vector(function, d)


PLATEAU_PROBLEMS: tuple[PlateauProblem, ...] = tuple(
    PlateauProblem(
        name=f"plateau{d}_noisy" if noise else f"plateau{d}",
        space=box(0.0, 1.0, d),
        function=_plateau(d, 0),
        optimum=_BEST,
        budget=_BUDGET,
        group="noisy plateaus" if noise else "plateaus",
        tolerance=_SLOPE + 0.05,
        noise=noise,
        description=f"6 % of the space is better, {d} input{'s' * (d > 1)}"
        + (", a little noise" if noise else ""),
    )
    for noise in (0.0, _NOISE)
    for d in _DIMENSIONS
)
"""The problems of the suite ``plateaus``. A run has solved one if it has found the square."""
