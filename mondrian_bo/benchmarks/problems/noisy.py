"""The functions of COCO's suite ``bbob-noisy``, whose instance is given by the seed of a run.

N. Hansen, S. Finck, R. Ros, A. Auger. Real-Parameter Black-Box Optimization Benchmarking 2009:
Noisy Functions Definitions. INRIA research report RR-6869, 2009. Each of ten functions has three
kinds of noise, in this order: Gaussian, uniform and Cauchy.

PyPI's package ``coco-experiment``, module ``cocoex``, evaluates the functions. It returns values
with noise only, but restarts its random numbers with each suite. So the first value of a new suite
is the noise-free regret times a constant, in the Gaussian variant of a function. The constant is
known from the sphere, which ``bbob`` has without noise. Noise is drawn here, by the formulas of the
report: it depends on seed and trial only, so it is equal for all samplers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, TypeAlias

import numpy as np

from mondrian_bo.benchmarks.problems.base import USUAL_BUDGET, Objective
from mondrian_bo.benchmarks.problems.bbob import (
    COCO_BOUND,
    COCO_PRECISION,
    DIMENSIONS,
    BbobFunction,
    loaded,
    minimiser,
    regret,
)
from mondrian_bo.benchmarks.problems.synthetic import box
from mondrian_bo.shared.array_types import FloatArray

__all__ = ["NOISY_FUNCTIONS", "NoisyFunction"]

Noise: TypeAlias = Literal["Gaussian", "uniform", "Cauchy"]
"""Kinds of noise."""

_KINDS: tuple[Noise, ...] = ("Gaussian", "uniform", "Cauchy")
"""The order of the variants of a function."""

_FIRST = 101
"""COCO's number of the first function."""

_BASES = (
    *("sphere", "Rosenbrock", "sphere", "Rosenbrock", "step ellipsoid", "ellipsoid"),
    *("different powers", "Schaffer F7", "Griewank-Rosenbrock", "Gallagher, 101 peaks"),
)
"""The functions that have three variants each."""

_N_MODERATE = 6
"""The first functions have moderate noise, the others severe noise."""

_MODERATE = 0.01
"""Scale of moderate noise; that of severe noise is 1."""

_SEVERE_SPHERE = 107
"""The sphere with severe Gaussian noise, by which the first random number is known."""

_SUITE = "bbob-noisy"
"""COCO's name of the suite."""


@dataclass(frozen=True, kw_only=True)
class NoisyFunction(BbobFunction):
    """A function of ``bbob-noisy`` in one dimension; a run's seed s has instance s + 1.

    The noise-free values are regrets. Samplers are told regrets with noise.
    """

    @property
    def kind(self) -> Noise:
        """The distribution of the noise."""
        return _KINDS[(self.number - _FIRST) % len(_KINDS)]

    def instance(self, seed: int) -> Objective:
        """Return the noise-free regret of the instance of a run's seed."""
        return noise_free(self.number, len(self.space), seed + 1)

    def observe(self, value: float, seed: int, number: int) -> float:
        """Return the regret with noise that a sampler is told.

        Parameters
        ----------
        value : float
            The noise-free regret f.
        seed : int
            The seed of the run.
        number : int
            The trial, from 0. Seed and number determine the noise, so it is equal for all samplers.

        Returns
        -------
        float
            Section 2 of the report, with standard normal N and uniform U of (0, 1): Gaussian noise
            is ``f exp(beta N)``. Uniform noise is ``f U^beta max(1, (1e9 / f)^(alpha U'))``.
            Cauchy noise is ``f + alpha max(0, 1000 + N / |N'|)`` with probability p and
            ``f + 1000 alpha`` otherwise.
        """
        rng = np.random.default_rng([seed, number])
        is_moderate = self.number < _FIRST + _N_MODERATE
        scale = _MODERATE if is_moderate else 1.0
        if self.kind == "Gaussian":
            return float(value * np.exp(scale * rng.standard_normal()))
        if self.kind == "uniform":
            alpha = scale * (0.49 + 1.0 / len(self.space))
            first, second = rng.uniform(size=2)
            return float(
                value * first**scale * max(1.0, (1e9 / (value + 1e-99)) ** (alpha * second))
            )
        is_outlier = rng.uniform() < (0.05 if is_moderate else 0.2)
        above, below = rng.standard_normal(2)
        return float(value + scale * max(0.0, 1e3 + (above / abs(below) if is_outlier else 0.0)))


@cache
def noise_free(number: int, dimension: int, instance: int) -> Objective:
    """Return the regret without noise as a function of the parameters."""
    gaussian = number - (number - _FIRST) % len(_KINDS)
    first_regret = _first_regret(gaussian, dimension, instance)
    factor = _severe_factor(dimension)
    if number < _FIRST + _N_MODERATE:
        factor = factor**_MODERATE
    names = [f"x{i + 1}" for i in range(dimension)]

    def evaluate(params: Mapping[str, Any]) -> float:
        value = first_regret(np.array([params[name] for name in names]))
        # Rounding could give a regret below 0 beside the minimiser.
        return max(value / factor, 0.0)

    return evaluate


@cache
def _severe_factor(dimension: int) -> float:
    """Return the factor that severe Gaussian noise has at the first value of a suite."""
    noisy = _first_regret(_SEVERE_SPHERE, dimension, 1)(np.zeros(dimension))
    return noisy / regret("bbob", 1, dimension, 1)({f"x{i + 1}": 0.0 for i in range(dimension)})


def _first_regret(number: int, dimension: int, instance: int) -> Callable[[FloatArray], float]:
    """Return a function with Gaussian noise, whose regrets are those of a new suite."""
    import cocoex

    suite, problem = loaded(_SUITE, _index(number), dimension, instance)
    optimum = problem(minimiser(_SUITE, _index(number), dimension, instance))

    def evaluate(x: FloatArray) -> float:
        # The suite must stay alive with its problem. A new one restarts the random numbers of all.
        assert suite is not None
        cocoex.Suite(_SUITE, "instances:1", "dimensions:2 function_indices:1")
        return float(problem(x) - optimum)

    return evaluate


def _index(number: int) -> int:
    """Return COCO's index of a function in the suite, from 1."""
    return number - _FIRST + 1


def _first_instance(number: int, dimension: int) -> Objective:
    return lambda params: noise_free(number, dimension, 1)(params)


NOISY_FUNCTIONS: tuple[NoisyFunction, ...] = tuple(
    NoisyFunction(
        name=f"noisy_f{number}_d{dimension}",
        space=box(-COCO_BOUND, COCO_BOUND, dimension),
        function=_first_instance(number, dimension),
        optimum=0.0,
        budget=USUAL_BUDGET,
        group=f"{_SUITE}, {dimension} inputs",
        half="held-out",
        tolerance=COCO_PRECISION,
        description=f"{base}; {'moderate' if number < _FIRST + _N_MODERATE else 'severe'} "
        f"{kind} noise",
        requires=("cocoex",),
        number=number,
        suite=_SUITE,
    )
    for dimension in DIMENSIONS
    for number, (base, kind) in enumerate(
        ((base, kind) for base in _BASES for kind in _KINDS), start=_FIRST
    )
)
"""All functions in all dimensions. No default of the library was chosen with them."""
