"""The class of benchmark problems, and how an Optuna trial is asked for their parameters."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Literal, TypeAlias

import numpy as np
from optuna.trial import Trial

from mondrian_bo.search_space import Categorical, Float, SearchSpace

__all__ = [
    "USUAL_BUDGET",
    "Half",
    "ListedProblem",
    "Objective",
    "Problem",
    "missing_modules",
    "problem",
    "suggest",
]

Objective: TypeAlias = Callable[[Mapping[str, Any]], float]
"""A function of the parameters by name."""

Half: TypeAlias = Literal["development", "held-out"]
"""Whether defaults may be chosen on a problem, or not."""

USUAL_BUDGET = 200
"""Trials per run, the usual length of a study."""


def missing_modules(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return those of some modules that are not installed."""
    return tuple(name for name in names if find_spec(name) is None)


@dataclass(frozen=True, kw_only=True)
class ListedProblem:
    """What all benchmark problems have.

    Attributes
    ----------
    name : str
        The name on the command line and in result directories.
    space : SearchSpace
        The parameters.
    function : callable
        Takes a mapping of the active parameters.
    optimum : float or None
        The smallest score of a run that is possible; None if it is unknown.
    budget : int
        The usual number of trials.
    group : str
        Kind of problem; reports average over groups.
    half : {"development", "held-out"}
        Defaults may be chosen on development problems; held-out problems check the choice.
    tolerance : float
        A run has solved the problem if its score ends at most this far above the optimum.
    description : str
        One line for listings.
    requires : tuple of str
        Modules that the function or the score need, if they are optional.
    """

    name: str
    space: SearchSpace
    function: Callable[[Mapping[str, Any]], Any]
    optimum: float | None
    budget: int = USUAL_BUDGET
    group: str
    half: Half = "development"
    tolerance: float = 1e-3
    description: str = ""
    requires: tuple[str, ...] = ()

    @property
    def missing(self) -> tuple[str, ...]:
        """The required modules that are not installed."""
        return missing_modules(self.requires)


@dataclass(frozen=True, kw_only=True)
class Problem(ListedProblem):
    """A function to be minimised by all samplers.

    The score of a run is the best noise-free value so far. Further attributes are those of
    :class:`ListedProblem`.

    Attributes
    ----------
    function : callable
        Takes a mapping of the active parameters and returns the noise-free value.
    noise : float
        Scale of the noise that is added to `function`: its standard deviation if Gaussian.
    noise_freedom : float or None
        Degrees of freedom of Student t noise, which is multiplied by `noise`; None means Gaussian
        noise.
    shift : float
        Each seed shifts the function along every float parameter on a linear scale, by up to this
        share of its range. The function must be defined that far outside the box, must not fall
        below the optimum there, and its minimiser must stay in the box.
    """

    function: Objective
    noise: float = 0.0
    noise_freedom: float | None = None
    shift: float = 0.0

    def offsets(self, seed: int) -> dict[str, float]:
        """Return the shifts of a seed by parameter.

        Parameters
        ----------
        seed : int
            The seed of a run.

        Returns
        -------
        dict of str to float
            Uniform within plus and minus `shift` times the range; equal for all samplers.
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
        """Return the noise-free function, moved by the shifts of a run's seed."""
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
        """Return the noisy value that a sampler is told.

        Parameters
        ----------
        value : float
            The noise-free value.
        seed : int
            The seed of the run.
        number : int
            The trial, from 0. Seed and number determine the noise, so it is equal for all samplers.

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


def problem(
    name: str,
    space: SearchSpace,
    function: Objective,
    description: str,
    budget: int = USUAL_BUDGET,
    **facts: Any,
) -> Problem:
    """Return a problem; `facts` are further attributes of :class:`Problem`."""
    return Problem(
        name=name, space=space, function=function, description=description, budget=budget, **facts
    )


def suggest(trial: Trial, space: SearchSpace) -> dict[str, Any]:
    """Ask a trial for every active parameter of a space; parents come before their children.

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
