"""The choice of a trial without a model: the middle of the space, then quasi-random points."""

from __future__ import annotations

import numpy as np

from mondrian_bo.acquisitions.base import Score
from mondrian_bo.optimizer.constraints.constraints import Constraints
from mondrian_bo.optimizer.constraints.half_spaces import HalfSpaces
from mondrian_bo.optimizer.maximization.candidates import (
    CandidateSearch,
    Maximize,
    centre,
    quasi_random_rows,
)
from mondrian_bo.optimizer.search.constant_outcomes import constant_constraints
from mondrian_bo.optimizer.search.request import Request
from mondrian_bo.optimizer.shared.search_trials import SearchTrials
from mondrian_bo.shared.array_types import FloatArray
from mondrian_bo.shared.blas_threads import single_threaded_blas

_N_LIKELY = 64
"""Number of quasi-random points, of which the one that most probably holds all constraints is
suggested: our choice."""

_INFORMATIVE = 10
"""A restarted search lets the models of constraints choose its first trials if they know at least
so many trials that the search does not know; our choice: fewer tell little of a constraint."""


def row_without_model(
    request: Request,
    trials: SearchTrials,
    shift: FloatArray,
    n_candidates: int,
    find: Maximize,
    half_spaces: HalfSpaces | None,
    is_informed: bool,
) -> FloatArray:
    """Return the row of a trial that no acquisition chooses, shape (d,).

    Parameters
    ----------
    request : Request
        The request.
    trials : SearchTrials
        The trials of the search so far.
    shift : float64 array of shape (d,)
        Shift of the quasi-random sequence.
    n_candidates : int
        Number of candidates to draw from where the point of the sequence is taken.
    find : callable
        Finds the best candidate within valid rows or `half_spaces`.
    half_spaces : HalfSpaces or None
        The constraints that are exactly linear, if any.
    is_informed : bool
        Whether the models of constraints choose. Otherwise they choose only if they know many more
        trials than the search.
    """
    constraints, row = request.constraints, None
    if constraints is not None and request.valid is None:
        if is_informed:
            # A point within linear constraints is better than one that is moved to their bound.
            row = _likely_row(request, constraints, None)
        elif len(constraints.rows) - len(trials) >= _INFORMATIVE:
            row = _likely_row(request, constraints, half_spaces)
    if row is None:
        row = _first_row(request, shift, trials.rows)
    if half_spaces is not None:
        row = half_spaces.reached(request.space, row)
    if not request.is_taken(row):
        return row
    # In a small finite space the sequence repeats its points.
    space, rng = request.space, request.rng
    starts = trials.best_rows() if len(trials) else space.sample(1, rng)
    candidate_search = CandidateSearch(space, starts, request.is_taken, rng, n_candidates)
    return find(lambda rows: rng.random(len(rows)), candidate_search, None)


def _first_row(request: Request, shift: FloatArray, rows: FloatArray) -> FloatArray:
    """Return the middle of the space for the first trial, and a quasi-random point for others."""
    space, index, valid = request.space, request.index, request.valid
    if index == 0:
        middle = centre(space, shift)
        if valid is None or valid.contains(middle[None])[0]:
            return middle
    if valid is None:
        return np.asarray(quasi_random_rows(space, index, 1, shift)[0])
    trials = np.concatenate([rows, request.pending])
    return valid.first(space, index, shift, request.rng, trials)


def _likely_row(
    request: Request, constraints: Constraints, half_spaces: HalfSpaces | None
) -> FloatArray | None:
    """Return the one of some quasi-random points that most probably holds all constraints.

    Constant constraints do not count; None if all are constant.
    """
    constant = constant_constraints(constraints)
    if len(constant) == len(constraints):
        return None
    space = request.space
    rows = quasi_random_rows(space, 0, _N_LIKELY, request.rng.random(space.n_dimensions))
    linear = half_spaces.numbers if half_spaces else frozenset()
    score: Score = constraints.feasibility(linear.union(constant)).log_probability
    if half_spaces is not None:
        score, _ = half_spaces.within(score, None)
    with single_threaded_blas():
        return np.asarray(rows[int(np.argmax(score(rows)))])
