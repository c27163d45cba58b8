"""The base of surrogates that are trees: it turns rows of a search space into points."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy as np

from mondrian_bo.shared.array_types import AnyArray, FloatArray
from mondrian_bo.surrogates.base import Columns, RandomFunction
from mondrian_bo.surrogates.shared.encoding import TreeEncoding
from mondrian_bo.surrogates.shared.ensemble import Ensemble


class TreeModel(Protocol):
    """A model that learns points of shape (S, m, d); S is 1, or the number of trees."""

    def learn(self, points: AnyArray, targets: FloatArray) -> None:
        """Learn more points."""
        ...

    def set_targets(self, targets: FloatArray) -> None:
        """Replace the targets of all points."""
        ...

    def predict(self, points: AnyArray) -> tuple[FloatArray, FloatArray]:
        """Return means and variances of the trees, both of shape (T, m)."""
        ...

    def draw(self, rng: np.random.Generator) -> Callable[[AnyArray], FloatArray]:
        """Draw a function of points."""
        ...

    def extended(self, points: AnyArray, targets: FloatArray) -> AbstractContextManager[None]:
        """Learn further points for the duration of a ``with`` block."""
        ...


def unit_cube(n_dimensions: int) -> tuple[FloatArray, FloatArray]:
    """Return the bounds of the rows of a search space, as models take them."""
    return np.zeros(n_dimensions), np.ones(n_dimensions)


class TreeSurrogate:
    """A model of trees over rows of a search space; implements ``Surrogate``.

    Parameters
    ----------
    columns, seed
        See :class:`mondrian_bo.surrogates.base.SurrogateFactory`.
    n_estimators : int
        Number of trees.
    new_model : callable
        Takes an :class:`Ensemble` and returns an empty model.
    dtype : type, default=numpy.float64
        Floating point type of the model's points.
    """

    def __init__(
        self,
        columns: Columns,
        seed: np.random.SeedSequence,
        n_estimators: int,
        new_model: Callable[[Ensemble], TreeModel],
        dtype: type[np.floating[Any]] = np.float64,
    ) -> None:
        tree_seed, place_seed = seed.spawn(2)
        self._model = new_model(Ensemble(n_estimators, len(columns.n_choices), tree_seed))
        # None if there are neither categories nor inactive parameters.
        self._encoding = TreeEncoding.if_needed(columns, n_estimators, place_seed)
        self._dtype = dtype

    def learn(self, rows: FloatArray, targets: FloatArray) -> None:
        """Learn more rows."""
        self._model.learn(self._points(rows), targets.copy())

    def set_targets(self, targets: FloatArray) -> None:
        """Replace the targets of all rows."""
        self._model.set_targets(targets)

    def predict(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return means and standard deviations of the trees, both of shape (T, m)."""
        means, variances = self._model.predict(self._points(rows))
        return means, np.sqrt(variances)

    def draw(self, rng: np.random.Generator) -> RandomFunction:
        """Draw a function from the posterior of a random tree."""
        sample = self._model.draw(rng)
        return lambda rows: sample(self._points(rows))

    def extended(self, rows: FloatArray, targets: FloatArray) -> AbstractContextManager[None]:
        """Learn further rows for the duration of a ``with`` block."""
        return self._model.extended(self._points(rows), targets)

    def _points(self, rows: FloatArray) -> AnyArray:
        points = rows[None] if self._encoding is None else self._encoding(rows)
        # A copy: rows may have any memory layout, and the caller may change them later.
        return np.array(points, dtype=self._dtype, order="C")
