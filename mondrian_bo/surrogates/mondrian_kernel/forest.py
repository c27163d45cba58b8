"""Mondrian partitions of a growing set of points, with a label for each cell."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mondrian_bo.array_types import FloatArray
from mondrian_bo.surrogates.shared.growing_forest import GrowingForest
from mondrian_bo.surrogates.shared.parallel import run_on_trees
from mondrian_bo.trees.growth import extend_forest, sample_forest
from mondrian_bo.trees.memory import resized
from mondrian_bo.trees.partition import label_new_points, label_points, locate
from mondrian_bo.trees.tree import (
    NONE,
    Tree,
    nodes_used,
    with_node_capacity,
)

_NO_CLASSES = np.empty(0, dtype=np.int32)


class NoStats(NamedTuple):
    """What the nodes carry: nothing."""


class PartitionForest(GrowingForest[NoStats]):
    """Independent Mondrian partitions, restricted to the data (Balog2016, sections 2 and 3.1).

    Points of one cell have one label; labels are the columns of the feature map. The trees are
    grown up to `lifetime`, and are the partitions of every lifetime up to that.

    Parameters
    ----------
    n_trees : int
        Number of partitions, M.
    n_dimensions : int
        Dimension d of the points.
    seed : numpy.random.SeedSequence
        Source of the trees' random streams.
    weights : float64 array of shape (d,)
        Factors of the dimensions' lifetimes.
    lifetime : float
        Time up to which the processes run.

    Attributes
    ----------
    cell_lifetime : float
        The lifetime of the cells that have labels.
    n_labels : int
        Number of labels given so far, C: that of non-empty cells.
    """

    def __init__(
        self,
        n_trees: int,
        n_dimensions: int,
        seed: np.random.SeedSequence,
        weights: FloatArray,
        lifetime: float,
    ) -> None:
        super().__init__(n_trees, n_dimensions, seed, NoStats(), np.empty(0))
        self.weights = weights
        self.lifetime = self.cell_lifetime = lifetime
        self.n_labels = 0
        self._labels = np.empty((0, n_trees), dtype=np.int32)

    @property
    def labels(self) -> NDArray[np.int32]:
        """The label of each point in each tree, shape (n, M)."""
        return self._labels[: self.n_points]

    def build(self, points: FloatArray, targets: FloatArray, n_jobs: int | None = 1) -> None:
        """Sample the partitions of a batch, O(M d n log n) at most; the forest must be empty.

        Parameters
        ----------
        points : float64 array of shape (S, n, d)
            Points; kept.
        targets : float64 array of shape (n,)
            Their labels, or anything: partitions do not depend on them; kept.
        n_jobs : int or None, default=1
            Trees grown at a time, as joblib counts.
        """
        n_points = len(targets)
        self._targets = targets
        self.n_points = n_points
        trees = self._with_room(with_node_capacity(self._arrays, 2 * n_points - 1), n_points)
        trees = trees._replace(points=points)
        settings = (n_points, self.weights, self.min_samples_split, _NO_CLASSES, self.lifetime)
        run_on_trees(_grow_chunk, (trees,), points, settings, n_jobs)
        self._arrays = trees
        self._set_node_capacity(nodes_used(trees))
        self.label(self.cell_lifetime)

    def extend(
        self, points: FloatArray, targets: FloatArray, weights: FloatArray | None = None
    ) -> None:
        """Extend the partitions by the conditional Mondrian and label the points (section 5).

        Earlier labels stay. O(M d depth) for each point.

        Parameters
        ----------
        points, targets
            See :meth:`GrowingForest.extend`.
        weights : None
            The factors are those of the forest.
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
            self.weights,
            self.min_samples_split,
            _NO_CLASSES,
            self.lifetime,
        )
        self.n_points = end
        if len(self._labels) < end:
            self._labels = resized(self._labels, 0, self._points.shape[1], start)
        self._labels[start:end] = NONE
        self.n_labels = label_new_points(
            self._arrays, self._points, self.cell_lifetime, self.labels, start, self.n_labels
        )

    @contextmanager
    def extended(
        self, points: FloatArray, targets: FloatArray, weights: FloatArray
    ) -> Iterator[None]:
        """Insert points for the time of a ``with`` block; see :meth:`GrowingForest.extended`."""
        n_labels = self.n_labels
        try:
            with super().extended(points, targets, weights):
                yield
        finally:
            self.n_labels = n_labels

    def set_targets(self, targets: FloatArray) -> None:
        """Replace the labels of all points."""
        self._targets[: self.n_points] = targets

    def at_lifetime(self, lifetime: float) -> PartitionForest:
        """Return the partitions at another lifetime, at most that of the trees, which are shared.

        Neither of the two may learn more points.
        """
        other = copy(self)
        other.label(lifetime)
        return other

    def label(self, lifetime: float) -> None:
        """Label the cells of another lifetime, at most that of the trees, afresh; O(M n)."""
        self.cell_lifetime = lifetime
        self._labels = np.empty((self.n_points, self.n_trees), dtype=np.int32)
        self.n_labels = label_points(self._arrays, lifetime, self._labels)

    def locate(self, points: FloatArray) -> tuple[NDArray[np.int32], FloatArray]:
        """Find the cells of points that are not in the forest.

        Parameters
        ----------
        points : float64 array of shape (S, m, d)
            Points.

        Returns
        -------
        labels : int32 array of shape (m, M)
            The label of the cell that holds each point, unless a cut between it and the data
            separates them.
        stays : float64 array of shape (m, M)
            The probability that none does: 1 for points within the data of the cell.
        """
        shape = points.shape[1], self.n_trees
        found, stays = np.empty(shape, dtype=np.int32), np.empty(shape)
        locate(self._arrays, points, self.weights, self.cell_lifetime, self.labels, found, stays)
        return found, stays

    def _set_node_capacity_for(self, n_new: int) -> None:
        used = nodes_used(self._arrays) + n_new * self._room
        if used > self._arrays.parent.shape[1]:
            self._set_node_capacity(used + used // 4)


def _grow_chunk(
    trees: Tree,
    points: FloatArray,
    n_points: int,
    weights: FloatArray,
    min_samples_split: int,
    no_classes: NDArray[np.int32],
    lifetime: float,
) -> tuple[Tree]:
    """Grow some of the trees: one worker's part of `PartitionForest.build`."""
    sample_forest(trees, points, n_points, weights, min_samples_split, no_classes, lifetime)
    return (trees,)
