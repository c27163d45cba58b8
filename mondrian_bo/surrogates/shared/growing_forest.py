"""The arrays of a growing forest of Mondrian trees.

:class:`GrowingForest` owns the arrays that the compiled functions of `trees` work on. It stores
points and targets, grows the arrays and can undo insertions. Its subclasses define the statistics
of the nodes and how these learn targets.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

import numpy as np

from mondrian_bo.shared.array_types import AnyArray, FloatArray, IntArray
from mondrian_bo.surrogates.shared.ensemble import Ensemble
from mondrian_bo.surrogates.shared.parallel import run_on_trees
from mondrian_bo.trees.growth import NO_LIMIT, room_for_insertion
from mondrian_bo.trees.memory import resized
from mondrian_bo.trees.random import make_streams
from mondrian_bo.trees.tree import (
    CAPACITY_FACTOR,
    Tree,
    empty_forest,
    leaves_of,
    nodes_used,
    with_box_capacity,
    with_node_capacity,
    with_point_capacity,
)
from mondrian_bo.trees.undo import most_new_nodes, record, restore

NodeStats = TypeVar("NodeStats", bound=tuple[AnyArray, ...])
"""The NamedTuple of what nodes carry: messages, counts or losses."""


class GrowingForest(ABC, Generic[NodeStats]):
    """Mondrian trees over shared points and targets, in one set of arrays.

    Parameters
    ----------
    ensemble : Ensemble
        Number of trees, dimension of the points, and seed.
    node_stats : NamedTuple of arrays
        Empty statistics of the nodes, arrays of shape (T, 0, ...).
    targets : array of shape (0,)
        An empty array of the data type of targets.
    min_samples_split : int, default=2
        Nodes with fewer points are not split.
    dtype : type, default=numpy.float64
        Floating point type of points and boxes.
    max_nodes : int or None, default=None
        Largest number of nodes of a tree; None is no limit.

    Attributes
    ----------
    n_points : int
        Number of points that are kept.
    n_dropped : int
        Number of points that were learnt and are not kept.

    Notes
    -----
    Points have shape (S, n, d) with S = 1 where all trees see the same coordinates and S = T where
    each has its own. Inserting a point takes O(T d log n); memory is O(T n d).
    """

    n_dropped = 0

    def __init__(
        self,
        ensemble: Ensemble,
        node_stats: NodeStats,
        targets: AnyArray,
        *,
        min_samples_split: int = 2,
        dtype: type[np.floating[Any]] = np.float64,
        max_nodes: int | None = None,
    ) -> None:
        self.min_samples_split = min_samples_split
        self.max_nodes = max_nodes
        self.n_points = 0
        self._room = room_for_insertion(min_samples_split)
        streams = make_streams(ensemble.seed, ensemble.n_trees)
        self._arrays = empty_forest(streams, ensemble.n_dimensions, dtype)
        self._node_stats = node_stats
        self._targets = targets
        self._importance: FloatArray = np.empty(0)
        # The samples while trees are grown anew: an interruption must not lose them.
        self._regrown: tuple[AnyArray, AnyArray, FloatArray] | None = None

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return len(self._arrays.counters)

    @property
    def n_learnt(self) -> int:
        """Number of points that were learnt, whether they are kept or not."""
        return self.n_points + self.n_dropped

    @property
    def arrays(self) -> Tree:
        """The arrays of all trees, with a leading axis of length T and spare capacity."""
        return self._arrays

    @property
    def node_stats(self) -> NodeStats:
        """The statistics of the nodes of all trees, arrays of the same layout."""
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
        """The targets, shape (n,)."""
        return self._targets[: self.n_points]

    @property
    def sample_weights(self) -> FloatArray:
        """The weights of the samples, shape (n,); empty if all are 1."""
        return self._importance[: self.n_points]

    @property
    def samples(self) -> tuple[AnyArray, AnyArray, FloatArray]:
        """Points, targets and weights; after an interruption, at least those learnt before."""
        kept = self._regrown
        return (self.points, self.targets, self.sample_weights) if kept is None else kept

    @property
    def mass(self) -> float:
        """Total weight of the samples; O(n) if they have weights, else O(1)."""
        return float(self.sample_weights.sum()) if len(self._importance) else float(self.n_points)

    @abstractmethod
    def extend(self, points: AnyArray, targets: AnyArray, rates: FloatArray) -> None:
        """Insert points one after the other and update the statistics of the nodes.

        Parameters
        ----------
        points : array of shape (S, m, d)
            New points.
        targets : array of shape (m,)
            Their targets.
        rates : float64 array of shape (1 or m, d)
            Split rates of the dimensions, for all new points or for each.
        """

    def leaves(self, points: AnyArray) -> IntArray:
        """Return the leaf of each point in each tree, shape (m, T)."""
        leaves = np.empty((points.shape[1], self.n_trees), dtype=np.int64)
        leaves_of(self._arrays, points, leaves)
        return leaves

    @contextmanager
    def extended(self, points: AnyArray, targets: AnyArray, rates: FloatArray) -> Iterator[None]:
        """Insert points inside a ``with`` block and restore every array at its end.

        An insertion overwrites O(depth) entries of each tree, which are saved before the first one:
        the forest is not copied. Parameters are those of :meth:`extend`.

        Raises
        ------
        ValueError
            If an insertion may overwrite more entries: in unrestricted partitions, and in
            aggregated forests with paused leaves of one class or a limit of nodes.
        """
        if not self._can_roll_back:
            raise ValueError(
                "only restricted partitions that split all cells and have no limit of nodes can be "
                "rolled back"
            )
        n_points, n_new = self.n_points, len(targets)
        self._make_room_for_nodes(most_new_nodes(n_points, n_new, self._room))
        self._make_room_for_points(n_points + n_new, len(points))
        entry = record(self._arrays, self._node_stats, points, n_points, self._room)
        try:
            self._extend_recorded(points, targets, rates)
            yield
        finally:
            restore(self._arrays, self._node_stats, entry)
            self.n_points = n_points

    @property
    def _can_roll_back(self) -> bool:
        """Whether insertions change no entry that `record` does not copy."""
        return True

    def _extend_recorded(self, points: AnyArray, targets: AnyArray, rates: FloatArray) -> None:
        """Insert points as :meth:`extend` does, and change no entry that `record` does not copy."""
        self.extend(points, targets, rates)

    def forget(self) -> None:
        """Forget all points; the random streams go on."""
        n_dimensions = self._points.shape[2]
        self._arrays = empty_forest(self._arrays.stream, n_dimensions, self._points.dtype.type)
        fields: Any = (field[:, :0].copy() for field in self._node_stats)
        self._node_stats = type(self._node_stats)(*fields)
        self._targets, self._importance = self._targets[:0].copy(), np.empty(0)
        self.n_points = 0

    def _store(
        self, points: AnyArray, targets: AnyArray, sample_weights: FloatArray | None = None
    ) -> int:
        """Store points and targets after the first `n_points`, and return their end.

        `n_points` stays as it is.
        """
        start = self.n_points
        end = start + len(targets)
        self._make_room_for_points(end, len(points))
        self._points[:, start:end] = points
        self._targets[start:end] = targets
        if sample_weights is not None and len(self._importance) == 0:
            self._importance = np.ones(self._points.shape[1])
        if len(self._importance) > 0:
            self._importance = resized(self._importance, 0, self._points.shape[1])
            self._importance[start:end] = 1.0 if sample_weights is None else sample_weights
        return end

    def _grow_batch(
        self,
        grow_part: Callable[..., tuple[Any, ...]],
        points: AnyArray,
        targets: AnyArray,
        settings: Sequence[object],
        capacity: int,
        n_jobs: int | None,
    ) -> None:
        """Grow the empty trees from a batch, with `capacity` nodes each while they grow.

        Memory pages that are never written are not resident, so a generous capacity costs address
        space only.
        """
        n_points = len(targets)
        arrays = self._with_room(with_node_capacity(self._arrays, capacity), n_points)
        arrays = arrays._replace(points=points)
        fields: Any = (resized(field, 1, capacity) for field in self._node_stats)
        node_stats = type(self._node_stats)(*fields)
        run_on_trees(grow_part, (arrays, node_stats), settings, n_jobs)
        self._targets, self._arrays, self._node_stats = targets, arrays, node_stats
        self.n_points = n_points

    def _make_room_for_all_nodes(self, n_points: int) -> None:
        """Make room for the largest number of nodes of restricted trees of `n_points` points.

        Opening a paused leaf of one class may add many nodes at once. Memory pages that are never
        written are not resident, so unused capacity costs address space only.
        """
        if min(2 * n_points, self._node_limit) > self._arrays.parent.shape[1]:
            self._set_node_capacity(min(2 * self._points.shape[1], self._node_limit))

    @property
    def _node_limit(self) -> int:
        """The largest number of nodes, as the kernels take it."""
        return NO_LIMIT if self.max_nodes is None else self.max_nodes

    def _n_that_fit(self, n_points: int) -> int:
        """Return how many of a first batch of points fit into every tree, > 0."""
        return n_points if self.max_nodes is None else min(n_points, (self.max_nodes + 1) // 2)

    def _set_node_capacity(self, capacity: int) -> None:
        used = nodes_used(self._arrays)
        arrays = self._with_nodes(capacity)
        fields: Any = (resized(field, 1, capacity, used) for field in self._node_stats)
        # Together, and when nothing is left that may fail: memory may not suffice for all arrays.
        self._arrays, self._node_stats = arrays, type(self._node_stats)(*fields)

    def _with_nodes(self, capacity: int) -> Tree:
        """Return arrays with a capacity of exactly `capacity` nodes per tree."""
        return with_node_capacity(self._arrays, capacity)

    def _make_room_for_nodes(self, n_more: int = 0) -> None:
        """Make room for one insertion after others, which add at most so many nodes."""
        used = nodes_used(self._arrays) + n_more
        if used + self._room > self._arrays.parent.shape[1]:
            self._set_node_capacity(int(CAPACITY_FACTOR * used) + 8 * self._room)

    def _make_room_for_points(self, n_points: int, n_views: int) -> None:
        if self.n_points == 0 and len(self._points) != n_views:
            none = np.empty((n_views, 0, self._points.shape[2]), self._points.dtype)
            self._arrays = self._arrays._replace(points=none)
        room = min(self._points.shape[1], len(self._targets), self._arrays.next_point.shape[1])
        if n_points > room:
            # The first batch gets no spare capacity, because it may be the only one.
            capacity = (
                int(CAPACITY_FACTOR * n_points) + 8 if self.n_points > 0 else max(n_points, 8)
            )
            points = resized(self._points, 1, capacity)
            arrays = self._with_room(self._arrays._replace(points=points), capacity)
            self._targets, self._arrays = resized(self._targets, 0, capacity), arrays

    def _with_room(self, arrays: Tree, n_points: int) -> Tree:
        """Return arrays with room for the boxes and lists of `n_points` points."""
        return with_box_capacity(with_point_capacity(arrays, n_points), n_points)
