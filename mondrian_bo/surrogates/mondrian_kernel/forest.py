"""Mondrian partitions of a growing set of points, with numbered cells."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mondrian_bo.shared.array_types import FloatArray
from mondrian_bo.surrogates.shared.ensemble import Ensemble
from mondrian_bo.surrogates.shared.growing_forest import GrowingForest
from mondrian_bo.surrogates.shared.parallel import run_on_trees
from mondrian_bo.trees.growth import GrowthSettings, extend_forest, sample_forest
from mondrian_bo.trees.layout import NONE
from mondrian_bo.trees.lifetime_partitions import assign_cells, assign_new_cells, locate
from mondrian_bo.trees.memory import resized
from mondrian_bo.trees.tree import Tree, nodes_used, with_node_capacity

_NO_CLASSES = np.empty(0, dtype=np.int32)
"""Partitions do not depend on targets: no leaf is paused."""


class NoStats(NamedTuple):
    """Node statistics of trees whose nodes carry none."""


class PartitionForest(GrowingForest[NoStats]):
    """Independent Mondrian partitions, restricted to the data (Balog2016, sections 2 and 3.1).

    The trees grow up to `lifetime`, and hold the partitions of every shorter lifetime too. The
    non-empty cells at `cell_lifetime` are numbered; the numbers are columns of the feature map.

    Parameters
    ----------
    ensemble : Ensemble
        Number of partitions, M, dimension of the points, and seed.
    rates : float64 array of shape (d,)
        Split rates of the dimensions: factors of their lifetimes.
    lifetime : float
        Time at which the Mondrian processes stop.

    Attributes
    ----------
    cell_lifetime : float
        The lifetime of the numbered cells.
    n_cells : int
        Number of non-empty cells of all trees, C.
    """

    def __init__(self, ensemble: Ensemble, rates: FloatArray, lifetime: float) -> None:
        super().__init__(ensemble, NoStats(), np.empty(0))
        self.rates = rates
        self.lifetime = self.cell_lifetime = lifetime
        self.n_cells = 0
        self._cells = np.empty((0, ensemble.n_trees), dtype=np.int32)
        # Of the first batch: its size, and the random streams before it.
        self._start = 0, self._arrays.stream

    @property
    def cells(self) -> NDArray[np.int32]:
        """The cell of each point in each tree, shape (n, M)."""
        return self._cells[: self.n_points]

    def build(self, points: FloatArray, targets: FloatArray, n_jobs: int | None = 1) -> None:
        """Sample the partitions of a batch, O(M d n log n) at most; the forest must be empty.

        Parameters
        ----------
        points : float64 array of shape (S, n, d)
            Points; kept.
        targets : float64 array of shape (n,)
            Their targets, on which the partitions do not depend; kept.
        n_jobs : int or None, default=1
            Number of trees to grow at a time, as joblib counts.
        """
        n_points = len(targets)
        self._start = n_points, self._arrays.stream.copy()
        self._targets = targets
        self.n_points = n_points
        arrays = self._with_room(with_node_capacity(self._arrays, 2 * n_points - 1), n_points)
        arrays = arrays._replace(points=points)
        settings = (n_points, self.rates, self._growth_settings())
        run_on_trees(_grow_part, (arrays,), settings, n_jobs)
        self._arrays = arrays
        self._set_node_capacity(nodes_used(arrays))
        self.assign_cells(self.cell_lifetime)

    def extend(
        self, points: FloatArray, targets: FloatArray, rates: FloatArray | None = None
    ) -> None:
        """Extend the partitions by the conditional Mondrian (Balog2016, section 5).

        Known cells keep their numbers, and new ones follow. O(M d depth) for each point.

        Parameters
        ----------
        points, targets
            See :meth:`GrowingForest.extend`.
        rates : None
            Ignored: the forest has its own rates.
        """
        start = self.n_points
        end = self._store(points, targets)
        self._set_node_capacity_for(end - start)
        progress = np.full(self.n_trees, start)
        extend_forest(
            self._arrays,
            self._points,
            progress,
            end,
            self.rates,
            _NO_CLASSES,
            self._growth_settings(),
        )
        cells = self._cells
        if len(cells) < end:
            cells = resized(cells, 0, self._points.shape[1], start)
        cells[start:end] = NONE
        n_cells = assign_new_cells(
            self._arrays, self._points, self.cell_lifetime, cells[:end], start, self.n_cells
        )
        self._cells, self.n_cells, self.n_points = cells, n_cells, end

    def former(self, n_points: int, n_jobs: int | None = 1) -> PartitionForest:
        """Return the partitions as they were after so many points, bit for bit.

        The trees are grown anew, at the cost of learning the points. This forest may be in any
        state that an interruption of :meth:`extend` leaves.

        Parameters
        ----------
        n_points : int
            Number of points after one of the calls that are to be kept.
        n_jobs : int or None, default=1
            As in :meth:`build`.
        """
        n_first, streams = self._start
        points, targets = self._points[:, :n_points].copy(), self._targets[:n_points].copy()
        other = copy(self)
        other.forget()
        other._arrays = other._arrays._replace(stream=streams.copy())
        other.build(points[:, :n_first].copy(), targets[:n_first].copy(), n_jobs)
        if n_first < n_points:
            other.extend(points[:, n_first:], targets[n_first:])
        return other

    @contextmanager
    def extended(
        self, points: FloatArray, targets: FloatArray, rates: FloatArray
    ) -> Iterator[None]:
        """Insert points within a ``with`` block; see :meth:`GrowingForest.extended`."""
        n_cells = self.n_cells
        try:
            with super().extended(points, targets, rates):
                yield
        finally:
            self.n_cells = n_cells

    def set_targets(self, targets: FloatArray) -> None:
        """Replace the targets of all points."""
        self._targets[: self.n_points] = targets

    def at_lifetime(self, lifetime: float) -> PartitionForest:
        """Return the partitions at another lifetime, at most that of the trees.

        The two forests share the trees, so neither may learn more points.
        """
        other = copy(self)
        other.assign_cells(lifetime)
        return other

    def assign_cells(self, lifetime: float) -> None:
        """Change to the cells of another lifetime, at most that of the trees; O(M n)."""
        self.cell_lifetime = lifetime
        self._cells = np.empty((self.n_points, self.n_trees), dtype=np.int32)
        self.n_cells = assign_cells(self._arrays, lifetime, self._cells)

    def locate(self, points: FloatArray) -> tuple[NDArray[np.int32], FloatArray]:
        """Find the cells of points that are not in the forest.

        Parameters
        ----------
        points : float64 array of shape (S, m, d)
            Points.

        Returns
        -------
        cells : int32 array of shape (m, M)
            The cell that holds each point unless a new split separates the point from the data.
        stays : float64 array of shape (m, M)
            The probability that no split does: 1 for points within the data of the cell.
        """
        shape = points.shape[1], self.n_trees
        found, stays = np.empty(shape, dtype=np.int32), np.empty(shape)
        locate(self._arrays, points, self.rates, self.cell_lifetime, self.cells, found, stays)
        return found, stays

    def _growth_settings(self) -> GrowthSettings:
        return GrowthSettings(self.min_samples_split, float(self.lifetime))

    def _set_node_capacity_for(self, n_new: int) -> None:
        used = nodes_used(self._arrays) + n_new * self._room
        if used > self._arrays.parent.shape[1]:
            self._set_node_capacity(used + used // 4)


def _grow_part(
    arrays: Tree, n_points: int, rates: FloatArray, settings: GrowthSettings
) -> tuple[Tree]:
    """Grow some of the trees: one worker's part of `PartitionForest.build`."""
    sample_forest(arrays, arrays.points, n_points, rates, _NO_CLASSES, settings)
    return (arrays,)
