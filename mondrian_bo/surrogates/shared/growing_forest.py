"""A growing forest of Mondrian trees: the arrays, whatever their nodes carry.

:class:`GrowingForest` owns the arrays that the compiled functions of `trees` work on: it keeps the
points and labels, makes room and can undo insertions. What the nodes know about the labels, and how
they learn it, is for its subclasses to say.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

import numpy as np

from mondrian_bo.array_types import AnyArray, FloatArray, IntArray
from mondrian_bo.surrogates.shared.parallel import run_on_trees
from mondrian_bo.trees.growth import room_for_insertion
from mondrian_bo.trees.memory import resized
from mondrian_bo.trees.random import make_streams
from mondrian_bo.trees.tree import (
    GROWTH,
    Tree,
    empty_forest,
    leaves_of,
    nodes_used,
    with_box_capacity,
    with_node_capacity,
    with_point_capacity,
)
from mondrian_bo.trees.undo import record, restore

NodeStats = TypeVar("NodeStats", bound=tuple[AnyArray, ...])


class GrowingForest(ABC, Generic[NodeStats]):
    """Mondrian trees over shared points and labels, in one set of arrays.

    Parameters
    ----------
    n_trees : int
        Number of trees, T.
    n_dimensions : int
        Dimension d of the points.
    seed : numpy.random.SeedSequence
        Source of the trees' random streams.
    values : NamedTuple of arrays
        What the nodes carry, arrays of shape (T, 0, ...).
    targets : array of shape (0,)
        No labels, of the type of labels.
    min_samples_split : int, default=2
        Blocks with fewer points are not split.
    precision : type, default=numpy.float64
        Floating point type of points and boxes.

    Notes
    -----
    Points have shape (S, n, d) with S = 1 where all trees see the same coordinates and S = T where
    each has its own. Inserting a point takes O(T d log n); memory is O(T n d).
    """

    def __init__(
        self,
        n_trees: int,
        n_dimensions: int,
        seed: np.random.SeedSequence,
        values: NodeStats,
        targets: AnyArray,
        *,
        min_samples_split: int = 2,
        precision: type[np.floating[Any]] = np.float64,
    ) -> None:
        self.min_samples_split = min_samples_split
        self.n_points = 0
        self._room = room_for_insertion(min_samples_split)
        self._arrays = empty_forest(make_streams(seed, n_trees), n_dimensions, precision)
        self._node_stats = values
        self._targets = targets
        self._importance: FloatArray = np.empty(0)

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return len(self._arrays.counters)

    @property
    def arrays(self) -> Tree:
        """The arrays of all trees, with a leading axis of length T and unused room at the end."""
        return self._arrays

    @property
    def node_stats(self) -> NodeStats:
        """The node values of all trees, likewise."""
        return self._node_stats

    @property
    def _points(self) -> AnyArray:
        return self._arrays.points

    @property
    def points(self) -> AnyArray:
        """The points, shape (S, n, d)."""
        return self._points[:, : self.n_points]

    @property
    def targets(self) -> AnyArray:
        """The labels, shape (n,)."""
        return self._targets[: self.n_points]

    @property
    def importance(self) -> FloatArray:
        """The weights of the samples, shape (n,); empty if all are 1."""
        return self._importance[: self.n_points]

    @abstractmethod
    def extend(self, points: AnyArray, targets: AnyArray, weights: FloatArray) -> None:
        """Insert points one after the other, and let the nodes learn their labels.

        Parameters
        ----------
        points : array of shape (S, m, d)
            New points.
        targets : array of shape (m,)
            Their labels.
        weights : float64 array of shape (1 or m, d)
            Rate weights of the dimensions, for all new points or for each.
        """

    def leaves(self, points: AnyArray) -> IntArray:
        """Return the leaf that holds each point in each tree, shape (m, T)."""
        leaves = np.empty((points.shape[1], self.n_trees), dtype=np.int64)
        leaves_of(self._arrays, points, leaves)
        return leaves

    @contextmanager
    def extended(self, points: AnyArray, targets: AnyArray, weights: FloatArray) -> Iterator[None]:
        """Insert points for the time of a ``with`` block and then restore every array.

        What an insertion overwrites is O(depth) entries, so neither the insertion nor its undoing
        copies the forest. Parameters are those of :meth:`extend`. Not for leaves of one class,
        whose reopening may overwrite more.
        """
        journal = []
        try:
            for i in range(len(targets)):
                self._make_room_for_nodes()
                self._make_room_for_points(self.n_points + 1, len(points))
                journal.append(
                    record(self._arrays, self._node_stats, points[:, i], self.n_points, self._room)
                )
                self.extend(points[:, i : i + 1], targets[i : i + 1], weights)
            yield
        finally:
            for entry in reversed(journal):
                restore(self._arrays, self._node_stats, entry)
                self.n_points = entry.n_points

    def _store(
        self, points: AnyArray, targets: AnyArray, importance: FloatArray | None = None
    ) -> int:
        """Keep new points and labels, which `n_points` does not count yet; return their end."""
        start = self.n_points
        end = start + len(targets)
        self._make_room_for_points(end, len(points))
        self._points[:, start:end] = points
        self._targets[start:end] = targets
        if importance is not None and len(self._importance) == 0:
            self._importance = np.ones(self._points.shape[1])
        if len(self._importance) > 0:
            self._importance = resized(self._importance, 0, self._points.shape[1])
            self._importance[start:end] = 1.0 if importance is None else importance
        return end

    def _grow_batch(
        self,
        grow_chunk: Callable[..., tuple[Any, ...]],
        points: AnyArray,
        targets: AnyArray,
        settings: Sequence[object],
        capacity: int,
        n_jobs: int | None,
    ) -> None:
        """Grow the empty trees from a batch, with room for `capacity` nodes each while they grow.

        Pages of memory that are not written to are never resident: a bound costs address space
        only.
        """
        n_points = len(targets)
        trees = self._with_room(with_node_capacity(self._arrays, capacity), n_points)
        trees = trees._replace(points=points)
        fields: Any = (resized(field, 1, capacity) for field in self._node_stats)
        values = type(self._node_stats)(*fields)
        run_on_trees(grow_chunk, (trees, values), points, settings, n_jobs)
        self._targets, self.n_points = targets, n_points
        self._arrays, self._node_stats = trees, values

    def _make_room_for_all_nodes(self, n_points: int) -> None:
        """Make room for as many nodes as restricted trees of so many points may ever have.

        A leaf of one class that reopens may need many at once. Pages of memory that are not written
        to are never resident: what is not needed costs address space only.
        """
        if 2 * n_points > self._arrays.parent.shape[1]:
            self._set_node_capacity(2 * self._points.shape[1])

    def _set_node_capacity(self, capacity: int) -> None:
        used = nodes_used(self._arrays)
        self._arrays = with_node_capacity(self._arrays, capacity)
        fields: Any = (resized(field, 1, capacity, used) for field in self._node_stats)
        self._node_stats = type(self._node_stats)(*fields)

    def _make_room_for_nodes(self) -> None:
        used = nodes_used(self._arrays)
        if used + self._room > self._arrays.parent.shape[1]:
            self._set_node_capacity(int(GROWTH * used) + 8 * self._room)

    def _make_room_for_points(self, n_points: int, n_views: int) -> None:
        if self.n_points == 0 and len(self._points) != n_views:
            none = np.empty((n_views, 0, self._points.shape[2]), self._points.dtype)
            self._arrays = self._arrays._replace(points=none)
        room = min(self._points.shape[1], len(self._targets), self._arrays.next_point.shape[1])
        if n_points > room:
            # Of a first batch nobody knows whether more will follow.
            capacity = int(GROWTH * n_points) + 8 if self.n_points > 0 else max(n_points, 8)
            points = resized(self._points, 1, capacity)
            self._targets = resized(self._targets, 0, capacity)
            self._arrays = self._with_room(self._arrays._replace(points=points), capacity)

    def _with_room(self, trees: Tree, n_points: int) -> Tree:
        """Return trees with room for what `n_points` points need beside nodes."""
        return with_box_capacity(with_point_capacity(trees, n_points), n_points)
