"""A growing forest whose trees aggregate the forecasts of all their prunings.

See Mourtada2021 (AMF).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from mondrian_bo.array_types import AnyArray, FloatArray
from mondrian_bo.surrogates.amf.workers import (
    Progress,
    Recorded,
    extend_chunk,
    predict_chunk,
    relearn_chunk,
)
from mondrian_bo.surrogates.shared.growing_forest import GrowingForest
from mondrian_bo.surrogates.shared.parallel import (
    run_on_trees,
    run_parallel,
    split_trees,
)
from mondrian_bo.trees.aggregation import (
    REAL,
    Aggregation,
    empty_aggregation,
    refresh_averages,
)
from mondrian_bo.trees.aggregation_predict import (
    APART,
    DEPTH,
    SUM,
    SUM_OF_LOGS,
    predict_aggregation,
    sample_pruning,
)
from mondrian_bo.trees.memory import resized
from mondrian_bo.trees.numbering import number_in_preorder
from mondrian_bo.trees.tree import (
    GROWTH,
    ROOT,
    Tree,
    nodes_used,
    with_box_capacity,
    with_point_capacity,
)

_FEW = 0.25
_FEW_POINTS = 256
_NO_CLASSES = np.empty(0, dtype=np.int32)


class AggregatedForest(GrowingForest[Aggregation]):
    """Mondrian trees whose nodes keep their losses and averaged weights.

    Parameters
    ----------
    n_trees, n_dimensions, seed
        See :class:`GrowingForest`. Points are float32, as in scikit-learn's forests.
    n_classes : int
        Number of classes, or ``REAL`` for real labels.
    dirichlet : float, default=0.5
        Smoothing of the classes' frequencies.
    step : float, default=1.0
        Learning rate.
    split_pure : bool, default=True
        Whether blocks of one class are split.
    box : float64 array of shape (2, d) or None, default=None
        The box of unrestricted partitions (Algorithms 1 to 3); None restricts partitions to the
        data (Algorithms 4 to 6).
    record : bool, default=False
        Whether to record forecasts and losses on the way.
    """

    def __init__(
        self,
        n_trees: int,
        n_dimensions: int,
        seed: np.random.SeedSequence,
        *,
        n_classes: int,
        dirichlet: float = 0.5,
        step: float = 1.0,
        split_pure: bool = True,
        box: FloatArray | None = None,
        record: bool = False,
    ) -> None:
        super().__init__(
            n_trees,
            n_dimensions,
            seed,
            empty_aggregation(n_trees, n_classes),
            np.empty(0, dtype=np.float64 if n_classes == REAL else np.int32),
            min_samples_split=1,
            precision=np.float32,
        )
        self.n_classes = n_classes
        self.dirichlet = dirichlet
        self.step = step
        self._by_class = n_classes != REAL and not split_pure
        self.box = np.empty((0, n_dimensions)) if box is None else box
        self.records = record
        self._progress = np.zeros(n_trees, dtype=np.int64)
        self._best: FloatArray = np.empty((n_trees, 0))
        self._trace: FloatArray = np.empty((n_trees, 0, 2))

    @property
    def restricted(self) -> bool:
        """Whether partitions are restricted to the data."""
        return len(self.box) == 0

    @property
    def trace(self) -> FloatArray:
        """What was recorded of each point so far, shape (T, n, 2)."""
        return self._trace[:, : self.n_points if self.records else 0]

    def extend(
        self,
        points: AnyArray,
        targets: AnyArray,
        weights: FloatArray,
        importance: FloatArray | None = None,
        n_jobs: int | None = 1,
        starts: Sequence[int] | None = None,
    ) -> None:
        """Learn points one after the other.

        Parameters
        ----------
        points, targets, weights
            See :meth:`GrowingForest.extend`.
        importance : float64 array of shape (m,) or None, default=None
            Weights of the samples; None is all ones.
        n_jobs : int or None, default=1
            Number of workers, as joblib counts.
        starts : sequence of k int or None, default=None
            The new points from which on the rows of `weights`, of shape (k, d), count: the first is
            0. None if `weights` is as in :meth:`GrowingForest.extend`.
        """
        if len(targets) == 0:
            return
        start = self.n_points
        end = self._store(points, targets, importance)
        if end - start <= _FEW_POINTS:
            n_jobs = 1
        self._make_room_for_all_nodes(end)
        # To learn all labels anew, together, takes less time than many new ones one by one.
        one_by_one = self.records or end - start < _FEW * start
        if starts is None:
            changes = np.flatnonzero(np.any(weights[1:] != weights[:-1], axis=1)) + 1
            starts = [0, *changes.tolist()]
            weights = weights[starts]
        ends = [*(start + new for new in starts[1:]), end]
        first = start
        for last, rates in zip(ends, weights, strict=True):
            self._grow(first, last, rates, one_by_one, n_jobs)
            first = last
        self.n_points = end
        if not one_by_one:
            # Numbers must last while few points are known for a time only (`extended`).
            self._relearn(n_jobs, renumber=end - start > _FEW_POINTS)

    def _grow(
        self, start: int, end: int, rates: FloatArray, learn: bool, n_jobs: int | None
    ) -> None:
        """Insert stored points into all trees."""
        self._progress.fill(start)
        while True:
            run_on_trees(
                extend_chunk,
                (self._arrays, self._node_stats, Progress(self._progress, self._best, self._trace)),
                self._points,
                (
                    self._targets,
                    self._importance,
                    self._targets if self._by_class else _NO_CLASSES,
                    end,
                    rates,
                    self.box,
                    self.n_classes,
                    self.dirichlet,
                    self.step,
                    learn,
                ),
                n_jobs,
            )
            # Only trees that are not restricted may lack room.
            if self.restricted or np.all(self._progress == end):
                return
            self._set_node_capacity(int(GROWTH * nodes_used(self._arrays)) + 64)

    @contextmanager
    def extended(self, points: AnyArray, targets: AnyArray, weights: FloatArray) -> Iterator[None]:
        """See :meth:`GrowingForest.extended`; for restricted partitions without leaves that wait.

        Raises
        ------
        ValueError
            If what an insertion overwrites is more than is recorded.
        """
        if not self.restricted or self._by_class:
            raise ValueError("only restricted partitions that split all cells can be rolled back")
        with super().extended(points, targets, weights):
            yield

    def set_step(self, step: float) -> None:
        """Change the learning rate and refresh all averages, O(T n)."""
        if step != self.step:
            self.step = step
            if self.n_points > 0:
                refresh_averages(self._arrays, self._node_stats, self._best, step)

    def renumber(self) -> None:
        """Give nodes numbers that make paths contiguous, O(T n d): learning on takes less time."""
        carried = [*self._node_stats, self._best] if self.records else self._node_stats
        number_in_preorder(self._arrays, carried)

    def best_losses(self) -> FloatArray:
        """Return the loss of the best pruning of each tree in hindsight, shape (T,)."""
        best = np.empty(self._arrays.parent.shape)
        refresh_averages(self._arrays, self._node_stats, best, self.step)
        return np.asarray(best[np.arange(self.n_trees), self._arrays.counters[:, ROOT]])

    def set_targets(self, targets: AnyArray) -> None:
        """Replace all labels, O(T n log n); the trees do not depend on them."""
        self._targets[: self.n_points] = targets
        if self.n_points > 0:
            self._relearn(1)

    def predict(
        self, points: AnyArray, rates: FloatArray, rule: int, n_jobs: int | None = 1
    ) -> tuple[FloatArray, FloatArray]:
        """Return mean and variance of every tree's prediction of real labels, both (T, m)."""
        moments = self._predict(points, rates, rule, REAL, APART, n_jobs)
        return moments[:, :, 0], moments[:, :, 1]

    def predict_proba(
        self,
        points: AnyArray,
        rates: FloatArray,
        rule: int,
        pooling: int = SUM,
        n_jobs: int | None = 1,
    ) -> FloatArray:
        """Return the probabilities of the classes, shape (m, K): the trees' mean.

        It is the arithmetic mean or, with ``pooling=SUM_OF_LOGS``, the normalised geometric one.
        """
        total = self._predict(points, rates, rule, self.n_classes, pooling, n_jobs)[0]
        if pooling == SUM_OF_LOGS:
            total = np.exp((total - total.max(axis=1, keepdims=True)) / self.n_trees)
        return np.asarray(total / total.sum(axis=1, keepdims=True))

    def weighted_depths(self, points: AnyArray, rule: int) -> FloatArray:
        """Return the mean depth at which the prunings of each tree end, shape (m, T)."""
        depths = self._predict(points, np.empty(0), rule, DEPTH, APART, 1)
        return np.ascontiguousarray(depths[:, :, 0].T)

    def components(self, points: AnyArray, rates: FloatArray, rule: int) -> FloatArray:
        """Return all components of the predictive mixtures: point, weight, mean, variance, sorted.

        Weights add up to 1 for each point and tree. The result has shape (rows, 4).
        """
        moments = np.empty((self.n_trees, points.shape[1], 2))
        sink = np.empty((8 * len(moments[0]) * self.n_trees, 4))
        settings = (points, rates, rule, self.step, REAL, self.dirichlet, APART, moments)
        while True:
            needed = predict_aggregation(self._arrays, self._node_stats, *settings, sink)
            if needed <= len(sink):
                rows = sink[:needed]
                return rows[np.argsort(rows[:, 0], kind="stable")]
            sink = np.empty((needed, 4))

    def sample_function(
        self, tree: int, key: int, points: AnyArray, rates: FloatArray, rule: int
    ) -> FloatArray:
        """Return a random function from one tree's mixture of prunings at `points`, shape (m,)."""
        result = np.empty(points.shape[1])
        sample_pruning(
            self._arrays,
            self._node_stats,
            tree,
            np.uint64(key),
            points,
            rates,
            rule,
            self.step,
            result,
        )
        return result

    def _predict(
        self,
        points: AnyArray,
        rates: FloatArray,
        rule: int,
        kind: int,
        pooling: int,
        n_jobs: int | None,
    ) -> FloatArray:
        """Return the trees' results, or their sum as axis of length 1 where they are pooled."""
        settings = (rates, rule, self.step, kind, self.dirichlet, pooling)
        # Workers share the points out and not the trees, so that sums are always in one order.
        parts = split_trees(points.shape[1], n_jobs if points.shape[1] > _FEW_POINTS else 1)
        results = run_parallel(
            predict_chunk,
            [
                (self._arrays, self._node_stats, np.ascontiguousarray(points[:, part]), *settings)
                for part in parts
            ],
        )
        return results[0] if len(results) == 1 else np.concatenate(results, axis=1)

    def _relearn(self, n_jobs: int | None, renumber: bool = False) -> None:
        run_on_trees(
            relearn_chunk,
            (self._arrays, self._node_stats, Recorded(self._best)),
            self._points,
            (self.targets, self.importance, self.n_classes, self.dirichlet, self.step, renumber),
            n_jobs,
        )

    def _set_node_capacity(self, capacity: int) -> None:
        super()._set_node_capacity(capacity)
        if not self.restricted:
            self._arrays = with_box_capacity(self._arrays, capacity)
        if self.records:
            self._best = resized(self._best, 1, capacity)

    def _with_room(self, trees: Tree, n_points: int) -> Tree:
        if self.restricted:
            return super()._with_room(trees, n_points)
        return with_point_capacity(trees, n_points)  # all nodes have boxes

    def _make_room_for_points(self, n_points: int, n_views: int) -> None:
        super()._make_room_for_points(n_points, n_views)
        if self.records:
            self._trace = resized(self._trace, 1, self._points.shape[1])
