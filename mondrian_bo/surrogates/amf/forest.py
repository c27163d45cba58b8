"""A growing forest whose trees aggregate the forecasts of all their prunings (Mourtada2021)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

from mondrian_bo.shared.array_types import AnyArray, FloatArray
from mondrian_bo.surrogates.shared.ensemble import Ensemble
from mondrian_bo.surrogates.shared.growing_forest import GrowingForest
from mondrian_bo.surrogates.shared.parallel import (
    FEW_POINTS,
    run_on_trees,
    run_parallel,
    split_trees,
)
from mondrian_bo.surrogates.shared.sparse_rows import sparse_rows
from mondrian_bo.trees.aggregation import ExtensionSettings, Progress, extend_aggregation
from mondrian_bo.trees.aggregation_nodes import (
    REAL,
    Aggregation,
    AggregationSettings,
    Samples,
    empty_aggregation,
    refresh_averaged_weights,
    relearn_forest,
    with_exact_counts,
)
from mondrian_bo.trees.aggregation_predict import (
    APART,
    DEPTH,
    NO_RATES,
    SUM,
    SUM_OF_LOGS,
    Query,
    predict_aggregation,
    sample_pruning,
)
from mondrian_bo.trees.equivalent_weights import aggregation_weights
from mondrian_bo.trees.growth import NO_LIMIT
from mondrian_bo.trees.layout import N_NODES, ROOT
from mondrian_bo.trees.memory import resized
from mondrian_bo.trees.numbering import number_in_preorder
from mondrian_bo.trees.stacking_forecasts import N_FORECASTS, forecast_points
from mondrian_bo.trees.tree import (
    CAPACITY_FACTOR,
    Tree,
    nodes_used,
    with_box_capacity,
    with_point_capacity,
)

_FEW = 0.25
"""New samples over known ones from which on it is faster to learn all targets anew; our choice."""

_KEPT_NUMBERS = 256
"""New samples up to which nodes keep their numbers, our choice. Trees that learn so few together
have at most 1280 samples, and need no contiguous paths."""

_SAMPLES_PER_NODE = 4
"""Samples that are kept for each node of a tree with a limit of nodes; our choice. Trees of classes
may need many samples for a few nodes, and a sample takes less than a tenth of the memory of the
nodes of ten trees."""

_PORTION = 1024
"""Samples that are stored at a time while complete trees learn them."""

_NO_CLASSES = np.empty(0, dtype=np.int32)
"""Stands for classes where blocks of one class are split, too."""

_NO_COMPONENTS = np.empty((0, 4))
"""Stands for the array of components where none are wanted."""


class AggregatedForest(GrowingForest[Aggregation]):
    """Mondrian trees whose nodes know their losses and averaged weights.

    Parameters
    ----------
    ensemble
        See :class:`GrowingForest`. Points are float32, as in scikit-learn's forests.
    n_classes : int
        Number of classes, or ``REAL`` for real targets.
    dirichlet : float, default=0.5
        Smoothing of the frequencies of classes.
    step : float, default=1.0
        Learning rate.
    split_pure : bool, default=True
        Whether blocks of one class are split.
    box : float64 array of shape (2, d) or None, default=None
        The box of unrestricted partitions (Algorithms 1 to 3); None restricts partitions to the
        data (Algorithms 4 to 6).
    record : bool, default=False
        Whether to record forecasts and losses on the way.
    look_ahead : bool, default=False
        Whether to keep the forecasts of the points of each call of :meth:`extend`, in `ahead`; for
        real targets.
    max_nodes : int or None, default=None
        Largest number of nodes of a tree, for restricted partitions without records. A full tree
        makes room for a split (:mod:`mondrian_bo.trees.recycling`). Once no tree has room for a
        split, or the forest keeps four samples for each node, trees are complete: further samples
        are not kept.

    Attributes
    ----------
    at_leaf : bool
        Whether to record the forecasts of the leaves, rather than of all prunings.
    """

    at_leaf = False

    def __init__(
        self,
        ensemble: Ensemble,
        *,
        n_classes: int,
        dirichlet: float = 0.5,
        step: float = 1.0,
        split_pure: bool = True,
        box: FloatArray | None = None,
        record: bool = False,
        look_ahead: bool = False,
        max_nodes: int | None = None,
    ) -> None:
        n_trees = ensemble.n_trees
        super().__init__(
            ensemble,
            empty_aggregation(n_trees, n_classes),
            np.empty(0, dtype=np.float64 if n_classes == REAL else np.int32),
            min_samples_split=1,
            dtype=np.float32,
            max_nodes=max_nodes,
        )
        self.n_classes = n_classes
        self.dirichlet = float(dirichlet)
        self.step = float(step)
        self._by_class = n_classes != REAL and not split_pure
        self.box = np.empty((0, ensemble.n_dimensions)) if box is None else box
        self.records = record
        self.looks_ahead = look_ahead
        self._progress = Progress(
            next_point=np.zeros(n_trees, dtype=np.int64),
            best=np.empty((n_trees, 0)),
            trace=np.empty((n_trees, 0, 2)),
            ahead=np.empty((n_trees, 0, N_FORECASTS + 1)),
        )

    @property
    def restricted(self) -> bool:
        """Whether partitions are restricted to the data."""
        return len(self.box) == 0

    @property
    def links_all_points(self) -> bool:
        """Whether each tree's leaves list all points: none was learnt by a full tree."""
        # A tree of n points has at most 2 n - 1 nodes, so it is not full before the next one.
        if self.max_nodes is None or self.n_points <= (self.max_nodes + 1) // 2:
            return self.n_dropped == 0
        return self.n_dropped == 0 and nodes_used(self._arrays) + 2 <= self.max_nodes

    @property
    def trace(self) -> FloatArray:
        """What was recorded of each point so far, shape (T, n, 2)."""
        return self._progress.trace[:, : self.n_points if self.records else 0]

    @property
    def ahead(self) -> FloatArray:
        """Forecasts of the points of the last call of :meth:`extend`, before they were learnt.

        Shape (T, m, 5), see :mod:`mondrian_bo.trees.stacking_forecasts`. The first point of all has
        none: its row is NaN.
        """
        return self._progress.ahead

    @property
    def settings(self) -> AggregationSettings:
        """Settings of the forecasters and of their aggregation."""
        return AggregationSettings(self.n_classes, self.dirichlet, self.step, self.at_leaf)

    def extend(
        self,
        points: AnyArray,
        targets: AnyArray,
        rates: FloatArray,
        sample_weights: FloatArray | None = None,
        n_jobs: int | None = 1,
        starts: Sequence[int] | None = None,
        *,
        one_by_one: bool = False,
    ) -> None:
        """Learn points one after the other.

        Parameters
        ----------
        points, targets, rates
            See :meth:`GrowingForest.extend`.
        sample_weights : float64 array of shape (m,) or None, default=None
            Weights of the samples; None is all ones.
        n_jobs : int or None, default=1
            Number of workers, as joblib counts.
        starts : sequence of k int or None, default=None
            The new points from which on the rows of `rates`, of shape (k, d), count: the first is
            0. None if `rates` is as in :meth:`GrowingForest.extend`.
        one_by_one : bool, default=False
            Whether nodes off the paths of the new points are left alone: they keep their numbers.
        """
        n_new = len(targets)
        if n_new == 0:
            return
        n_jobs = 1 if n_new <= FEW_POINTS else n_jobs
        known = self.n_points
        n_all, root = self.n_learnt + n_new, int(self._arrays.counters[0, ROOT])
        needs_ones = sample_weights is None and len(self._importance) > 0
        weights = np.ones(n_new) if needs_ones else sample_weights
        self._node_stats = with_exact_counts(self._node_stats, root, n_all, weights)
        limited = self.max_nodes is not None
        one_by_one |= self.records or self.looks_ahead or limited or n_new < _FEW * known
        if self.looks_ahead:
            ahead = np.full((self.n_trees, n_new, N_FORECASTS + 1), np.nan)
            self._progress = self._progress._replace(ahead=ahead)
        if starts is None:
            changes = np.flatnonzero(np.any(rates[1:] != rates[:-1], axis=1)) + 1
            starts = [0, *changes.tolist()]
            rates = rates[starts]
        ends = [*starts[1:], n_new]
        done = 0
        while done < n_new:
            count, limit = self._next_portion(n_new - done)
            part = slice(done, done + count)
            weights = None if sample_weights is None else sample_weights[part]
            start = self.n_points
            self._make_room_for_all_nodes(self._store(points[:, part], targets[part], weights))
            shift = start - done  # stored number of a point = shift + its number among the new ones
            for first, last, row in zip(starts, ends, rates, strict=True):
                first, last = max(first, done), min(last, part.stop)
                if first < last:
                    end = shift + last
                    extension = ExtensionSettings(row, self.box, end, one_by_one, shift, limit)
                    self._grow(shift + first, extension, n_jobs)
            if limit > 0:
                self.n_points = start + count
            else:
                self.n_dropped += count
            done = part.stop
        if not one_by_one:
            self._relearn(n_jobs, renumber=n_new > _KEPT_NUMBERS)

    def _next_portion(self, n_new: int) -> tuple[int, int]:
        """Return how many new points to learn next, and the limit of nodes, 0 if complete."""
        if self.max_nodes is None:
            return n_new, NO_LIMIT
        room = self.max_nodes - int(self._arrays.counters[:, N_NODES].min())
        room_for_points = _SAMPLES_PER_NODE * self.max_nodes - self.n_points
        if (room < 2 and self.n_points > 0) or room_for_points <= 0:
            return min(n_new, _PORTION), 0
        return min(n_new, max(room // 2, 1), room_for_points), self.max_nodes

    def _grow(self, start: int, extension: ExtensionSettings, n_jobs: int | None) -> None:
        """Insert stored points into all trees, from `start` on."""
        self._progress.next_point.fill(start)
        classes = self._targets if self._by_class else _NO_CLASSES
        samples = Samples(self._targets, self._importance, classes)
        while True:
            state = (self._arrays, self._node_stats, self._progress)
            run_on_trees(_extend_part, state, (samples, extension, self.settings), n_jobs)
            # Only trees that are not restricted may lack room.
            if self.restricted or np.all(self._progress.next_point == extension.end):
                return
            self._set_node_capacity(int(CAPACITY_FACTOR * nodes_used(self._arrays)) + 64)

    @property
    def _can_roll_back(self) -> bool:
        # Paused leaves and full trees change more than is recorded.
        return self.restricted and not self._by_class and self.max_nodes is None

    def _extend_recorded(self, points: AnyArray, targets: AnyArray, rates: FloatArray) -> None:
        self.extend(points, targets, rates, one_by_one=True)

    def set_step(self, step: float) -> None:
        """Change the learning rate and compute all averaged weights anew, O(T n)."""
        if step != self.step:
            self.step = step
            if self.n_points > 0:
                refresh_averaged_weights(self._arrays, self._node_stats, self._progress.best, step)

    def renumber(self) -> None:
        """Give nodes their numbers in preorder, O(T n d): contiguous paths make learning faster."""
        carried = [*self._node_stats, self._progress.best] if self.records else self._node_stats
        number_in_preorder(self._arrays, carried)

    def best_losses(self) -> FloatArray:
        """Return the loss of the best pruning of each tree in hindsight, shape (T,)."""
        best = np.empty(self._arrays.parent.shape)
        refresh_averaged_weights(self._arrays, self._node_stats, best, self.step)
        return np.asarray(best[np.arange(self.n_trees), self._arrays.counters[:, ROOT]])

    def set_targets(self, targets: AnyArray) -> None:
        """Replace all targets, O(T n log n); the trees do not depend on them."""
        self._targets[: self.n_points] = targets
        if self.n_points > 0:
            self._relearn(1)

    def predict(
        self, points: AnyArray, rates: FloatArray, rule: int, n_jobs: int | None = 1
    ) -> tuple[FloatArray, FloatArray]:
        """Return mean and variance of every tree's prediction of real targets, both (T, m)."""
        moments = self._predict(points, rates, rule, REAL, APART, n_jobs)
        return moments[:, :, 0], moments[:, :, 1]

    def forecasts(self, points: AnyArray, rates: FloatArray, n_jobs: int | None = 1) -> FloatArray:
        """Return the four forecasts of real targets of every tree and a variance, (T, m, 5).

        See :mod:`mondrian_bo.trees.stacking_forecasts`.
        """
        return self._on_parts(_forecast_part, points, (rates, self.step), n_jobs)

    def predict_proba(
        self,
        points: AnyArray,
        rates: FloatArray,
        rule: int,
        pooling: int = SUM,
        n_jobs: int | None = 1,
    ) -> FloatArray:
        """Return the probabilities of the classes, shape (m, K): the mean over trees.

        The mean is arithmetic or, with ``pooling=SUM_OF_LOGS``, geometric and normalised.
        """
        total = self._predict(points, rates, rule, self.n_classes, pooling, n_jobs)[0]
        if pooling == SUM_OF_LOGS:
            total = np.exp((total - total.max(axis=1, keepdims=True)) / self.n_trees)
        return np.asarray(total / total.sum(axis=1, keepdims=True))

    def weighted_depths(self, points: AnyArray, rule: int) -> FloatArray:
        """Return the mean depth at which the prunings of each tree end, shape (m, T)."""
        depths = self._predict(points, NO_RATES, rule, DEPTH, APART, 1)
        return np.ascontiguousarray(depths[:, :, 0].T)

    def components(self, points: AnyArray, rates: FloatArray, rule: int) -> FloatArray:
        """Return all components of the predictive mixtures: point, weight, mean, variance, sorted.

        Weights add up to 1 for each point and tree. The result has shape (rows, 4).
        """
        moments = np.empty((self.n_trees, points.shape[1], 2))
        sink = np.empty((8 * len(moments[0]) * self.n_trees, 4))
        query = Query(rates, rule, REAL, APART, self.step, self.dirichlet)
        while True:
            needed = predict_aggregation(
                self._arrays, self._node_stats, points, query, moments, sink
            )
            if needed <= len(sink):
                return sink[np.argsort(sink[:needed, 0], kind="stable")]
            sink = np.empty((needed, 4))

    def weights(
        self, points: AnyArray, rates: FloatArray, rule: int, tolerance: float
    ) -> csr_matrix:
        """Return the weights of real targets in the mean of the forest, shape (m, n).

        See :func:`mondrian_bo.trees.equivalent_weights.aggregation_weights`.
        """
        query = Query(rates, rule, REAL, APART, self.step, self.dirichlet)

        def rows_of(start: int, end: int) -> FloatArray:
            rows = np.zeros((end - start, self.n_points))
            part = np.ascontiguousarray(points[:, start:end])
            aggregation_weights(
                self._arrays, self._node_stats, part, query, self.sample_weights, tolerance, rows
            )
            return rows / self.n_trees

        return sparse_rows(rows_of, points.shape[1], self.n_points, tolerance)

    def sample_function(
        self, tree: int, key: int, points: AnyArray, rates: FloatArray, rule: int
    ) -> FloatArray:
        """Return a random function from one tree's mixture of prunings at `points`, shape (m,)."""
        result = np.empty(points.shape[1])
        query = Query(rates, rule, REAL, APART, self.step, self.dirichlet)
        sample_pruning(self._arrays, self._node_stats, tree, np.uint64(key), points, query, result)
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
        """Return the results of the trees; where they are pooled, one result on an axis of 1."""
        query = Query(rates, rule, kind, pooling, self.step, self.dirichlet)
        return self._on_parts(_predict_part, points, (query,), n_jobs)

    def _on_parts(
        self,
        function: Callable[..., FloatArray],
        points: AnyArray,
        settings: tuple[object, ...],
        n_jobs: int | None,
    ) -> FloatArray:
        """Return the results of a function of the forest and of points, on their axis 1."""
        # Workers share out the points and not the trees, so that sums are always in one order.
        parts = split_trees(points.shape[1], n_jobs if points.shape[1] > FEW_POINTS else 1)
        results = run_parallel(
            function,
            [
                (self._arrays, self._node_stats, np.ascontiguousarray(points[:, part]), *settings)
                for part in parts
            ],
        )
        return results[0] if len(results) == 1 else np.concatenate(results, axis=1)

    def _relearn(self, n_jobs: int | None, renumber: bool = False) -> None:
        state = (self._arrays, self._node_stats, _Recorded(self._progress.best))
        samples = Samples(self.targets, self.sample_weights, _NO_CLASSES)
        run_on_trees(_relearn_part, state, (samples, self.settings, renumber), n_jobs)

    def _set_node_capacity(self, capacity: int) -> None:
        if self.records:  # first: an interruption leaves it with too much room, not too little
            self._progress = self._progress._replace(best=resized(self._progress.best, 1, capacity))
        super()._set_node_capacity(capacity)

    def _with_nodes(self, capacity: int) -> Tree:
        arrays = super()._with_nodes(capacity)
        return arrays if self.restricted else with_box_capacity(arrays, capacity)

    def _with_room(self, arrays: Tree, n_points: int) -> Tree:
        if self.max_nodes is not None:  # in complete trees every node has a box
            n_boxes = min(2 * n_points, self.max_nodes)
            return with_box_capacity(with_point_capacity(arrays, n_points), n_boxes)
        if self.restricted:
            return super()._with_room(arrays, n_points)
        return with_point_capacity(arrays, n_points)  # all nodes have boxes

    def _make_room_for_points(self, n_points: int, n_views: int) -> None:
        super()._make_room_for_points(n_points, n_views)
        if self.records:
            trace = resized(self._progress.trace, 1, self._points.shape[1])
            self._progress = self._progress._replace(trace=trace)


class _Recorded(NamedTuple):
    """The `best` of :class:`Progress` alone."""

    best: FloatArray


def _extend_part(
    arrays: Tree,
    node_stats: Aggregation,
    progress: Progress,
    samples: Samples,
    extension: ExtensionSettings,
    settings: AggregationSettings,
) -> tuple[Tree, Aggregation, Progress]:
    """Learn with some of the trees: one worker's part of `AggregatedForest.extend`."""
    extend_aggregation(arrays, node_stats, progress, samples, extension, settings)
    return arrays, node_stats, progress


def _relearn_part(
    arrays: Tree,
    node_stats: Aggregation,
    recorded: _Recorded,
    samples: Samples,
    settings: AggregationSettings,
    renumber: bool,
) -> tuple[Tree, Aggregation, _Recorded]:
    """Learn all targets anew with some of the trees, and renumber their nodes before on request."""
    if renumber:
        number_in_preorder(arrays)
    relearn_forest(arrays, node_stats, recorded.best, samples, settings)
    return arrays, node_stats, recorded


def _predict_part(
    arrays: Tree, node_stats: Aggregation, points: AnyArray, query: Query
) -> FloatArray:
    """Predict some of the points: one worker's part of `AggregatedForest`'s predictions."""
    n_columns = {REAL: 2, DEPTH: 1}.get(query.kind, query.kind)
    n_results = len(arrays.counters) if query.pooling == APART else 1
    result = np.empty((n_results, points.shape[1], n_columns))
    predict_aggregation(arrays, node_stats, points, query, result, _NO_COMPONENTS)
    return result


def _forecast_part(
    arrays: Tree, node_stats: Aggregation, points: AnyArray, rates: FloatArray, step: float
) -> FloatArray:
    """Forecast at some of the points: one worker's part of `AggregatedForest.forecasts`."""
    result = np.empty((len(arrays.counters), points.shape[1], N_FORECASTS + 1))
    forecast_points(arrays, node_stats, points, rates, step, result)
    return result
