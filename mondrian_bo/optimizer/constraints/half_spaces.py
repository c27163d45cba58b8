"""Constraints that are exactly linear: half spaces of the unit cube, and the search within them.

A Gaussian process learns a linear function from few trials, but its variance stays positive. Next
to a bound, an acquisition weighs the probability of a violation against the gain: many trials
violate the constraint, and the others keep a distance. A linear function of d parameters is known
exactly after d + 1 trials.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numba import njit

from mondrian_bo.acquisitions.base import Score, ScoreGradients
from mondrian_bo.optimizer.maximization.candidates import CandidateSearch, LocalSearch, maximize
from mondrian_bo.search_space import SearchSpace
from mondrian_bo.shared.array_types import BoolArray, FloatArray
from mondrian_bo.shared.projected_lbfgs import minimise_in_box

_SPARE = 2
"""Number of trials beyond the coefficients that a linear function must predict, our choice."""

_TOLERANCE = 1e-7
"""Largest error of a linear function, as a distance in sides of the unit cube: above the rounding
errors of most simulations, and a distance that changes no optimum noticeably."""

_CLEARANCE = 1e-9
"""Distance kept from a bound, in sides of the unit cube, besides twice the largest error: above
rounding errors."""

_LEAST_SPREAD = 1e-4
"""Least spread of the trials in any direction, in sides of the unit cube, from which a slope is
known: our choice."""

_SWEEPS = 100
"""Largest number of sweeps of the projection of a candidate, our choice: most need a few. One that
needs more counts as a violation."""

_MOST_STEPS = 100
"""Largest number of steps to the point of least violation, our choice: most need a few."""

_MOST_SWEEPS = 10_000
"""The same for the projection of a suggestion, our choice: about a millisecond."""

_SMALLEST_MOVE = 1e-11
"""Largest move in a sweep at which a projection ends, in sides of the unit cube."""

_PARALLEL = 1e-12
"""Squared length below which a vector counts as 0, where normals have the length 1."""

_VIOLATION = 1e50
"""Loss of score for a violation of a side of the unit cube: more than any other difference."""


class HalfSpace(NamedTuple):
    """The points x of the unit cube with ``normal @ x >= offset``.

    Attributes
    ----------
    normal : float64 array of shape (d,)
        Direction into the half space, of length 1.
    offset : float
        Distance of the bound from the origin along the normal, plus the clearance.
    clearance : float
        Distance kept from the bound.
    """

    normal: FloatArray
    offset: float
    clearance: float


def find_half_space(rows: FloatArray, margins: FloatArray) -> HalfSpace | None:
    """Return the half space of points whose margin is positive, if the margin is exactly linear.

    The linear function is that of least squares over the first ``2 (d + 1)`` trials, in
    O(d^3) time. It must predict all trials to rounding errors.

    Parameters
    ----------
    rows : float64 array of shape (n, d)
        Trials; NaN at inactive parameters, with which no margin counts as linear.
    margins : float64 array of shape (n,)
        Positive where the constraint holds; may be infinite.

    Returns
    -------
    HalfSpace or None
        None also where there are fewer than d + 3 trials, or they do not span all directions.
    """
    n_first = 2 * (rows.shape[1] + 1)
    if len(rows) < rows.shape[1] + 1 + _SPARE:
        return None
    first, values = rows[:n_first], margins[:n_first]
    if not (np.isfinite(first).all() and np.isfinite(values).all()):
        return None
    centre = first.mean(axis=0)
    orthogonal, triangle = np.linalg.qr(first - centre)
    if np.abs(triangle.diagonal()).min() < _LEAST_SPREAD:
        return None
    # Margins may be as large as numbers can be, and their squares overflow.
    with np.errstate(over="ignore", invalid="ignore"):
        level = values.mean()
        slopes = np.linalg.solve(triangle, orthogonal.T @ (values - level))
        length = float(np.linalg.norm(slopes))
        errors = np.abs(margins - level - (rows - centre) @ slopes)
    # A constant margin has no bound, and an error may be NaN.
    if not (0.0 < length < math.inf and errors.max() <= _TOLERANCE * length):
        return None
    normal = slopes / length
    clearance = 2.0 * float(errors.max()) / length + _CLEARANCE
    return HalfSpace(normal, float(normal @ centre - level / length) + clearance, clearance)


class HalfSpaces:
    """The intersection of half spaces in the unit cube, and the search within it.

    A search looks for the best score of nearest points: any row stands for the point of the
    intersection that is nearest to it. So a row beyond a bound stands for a point on the bound, and
    an ascent that crosses the bound continues along it.

    Parameters
    ----------
    parts : mapping of int to HalfSpace
        The half spaces by number of the constraint; at least one.
    is_free : bool array of shape (d,)
        Columns that may be moved: those of numbers without a grid.

    Attributes
    ----------
    numbers : frozenset of int
        The numbers of the constraints.
    """

    def __init__(self, parts: Mapping[int, HalfSpace], is_free: BoolArray) -> None:
        self.numbers = frozenset(parts)
        self._normals = np.array([one.normal for one in parts.values()])
        self._offsets = np.array([one.offset for one in parts.values()])
        self._clearances = np.array([one.clearance for one in parts.values()])
        self._free = np.asarray(is_free, dtype=np.float64)

    def exclude_each_other(self, upper: FloatArray) -> bool:
        """Return whether no point between 0 and `upper` is in all half spaces.

        The answer True is certain; half spaces that are nearly in touch may give False. The
        violations at the point of the least violation are weights of the half spaces: if the
        weighted sum of their inequalities holds nowhere in the box, then no point satisfies all of
        them (Farkas' lemma).

        Parameters
        ----------
        upper : float64 array of shape (d,)
            Largest entries of rows.
        """
        offsets = self._offsets - 2.0 * self._clearances

        def violations(row: FloatArray) -> FloatArray:
            return np.maximum(offsets - self._normals @ row, 0.0)

        def loss(row: FloatArray) -> tuple[float, FloatArray]:
            weights = violations(row)
            # In units in which the search ends at gradients of 1e-12.
            return (
                0.5 * float(weights @ weights) / _TOLERANCE,
                -weights @ self._normals / _TOLERANCE,
            )

        box = np.zeros(len(upper)), upper
        least = minimise_in_box(loss, 0.5 * upper, box, _MOST_STEPS)
        weights = violations(least.x)
        highest = np.maximum(weights @ self._normals, 0.0) @ upper
        return bool(highest < weights @ offsets)

    def nearest(self, rows: FloatArray) -> FloatArray:
        """Return the points of the intersection nearest to rows of shape (m, d).

        Columns that are not free stay, so that a row may have no such point. It then comes close.
        """
        moved, _, _ = self._projected(rows, _MOST_SWEEPS)
        return moved

    def reached(self, space: SearchSpace, row: FloatArray) -> FloatArray:
        """Return the point of a space that a row stands for, shape (d,)."""
        return np.asarray(space.snap(self.nearest(row[None]))[0])

    def maximize(
        self, score: Score, candidate_search: CandidateSearch, improve: LocalSearch | None = None
    ) -> FloatArray:
        """Return the point that the row with the best score stands for, shape (d,).

        The parameters are those of :func:`mondrian_bo.optimizer.maximization.candidates.maximize`;
        the score and the local search are those of `within`.
        """
        space = candidate_search.space

        def is_taken(row: FloatArray) -> bool:
            return candidate_search.is_taken(self.reached(space, row))

        return self.reached(
            space, maximize(score, candidate_search._replace(is_taken=is_taken), improve)
        )

    def within(
        self, score: Score, gradients: ScoreGradients | None
    ) -> tuple[Score, ScoreGradients | None]:
        """Return the score of the nearest points, and its gradients by the rows.

        Parameters
        ----------
        score : callable
            Maps rows of shape (m, d) to scores of shape (m,).
        gradients : callable or None
            Maps rows to scores and their derivatives, shape (m, d).
        """

        def restricted(rows: FloatArray) -> FloatArray:
            moved, _, _ = self._projected(rows, _SWEEPS)
            return np.asarray(score(moved) - _VIOLATION * self._violations(moved))

        if gradients is None:
            return restricted, None

        def along(rows: FloatArray) -> tuple[FloatArray, FloatArray]:
            moved, on_planes, on_walls = self._projected(rows, _SWEEPS)
            scores, by_rows = gradients(moved)
            by_rows = np.where(on_walls, 0.0, by_rows)
            _remove_normals(by_rows, on_planes, on_walls, self._normals * self._free)
            return scores - _VIOLATION * self._violations(moved), by_rows

        return restricted, along

    def _violations(self, rows: FloatArray) -> FloatArray:
        """Return the largest distances of rows from the half spaces, 0 within, shape (m,)."""
        gaps = self._offsets - rows @ self._normals.T
        return np.asarray(np.where(gaps > 2.0 * self._clearances, gaps, 0.0).max(axis=1))

    def _projected(
        self, rows: FloatArray, n_sweeps: int
    ) -> tuple[FloatArray, BoolArray, BoolArray]:
        """Return nearest points, and the bounds and sides of the cube that they were moved to."""
        moved = rows.copy()
        on_planes = np.zeros((len(rows), len(self._offsets)), dtype=np.bool_)
        on_walls = np.zeros(rows.shape, dtype=np.bool_)
        planes = self._normals, self._offsets
        _project(moved, on_planes, on_walls, planes, self._free, n_sweeps)
        return moved, on_planes, on_walls


@njit(cache=True, nogil=True)
def _project(rows, on_planes, on_walls, planes, free, n_sweeps):  # type: ignore[no-untyped-def]
    """Move rows to the nearest points of half spaces within the unit cube.

    Boyle and Dykstra (1986), A method for finding projections onto the intersection of convex sets
    in Hilbert spaces: projections onto one set after the other, each without its former move.
    """
    m, d = rows.shape
    normals, offsets = planes
    n_planes = len(offsets)
    moves, walls = np.empty(n_planes), np.empty(d)
    squares = np.zeros(n_planes)
    for i in range(n_planes):
        for j in range(d):
            squares[i] += free[j] * normals[i, j] * normals[i, j]
    for k in range(m):
        x = rows[k]
        moves[:] = 0.0
        walls[:] = 0.0
        for _ in range(n_sweeps):
            largest = 0.0
            for i in range(n_planes):
                if squares[i] < _PARALLEL:
                    continue
                gap = offsets[i]
                for j in range(d):
                    gap -= normals[i, j] * x[j]
                # The former move is taken back as far as it is not needed.
                step = max(gap / squares[i], -moves[i])
                moves[i] += step
                for j in range(d):
                    x[j] += step * free[j] * normals[i, j]
                largest = max(largest, abs(step))
            for j in range(d):
                if free[j] > 0.0:
                    corrected = x[j] - walls[j]
                    x[j] = min(max(corrected, 0.0), 1.0)
                    walls[j] = x[j] - corrected
            if largest <= _SMALLEST_MOVE:
                break
        for i in range(n_planes):
            on_planes[k, i] = moves[i] > 0.0
        for j in range(d):
            on_walls[k, j] = walls[j] != 0.0


@njit(cache=True, nogil=True)
def _remove_normals(gradients, on_planes, on_walls, normals):  # type: ignore[no-untyped-def]
    """Remove the part of gradients across the bounds that rows were moved to.

    The derivative of a projection is the projection onto the face of its result. The normals of the
    bounds, without the columns on a side of the cube, are made orthogonal (Gram-Schmidt).
    """
    m, d = gradients.shape
    n_planes = on_planes.shape[1]
    basis = np.empty((n_planes, d))
    for k in range(m):
        n_basis = 0
        for i in range(n_planes):
            if not on_planes[k, i]:
                continue
            new = basis[n_basis]
            for j in range(d):
                new[j] = 0.0 if on_walls[k, j] else normals[i, j]
            for b in range(n_basis):
                _remove(new, basis[b])
            size = 0.0
            for j in range(d):
                size += new[j] * new[j]
            if size < _PARALLEL:
                continue
            for j in range(d):
                new[j] /= np.sqrt(size)
            n_basis += 1
        for b in range(n_basis):
            _remove(gradients[k], basis[b])


@njit(cache=True, nogil=True)
def _remove(vector, direction):  # type: ignore[no-untyped-def]
    """Remove the part of a vector along a direction of length 1."""
    overlap = 0.0
    for j in range(len(vector)):
        overlap += vector[j] * direction[j]
    for j in range(len(vector)):
        vector[j] -= overlap * direction[j]
