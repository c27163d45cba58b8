"""Ax's ask-and-tell loop: problems run through its client, with our strategies or its default."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from mondrian_bo.search_space import Categorical, Float, SearchSpace

if TYPE_CHECKING:
    from ax.api.client import Client

__all__ = ["AxRun", "Strategy", "configure"]

Strategy: TypeAlias = Literal["default", "predictive", "candidate"]
"""Ax's default strategy, or ours on one of its routes."""


class AxRun:
    """One Ax experiment, which is asked for trials of a problem and told their outcomes.

    Parameters
    ----------
    space : SearchSpace
        The problem's parameters. Conditional ones are refused: Ax only takes trees of parameters.
    strategy : {"default", "predictive", "candidate"}
        Ax's default, or ours on one of its routes.
    seed : int
        Seed of the strategy.
    n_objectives : int, default=1
        Number of objectives, all minimised.
    n_constraints : int, default=0
        Number of constraints, which hold where they are at most 0.
    **settings : object
        Further arguments of :func:`mondrian_bo.integrations.ax.mondrian_generation_strategy`.

    Raises
    ------
    ValueError
        If the space is conditional.
    """

    def __init__(
        self,
        space: SearchSpace,
        strategy: Strategy,
        seed: int,
        n_objectives: int = 1,
        n_constraints: int = 0,
        **settings: Any,
    ) -> None:
        from ax.api.client import Client

        for name in list(logging.root.manager.loggerDict):
            if name.startswith("ax"):
                logging.getLogger(name).setLevel(logging.ERROR)
        self.client = Client(random_seed=seed)
        self.client.configure_experiment(parameters=list(_configs(space)))
        self._objectives = [f"value{k}" for k in range(n_objectives)]
        self._constraints = [f"constraint{k}" for k in range(n_constraints)]
        self.client.configure_optimization(
            objective=", ".join(f"-{name}" for name in self._objectives),
            outcome_constraints=[f"{name} <= 0" for name in self._constraints],
        )
        configure(self.client, strategy, seed, **settings)
        self._running: dict[int, int] = {}
        self._n_asked = 0

    def ask(self) -> tuple[dict[str, Any], float]:
        """Return the next parameterization and the seconds it took; the first has number 0."""
        started = time.perf_counter()
        ((index, parameters),) = self.client.get_next_trials(1).items()
        self._running[self._n_asked] = index
        self._n_asked += 1
        return dict(parameters), time.perf_counter() - started

    def tell(
        self, number: int, values: float | Sequence[float], constraints: Sequence[float] = ()
    ) -> float:
        """Report the outcomes of a running trial; return the seconds it took."""
        started = time.perf_counter()
        self._complete(self._running.pop(number), values, constraints)
        return time.perf_counter() - started

    def attach(self, parameters: Mapping[str, Any], value: float) -> None:
        """Add a trial that was not suggested."""
        self._complete(self.client.attach_trial(dict(parameters)), value, ())

    def _complete(
        self, index: int, values: float | Sequence[float], constraints: Sequence[float]
    ) -> None:
        numbers = [values] if isinstance(values, float | int) else values
        outcomes = dict(zip(self._objectives, numbers, strict=True))
        outcomes |= zip(self._constraints, constraints, strict=True)
        self.client.complete_trial(index, raw_data=outcomes)


def configure(client: Client, strategy: Strategy, seed: int, **settings: Any) -> None:
    """Set the strategy of an experiment; the parameters are those of :class:`AxRun`."""
    if strategy == "default":
        client.configure_generation_strategy(initialization_random_seed=seed)
        return
    from mondrian_bo.integrations.ax import mondrian_generation_strategy

    settings = {"initialization": "none", **settings}
    predictive = strategy == "predictive"
    client.set_generation_strategy(
        mondrian_generation_strategy(seed, predictive=predictive, **settings)
    )


def _configs(space: SearchSpace) -> Iterator[Any]:
    from ax.api.configs import ChoiceParameterConfig, RangeParameterConfig

    for name, parameter in space.items():
        if parameter.condition is not None:
            raise ValueError("Ax takes conditional parameters only in the form of trees.")
        if isinstance(parameter, Categorical):
            kind = type(parameter.choices[0]).__name__
            yield ChoiceParameterConfig(name, list(parameter.choices), kind, is_ordered=False)
        else:
            kind = "float" if isinstance(parameter, Float) else "int"
            scaling = "log" if parameter.log else "linear"
            step = parameter.step if kind == "float" or parameter.step != 1 else None
            bounds = (parameter.low, parameter.high)
            yield RangeParameterConfig(name, bounds, kind, step_size=step, scaling=scaling)
