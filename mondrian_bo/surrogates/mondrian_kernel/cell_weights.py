"""Weights of cells in linear models, which steps of gradient descent change a few at a time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from mondrian_bo.shared.array_types import FloatArray
from mondrian_bo.shared.growing_array import GrowingArray
from mondrian_bo.surrogates.mondrian_kernel.descent_step import SMALLEST_SCALE
from mondrian_bo.surrogates.mondrian_kernel.online_descent import (
    OnlineSettings,
    descend_online,
    remaining_share,
)


class CellWeights:
    """Weights of cells in K linear models: ``scale * v``, as all of them shrink in each step.

    After steps, the weights are a new object that shares v with the former one. It notes the
    numbers of v that differ, and writes them when it is read. So an interruption of learning leaves
    the former weights as they were, and no call copies v.

    Parameters
    ----------
    coef : float64 array of shape (K, n_cells)
        The weights; copied.
    """

    def __init__(self, coef: FloatArray) -> None:
        self._values = GrowingArray(len(coef))
        self._values.replace(np.array(coef.T, dtype=np.float64, order="C"))
        self.n_cells = coef.shape[1]
        self._scale = 1.0
        self._unwritten: tuple[NDArray[np.int32], FloatArray] | None = None

    @property
    def coef(self) -> FloatArray:
        """The weights, a new array of shape (K, n_cells)."""
        return np.ascontiguousarray((self._scale * self._written()).T)

    def values(self, features: csr_matrix) -> FloatArray:
        """Return the functions at rows of features, shape (m, K)."""
        return np.asarray(self._scale * (features @ self._written()))

    def descended(
        self,
        cells: NDArray[np.int32],
        n_cells: int,
        targets: FloatArray,
        n_before: int,
        settings: OnlineSettings,
    ) -> CellWeights:
        """Return the weights after a step at each new sample, O(M log M) a step, amortised.

        This object may be used until the result is.

        Parameters
        ----------
        cells : int32 array of shape (m, M)
            The cells of the new samples. New cells hold some of them.
        n_cells : int
            The number of cells with the new ones, whose weights are 0 at first.
        targets : float64 array of shape (K, m)
            The targets in each model.
        n_before : int
            Number of samples before.
        settings : OnlineSettings
            The loss and the steps.
        """
        scale = self._scale * remaining_share(len(cells), n_before, settings)
        if cells.size >= n_cells or scale < 2.0 * SMALLEST_SCALE:
            # Steps change most weights, or the scale is multiplied into all of them.
            coef = np.zeros((len(targets), n_cells))
            coef[:, : self.n_cells] = self.coef
            coef *= descend_online(coef, cells, targets, n_before, 1.0, settings)
            return CellWeights(coef)
        changed, places = np.unique(cells, return_inverse=True)
        known = changed[: np.searchsorted(changed, self.n_cells)]
        part = np.zeros((len(targets), len(changed)))
        part[:, : len(known)] = self._written()[known].T
        places = places.reshape(cells.shape).astype(np.int32)
        # An interruption may have left rows of cells that are not there.
        self._values.shorten(self.n_cells)
        self._values.extend(np.zeros((n_cells - self.n_cells, len(targets))))
        other = CellWeights.__new__(CellWeights)
        other._scale = descend_online(part, places, targets, n_before, self._scale, settings)
        other._values = self._values
        other.n_cells = n_cells
        other._unwritten = changed, part.T
        return other

    def _written(self) -> FloatArray:
        """Return v, shape (n_cells, K), after writing what is noted.

        Several readers, and one after an interruption, write the same numbers.
        """
        unwritten = self._unwritten  # another reader may set it to None
        if unwritten is not None:
            cells, numbers = unwritten
            self._values.rows[cells] = numbers
            self._unwritten = None
        return self._values.rows[: self.n_cells]
