"""Published problems of many categorical parameters. Each seed is another instance."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from mondrian_bo.benchmarks.problems.base import Objective, Problem
from mondrian_bo.search_space import Categorical, SearchSpace
from mondrian_bo.shared.array_types import FloatArray, IntArray

__all__ = ["CATEGORICAL_PROBLEMS", "CategoricalProblem"]

_Choices: TypeAlias = Callable[[IntArray], float]
"""A function of the numbers of the choices, int64 of shape (d,)."""

_N_SIMULATIONS = 100
"""Simulations of which the stochastic problems are means, as in Oh2019."""

_THRESHOLD = 0.1
"""Share of pests or of contaminated food that is still acceptable, as in Oh2019."""

_SHARE_ABOVE = 0.05
"""Share of simulations that may exceed the threshold, as in Oh2019."""


@dataclass(frozen=True, kw_only=True)
class CategoricalProblem(Problem):
    """A problem whose parameters are categorical and have the same choices, 0, 1 and so on.

    Attributes
    ----------
    draw : callable
        Maps a random generator to an instance: a function of the numbers of the choices.
    """

    draw: Callable[[np.random.Generator], _Choices]

    def instance(self, seed: int) -> Objective:
        """Return the instance of a seed.

        Each parameter has its own order of the choices, so that no number is better by itself.
        """
        rng = np.random.default_rng(seed)
        objective = self.draw(rng)
        n_choices = int(self.space.n_choices[0])
        orders = np.array([rng.permutation(n_choices) for _ in self.space.names])

        def relabelled(params: Mapping[str, Any]) -> float:
            chosen = np.array([params[name] for name in self.space.names])
            return objective(orders[np.arange(len(orders)), chosen])

        return relabelled


def _problem(
    name: str,
    n_parameters: int,
    n_choices: int,
    draw: Callable[[np.random.Generator], _Choices],
    description: str,
    optimum: float | None = None,
) -> CategoricalProblem:
    choices = tuple(range(n_choices))

    def first_instance(params: Mapping[str, Any]) -> float:
        return problem.instance(0)(params)

    problem = CategoricalProblem(
        name=name,
        space=SearchSpace({f"x{i}": Categorical(choices) for i in range(n_parameters)}),
        function=first_instance,
        optimum=optimum,
        budget=100,
        group="categorical",
        half="held-out",
        description=description,
        draw=draw,
    )
    return problem


def _autocorrelation(x: IntArray) -> float:
    """Energy of a sequence of -1 and 1 (Golay1977): small if it resembles no shift of itself."""
    signs = 2 * x - 1
    return float(sum(int(signs[k:] @ signs[:-k]) ** 2 for k in range(1, len(signs))))


def _draw_contamination(rng: np.random.Generator) -> _Choices:
    """Contamination control (Hu2010, Oh2019): where to clean the stages of a food chain."""
    n = 25
    first = rng.beta(1.0, 30.0, _N_SIMULATIONS)
    spread = rng.beta(1.0, 17.0 / 3.0, (n, _N_SIMULATIONS))
    cleaned = rng.beta(1.0, 3.0 / 7.0, (n, _N_SIMULATIONS))

    def cost(x: IntArray) -> float:
        share, total = first, float(x.sum())
        for i in range(n):
            share = np.where(
                x[i] == 1, (1.0 - cleaned[i]) * share, spread[i] * (1.0 - share) + share
            )
            total -= float(np.mean(share < _THRESHOLD)) - (1.0 - _SHARE_ABOVE)
        return total

    return cost


_PESTICIDES = np.array(
    [
        # price, largest discount, beta of the effect, growth of beta by tolerance
        [1.0, 0.2, 2.0 / 7.0, 1.0 / 7.0],
        [0.8, 0.3, 3.0 / 7.0, 2.5 / 7.0],
        [0.7, 0.3, 3.0 / 7.0, 2.0 / 7.0],
        [0.5, 0.0, 5.0 / 7.0, 0.5 / 7.0],
    ]
)
"""The four pesticides of Oh2019."""


def _draw_pest(rng: np.random.Generator) -> _Choices:
    """Pest control (Oh2019): which pesticide, if any, to use at each of 21 stages.

    Pests count after the action of a stage; in the code of Oh2019 they count before it, so that the
    last action has no effect.
    """
    n = 21
    first = rng.beta(1.0, 30.0, _N_SIMULATIONS)
    spread = rng.beta(1.0, 17.0 / 3.0, (n, _N_SIMULATIONS))
    uniform = rng.random((n, _N_SIMULATIONS))

    def cost(x: IntArray) -> float:
        share, paid, above = first, 0.0, 0.0
        betas = _PESTICIDES[:, 2].copy()
        for i in range(n):
            if x[i] == 0:
                share = spread[i] * (1.0 - share) + share
            else:
                price, discount, _, growth = _PESTICIDES[x[i] - 1]
                # The inverse of the distribution function of Beta(1, b).
                effect = 1.0 - (1.0 - uniform[i]) ** (1.0 / betas[x[i] - 1])
                share = (1.0 - effect) * share
                betas[x[i] - 1] += growth / n
                paid += price * (1.0 - discount / n * int((x == x[i]).sum()))
            above += float(np.mean(share > _THRESHOLD))
        return paid + above

    return cost


def _draw_quadratic(rng: np.random.Generator) -> _Choices:
    """Quadratic of binary variables, with the densities of Beasley1998: a tenth of the pairs."""
    n = 40
    weights = np.where(rng.random((n, n)) < 0.1, rng.integers(-100, 101, (n, n)), 0)
    weights[np.arange(n), np.arange(n)] = rng.integers(-100, 101, n)
    return lambda x: float(-(x @ np.triu(weights) @ x))


def _draw_landscape(rng: np.random.Generator) -> _Choices:
    """NK landscape (Kauffman1987): each of 20 parameters interacts with three others."""
    n, k, q = 20, 3, 4
    others = np.array([rng.choice(np.delete(np.arange(n), i), k, replace=False) for i in range(n)])
    tables: FloatArray = rng.random((n, q, q, q, q))

    def fitness(x: IntArray) -> float:
        values = [tables[(i, x[i], *x[others[i]])] for i in range(n)]
        return float(-np.mean(values))

    return fitness


def _draw_features(rng: np.random.Generator) -> _Choices:
    """Error rate of nearest neighbours on some of the 30 features of the breast cancer data."""
    from sklearn.datasets import load_breast_cancer
    from sklearn.model_selection import StratifiedKFold, cross_val_score
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.preprocessing import scale

    points, labels = load_breast_cancer(return_X_y=True)
    points = scale(points)
    folds = StratifiedKFold(5, shuffle=True, random_state=int(rng.integers(2**31)))

    def error(x: IntArray) -> float:
        if not x.any():
            return 0.5
        scores = cross_val_score(KNeighborsClassifier(), points[:, x == 1], labels, cv=folds)
        return float(1.0 - scores.mean())

    return error


CATEGORICAL_PROBLEMS: tuple[CategoricalProblem, ...] = (
    _problem(
        "labs_30",
        30,
        2,
        lambda rng: _autocorrelation,
        "energy of a binary sequence of 30 elements (autocorrelation)",
        optimum=59.0,
    ),
    _problem("contamination_25", 25, 2, _draw_contamination, "cleaning 25 stages of a food chain"),
    _problem("pest_21", 21, 5, _draw_pest, "four pesticides at 21 stages"),
    _problem("qubo_40", 40, 2, _draw_quadratic, "a quadratic of 40 binary variables"),
    _problem("nk_20", 20, 4, _draw_landscape, "an NK landscape of 20 parameters with 4 choices"),
    _problem(
        "features_cancer",
        30,
        2,
        _draw_features,
        "error rate of nearest neighbours on chosen features of breast cancer",
    ),
)
"""Problems with twenty to forty categorical parameters."""
