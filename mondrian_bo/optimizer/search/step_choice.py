"""Suggestions that follow from the trials without an acquisition: which kind, and when.

There are three kinds: the maximum of a drawn quadratic, a step of an evolution strategy, and a step
on a plateau.
"""

from __future__ import annotations

import math

import numpy as np

from mondrian_bo.acquisitions.base import mixture_moments
from mondrian_bo.optimizer.maximization.candidates import CandidateSearch, Maximize
from mondrian_bo.optimizer.maximization.valid_rows import ValidRows
from mondrian_bo.optimizer.models.outcome_model import OutcomeModel
from mondrian_bo.optimizer.search.portfolio import Arm
from mondrian_bo.optimizer.steps.drawn_quadratic import DrawnQuadratic
from mondrian_bo.optimizer.steps.evolution_step import offspring
from mondrian_bo.optimizer.steps.local_quadratic import draw_quadratic
from mondrian_bo.optimizer.steps.plateau_step import plateau_steps
from mondrian_bo.search_space import SearchSpace
from mondrian_bo.shared.array_types import FloatArray

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

_MOST_NEAR = 5_000
"""Largest number of latest trials among which those near the incumbent are looked for: our choice.
It bounds the time."""


def row_of_step(
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
    is_partial = nearly_exact and bool(np.isnan(candidate_search.starts).any())
    quadratic = 0.0 if is_early or is_partial else arm.quadratic
    n_explored = min(_TRIALS_PER_ORTHANT * 2**d, _EVOLUTION_AFTER)
    evolution = arm.evolution if n_trials > n_explored and valid is None else 0.0
    if quadratic + evolution == 0.0:
        return None
    level = rng.random()
    drawn = _draw_quadratic(model, space, rng, nearly_exact) if level < quadratic else None
    if drawn is not None:
        return find(drawn, candidate_search, drawn.climb)
    if level >= 1.0 - evolution:
        for row in _draw_offspring(model, space, rng):
            if not candidate_search.is_taken(row):
                return np.asarray(row)
    return None


def _draw_quadratic(
    model: OutcomeModel, space: SearchSpace, rng: np.random.Generator, nearly_exact: bool = False
) -> DrawnQuadratic | None:
    """Draw a quadratic around the incumbent, or return None where it would not predict well.

    The incumbent is the one of the ten best trials with the largest predicted mean. The latest
    5,000 trials count. The quadratic is fitted to the transformed values and, if all are finite, to
    the values. If `nearly_exact`, it must predict nearly perfectly.
    """
    trials = model.trials
    best = trials.best_rows()
    mean, _ = mixture_moments(model.predict(best))
    rows, values = trials.rows[-_MOST_NEAR:], trials.values[-_MOST_NEAR:]
    centre = best[int(np.argmax(mean))]
    scales = [model.transform(values)]
    size = np.abs(values).max()
    if 0.0 < size < math.inf:
        scales.append(values / size)
    targets = np.stack(scales, axis=1)
    return draw_quadratic(rows, targets, centre, space.is_categorical, rng, nearly_exact)


def _draw_offspring(
    model: OutcomeModel, space: SearchSpace, rng: np.random.Generator
) -> FloatArray:
    """Draw offspring of the latest trials, the best by a drawn quadratic first, shape (m, d).

    Where no quadratic predicts well, the order is that of predicted means. There are none with
    categorical parameters, or where :func:`offspring` finds no parents.
    """
    if space.is_categorical.any():
        return np.empty((0, space.n_dimensions))
    found = offspring(model.trials.rows, model.trials.values, rng)
    if not len(found):
        return found
    drawn = _draw_quadratic(model, space, rng)
    scores = mixture_moments(model.predict(found))[0] if drawn is None else drawn.values(found)
    return space.snap(found[np.argsort(-scores, kind="stable")])
