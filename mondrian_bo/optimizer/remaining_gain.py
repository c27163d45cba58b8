"""What a search may still gain, by draws from the posterior.

The regret of a trial is the difference between the optimum and its expected value. Functions are
drawn from the model's posterior, jointly at the trial and at candidates for the optimum. In each
draw the best of these values minus the trial's is the regret.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mondrian_bo.acquisitions import UpperConfidenceBound
from mondrian_bo.acquisitions.base import mixture_moments
from mondrian_bo.array_types import FloatArray
from mondrian_bo.optimizer.candidates import perturb, spread
from mondrian_bo.optimizer.constraints import Constraints
from mondrian_bo.optimizer.local_search import climb
from mondrian_bo.optimizer.search import Search
from mondrian_bo.search_space import SearchSpace

_BOUNDS = (1.0, 3.0)
"""Deviations above the mean of the two bounds by which candidates are chosen, our choice: one
finds the present basin, the other unexplored regions."""

_SCREENED = 1024
"""Quasi-random points, and as many neighbours of the best trials, that are screened; our choice."""

_KEPT = 100
"""Candidates that are kept for each bound, our choice."""

_CLIMBED = 5
"""Candidates for each bound from which a local search starts, our choice."""

_STEPS = 20
"""Gradient steps of such a search, as in the search for the next trial."""

_FEASIBLE = 0.5
"""Smallest probability of being feasible of a candidate, our choice."""


class RemainingGain(NamedTuple):
    """The regret of the trial with the best predicted mean.

    Attributes
    ----------
    row : float64 array of shape (d,)
        The trial.
    regrets : float64 array of shape (n_draws,)
        Draws of its regret, in the units of the objective, >= 0.
    """

    row: FloatArray
    regrets: FloatArray


def remaining_gain(
    search: Search,
    space: SearchSpace,
    constraints: Constraints | None,
    n_draws: int,
    seed: Sequence[int],
) -> RemainingGain:
    """Draw the regret of the trial with the best predicted mean.

    Parameters
    ----------
    search : Search
        A search with one objective, at least one trial and, under constraints, a feasible one.
    space : SearchSpace
        The space.
    constraints : Constraints or None
        Models of the constraints.
    n_draws : int
        Number of draws.
    seed : sequence of int
        Seed of the randomness.
    """
    # The further number makes the draws differ from those of a suggestion.
    rng = np.random.default_rng([*seed, 1])
    (model, _), *_ = search.arms
    (model,) = model.models
    tried = search.trials.rows
    if constraints is not None:
        tried = search.trials.incumbents(feasible=True)
    means, _ = mixture_moments(model.predict(tried))
    best = tried[int(np.argmax(means))]
    screened = np.concatenate(
        [
            spread(space, 0, _SCREENED, rng.random(space.n_dimensions)),
            perturb(
                space, np.concatenate([best[None], search.trials.incumbents()]), _SCREENED, rng
            ),
        ]
    )
    kept = [best[None], search.trials.incumbents()]
    for kappa in _BOUNDS:
        score, gradients = model.score(UpperConfidenceBound(kappa), rng)
        order = np.argsort(-score(screened), kind="stable")[:_KEPT]
        kept.append(screened[order])
        if gradients is not None:
            kept.append(space.snap(climb(gradients, space, screened[order[:_CLIMBED]], _STEPS)))
    rows = np.concatenate(kept)
    if constraints is not None:
        good = np.exp(constraints.log_probability(rows)) >= _FEASIBLE
        good[0] = True
        rows = rows[good]
    draws = model.transform.inverse(model.draw_at(rows, n_draws, rng))
    return RemainingGain(best, np.asarray(draws.max(axis=1) - draws[:, 0]))
