"""The search for the candidate with the best score.

There are three kinds of candidates: quasi-random points over the whole space, perturbations of the
best trials at many scales, and perturbations of the best candidates so far. The second kind gains
most (``docs/research``). Each round of candidates is scored in one call. A small finite space is
searched exhaustively.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np
from numba import njit

from mondrian_bo.acquisitions.base import Score
from mondrian_bo.optimizer.maximization.sobol import sobol_points
from mondrian_bo.search_space import SearchSpace
from mondrian_bo.shared.array_types import FloatArray, IntArray

LocalSearch: TypeAlias = Callable[[FloatArray], FloatArray]
"""Maps rows to better ones, both of shape (m, d)."""

EXHAUSTIVE = 4096
"""Points up to which a finite space is searched exhaustively: a few calls of the score."""

_SCALES = (1e-3, 0.4)
"""Range of the standard deviation of a perturbation, in sides of the unit cube. It is drawn
log-uniformly, so that fine and coarse steps are equally frequent; our choice."""

_CHANGED_SHARES = (0.3, 1.0)
"""Shares of the coordinates that a perturbation changes, beside about one coordinate (1 / d); each
of the three is equally frequent, our choice."""

_N_ELITE = 10
"""Number of best candidates that a round perturbs: a round does not depend on one alone."""

_ROUNDS = 2
"""Number of rounds of perturbing the best candidates; one call of the score each, our choice."""

_N_STARTS = 5
"""Number of starts of the local search: its cost is proportional to it, our choice."""

_APART = 0.05
"""Largest difference of a coordinate, in sides of the unit cube, at which two starts count as one:
local searches from them would often end in the same optimum."""


def quasi_random_rows(
    space: SearchSpace, start: int, n_points: int, shift: FloatArray
) -> FloatArray:
    """Return points `start`, `start + 1`, ... of a shifted Sobol sequence over the space.

    A random shift randomises the sequence for a fraction of the cost of scrambling it.

    Parameters
    ----------
    space : SearchSpace
        The space.
    start, n_points : int
        Which points.
    shift : float64 array of shape (d,)
        Added to every point, modulo 1.

    Returns
    -------
    float64 array of shape (n_points, d)
        Snapped rows.
    """
    points = sobol_points(space.n_dimensions, start, n_points)
    return space.from_uniform((points + shift) % 1.0)


def centre(space: SearchSpace, shift: FloatArray) -> FloatArray:
    """Return the middle of the space, the first trial of a study.

    A range is the user's guess of where the optimum is, and the middle is the point whose largest
    distance from the optimum is smallest. If the optimum is uniform over the space, the root mean
    square distance of a random point from it is sqrt(2) times that of the middle.

    Parameters
    ----------
    space : SearchSpace
        The space.
    shift : float64 array of shape (d,)
        Which choice of a categorical parameter; choices have no middle.

    Returns
    -------
    float64 array of shape (d,)
        A snapped row: the middle of each numeric range, of its logarithm with ``log``.
    """
    middle = np.where(space.is_categorical, shift, 0.5)
    return np.asarray(space.from_uniform(middle[None])[0])


def perturb(
    space: SearchSpace, rows: FloatArray, n_points: int, rng: np.random.Generator
) -> FloatArray:
    """Return random neighbours of given rows.

    Each starts from a random row and changes a random subset of the coordinates: numeric ones by a
    Gaussian step of a random scale (at least one cell of a grid), reflected at the bounds,
    categorical ones to a random choice.

    Parameters
    ----------
    space : SearchSpace
        The space.
    rows : float64 array of shape (k, d)
        Rows to start from, k >= 1; they may lie outside the space where ranges have changed, and
        lack any parameter.
    n_points : int
        How many neighbours.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    float64 array of shape (n_points, d)
        Snapped rows.
    """
    d = space.n_dimensions
    drawn = _Draws(
        rng.integers(len(rows), size=n_points),
        rng.random((n_points, d)),
        np.array([1.0 / d, *_CHANGED_SHARES])[rng.integers(3, size=n_points)],
        rng.random((n_points, d)),
        rng.integers(d, size=n_points),
        _SCALES[0] * (_SCALES[1] / _SCALES[0]) ** rng.random(n_points),
        rng.standard_normal((n_points, d)),
        rng.random((n_points, d)),
    )
    points = np.empty((n_points, d))
    _write_perturbed(rows, drawn, space.grid_sizes, space.is_categorical, points)
    return space.snap(points)


class _Draws(NamedTuple):
    """Random numbers of m neighbours of rows.

    Attributes
    ----------
    starts : int64 array of shape (m,)
        Which rows they start from.
    missing : float64 array of shape (m, d)
        Uniform numbers, for coordinates that have no value to start from: a change of a choice can
        activate parameters.
    share : float64 array of shape (m,)
        Probabilities of a change of a coordinate.
    uniform : float64 array of shape (m, d)
        Uniform numbers: a coordinate changes if its number is below the probability.
    one : int64 array of shape (m,)
        Coordinates that change in any case.
    scale : float64 array of shape (m,)
        Standard deviations of the steps.
    normal : float64 array of shape (m, d)
        The steps, in standard deviations.
    choices : float64 array of shape (m, d)
        Uniform numbers, for changes of choices.
    """

    starts: IntArray
    missing: FloatArray
    share: FloatArray
    uniform: FloatArray
    one: IntArray
    scale: FloatArray
    normal: FloatArray
    choices: FloatArray


@njit(cache=True, nogil=True)
def _write_perturbed(rows, drawn, grid_sizes, categorical, points):  # type: ignore[no-untyped-def]
    """Write neighbours, see :func:`perturb`; they are not snapped yet."""
    m, d = points.shape
    for i in range(m):
        for j in range(d):
            x = rows[drawn.starts[i], j]
            if math.isnan(x):
                x = drawn.missing[i, j]
                if categorical[j]:
                    x = math.floor(x * grid_sizes[j])
            elif not categorical[j]:
                x = min(max(x, 0.0), 1.0)
            if drawn.uniform[i, j] < drawn.share[i] or j == drawn.one[i]:
                if categorical[j]:
                    x = math.floor(drawn.choices[i, j] * grid_sizes[j])
                else:
                    step = drawn.scale[i] * drawn.normal[i, j]
                    if grid_sizes[j] > 0 and abs(step) < 1.0 / grid_sizes[j]:
                        step = math.copysign(1.0 / grid_sizes[j], step)
                    moved = abs(x + step)
                    x = 2.0 - moved if moved > 1.0 else moved
            points[i, j] = x


class CandidateSearch(NamedTuple):
    """Where and how to look for the best candidate.

    Attributes
    ----------
    space : SearchSpace
        Where to search.
    starts : float64 array of shape (k, d)
        Rows that the search begins near, k >= 1, such as the best trials.
    is_taken : callable
        Whether a row has been tried; such rows are returned only if nothing else is found.
    rng : numpy.random.Generator
        Source of randomness.
    n_candidates : int
        How many rows to score in all, in spaces that are not searched exhaustively.
    near_share : float, default=1.0
        Share of the rows near the starts and near the best candidates that are scored, in (0, 1].
    far_share : float, default=1.0
        Share of the others that are scored, in (0, 1]. These, a third of all, are spread over the
        space.
    """

    space: SearchSpace
    starts: FloatArray
    is_taken: Callable[[FloatArray], bool]
    rng: np.random.Generator
    n_candidates: int
    near_share: float = 1.0
    far_share: float = 1.0


Maximize: TypeAlias = Callable[[Score, CandidateSearch, LocalSearch | None], FloatArray]
"""Returns the row with the best score found; :func:`maximize`, or the same within constraints."""


def maximize(
    score: Score, candidate_search: CandidateSearch, improve: LocalSearch | None = None
) -> FloatArray:
    """Return the row with the best score found, shape (d,).

    Parameters
    ----------
    score : callable
        Maps rows of shape (m, d) to scores of shape (m,); larger is better.
    candidate_search : CandidateSearch
        Where and how to look.
    improve : callable or None, default=None
        A local search: maps the best rows to better ones.
    """
    space, starts, is_taken, rng, n_candidates, near_share, far_share = candidate_search
    if space.cardinality <= EXHAUSTIVE:
        rows = space.enumerate_rows()
        return best_untaken(rows, score(rows), is_taken)
    n_global = max(n_candidates // 3, 1)
    n_local = n_candidates // 3
    n_elite = (n_candidates - n_global - n_local) // _ROUNDS
    n_local, n_elite = int(near_share * n_local), max(int(near_share * n_elite), 1)
    n_global = max(int(far_share * n_global), 1)
    rows = np.concatenate(
        [
            quasi_random_rows(space, 0, n_global, rng.random(space.n_dimensions)),
            perturb(space, starts, n_local, rng),
        ]
    )
    scores = score(rows)
    for _ in range(_ROUNDS):
        chosen = np.empty(min(_N_ELITE, len(rows)), dtype=np.int64)
        _choose_best(scores, chosen)
        neighbours = perturb(space, rows[chosen], n_elite, rng)
        rows = np.concatenate([rows, neighbours])
        scores = np.concatenate([scores, score(neighbours)])
    if improve is not None:
        distinct = np.empty(_N_STARTS, dtype=np.int64)
        better = space.snap(improve(rows[distinct[: _choose_distinct(rows, scores, distinct)]]))
        rows = np.concatenate([rows, better])
        scores = np.concatenate([scores, score(better)])
    return best_untaken(rows, scores, is_taken)


def best_untaken(
    rows: FloatArray, scores: FloatArray, is_taken: Callable[[FloatArray], bool]
) -> FloatArray:
    """Return the row with the best score that is not taken, or else the best one, shape (d,)."""
    best = rows[np.argmax(scores)]
    if not is_taken(best):
        return np.asarray(best)
    for i in np.argsort(-scores, kind="stable"):
        if not is_taken(rows[i]):
            return np.asarray(rows[i])
    return np.asarray(best)


@njit(cache=True, nogil=True)
def _choose_best(scores, chosen):  # type: ignore[no-untyped-def]
    """Write the indices of the best scores, the best first, until `chosen` is full.

    Of equal scores the first comes first, and NaN comes last.
    """
    n_chosen = 0
    for i in range(len(scores)):
        k = n_chosen
        while k > 0 and not scores[chosen[k - 1]] >= scores[i] and not math.isnan(scores[i]):
            k -= 1
        if k < len(chosen):
            n_chosen = min(n_chosen + 1, len(chosen))
            for later in range(n_chosen - 1, k, -1):
                chosen[later] = chosen[later - 1]
            chosen[k] = i


@njit(cache=True, nogil=True)
def _choose_distinct(rows, scores, chosen):  # type: ignore[no-untyped-def]
    """Write the indices of the best rows that are not close to a better one.

    Writing ends when `chosen` is full.

    Of equal scores the first counts as better, and NaN is worst. Returns the number of indices
    written.
    """
    is_left = np.ones(len(rows), dtype=np.bool_)
    for k in range(len(chosen)):
        best = -1
        for i in range(len(rows)):
            if is_left[i] and (
                best < 0
                or scores[i] > scores[best]
                or (math.isnan(scores[best]) and not math.isnan(scores[i]))
            ):
                best = i
        if best < 0:
            return k
        chosen[k], is_left[best] = best, False
        for i in range(len(rows)):
            if not is_left[i]:
                continue
            for j in range(rows.shape[1]):
                x, y = rows[i, j], rows[best, j]
                # A parameter that one row lacks sets them apart; one that both lack does not.
                if math.isnan(x) != math.isnan(y) or abs(x - y) > _APART:
                    break
            else:
                is_left[i] = False
    return len(chosen)
