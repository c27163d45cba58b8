"""Aggregated Mondrian forests as a surrogate of the optimizer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from mondrian_bo.surrogates.aggregation_model import AggregationModel
from mondrian_bo.surrogates.base import RandomFunction
from mondrian_bo.surrogates.encoding import TreeEncoding
from mondrian_bo.trees.aggregation import REAL

FloatArray = NDArray[np.float64]


class AMFSurrogate:
    """An :class:`AggregationModel` over rows of a search space; implements ``Surrogate``.

    The learning rate is the adaptive one: outcomes are few and their noise is small.

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
    """

    def __init__(
        self,
        n_choices: NDArray[np.int64],
        may_be_absent: bool,
        seed: np.random.SeedSequence,
        *,
        n_estimators: int = 10,
    ) -> None:
        tree_seed, place_seed = seed.spawn(2)
        n_dimensions = len(n_choices)
        self._model = AggregationModel(
            n_estimators,
            n_dimensions,
            tree_seed,
            n_classes=REAL,
            step="adaptive",
            bounds=(np.zeros(n_dimensions), np.ones(n_dimensions)),
        )
        self._encoding = TreeEncoding.if_needed(
            n_choices, may_be_absent, n_estimators, np.random.default_rng(place_seed)
        )

    def learn(self, rows: FloatArray, values: FloatArray) -> None:
        """Learn more rows, O(T d log n) each."""
        self._model.learn(self._points(rows), values.copy())

    def set_values(self, values: FloatArray) -> None:
        """Replace the values of all rows, O(T n log n)."""
        self._model.set_targets(values)

    def predict(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return means and standard deviations of the trees, both of shape (T, m)."""
        means, variances = self._model.predict(self._points(rows))
        return means, np.sqrt(variances)

    def draw(self, rng: np.random.Generator) -> RandomFunction:
        """Draw a pruning of a random tree, with labels of its leaves."""
        sample = self._model.draw(rng)
        return lambda rows: sample(self._points(rows))

    @contextmanager
    def extended(self, rows: FloatArray, values: FloatArray) -> Iterator[None]:
        """Know further rows for the time of a ``with`` block."""
        with self._model.extended(self._points(rows), values):
            yield

    def _points(self, rows: FloatArray) -> NDArray[np.float32]:
        points = rows[None] if self._encoding is None else self._encoding(rows)
        return points.astype(np.float32)
