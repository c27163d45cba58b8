"""Constraints between inputs: rows that a function of the parameters accepts."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from mondrian_bo.acquisitions.base import Score
from mondrian_bo.optimizer.maximization.candidates import (
    EXHAUSTIVE,
    CandidateSearch,
    LocalSearch,
    best_untaken,
    maximize,
    perturb,
    quasi_random_rows,
)
from mondrian_bo.optimizer.shared.validation import check_answer
from mondrian_bo.search_space import Categorical, RestrictedSpace, SearchSpace
from mondrian_bo.shared.array_types import BoolArray, FloatArray
from mondrian_bo.shared.float_range import LOWEST

_MOST_DRAWN = 8192
"""Number of points, a power of two, that are drawn before the search for a valid one gives up: a
region of 0.1 % of the space is then missed with a probability of 0.03 %."""

_FIRST_BLOCK = 64
"""Number of points, a power of two, in the first block of a sequence. Blocks double."""

_N_PROBED = 256
"""Number of points that estimate which share of the space is valid, our choice."""

_MOST_CANDIDATES = 2.0
"""Largest factor of the number of candidates where most are invalid, our choice. Invalid ones cost
a call of the function each, and valid ones a prediction."""

_REMEMBERED = 20_000
"""Number of rows whose validity is remembered, about 4 MB: those of a few suggestions."""

_HALVINGS = 20
"""Halvings of the way to the boundary: to 1e-6 of it, as with a gradient step at its end."""

_SLIDES = (0.1, 0.03, 0.01, 3e-3, 1e-3, 3e-4)
"""Standard deviations of the moves along the boundary, in sides of the unit cube: each round
refines the one before. Our choice."""

_N_SLIDING = 16
"""Number of moves along the boundary in a round; a few hundred calls of the function, our
choice."""

_SLIDE_HALVINGS = 7
"""Halvings of the way to the boundary in these moves: to 1 % of their length."""


class ValidRows:
    """The rows of a space that a function accepts, and the search among them.

    Parameters
    ----------
    is_valid : callable
        Maps the active parameters by name to True or False. A ``KeyError`` of a parameter of the
        space, which is inactive then, counts as True.
    space : SearchSpace
        The space. Methods may be given a part of it.
    """

    def __init__(self, is_valid: Callable[[dict[str, Any]], bool], space: SearchSpace) -> None:
        self._is_valid = is_valid
        self._space = space
        self._known: dict[bytes, bool] = {}

    def __reduce__(self) -> tuple[type[ValidRows], tuple[object, ...]]:
        return type(self), (self._is_valid, self._space)

    def contains(self, rows: FloatArray) -> BoolArray:
        """Whether the function accepts rows; it is called once for each new one.

        Parameters
        ----------
        rows : float64 array of shape (m, d)
            Snapped rows.

        Returns
        -------
        bool array of shape (m,)

        Raises
        ------
        TypeError
            If the function returns something else than True or False. Its own exceptions pass.
        """
        if len(self._known) + len(rows) > _REMEMBERED:
            self._known = {}
        keys = [row.tobytes() for row in rows]
        new = {key: i for i, key in enumerate(keys) if key not in self._known}
        chosen = rows[list(new.values())]
        for key, row, params in zip(new, chosen, self._space.decode_snapped(chosen), strict=True):
            self._known[key] = self._accepts(row, params)
        return np.array([self._known[key] for key in keys], dtype=bool)

    def score(self, score: Score) -> Score:
        """Return a score that is minus infinity where the function does not accept rows."""
        return lambda rows: np.where(self.contains(rows), score(rows), -np.inf)

    def _accepts(self, row: FloatArray, params: dict[str, Any]) -> bool:
        try:
            return check_answer(self._is_valid(params))
        except KeyError as error:
            # The function may have changed its argument.
            inactive = [self._space.names[j] for j in np.flatnonzero(np.isnan(row))]
            if error.args and error.args[0] in inactive:
                return True
            raise

    def first(
        self,
        space: SearchSpace,
        index: int,
        shift: FloatArray,
        rng: np.random.Generator,
        trials: FloatArray,
    ) -> FloatArray:
        """Return the valid point of a given index of a quasi-random sequence, shape (d,).

        Parameters
        ----------
        space : SearchSpace
            Where to search.
        index : int
            Number of valid points of the sequence to skip.
        shift : float64 array of shape (d,)
            Shift of the sequence, see :func:`quasi_random_rows`.
        rng : numpy.random.Generator
            Draws a valid point if the first points of the sequence have too few.
        trials : float64 array of shape (m, d)
            Trials; neighbours of them are drawn, too.

        Raises
        ------
        ValueError
            If no valid point is found.
        """
        n_drawn, n_valid, end = 0, 0, _FIRST_BLOCK
        found = np.empty((0, space.n_dimensions))
        while n_drawn < _MOST_DRAWN:
            block = quasi_random_rows(space, n_drawn, end - n_drawn, shift)
            block = block[self.contains(block)]
            if index < n_valid + len(block):
                return np.asarray(block[index - n_valid])
            found = np.concatenate([found, block])
            n_valid, n_drawn, end = len(found), end, 2 * end
        drawn = self._drawn(space, np.concatenate([found, trials]), rng)
        return np.asarray(drawn[int(rng.integers(len(drawn)))])

    def maximize(
        self, score: Score, candidate_search: CandidateSearch, improve: LocalSearch | None = None
    ) -> FloatArray:
        """Return the valid row with the best score found, shape (d,).

        The parameters are those of :func:`mondrian_bo.optimizer.maximization.candidates.maximize`.
        A local search may leave the valid region; its ends are moved back to the boundary, and then
        along it.

        Raises
        ------
        ValueError
            If no valid row is found.
        """
        space, starts, is_taken, rng, n_candidates, _, _ = candidate_search

        def restricted(rows: FloatArray) -> FloatArray:
            scores = np.full(len(rows), -np.inf)
            valid = self.contains(rows)
            if valid.any():
                # Invalid rows alone have minus infinity.
                scores[valid] = np.maximum(score(rows[valid]), LOWEST)
            return scores

        def excludes(row: FloatArray) -> bool:
            return is_taken(row) or not self.contains(row[None])[0]

        if math.isinf(space.cardinality):
            probes = quasi_random_rows(space, 0, _N_PROBED, np.full(space.n_dimensions, 0.5))
            share = (np.count_nonzero(self.contains(probes)) + 1.0) / _N_PROBED
            n_candidates = int(n_candidates * min(max(1.0 / share, 1.0), _MOST_CANDIDATES))
        local = None
        if improve is not None:
            local = partial(self._improve, restricted, improve, space, rng)
        restricted_search = candidate_search._replace(is_taken=excludes, n_candidates=n_candidates)
        row = maximize(restricted, restricted_search, local)
        if self.contains(row[None])[0]:
            return row
        rows = self._drawn(space, starts, rng)
        return best_untaken(rows, restricted(rows), is_taken)

    def _drawn(
        self, space: SearchSpace, starts: FloatArray, rng: np.random.Generator
    ) -> FloatArray:
        """Return valid rows among uniform ones and neighbours of others, shape (k, d), k >= 1.

        In a small finite space these are all valid ones.
        """
        n_drawn, is_small = 0, space.cardinality <= EXHAUSTIVE
        while n_drawn < _MOST_DRAWN:
            rows = space.enumerate_rows() if is_small else space.sample(_FIRST_BLOCK, rng)
            if len(starts) and not is_small:
                rows = np.concatenate([rows, perturb(space, starts, _FIRST_BLOCK, rng)])
            n_drawn += len(rows)
            rows = rows[self.contains(rows)]
            if len(rows):
                return rows
            if is_small:
                raise ValueError(
                    f"`is_valid` refused all {n_drawn} points of the space{_fixed_values(space)}."
                )
        raise ValueError(
            f"`is_valid` refused all of {n_drawn} points drawn from the space"
            f"{_fixed_values(space)}: no valid point was found. Smaller ranges, or a valid first "
            "trial, make the valid region easier to find."
        )

    def _improve(
        self,
        score: Score,
        improve: LocalSearch,
        space: SearchSpace,
        rng: np.random.Generator,
        rows: FloatArray,
    ) -> FloatArray:
        """Return the ends of local searches from the valid ones among some rows, shape (k, d)."""
        starts = rows[self.contains(rows)]
        if not len(starts):
            return rows
        ends = space.snap(improve(starts))
        if self.contains(ends).all():
            return ends
        best = self._moved_back(space, starts, ends, _HALVINGS)
        free = space.grid_sizes == 0
        for scale in _SLIDES:
            base = np.repeat(best, -(-_N_SLIDING // len(best)), axis=0)
            inner = starts[rng.integers(len(starts), size=len(base))]
            # Beyond the boundary, as seen from an inner point that has the same choices.
            same = ((inner == base) | np.isnan(base) | free).all(axis=1)
            inner = np.where(same[:, None], inner, base)
            outward = np.where(free, base - inner, 0.0)
            size = np.sqrt(np.nansum(outward * outward, axis=1, keepdims=True))
            noise = rng.standard_normal(base.shape)
            moves = scale * (np.where(free, noise, 0.0) + outward / np.maximum(size, scale))
            ends = space.snap(base + moves)
            moved = self._moved_back(space, inner, ends, _SLIDE_HALVINGS)
            pool = np.concatenate([best, moved])
            best = pool[np.argsort(-score(pool), kind="stable")[: len(starts)]]
        return best

    def _moved_back(
        self, space: SearchSpace, starts: FloatArray, ends: FloatArray, n_halvings: int
    ) -> FloatArray:
        """Return ends, invalid ones moved to the boundary on the way from valid starts."""
        wrong = np.flatnonzero(~self.contains(ends))
        result = ends.copy()
        start = starts[wrong]
        way = np.where(space.is_categorical, 0.0, ends[wrong] - start)
        valid = start
        inside, outside = np.zeros((len(wrong), 1)), np.ones((len(wrong), 1))
        for _ in range(n_halvings if len(wrong) else 0):
            middle = 0.5 * (inside + outside)
            rows = space.snap(start + np.nan_to_num(middle * way))
            fine = self.contains(rows)[:, None]
            valid = np.where(fine, rows, valid)
            inside, outside = np.where(fine, middle, inside), np.where(fine, outside, middle)
        result[wrong] = valid
        return result


def _fixed_values(space: SearchSpace) -> str:
    """Return the fixed values of a part of a space as the end of a message."""
    if not isinstance(space, RestrictedSpace) or not space.fixed:
        return ""
    # The choices of an adapter may be others than those of its user.
    fixed = [
        repr(name) if isinstance(space[name], Categorical) else f"{name!r} at {value!r}"
        for name, value in space.fixed.items()
    ]
    return f" with fixed {', '.join(fixed)}"
