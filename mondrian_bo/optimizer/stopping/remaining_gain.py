"""What a search may still gain, by draws from the posterior.

The regret of a trial is the difference between the optimum and its expected value. Functions are
drawn from the posterior of the cautious model
(:mod:`mondrian_bo.optimizer.stopping.cautious_model`), jointly at the trial and at candidates for
the optimum. In each draw the best of these values minus the trial's is the regret. The candidates'
values have the noise of the model, as it may be structure of the objective. In a conditional space
a model of each branch's own trials draws regrets too, and the largest one of a draw counts. A
branch with too few trials is unknown, whatever the draws are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mondrian_bo.acquisitions import UpperConfidenceBound
from mondrian_bo.acquisitions.base import mixture_moments
from mondrian_bo.optimizer.constraints.constraints import Constraints
from mondrian_bo.optimizer.maximization.candidates import perturb, quasi_random_rows
from mondrian_bo.optimizer.maximization.local_search import climb
from mondrian_bo.optimizer.maximization.valid_rows import ValidRows
from mondrian_bo.optimizer.models.outcome_model import OutcomeModel
from mondrian_bo.optimizer.search.search import Search
from mondrian_bo.optimizer.stopping.branches import branches
from mondrian_bo.optimizer.stopping.cautious_model import (
    CAREFUL,
    Caution,
    cautious_model,
    roughened,
)
from mondrian_bo.search_space import SearchSpace
from mondrian_bo.shared.array_types import BoolArray, FloatArray

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
        Draws of its regret, in the units of the objective, >= 0 and finite.
    is_known : bool
        Whether all branches of the space that have a valid point have enough trials. If not, no
        regret is an upper bound.
    """

    row: FloatArray
    regrets: FloatArray
    is_known: bool = True

    @property
    def mean(self) -> float:
        """The mean of the regrets."""
        # Sums of the largest values would overflow. A power of two is an exact factor.
        exponent = int(np.frexp(self.regrets.max())[1])
        mean = np.ldexp(np.mean(np.ldexp(self.regrets, -exponent)), exponent)
        return float(min(mean, self.regrets.max()))


def remaining_gain(
    search: Search,
    space: SearchSpace,
    constraints: Constraints | None,
    n_draws: int,
    seed: Sequence[int],
    caution: Caution = CAREFUL,
    among: FloatArray | None = None,
    valid: ValidRows | None = None,
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
    caution : Caution, default=CAREFUL
        How careful the estimate is.
    among : float64 array of shape (m, d) or None, default=None
        Rows of the trials that the best one is chosen from, m >= 1. None is all trials, and under
        constraints the best feasible ones.
    valid : ValidRows or None, default=None
        Which rows may be the optimum; None is all.
    """
    # The further number makes the draws differ from those of a suggestion.
    rng = np.random.default_rng([*seed, 1])
    (model, _), *_ = search.arms
    (model,) = model.models
    tried = among
    if tried is None:
        trials = search.trials
        tried = trials.rows if constraints is None else trials.best_rows(eligible=True)
    means, _ = mixture_moments(model.predict(tried))
    best = tried[int(np.argmax(means))]
    near = np.concatenate([best[None], search.trials.best_rows()])
    screened = np.concatenate(
        [
            quasi_random_rows(space, 0, _SCREENED, rng.random(space.n_dimensions)),
            perturb(space, near, _SCREENED, rng),
        ]
    )
    cautious = cautious_model(model, best, caution)
    rows = _candidates(cautious, space, near, _valid_ones(screened, valid), rng)
    good = _are_feasible(rows, constraints, valid)
    good[0] = True
    draws = _draws(cautious, rows[good], 1, n_draws, rng, caution)
    regrets = _gaps(draws.max(axis=1), draws[:, 0])
    parts = branches(space, search.trials.rows, rng, valid) if caution.branches else []
    if not all(branch.is_known for branch in parts):
        # Nothing is known of a branch. As much as the trials differ is only a guess of its gain.
        values = model.trials.values[np.isfinite(model.trials.values)]
        return RemainingGain(best, np.maximum(regrets, _gaps(values.max(), values.min())), False)
    value = float(model.transform.inverse(means.max()))
    for branch in parts:
        # The model of the branch's trials alone.
        own = model.trials.chosen(branch.trials)
        fitted = OutcomeModel(model.new_surrogate, own, model.new_transform)
        rough = roughened(fitted, own, caution.lengthscales)
        points = _valid_ones(branch.points, valid)
        rows = _candidates(rough, space, own.best_rows(), points, rng)
        rows = rows[_are_feasible(rows, constraints, valid)]
        if len(rows):
            draws = _draws(rough, rows, 0, n_draws, rng, caution)
            regrets = np.maximum(regrets, _gaps(draws.max(axis=1), value))
    return RemainingGain(best, regrets)


def _gaps(high: FloatArray, low: FloatArray | float) -> FloatArray:
    """Return differences, at most the largest float."""
    with np.errstate(over="ignore"):
        return np.minimum(high - low, np.finfo(np.float64).max)


def _draws(
    model: OutcomeModel,
    rows: FloatArray,
    n_expected: int,
    n_draws: int,
    rng: np.random.Generator,
    caution: Caution,
) -> FloatArray:
    """Draw values at rows, shape (n_draws, m), in the units of the objective.

    Those of the first `n_expected` rows are expected values, without structure.
    """
    draws = model.draw_at(rows, n_draws, rng)
    if caution.structure:
        steps = rng.standard_normal((n_draws, len(rows) - n_expected))
        draws[:, n_expected:] += model.noise(rows[n_expected:]) * steps
    return np.asarray(model.transform.inverse(draws))


def _candidates(
    model: OutcomeModel,
    space: SearchSpace,
    first: FloatArray,
    screened: FloatArray,
    rng: np.random.Generator,
) -> FloatArray:
    """Return candidates for the optimum: the first rows, and those with the best bounds."""
    kept = [first]
    for kappa in _BOUNDS:
        score, gradients = model.score(UpperConfidenceBound(kappa), rng)
        order = np.argsort(-score(screened), kind="stable")[:_KEPT]
        kept.append(screened[order])
        if gradients is not None:
            kept.append(space.snap(climb(gradients, space, screened[order[:_CLIMBED]], _STEPS)))
    return np.concatenate(kept)


def _are_feasible(
    rows: FloatArray, constraints: Constraints | None, valid: ValidRows | None
) -> BoolArray:
    """Return which rows are valid and probably feasible, shape (m,)."""
    good = np.ones(len(rows), dtype=np.bool_) if valid is None else valid.contains(rows)
    if constraints is not None:
        good &= np.exp(constraints.log_probability(rows)) >= _FEASIBLE
    return good


def _valid_ones(rows: FloatArray, valid: ValidRows | None) -> FloatArray:
    """Return the rows that are valid, shape (k, d)."""
    return rows if valid is None else rows[valid.contains(rows)]
