"""What a benchmark problem is, and how an Optuna trial is asked for its parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from optuna.trial import Trial

from mondrian_bo.search_space import Categorical, Float, SearchSpace

__all__ = ["Problem", "suggest"]


@dataclass(frozen=True)
class Problem:
    """A function to minimise whose optimum is known.

    Attributes
    ----------
    name : str
        The name on the command line and in result directories.
    space : SearchSpace
        The parameters.
    function : callable
        Takes a mapping of the active parameters, returns the noise-free value.
    optimum : float
        The smallest value of `function`.
    budget : int
        The usual number of trials.
    tolerance : float
        A run has hit the optimum when it ends at most this far above it.
    noise : float
        Standard deviation of the Gaussian noise a sampler sees on top of `function`.
    description : str
        One line for listings.
    """

    name: str
    space: SearchSpace
    function: Callable[[Mapping[str, Any]], float]
    optimum: float
    budget: int
    tolerance: float = 1e-3
    noise: float = 0.0
    description: str = ""

    def observe(self, value: float, rng: np.random.Generator) -> float:
        """Return what a sampler is told when the noise-free value is `value`."""
        return value + self.noise * rng.standard_normal() if self.noise else value


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
