"""Searches for the lifetimes of a grid model, one lifetime for each dimension.

See Balog2016thesis, sections 5.2 and 5.3.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, get_args

import numpy as np
from numpy.typing import ArrayLike

from mondrian_bo.shared.argument_checks import check_count, check_number
from mondrian_bo.shared.array_types import FloatArray, IntArray
from mondrian_bo.surrogates.mondrian_grid.model import GridModel
from mondrian_bo.surrogates.mondrian_kernel.lifetime_paths.lifetime_path import Criterion
from mondrian_bo.surrogates.shared.lifetimes import check_criterion


@dataclass
class LifetimeSearch:
    """The lifetimes that a search has tried, and their scores.

    Attributes
    ----------
    criterion : {"validation_error", "log_marginal_likelihood"}
        What the scores are: the error, or minus the log evidence.
    lifetimes : list of float64 arrays of shape (d,)
        The configurations to which the search moved, in order.
    scores : list of float
        Their scores; smaller is better.
    n_evaluations : int
        Number of evaluated configurations, including those to which the search did not move.
    """

    criterion: Criterion
    lifetimes: list[FloatArray] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    n_evaluations: int = 0

    @property
    def best_lifetimes(self) -> FloatArray:
        """The configuration with the best score."""
        return self.lifetimes[int(np.argmin(self.scores))]

    @property
    def best_score(self) -> float:
        """The best score."""
        return min(self.scores)

    def relevant_features(self, threshold: float) -> IntArray:
        """Return the dimensions whose best lifetime is at least a threshold."""
        return np.flatnonzero(self.best_lifetimes >= threshold)

    def evaluate(self, model: GridModel) -> float:
        """Return the score of a model at its current lifetimes."""
        self.n_evaluations += 1
        if self.criterion == "validation_error":
            return model.validation_error()
        return -model.log_marginal_likelihood()

    def note(self, model: GridModel, score: float) -> None:
        """Record that the search has moved to the model's lifetimes."""
        self.lifetimes.append(model.lifetimes)
        self.scores.append(score)


class Strategy(Protocol):
    """A search strategy; it leaves the model at the lifetimes to which it moved last."""

    def __call__(self, model: GridModel, search: LifetimeSearch, n_steps: int) -> None:
        """Take `n_steps` steps from the model's lifetimes, and record them."""
        ...


class AskTell(Protocol):
    """A minimising optimiser, such as :class:`mondrian_bo.MondrianOptimizer`."""

    def ask(self) -> Mapping[str, Any]:
        """Return parameters to evaluate."""
        ...

    def tell(self, params: Any, value: float) -> None:
        """Learn the value of parameters, which is minimised."""
        ...


def search_lifetimes(
    model: GridModel,
    strategy: Strategy,
    n_steps: int,
    criterion: Criterion = "validation_error",
) -> LifetimeSearch:
    """Search for the best lifetimes from those of a model, and set the model to them.

    Parameters
    ----------
    model : GridModel
        The model.
    strategy : callable
        One of :class:`Greedy`, :class:`SPSA` and :class:`AskTellSearch`.
    n_steps : int
        Number of steps, at least 0.
    criterion : {"validation_error", "log_marginal_likelihood"}, default="validation_error"
        What to optimise.

    Returns
    -------
    LifetimeSearch
        The lifetimes that were tried.

    Raises
    ------
    TypeError
        If `n_steps` is not an integer.
    ValueError
        If `n_steps` is negative, or the model does not have the criterion.
    """
    check_criterion(criterion, get_args(Criterion))
    check_count("n_steps", n_steps, 0)
    search = LifetimeSearch(criterion)
    score = search.evaluate(model)
    if np.isnan(score):
        raise ValueError("a validation error needs validation points")
    search.note(model, score)
    strategy(model, search, n_steps)
    model.set_lifetimes(search.best_lifetimes)
    return search


