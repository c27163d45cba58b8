"""Encoding of rows of a search space as points of each tree."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from mondrian_bo.shared.array_types import FloatArray, IntArray
from mondrian_bo.surrogates.base import Columns


class TreeEncoding:
    """Positions of categorical choices and inactive parameters, drawn for each tree.

    In each tree, the k choices of a categorical parameter lie at equal distances in [0, 1] in a
    random order. So a split is equally likely to separate any two choices, and the parameter has
    the same split rate as a numeric one. All inactive values of a parameter lie at one uniformly
    random position.

    Parameters
    ----------
    n_choices : int array of shape (d,)
        Number of choices of categorical columns, 0 for numeric ones.
    n_trees : int
        Number of trees, T.
    rng : numpy.random.Generator
        Source of the positions.
    """

    def __init__(self, n_choices: IntArray, n_trees: int, rng: np.random.Generator) -> None:
        # The positions of all choices, parameter after parameter, from column `starts` on.
        self._starts = np.where(n_choices > 0, np.cumsum(n_choices) - n_choices, -1)
        self._positions = np.empty((n_trees, int(n_choices.sum())))
        for j in np.flatnonzero(n_choices).tolist():
            k, start = int(n_choices[j]), int(self._starts[j])
            orders = np.stack([rng.permutation(k) for _ in range(n_trees)])
            self._positions[:, start : start + k] = orders / max(k - 1, 1)
        self._absent = rng.random((n_trees, len(n_choices)))

    @classmethod
    def if_needed(
        cls, columns: Columns, n_trees: int, seed: np.random.SeedSequence
    ) -> TreeEncoding | None:
        """Return an encoding, or None for a space with numeric, always active parameters only."""
        if not (columns.may_be_absent or columns.n_choices.any()):
            return None
        return cls(columns.n_choices, n_trees, np.random.default_rng(seed))

    def __call__(self, rows: FloatArray) -> FloatArray:
        """Return the points of each tree, shape (T, m, d)."""
        points = np.empty((len(self._absent), *rows.shape))
        _encode(np.ascontiguousarray(rows), self._starts, self._positions, self._absent, points)
        return points


@njit(cache=True, nogil=True)
def _encode(rows, starts, positions, absent, points):  # type: ignore[no-untyped-def]
    """Write the points of each tree."""
    for t in range(len(points)):
        for i in range(rows.shape[0]):
            for j in range(rows.shape[1]):
                entry = rows[i, j]
                if math.isnan(entry):
                    entry = absent[t, j]
                elif starts[j] >= 0:
                    entry = positions[t, starts[j] + int(entry)]
                points[t, i, j] = entry
