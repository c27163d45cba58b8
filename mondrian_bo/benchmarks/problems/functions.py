"""Test functions of real vectors from the literature, and their global minima.

No function is below its minimum outside its box, as far as problems shift it (see
`mondrian_bo.benchmarks.problems.base.Problem.shift` and
`mondrian_bo.benchmarks.problems.near_bounds`). For Hartmann's functions, every term of the
sum grows towards the unit cube, which holds all centres. For Michalewicz's, the terms outside
[0, pi] are positive within the shift.
"""

from __future__ import annotations

import numpy as np

from mondrian_bo.shared.array_types import FloatArray

__all__ = [
    "BRANIN_MINIMUM",
    "HARTMANN3_MINIMUM",
    "HARTMANN6_MINIMUM",
    "MICHALEWICZ5_MINIMUM",
    "SCHWEFEL_MINIMISER",
    "SCHWEFEL_MINIMUM",
    "STYBLINSKI_TANG_MINIMUM",
    "ackley",
    "branin",
    "griewank",
    "hartmann3",
    "hartmann6",
    "levy",
    "michalewicz",
    "rosenbrock",
    "schwefel",
    "styblinski_tang",
]


BRANIN_MINIMUM = 10 / (8 * np.pi)
"""Minimum of Branin's function, at (pi, 2.275) and two other points; exact."""

HARTMANN3_MINIMUM = -3.862779787
"""Minimum of Hartmann's function of three inputs, found numerically to ten digits."""

HARTMANN6_MINIMUM = -3.322368011
"""Minimum of Hartmann's function of six inputs, found numerically to ten digits."""

MICHALEWICZ5_MINIMUM = -4.687658179088148
"""Minimum of Michalewicz's function of five inputs, found numerically."""

SCHWEFEL_MINIMISER = 420.9687463599821
"""Each coordinate of the minimiser of Schwefel's function, found numerically."""

SCHWEFEL_MINIMUM = -418.98288727243374
"""Minimum of Schwefel's function per dimension, found numerically."""

STYBLINSKI_TANG_MINIMUM = -39.16616570377143
"""Minimum of the Styblinski-Tang function per dimension, found numerically."""

_HARTMANN_ALPHA = np.array([1.0, 1.2, 3.0, 3.2])
"""Published weights of the terms of both functions of Hartmann."""

_HARTMANN3_A = np.array([[3.0, 10, 30], [0.1, 10, 35], [3.0, 10, 30], [0.1, 10, 35]])
"""Published scales of the terms of Hartmann's function of three inputs."""

_HARTMANN3_P = np.array(
    [
        [0.3689, 0.1170, 0.2673],
        [0.4699, 0.4387, 0.7470],
        [0.1091, 0.8732, 0.5547],
        [0.0381, 0.5743, 0.8828],
    ]
)
"""Published centres of the terms of Hartmann's function of three inputs."""

_HARTMANN6_A = np.array(
    [
        [10, 3, 17, 3.5, 1.7, 8],
        [0.05, 10, 17, 0.1, 8, 14],
        [3, 3.5, 1.7, 10, 17, 8],
        [17, 8, 0.05, 10, 0.1, 14],
    ]
)
"""Published scales of the terms of Hartmann's function of six inputs."""

_HARTMANN6_P = np.array(
    [
        [0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886],
        [0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991],
        [0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650],
        [0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381],
    ]
)
"""Published centres of the terms of Hartmann's function of six inputs."""


def branin(x: FloatArray) -> float:
    """Return Branin's function of the first two coordinates, on [-5, 10] x [0, 15]."""
    valley = x[1] - 5.1 / (4 * np.pi**2) * x[0] ** 2 + 5 / np.pi * x[0] - 6
    return float(valley**2 + 10 * (1 - 1 / (8 * np.pi)) * np.cos(x[0]) + 10)


def hartmann3(x: FloatArray) -> float:
    """Return Hartmann's function of three inputs, on [0, 1]^3."""
    return _hartmann(x, _HARTMANN3_A, _HARTMANN3_P)


def hartmann6(x: FloatArray) -> float:
    """Return Hartmann's function of six inputs, on [0, 1]^6."""
    return _hartmann(x, _HARTMANN6_A, _HARTMANN6_P)


def _hartmann(x: FloatArray, a: FloatArray, p: FloatArray) -> float:
    return float(-_HARTMANN_ALPHA @ np.exp(-np.sum(a * (x - p) ** 2, axis=1)))


def rosenbrock(x: FloatArray) -> float:
    """Return Rosenbrock's function, on [-5, 10]^d; 0 at (1, ..., 1)."""
    return float(np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2))


def ackley(x: FloatArray) -> float:
    """Return Ackley's function, on [-5, 10]^d; 0 at the origin."""
    hole = -20 * np.exp(-0.2 * np.sqrt(np.mean(x**2)))
    ripples = -np.exp(np.mean(np.cos(2 * np.pi * x)))
    # Rounding could give a value below 0 at the origin.
    return max(float(hole + ripples + 20 + np.e), 0.0)


def levy(x: FloatArray) -> float:
    """Return Levy's function, on [-10, 10]^d; 0 at (1, ..., 1)."""
    w = 1 + (x - 1) / 4
    inner = (w[:-1] - 1) ** 2 * (1 + 10 * np.sin(np.pi * w[:-1] + 1) ** 2)
    last = (w[-1] - 1) ** 2 * (1 + np.sin(2 * np.pi * w[-1]) ** 2)
    return float(np.sin(np.pi * w[0]) ** 2 + np.sum(inner) + last)


def michalewicz(x: FloatArray) -> float:
    """Return Michalewicz's function with steepness 10, on [0, pi]^d."""
    i = np.arange(1, len(x) + 1)
    return float(-np.sum(np.sin(x) * np.sin(i * x**2 / np.pi) ** 20))


def griewank(x: FloatArray) -> float:
    """Return Griewank's function, on [-600, 600]^d; 0 at the origin."""
    i = np.arange(1, len(x) + 1)
    return float(np.sum(x**2) / 4000 - np.prod(np.cos(x / np.sqrt(i))) + 1)


def styblinski_tang(x: FloatArray) -> float:
    """Return Styblinski's and Tang's function, on [-5, 5]^d."""
    return float(0.5 * np.sum(x**4 - 16 * x**2 + 5 * x))


def schwefel(x: FloatArray) -> float:
    """Return Schwefel's function, on [-500, 500]^d; beyond -525 it falls below its minimum."""
    return float(-np.sum(x * np.sin(np.sqrt(np.abs(x)))))
