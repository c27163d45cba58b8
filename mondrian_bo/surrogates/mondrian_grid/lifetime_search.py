"""Searching for lifetimes, one for each dimension, on a grid model.

See Balog2016thesis, section 5.2 and 5.3.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np

from mondrian_bo.array_types import FloatArray, IntArray
from mondrian_bo.surrogates.mondrian_grid.model import GridModel

Criterion = Literal["validation_error", "log_marginal_likelihood"]


@dataclass
class LifetimeSearch:
    """What a search has tried.

    Attributes
    ----------
    criterion : {"validation_error", "log_marginal_likelihood"}
        What is minimised: the error, or minus the evidence.
    lifetimes : list of float64 arrays of shape (d,)
        The configurations that the search moved to, in order.
    scores : list of float
        Their criteria; smaller is better.
    n_evaluations : int
        How many configurations were evaluated, those included that were only looked at.
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
        """Return the score of a model as it is."""
        self.n_evaluations += 1
        if self.criterion == "validation_error":
            return model.validation_error()
        return -model.log_marginal_likelihood()

    def note(self, model: GridModel, score: float) -> None:
        """Note that the search is at the model's lifetimes."""
        self.lifetimes.append(model.lifetimes)
        self.scores.append(score)


class Strategy(Protocol):
    """A way to search; all of them leave the model at the lifetimes they came to last."""

    def __call__(self, model: GridModel, search: LifetimeSearch, n_steps: int) -> None:
        """Take so many steps from the model's lifetimes, and note them."""
        ...


class AskTell(Protocol):
    """An optimiser such as :class:`mondrian_bo.MondrianOptimizer`."""

    def ask(self) -> Mapping[str, Any]:
        """Return parameters to try."""
        ...

    def tell(self, params: Any, value: float) -> None:
        """Take the value of parameters, which is minimised."""
        ...


def search_lifetimes(
    model: GridModel,
    strategy: Strategy,
    n_steps: int,
    criterion: Criterion = "validation_error",
) -> LifetimeSearch:
    """Search for lifetimes from those of a model, which is left at the best ones found.

    Parameters
    ----------
    model : GridModel
        The model.
    strategy : callable
        One of :class:`Greedy`, :class:`SPSA` and :class:`AskTellSearch`.
    n_steps : int
        How many steps to take.
    criterion : {"validation_error", "log_marginal_likelihood"}, default="validation_error"
        What is best.

    Returns
    -------
    LifetimeSearch
        What was tried.

    Raises
    ------
    ValueError
        If the model does not have the criterion.
    """
    if criterion not in ("validation_error", "log_marginal_likelihood"):
        raise ValueError(
            f"criterion must be 'validation_error' or 'log_marginal_likelihood', got {criterion!r}"
        )
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
    """Step to the best neighbour: one cut more, or one less, in one dimension (section 5.2).

    Parameters
    ----------
    look_ahead : int, default=1
        How many cuts to look ahead in each dimension; the step is the first of these (section 5.3).
    removals : bool, default=False
        Whether to consider removing cuts too; then the search ends where no neighbour is better.
    """

    look_ahead: int = 1
    removals: bool = False

    def __call__(self, model: GridModel, search: LifetimeSearch, n_steps: int) -> None:
        """Take steps while there are any."""
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
        """Return the best score of the next cuts of a dimension, and come back."""
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
    (Spall 1992; section 5.3).

    Parameters
    ----------
    unit : float
        A small lifetime: about 1 over the range of the inputs.
    seed : int, default=0
        Seed of the directions.
    step : float, default=1.0
        Length of the first steps, in units of the logarithm, for a slope of the size of the score.
    perturbation : float, default=0.5
        Size of the first perturbations.
    """

    unit: float
    seed: int = 0
    step: float = 1.0
    perturbation: float = 0.5

    def __call__(self, model: GridModel, search: LifetimeSearch, n_steps: int) -> None:
        """Take steps, each with the sizes that Spall recommends."""
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
            slope = (scores[0] - scores[1]) / (2.0 * reach * scale)
            length = self.step / (k + 1 + 0.1 * n_steps) ** 0.602 * (1.0 + 0.1 * n_steps) ** 0.602
            place = np.maximum(place - np.clip(length * slope, -1.0, 1.0) * direction, 0.0)
            self._go(model, place)
            search.note(model, search.evaluate(model))

    def _go(self, model: GridModel, place: FloatArray) -> None:
        model.set_lifetimes(self.unit * np.expm1(np.maximum(place, 0.0)))


@dataclass(frozen=True)
class AskTellSearch:
    """Let an optimiser choose configurations: Bayesian optimisation of the lifetimes (section 5.3).

    Parameters
    ----------
    optimizer : AskTell
        A minimising optimiser, for instance a :class:`mondrian_bo.MondrianOptimizer`.
    lifetimes_of : callable
        Turns the optimiser's parameters into lifetimes, an array of shape (d,).
    """

    optimizer: AskTell
    lifetimes_of: Callable[[Mapping[str, Any]], FloatArray]

    def __call__(self, model: GridModel, search: LifetimeSearch, n_steps: int) -> None:
        """Ask, move and tell."""
        for _ in range(n_steps):
            params = self.optimizer.ask()
            model.set_lifetimes(np.asarray(self.lifetimes_of(params), dtype=np.float64))
            score = search.evaluate(model)
            self.optimizer.tell(params, score)
            search.note(model, score)
