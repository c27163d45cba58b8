"""The Mondrian forest as a surrogate of the optimizer."""

from __future__ import annotations

from contextlib import AbstractContextManager

import numpy as np
from numpy.typing import NDArray

from mondrian_bo.surrogates.base import RandomFunction
from mondrian_bo.surrogates.encoding import TreeEncoding
from mondrian_bo.surrogates.model import BranchOff, ForestModel, Posterior

FloatArray = NDArray[np.float64]


class ForestSurrogate:
    """A :class:`ForestModel` over rows of a search space; implements ``Surrogate``.

    Parameters
    ----------
    n_choices : int array of shape (d,)
        Number of choices of categorical columns, 0 for numeric ones.
    may_be_absent : bool
        Whether rows may hold NaN, for inactive parameters.
    seed : numpy.random.SeedSequence
        Source of all randomness.
    n_estimators : int, default=10
        Number of trees.
    posterior, branch_off
        See :class:`mondrian_bo.surrogates.MondrianForestRegressor`.
    """

    def __init__(
        self,
        n_choices: NDArray[np.int64],
        may_be_absent: bool,
        seed: np.random.SeedSequence,
        *,
        n_estimators: int = 10,
        posterior: Posterior = "empirical",
        branch_off: BranchOff = "remaining",
    ) -> None:
        tree_seed, place_seed = seed.spawn(2)
        n_dimensions = len(n_choices)
        self._model = ForestModel(
            n_estimators,
            n_dimensions,
            tree_seed,
            posterior=posterior,
            branch_off=branch_off,
            bounds=(np.zeros(n_dimensions), np.ones(n_dimensions)),
        )
        self._encoding = TreeEncoding.if_needed(
            n_choices, may_be_absent, n_estimators, np.random.default_rng(place_seed)
        )

    def learn(self, rows: FloatArray, values: FloatArray) -> None:
        """Learn more rows, O(T d log n) each."""
        self._model.learn(self._points(rows), values.copy())

    def set_values(self, values: FloatArray) -> None:
        """Replace the values of all rows, O(T n)."""
        self._model.set_targets(values)

    def predict(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return means and standard deviations of the trees, both of shape (T, m)."""
        means, variances = self._model.predict(self._points(rows))
        return means, np.sqrt(variances)

    def draw(self, rng: np.random.Generator) -> RandomFunction:
        """Draw a function from the posterior of a random tree."""
        sample = self._model.draw(rng)
        return lambda rows: sample(self._points(rows))

    def extended(self, rows: FloatArray, values: FloatArray) -> AbstractContextManager[None]:
        """Know further rows for the time of a ``with`` block."""
        return self._model.extended(self._points(rows), values)

    def _points(self, rows: FloatArray) -> FloatArray:
        if self._encoding is None:
            return np.array(rows, order="C")[None]
        return self._encoding(rows)
