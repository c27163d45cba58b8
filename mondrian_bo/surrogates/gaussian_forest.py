"""A growing forest of Mondrian trees with the hierarchical Gaussian on them.

:class:`GaussianForest` owns the arrays that the compiled functions of `trees` work on: it
makes room, keeps the points and labels, runs trees in parallel and can undo insertions. It knows
nothing of estimators, validation or search spaces.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mondrian_bo.surrogates.parallel import (
    grow_chunk,
    points_of,
    predict_chunk,
    rows_of,
    run_parallel,
    split_trees,
)
from mondrian_bo.trees.gaussian import (
    MEAN,
    SQUARES,
    Gaussian,
    Hyperparameters,
    empty_gaussian,
    extend_forest,
    log_likelihood_terms,
    refresh_forest,
    remaining_variance,
    with_gaussian_capacity,
)
from mondrian_bo.trees.journal import record, restore
from mondrian_bo.trees.mondrian import room_for_insertion
from mondrian_bo.trees.predict import sample_function, tree_components
from mondrian_bo.trees.random import make_streams
from mondrian_bo.trees.tree import (
    GROWTH,
    N_NODES,
    ROOT,
    Tree,
    empty_forest,
    leaves_of,
    resized,
    with_node_capacity,
    with_point_capacity,
)

FloatArray = NDArray[np.float64]


class GaussianForest:
    """Mondrian trees over shared points and labels, in one set of arrays.

    Parameters
    ----------
    n_trees : int
        Number of trees, T.
    n_dimensions : int
        Dimension d of the points.
    seed : numpy.random.SeedSequence
        Source of the trees' random streams.
    min_samples_split : int, default=2
        Blocks with fewer points are not split.
    lifetime : float, default=inf
        Blocks are not split later than this.

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
        *,
        min_samples_split: int = 2,
        lifetime: float = np.inf,
    ) -> None:
        self.min_samples_split = min_samples_split
        self.lifetime = lifetime
        self.n_points = 0
        self.hyperparameters = Hyperparameters(gamma_2=1.0, noise=1.0)
        self._n_dimensions = n_dimensions
        self._room = room_for_insertion(min_samples_split)
        self._trees = empty_forest(make_streams(seed, n_trees), n_dimensions)
        self._values = empty_gaussian(n_trees)
        self._points: FloatArray = np.empty((1, 0, n_dimensions))
        self._targets: FloatArray = np.empty(0)

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return len(self._trees.counters)

    @property
    def trees(self) -> Tree:
        """The arrays of all trees, with a leading axis of length T and unused room at the end."""
        return self._trees

    @property
    def values(self) -> Gaussian:
        """The node values of all trees, likewise."""
        return self._values

    @property
    def points(self) -> FloatArray:
        """The points, shape (S, n, d)."""
        return self._points[:, : self.n_points]

    @property
    def targets(self) -> FloatArray:
        """The labels, shape (n,)."""
        return self._targets[: self.n_points]

    def build(
        self,
        points: FloatArray,
        targets: FloatArray,
        weights: FloatArray,
        hyperparameters: Hyperparameters,
        n_jobs: int | None = 1,
    ) -> None:
        """Grow the trees from a batch (Algorithms 1 and 2); the forest must be empty.

        Parameters
        ----------
        points : float64 array of shape (S, n, d)
            Points; kept.
        targets : float64 array of shape (n,)
            Labels; kept.
        weights : float64 array of shape (d,)
            Rate weights of the dimensions.
        hyperparameters : Hyperparameters
            Parameters of the messages.
        n_jobs : int or None, default=1
            Trees grown at a time, as joblib counts.
        """
        n_points = len(targets)
        self._points, self._targets = points, targets
        self.n_points = n_points
        self.hyperparameters = hyperparameters
        # Pages that are not written to are never resident: the bound costs address space only.
        capacity = 2 * n_points - 1
        trees = with_point_capacity(with_node_capacity(self._trees, capacity), n_points)
        values = with_gaussian_capacity(self._values, capacity)
        settings = (targets, weights, self.min_samples_split, self.lifetime, hyperparameters)
        parts = split_trees(self.n_trees, n_jobs)
        grown = run_parallel(
            grow_chunk,
            [
                (rows_of(trees, part), rows_of(values, part), points_of(points, part), *settings)
                for part in parts
            ],
        )
        for part, (chunk, chunk_values) in zip(parts, grown, strict=True):
            # Only workers that do not share our memory return other arrays than ours.
            fields: list[Any] = [*trees, *values]
            for field, result in zip(fields, (*chunk, *chunk_values), strict=True):
                if not np.shares_memory(field[part], result):
                    field[part] = result
        used = int(trees.counters[:, N_NODES].max())
        self._trees = with_node_capacity(trees, used)
        self._values = with_gaussian_capacity(values, used)

    def extend(self, points: FloatArray, targets: FloatArray, weights: FloatArray) -> None:
        """Insert points one after the other (Algorithms 3 and 4), messages included.

        Parameters
        ----------
        points : float64 array of shape (S, m, d)
            New points.
        targets : float64 array of shape (m,)
            Their labels.
        weights : float64 array of shape (1 or m, d)
            Rate weights of the dimensions, for all new points or for each.
        """
        start = self.n_points
        end = start + len(targets)
        self._make_room_for_points(end, len(points))
        self._points[:, start:end] = points
        self._targets[start:end] = targets
        while start < end:
            self._make_room_for_nodes()
            first = start - self.n_points if len(weights) > 1 else 0
            start = extend_forest(
                self._trees,
                self._values,
                self._points,
                self._targets,
                start,
                end,
                weights[first:],
                self.min_samples_split,
                self.lifetime,
                self._room,
                *self.hyperparameters,
            )
        self.n_points = end

    def set_hyperparameters(self, hyperparameters: Hyperparameters) -> None:
        """Change the hyper-parameters and refresh all messages, O(T n)."""
        self.hyperparameters = hyperparameters
        self._refresh()

    def set_targets(self, targets: FloatArray) -> None:
        """Replace all labels and refresh all messages, O(T n); the trees do not depend on them."""
        self._targets[: self.n_points] = targets
        self._refresh()

    def label_moments(self) -> tuple[float, float]:
        """Return mean and (population) variance of the labels."""
        moments = self._values.moments[0, self._trees.counters[0, ROOT]]
        return float(moments[MEAN]), float(moments[SQUARES]) / self.n_points

    def remaining_at_lifetime(self) -> float:
        """Return the prior variance still to come at the leaves, in units of gamma_1."""
        # Compiling or loading this one for a scalar would take longer than all else.
        function: Any = remaining_variance
        return float(function.py_func(self.hyperparameters.gamma_2, self.lifetime))

    def predict(
        self,
        points: FloatArray,
        weights: FloatArray,
        mean_prior: float,
        gamma_1: float,
        rule: int,
        n_jobs: int | None = 1,
    ) -> tuple[FloatArray, FloatArray]:
        """Return mean and variance of every tree's prediction, each of shape (T, m).

        Parameters are those of :func:`mondrian_bo.trees.predict.predict_forest`.
        """
        floor = self.remaining_at_lifetime()
        settings = (weights, mean_prior, gamma_1, self.hyperparameters.noise, floor, rule)
        results = run_parallel(
            predict_chunk,
            [
                (
                    rows_of(self._trees, part),
                    rows_of(self._values, part),
                    points_of(points, part),
                    *settings,
                )
                for part in split_trees(self.n_trees, n_jobs)
            ],
        )
        if len(results) == 1:
            return results[0]
        return np.concatenate([r[0] for r in results]), np.concatenate([r[1] for r in results])

    def components(
        self, points: FloatArray, weights: FloatArray, mean_prior: float, gamma_1: float, rule: int
    ) -> FloatArray:
        """Return all components of the forest's predictive mixture (equations 3 and 5).

        Returns
        -------
        float64 array of shape (rows, 4)
            Point, weight within its tree, mean and variance, sorted by point.
        """
        found = []
        for tree in range(self.n_trees):
            arguments = (
                self._trees,
                self._values,
                tree,
                points,
                weights,
                mean_prior,
                gamma_1,
                self.hyperparameters.noise,
                self.remaining_at_lifetime(),
                rule,
            )
            sink = np.empty((8 * points.shape[1], 4))
            needed = tree_components(*arguments, sink)
            if needed > len(sink):
                sink = np.empty((needed, 4))
                tree_components(*arguments, sink)
            found.append(sink[:needed])
        rows = np.concatenate(found)
        return rows[np.argsort(rows[:, 0], kind="stable")]

    def sample_function(
        self,
        tree: int,
        key: int,
        points: FloatArray,
        weights: FloatArray,
        mean_prior: float,
        gamma_1: float,
        rule: int,
    ) -> FloatArray:
        """Return one random function of one tree's posterior at `points`, shape (m,)."""
        result = np.empty(points.shape[1])
        sample_function(
            self._trees,
            self._values,
            tree,
            np.uint64(key),
            points,
            weights,
            mean_prior,
            gamma_1,
            self.remaining_at_lifetime(),
            rule,
            result,
        )
        return result

    def leaves(self, points: FloatArray) -> NDArray[np.int64]:
        """Return the leaf that holds each point in each tree, shape (m, T)."""
        leaves = np.empty((points.shape[1], self.n_trees), dtype=np.int64)
        leaves_of(self._trees, points, leaves)
        return leaves

    def log_likelihood_terms(self) -> FloatArray:
        """Return the root messages seen from mu_H, shape (T, 4)."""
        terms = np.empty((self.n_trees, 4))
        log_likelihood_terms(self._trees, self._values, terms)
        return terms

    @contextmanager
    def extended(
        self, points: FloatArray, targets: FloatArray, weights: FloatArray
    ) -> Iterator[None]:
        """Insert points for the time of a ``with`` block and then restore every array.

        What an insertion overwrites is O(depth) entries, so neither the insertion nor its undoing
        copies the forest. Parameters are those of :meth:`extend`.
        """
        journal = []
        try:
            for i in range(len(targets)):
                self._make_room_for_nodes()
                self._make_room_for_points(self.n_points + 1, len(points))
                journal.append(
                    record(self._trees, self._values, points[:, i], self.n_points, self._room)
                )
                self.extend(points[:, i : i + 1], targets[i : i + 1], weights)
            yield
        finally:
            for entry in reversed(journal):
                restore(self._trees, self._values, entry)
                self.n_points = entry.n_points

    def _refresh(self) -> None:
        if self.n_points > 0:
            refresh_forest(self._trees, self._values, self.targets, *self.hyperparameters)

    def _make_room_for_nodes(self) -> None:
        used = int(self._trees.counters[:, N_NODES].max())
        if used + self._room > self._trees.parent.shape[1]:
            capacity = int(GROWTH * used) + 8 * self._room
            self._trees = with_node_capacity(self._trees, capacity)
            self._values = with_gaussian_capacity(self._values, capacity)

    def _make_room_for_points(self, n_points: int, n_views: int) -> None:
        if self.n_points == 0 and len(self._points) != n_views:
            self._points = np.empty((n_views, 0, self._n_dimensions))
        room = min(self._points.shape[1], len(self._targets), self._trees.next_point.shape[1])
        if n_points > room:
            capacity = int(GROWTH * n_points) + 8
            self._points = resized(self._points, 1, capacity)
            self._targets = resized(self._targets, 0, capacity)
            self._trees = with_point_capacity(self._trees, capacity)
