"""The class of benchmark problems with constraints or several objectives, or of other packages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from mondrian_bo.benchmarks.problems.base import ListedProblem, missing_modules
from mondrian_bo.search_space import SearchSpace
from mondrian_bo.shared.array_types import FloatArray

__all__ = [
    "OutcomeFunction",
    "OutcomeProblem",
    "Outcomes",
    "VectorFunction",
    "of_point",
    "tabulated",
    "two_objectives",
    "vector_problem",
]


class Outcomes(NamedTuple):
    """What one evaluation returns.

    Attributes
    ----------
    values : tuple of float
        The objectives, all to be minimised.
    constraints : tuple of float
        At most 0 where the constraint holds, as in Optuna.
    """

    values: tuple[float, ...]
    constraints: tuple[float, ...] = ()

    @property
    def is_feasible(self) -> bool:
        """Whether every constraint holds."""
        return all(constraint <= 0.0 for constraint in self.constraints)


OutcomeFunction: TypeAlias = Callable[[Mapping[str, Any]], Outcomes]
"""Values and constraints as a function of the parameters by name."""

VectorFunction: TypeAlias = Callable[[FloatArray], Outcomes]
"""Values and constraints as a function of a vector."""


@dataclass(frozen=True, kw_only=True)
class OutcomeProblem(ListedProblem):
    """A problem without noise that may have constraints, several objectives, or both.

    The score of a run is minimised. With one objective it is the best feasible value so far, and
    `worst` before the first feasible trial. With several it is minus the hypervolume that the
    feasible trials dominate within `reference`. Further attributes are those of
    :class:`ListedProblem`.

    Attributes
    ----------
    function : callable
        Takes a mapping of the active parameters and returns `Outcomes`.
    n_objectives : int
        Number of objectives.
    n_constraints : int
        Number of constraints.
    worst : float
        Score of a run without a feasible trial, and largest score of one with it; unused with
        several objectives.
    reference : tuple of float
        Reference point of the hypervolume, fixed for all runs; empty with one objective.
    """

    function: OutcomeFunction
    n_objectives: int = 1
    n_constraints: int = 0
    worst: float = 0.0
    reference: tuple[float, ...] = ()

    @property
    def missing(self) -> tuple[str, ...]:
        """The required modules that are not installed; several objectives require moocore."""
        required = (*self.requires, *(("moocore",) if self.n_objectives > 1 else ()))
        return missing_modules(required)


def of_point(function: VectorFunction, space: SearchSpace) -> OutcomeFunction:
    """Return the function of parameters that evaluates a function of the vector of their values."""
    names = tuple(space)

    def evaluate(params: Mapping[str, Any]) -> Outcomes:
        return function(np.array([params[name] for name in names]))

    return evaluate


def vector_problem(
    name: str, space: SearchSpace, function: VectorFunction, **attributes: Any
) -> OutcomeProblem:
    """Return a problem whose function takes a vector; the parameters are as in `two_objectives`."""
    return OutcomeProblem(name=name, space=space, function=of_point(function, space), **attributes)


def tabulated(
    new: Callable[..., OutcomeProblem],
    columns: Sequence[str],
    table: Mapping[str, tuple[Any, ...]],
    descriptions: Mapping[str, str],
    group: str,
) -> tuple[OutcomeProblem, ...]:
    """Return the problems of a table.

    Parameters
    ----------
    new : callable
        `vector_problem` or `two_objectives`.
    columns : sequence of str
        The arguments of `new` that are in the table.
    table : mapping of str to tuple
        The arguments by name of the problem.
    descriptions : mapping of str to str
        One line for listings by name of the problem.
    group : str
        Group of all problems.
    """
    return tuple(
        new(
            name,
            **dict(zip(columns, row, strict=True)),
            group=group,
            description=descriptions[name],
        )
        for name, row in table.items()
    )


def two_objectives(
    name: str,
    space: SearchSpace,
    function: VectorFunction,
    volume: float,
    **attributes: Any,
) -> OutcomeProblem:
    """Return a problem with two objectives.

    Parameters
    ----------
    name : str
        Its name.
    space : SearchSpace
        Its parameters, numbers.
    function : callable
        Takes the vector of their values, float64 of shape (d,), and returns `Outcomes`.
    volume : float
        Hypervolume of the front within the reference point.
    **attributes : Any
        Further attributes of :class:`OutcomeProblem`.

    Returns
    -------
    OutcomeProblem
        The problem.
    """
    return vector_problem(name, space, function, n_objectives=2, optimum=-volume, **attributes)
