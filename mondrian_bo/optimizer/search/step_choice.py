"""Suggestions that follow from the trials without an acquisition: which kind, and when.

There are three kinds: the maximum of a drawn quadratic, a step of an evolution strategy, and a step
on a plateau.
"""

from __future__ import annotations

import numpy as np

from mondrian_bo.array_types import FloatArray
from mondrian_bo.optimizer.maximization.candidates import CandidateSearch, Maximize
from mondrian_bo.optimizer.maximization.valid_rows import ValidRows
from mondrian_bo.optimizer.models.outcome_model import OutcomeModel
from mondrian_bo.optimizer.search.portfolio import Arm
from mondrian_bo.optimizer.steps.plateau_step import plateau_steps

_TRIALS_PER_DIMENSION = 20
"""Number of trials for each parameter up to which a quadratic must predict nearly perfectly, if
that is less than :attr:`Arm.quadratic_after`: our choice. In a space of few dimensions a search is
near an optimum sooner."""

_FEWEST_PER_DIMENSION = 2
"""Smallest number of trials for each parameter that such a quadratic is fitted to: it has as many
coefficients without products of parameters."""

_EVOLUTION_AFTER = 300
"""Number of trials up to which there are no steps of an evolution strategy, our choice: until then
quadratics gain more on smooth functions. In spaces of many dimensions they begin when there are as
many trials as parents are chosen from (`evolution_step.py`)."""

_TRIALS_PER_ORTHANT = 8
"""The same for each of the 2^d orthants of the space, if that is less, our choice: a space of few
dimensions is explored sooner."""


def step(
    model: OutcomeModel,
    arm: Arm,
    candidate_search: CandidateSearch,
    find: Maximize,
    pending: FloatArray,
    valid: ValidRows | None,
) -> FloatArray | None:
    """Return a row that no acquisition chooses, in the shares of an arm.

    Parameters
    ----------
    model : OutcomeModel
        The model of the only objective, and its trials.
    arm : Arm
        The shares of the kinds.
    candidate_search : CandidateSearch
        Where to search; its random numbers decide.
    find : Maximize
        Maximises a drawn quadratic.
    pending : float64 array of shape (k, d)
        Trials that are running.
    valid : ValidRows or None
        Which rows may be suggested; None is all. `find` knows it, too.

    Returns
    -------
    float64 array of shape (d,) or None
        The row; None if an acquisition is to choose.
    """
    space, rng, trials = candidate_search.space, candidate_search.rng, model.trials
    n_trials, d = len(trials), space.n_dimensions
    if arm.plateau > 0.0 and trials.is_on_plateau() and rng.random() < arm.plateau:
        rows = plateau_steps(space, trials.rows, trials.values, pending, rng)
        for row in rows if valid is None else rows[valid.contains(rows)]:
            if not candidate_search.is_taken(row):
                return np.asarray(row)
    nearly_exact = n_trials <= min(arm.quadratic_after, _TRIALS_PER_DIMENSION * d)
    is_early = nearly_exact and n_trials < _FEWEST_PER_DIMENSION * d
    # A quadratic does not choose which parameters are active.
    is_partial = nearly_exact and bool(np.isnan(candidate_search.incumbents).any())
    quadratic = 0.0 if is_early or is_partial else arm.quadratic
    n_explored = min(_TRIALS_PER_ORTHANT * 2**d, _EVOLUTION_AFTER)
    evolution = arm.evolution if n_trials > n_explored and valid is None else 0.0
    if quadratic + evolution == 0.0:
        return None
    level = rng.random()
    drawn = model.draw_quadratic(space, rng, nearly_exact) if level < quadratic else None
    if drawn is not None:
        return find(drawn, candidate_search, drawn.climb)
    if level >= 1.0 - evolution:
        for row in model.draw_offspring(space, rng):
            if not candidate_search.is_taken(row):
                return np.asarray(row)
    return None
