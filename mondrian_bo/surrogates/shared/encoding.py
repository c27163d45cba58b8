"""Encoding of rows of a search space as points of each tree."""

from __future__ import annotations

import numpy as np

from mondrian_bo.array_types import FloatArray, IntArray
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
        self._n_trees = n_trees
        self._categorical = [int(j) for j in np.flatnonzero(n_choices)]
        self._positions = {}
        for j in self._categorical:
            k = int(n_choices[j])
            orders = np.stack([rng.permutation(k) for _ in range(n_trees)])
            self._positions[j] = orders / max(k - 1, 1)
        self._absent = rng.random((n_trees, 1, len(n_choices)))

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
        points = np.repeat(rows[None], self._n_trees, axis=0)
        for j, positions in self._positions.items():
            choice = rows[:, j]
            known = ~np.isnan(choice)
            points[:, known, j] = positions[:, choice[known].astype(np.int64)]
        absent = np.isnan(points)
        if absent.any():
            points = np.where(absent, self._absent, points)
        return points
