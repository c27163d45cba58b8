"""What a benchmark problem is, and how an Optuna trial is asked for its parameters."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from optuna.trial import Trial

from mondrian_bo.search_space import Categorical, Float, SearchSpace

__all__ = ["Half", "Objective", "Problem", "suggest"]

Objective: TypeAlias = Callable[[Mapping[str, Any]], float]
Half: TypeAlias = Literal["development", "held-out"]


@dataclass(frozen=True)
class Problem:
    """A function to minimise, declared once for all samplers.

    Attributes
    ----------
    name : str
        The name on the command line and in result directories.
    space : SearchSpace
        The parameters.
    function : callable
        Takes a mapping of the active parameters, returns the noise-free value.
    optimum : float or None
        The smallest value of `function`; None where it is not known.
    budget : int
        The usual number of trials.
    group : str
        What kind of problem it is; reports average over groups.
    half : {"development", "held-out"}
        Whether defaults may be chosen on it.
    tolerance : float
        A run has hit the optimum when it ends at most this far above it.
    noise : float
        Scale of the noise a sampler sees on top of `function`: its standard deviation if Gaussian.
    noise_freedom : float or None
        Degrees of freedom of the noise, a Student t times `noise`; None is Gaussian.
    shift : float
        Each seed moves the function along every continuous linear parameter, by up to this share
        of its range. The function must allow it: defined that far outside of the box, nowhere below
        the optimum, and with a minimiser that no such shift moves out of the box.
    description : str
        One line for listings.
    """

    name: str
    space: SearchSpace
    function: Objective
    optimum: float | None
    budget: int
    group: str
    half: Half = "development"
    tolerance: float = 1e-3
    noise: float = 0.0
    noise_freedom: float | None = None
    shift: float = 0.0
    description: str = ""

    def offsets(self, seed: int) -> dict[str, float]:
        """Return by how much a seed moves the function along each parameter that it moves.

        Parameters
        ----------
        seed : int
            The seed of a run.

        Returns
        -------
        dict of str to float
            Uniform in plus and minus `shift` times the range; the same for every sampler.
        """
        if not self.shift:
            return {}
        rng = np.random.default_rng([seed, zlib.crc32(self.name.encode())])
        return {
            name: self.shift * (parameter.high - parameter.low) * rng.uniform(-1.0, 1.0)
            for name, parameter in self.space.items()
            if isinstance(parameter, Float) and not parameter.log and parameter.step is None
        }

    def instance(self, seed: int) -> Objective:
        """Return the noise-free function as a seed has moved it.

        Parameters
        ----------
        seed : int
            The seed of a run.

        Returns
        -------
        callable
            Takes a mapping of the active parameters.
        """
        offsets = self.offsets(seed)
        if not offsets:
            return self.function

        def moved(params: Mapping[str, Any]) -> float:
            return self.function(
                {
                    name: value - offsets[name] if name in offsets else value
                    for name, value in params.items()
                }
            )

        return moved

    def observe(self, value: float, seed: int, number: int) -> float:
        """Return what a sampler is told.

        Parameters
        ----------
        value : float
            The noise-free value.
        seed : int
            The seed of the run.
        number : int
            The trial, from 0. With the seed it decides the noise, so every sampler meets the same.

        Returns
        -------
        float
            The value plus noise.
        """
        if not self.noise:
            return value
        rng = np.random.default_rng([seed, number])
        if self.noise_freedom is None:
            return float(value + self.noise * rng.standard_normal())
        return float(value + self.noise * rng.standard_t(self.noise_freedom))


def suggest(trial: Trial, space: SearchSpace) -> dict[str, Any]:
    """Ask a trial for every active parameter of a space, each after the one it depends on.

    Parameters
    ----------
    trial : optuna.trial.Trial
        The trial to ask.
    space : SearchSpace
        The parameters.

    Returns
    -------
    dict
        The values of the active parameters.
    """
    values: dict[str, Any] = {}
    visited: set[str] = set()

    def visit(name: str) -> None:
        if name in visited:
            return
        visited.add(name)
        parameter = space[name]
        if (condition := parameter.condition) is not None:
            visit(condition.parent)
            parent_is_active = condition.parent in values
            if not parent_is_active or values[condition.parent] not in condition.values:
                return
        if isinstance(parameter, Categorical):
            choices: Any = parameter.choices  # objects of any type; Optuna checks them itself
            values[name] = trial.suggest_categorical(name, choices)
        elif isinstance(parameter, Float):
            values[name] = trial.suggest_float(
                name, parameter.low, parameter.high, step=parameter.step, log=parameter.log
            )
        else:
            values[name] = trial.suggest_int(
                name, parameter.low, parameter.high, step=parameter.step, log=parameter.log
            )

    for name in space:
        visit(name)
    return values
