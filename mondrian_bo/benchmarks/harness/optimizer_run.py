"""Our optimizer's ask-and-tell loop without a framework, for programs that look into the model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Self

from mondrian_bo.benchmarks.problems import Problem
from mondrian_bo.optimizer.optimizer import MondrianOptimizer
from mondrian_bo.search_space import SearchSpace

__all__ = ["OptimizerRun", "Trial"]

_SEARCH = 7
"""What the seed of a search has beside that of its problem. It keeps their random numbers apart."""


class Trial(NamedTuple):
    """A finished trial.

    Attributes
    ----------
    params : dict
        The parameters.
    value : float
        The noise-free value.
    observed : float
        The value that the optimizer is told.
    """

    params: dict[str, Any]
    value: float
    observed: float


class OptimizerRun:
    """A search by :class:`MondrianOptimizer`, trial by trial.

    Parameters
    ----------
    space : SearchSpace
        The parameters.
    function : callable
        Takes the parameters and returns the noise-free value, which is minimised.
    seed : sequence of int
        The seed of the optimizer.
    observe : callable, optional
        Takes a value and the number of the trial, from 0, and returns the value that the optimizer
        is told. By default there is no noise.
    **settings : object
        Further arguments of the optimizer.

    Attributes
    ----------
    optimizer : MondrianOptimizer
        The optimizer.
    """

    def __init__(
        self,
        space: SearchSpace,
        function: Callable[[Mapping[str, Any]], float],
        seed: Sequence[int],
        observe: Callable[[float, int], float] | None = None,
        **settings: Any,
    ) -> None:
        self.optimizer = MondrianOptimizer(space, seed=seed, **settings)
        self._function = function
        self._observe = observe
        self._n_trials = 0

    @classmethod
    def of(cls, problem: Problem, seed: int, **settings: Any) -> Self:
        """Return a search of a problem on the instance of a seed, with the noise of that seed."""

        def observe(value: float, number: int) -> float:
            return problem.observe(value, seed, number)

        function = problem.instance(seed)
        return cls(problem.space, function, [seed, _SEARCH], observe, **settings)

    def step(self, params: dict[str, Any] | None = None) -> Trial:
        """Run a trial.

        Parameters
        ----------
        params : dict, optional
            The parameters. By default the optimizer suggests them.

        Returns
        -------
        Trial
            The trial, which the optimizer knows.
        """
        if params is None:
            params = self.optimizer.ask()
        value = observed = self._function(params)
        if self._observe is not None:
            observed = self._observe(value, self._n_trials)
        self.optimizer.tell(params, observed)
        self._n_trials += 1
        return Trial(params, value, observed)