@dataclass(frozen=True)
class Greedy:
    """Step to the best neighbour, which has one cut more or one less (Balog2016thesis, 5.2).

    Parameters
    ----------
    look_ahead : int, default=1
        Number of cuts in each dimension whose scores are compared; the step is the first of these
        cuts (Balog2016thesis, section 5.3).
    removals : bool, default=False
        Whether to remove cuts too; then the search ends where no neighbour is better.

    Raises
    ------
    TypeError, ValueError
        If `look_ahead` is not an integer that is at least 1.
    """

    look_ahead: int = 1
    removals: bool = False

    def __post_init__(self) -> None:
        check_count("look_ahead", self.look_ahead, 1)

    def __call__(self, model: GridModel, search: LifetimeSearch, n_steps: int) -> None:
        """Take steps until no move is left."""
        for _ in range(n_steps):
            start = search.scores[-1]
            moves = []
            for d in range(len(model.lifetimes)):
                for sign in (1, -1) if self.removals else (1,):
                    first = model.cells.cut_time(d, sign)
                    if first is not None:
                        score = self._look(model, search, d, sign)
                        moves.append((score, d, first))
            if not moves:
                return
            score, dimension, lifetime = min(moves)
            if self.removals and score >= start:
                return
            model.set_lifetime(dimension, lifetime)
            search.note(model, search.evaluate(model))

    def _look(self, model: GridModel, search: LifetimeSearch, dimension: int, sign: int) -> float:
        """Return the best score of the next cuts of a dimension; restore the model."""
        before = float(model.lifetimes[dimension])
        best = np.inf
        for _ in range(self.look_ahead):
            lifetime = model.cells.cut_time(dimension, sign)
            if lifetime is None:
                break
            model.set_lifetime(dimension, lifetime)
            best = min(best, search.evaluate(model))
        model.set_lifetime(dimension, before)
        return best


@dataclass(frozen=True)
class SPSA:
    """Simultaneous perturbation stochastic approximation, on log(1 + lifetime / unit).

    Each step evaluates two configurations on opposite sides, whatever the number of dimensions
    (Spall 1992; Balog2016thesis, section 5.3).

    Parameters
    ----------
    unit : float
        A small lifetime, about 1 over the range of the inputs.
    seed : int, default=0
        Seed of the directions.
    step : float, default=1.0
        Length of the first steps on the logarithmic scale, for a gradient as large as the score.
    perturbation : float, default=0.5
        Size of the first perturbations, on the logarithmic scale.

    Raises
    ------
    TypeError, ValueError
        If `unit`, `step` or `perturbation` is not a finite number above 0.
    """

    unit: float
    seed: int = 0
    step: float = 1.0
    perturbation: float = 0.5

    def __post_init__(self) -> None:
        for name in ("unit", "step", "perturbation"):
            _check_positive(name, getattr(self, name))

    def __call__(self, model: GridModel, search: LifetimeSearch, n_steps: int) -> None:
        """Take steps whose sizes fall with the exponents 0.101 and 0.602 that Spall recommends."""
        rng = np.random.default_rng(self.seed)
        place = np.log1p(model.lifetimes / self.unit)
        scale = abs(search.scores[0]) or 1.0
        for k in range(n_steps):
            reach = self.perturbation / (k + 1) ** 0.101
            direction = rng.choice([-1.0, 1.0], size=len(place))
            scores = []
            for sign in (1.0, -1.0):
                self._go(model, place + sign * reach * direction)
                scores.append(search.evaluate(model))
            gradient = (scores[0] - scores[1]) / (2.0 * reach * scale)
            length = self.step / (k + 1 + 0.1 * n_steps) ** 0.602 * (1.0 + 0.1 * n_steps) ** 0.602
            place = np.maximum(place - np.clip(length * gradient, -1.0, 1.0) * direction, 0.0)
            self._go(model, place)
            search.note(model, search.evaluate(model))

    def _go(self, model: GridModel, place: FloatArray) -> None:
        model.set_lifetimes(self.unit * np.expm1(np.maximum(place, 0.0)))


@dataclass(frozen=True)
class AskTellSearch:
    """Configurations from an ask-and-tell optimiser (Balog2016thesis, section 5.3).

    Parameters
    ----------
    optimizer : AskTell
        A minimising optimiser, for instance a :class:`mondrian_bo.MondrianOptimizer`.
    lifetimes_of : callable
        Converts the optimiser's parameters to lifetimes, an array-like of shape (d,).
    """

    optimizer: AskTell
    lifetimes_of: Callable[[Mapping[str, Any]], ArrayLike]

    def __call__(self, model: GridModel, search: LifetimeSearch, n_steps: int) -> None:
        """Ask for configurations, evaluate them and tell their scores."""
        for _ in range(n_steps):
            params = self.optimizer.ask()
            model.set_lifetimes(self.lifetimes_of(params))
            score = search.evaluate(model)
            self.optimizer.tell(params, score)
            search.note(model, score)


def _check_positive(name: str, value: float) -> None:
    """Raise TypeError or ValueError unless a setting is a finite number above 0."""
    check_number(name, value)
    if not 0.0 < value < math.inf:
        raise ValueError(f"`{name}` must be finite and above 0, got {value}.")
