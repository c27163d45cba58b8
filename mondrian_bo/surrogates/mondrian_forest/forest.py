"""A growing forest of Mondrian trees with the hierarchical Gaussian on them.

:class:`GaussianForest` runs the compiled functions of the trees, in parallel where it helps. It
does not depend on estimators, validation or search spaces.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

from mondrian_bo.shared.array_types import FloatArray
from mondrian_bo.surrogates.shared.ensemble import Ensemble
from mondrian_bo.surrogates.shared.growing_forest import GrowingForest
from mondrian_bo.surrogates.shared.parallel import points_of, run_parallel, split_trees, trees_of
from mondrian_bo.surrogates.shared.sparse_rows import sparse_rows
from mondrian_bo.trees.equivalent_weights import gaussian_weights
from mondrian_bo.trees.growth import GrowthSettings, sample_forest
from mondrian_bo.trees.hierarchical_gaussian import (
    MEAN,
    SQUARES,
    Gaussian,
    Hyperparameters,
    empty_gaussian,
    extend_messages,
    log_likelihood_terms,
    refresh_messages,
    remaining_variance,
)
from mondrian_bo.trees.layout import N_NODES, ROOT
from mondrian_bo.trees.posterior_draw import sample_function
from mondrian_bo.trees.predict import PredictionSettings, predict_forest, tree_components
from mondrian_bo.trees.tree import Tree, nodes_used


class Kernels(NamedTuple):
    """The compiled functions of one kind of messages, with the same arguments for all kinds."""

    refresh: Callable[..., Any]
    extend: Callable[..., Any]
    predict: Callable[..., Any]
    components: Callable[..., Any]
    sample: Callable[..., Any]
    likelihood: Callable[..., Any]
    weights: Callable[..., Any]


class GaussianForest(GrowingForest[Gaussian]):
    """Mondrian trees with the messages of the hierarchical Gaussian.

    Parameters
    ----------
    ensemble, min_samples_split
        See :class:`GrowingForest`.
    lifetime : float, default=inf
        Blocks are not split later than this.
    max_nodes : int or None, default=None
        See :class:`GrowingForest`. Of a first batch, as many points as fit into every tree are
        grown as a batch, and the others are inserted one by one.
    """

    _kernels: ClassVar[Kernels] = Kernels(
        refresh_messages,
        extend_messages,
        predict_forest,
        tree_components,
        sample_function,
        log_likelihood_terms,
        gaussian_weights,
    )

    def __init__(
        self,
        ensemble: Ensemble,
        *,
        min_samples_split: int = 2,
        lifetime: float = np.inf,
        max_nodes: int | None = None,
    ) -> None:
        stats = self._empty_stats(ensemble.n_trees, ensemble.n_dimensions)
        super().__init__(
            ensemble,
            stats,
            np.empty(0),
            min_samples_split=min_samples_split,
            max_nodes=max_nodes,
        )
        self.lifetime = lifetime
        self.hyperparameters: Hyperparameters = Hyperparameters(gamma_2=1.0, noise=1.0)

    def build(
        self,
        points: FloatArray,
        targets: FloatArray,
        rates: FloatArray,
        hyperparameters: Hyperparameters,
        n_jobs: int | None = 1,
    ) -> None:
        """Grow the trees from a batch (Algorithms 1 and 2); the forest must be empty.

        Parameters
        ----------
        points : float64 array of shape (S, n, d)
            Points; kept.
        targets : float64 array of shape (n,)
            Targets; kept.
        rates : float64 array of shape (d,)
            Split rates of the dimensions.
        hyperparameters : Hyperparameters
            Parameters of the messages.
        n_jobs : int or None, default=1
            Trees grown at a time, as joblib counts.
        """
        self.hyperparameters = hyperparameters
        n = self._n_that_fit(len(targets))
        first = points if n == len(targets) else np.ascontiguousarray(points[:, :n])
        settings = (targets[:n], rates, self._growth_settings(), self._message_settings())
        self._grow_batch(self._grow_part, first, targets[:n], settings, 2 * n - 1, n_jobs)
        self._set_node_capacity(nodes_used(self._arrays))
        if n < len(targets):
            self.extend(points[:, n:], targets[n:], rates[None])

    def regrow(self, rates: FloatArray, n_jobs: int | None = 1) -> None:
        """Grow the trees anew, from the same points; O(T d n log n).

        Parameters are those of :meth:`build`.
        """
        points, targets, _ = self._regrown = self.samples
        self.forget()
        self.build(points, targets, rates, self.hyperparameters, n_jobs)
        self._regrown = None

    def extend(self, points: FloatArray, targets: FloatArray, rates: FloatArray) -> None:
        """Insert points one after the other (Algorithms 3 and 4), messages included.

        Parameters are those of :meth:`GrowingForest.extend`.
        """
        start = self.n_points
        end = self._store(points, targets)
        while start < end:
            self._make_room_for_nodes()
            first = start - self.n_points if len(rates) > 1 else 0
            free = self._arrays.parent.shape[1] - nodes_used(self._arrays)
            stop = min(end, start + free // self._room)
            if self._is_full():
                stop = end
            self._kernels.extend(
                self._arrays,
                self._node_stats,
                self._points,
                self._targets[:stop],
                start,
                rates[first:],
                self._growth_settings(),
                self._message_settings(),
            )
            start = stop
        self.n_points = end

    def set_hyperparameters(self, hyperparameters: Hyperparameters) -> None:
        """Change the hyper-parameters and refresh all messages, O(T n)."""
        self.hyperparameters = hyperparameters
        self._refresh()

    def set_targets(self, targets: FloatArray) -> None:
        """Replace all targets and refresh all messages, O(T n); the trees do not depend on them."""
        self._targets[: self.n_points] = targets
        self._refresh()

    def target_moments(self) -> tuple[float, float]:
        """Return mean and (population) variance of the targets."""
        moments = self._node_stats.moments[0, self._arrays.counters[0, ROOT]]
        return float(moments[MEAN]), float(moments[SQUARES]) / self.n_points

    def remaining_at_lifetime(self) -> float:
        """Return the prior variance beyond the lifetime, in units of gamma_1."""
        return self._remaining_at_lifetime(self.hyperparameters.gamma_2)

    def prior_variance(self, hyperparameters: Any) -> float:
        """Return the prior variance of a target, in units of gamma_1."""
        gamma_2, noise = float(hyperparameters.gamma_2), float(hyperparameters.noise)
        return 0.5 - self._remaining_at_lifetime(gamma_2) + noise

    def prediction_settings(self, mean_prior: float, gamma_1: float, rule: int) -> Any:
        """Return the settings of the kernels of predictions, such as :class:`PredictionSettings`.

        Parameters are those of :class:`mondrian_bo.trees.predict.PredictionSettings`.
        """
        gamma_2, noise = self.hyperparameters
        floor = self.remaining_at_lifetime()
        return PredictionSettings(
            float(mean_prior), float(gamma_1), float(gamma_2), float(noise), floor, int(rule)
        )

    def predict(
        self,
        points: FloatArray,
        rates: FloatArray,
        settings: Any,
        n_jobs: int | None = 1,
    ) -> tuple[FloatArray, FloatArray]:
        """Return mean and variance of every tree's prediction, each of shape (T, m).

        Parameters are those of :func:`mondrian_bo.trees.predict.predict_forest`; settings are
        those of :meth:`prediction_settings`.
        """
        results = run_parallel(
            self._predict_part,
            [
                (
                    trees_of(self._arrays, part),
                    trees_of(self._node_stats, part),
                    points_of(points, part),
                    rates,
                    settings,
                )
                for part in split_trees(self.n_trees, n_jobs)
            ],
        )
        if len(results) == 1:
            return results[0]
        return np.concatenate([r[0] for r in results]), np.concatenate([r[1] for r in results])

    def components(
        self,
        points: FloatArray,
        rates: FloatArray,
        settings: Any,
        tree_weights: FloatArray | None = None,
    ) -> FloatArray:
        """Return all components of the forest's predictive mixture (equations 3 and 5).

        The first parameters are those of :meth:`predict`. Without `tree_weights` the weights of the
        components of each tree add up to 1.

        Returns
        -------
        float64 array of shape (rows, 4)
            Point, weight (in its tree, times that of the tree), mean and variance, sorted by point.
        """
        found = []
        for tree in range(self.n_trees):
            arguments = (self._arrays, self._node_stats, tree, points, rates, settings)
            sink = np.empty((8 * points.shape[1], 4))
            needed = self._kernels.components(*arguments, sink)
            if needed > len(sink):
                sink = np.empty((needed, 4))
                self._kernels.components(*arguments, sink)
            if tree_weights is not None:
                sink[:needed, 1] *= tree_weights[tree]
            found.append(sink[:needed])
        rows = np.concatenate(found)
        return rows[np.argsort(rows[:, 0], kind="stable")]

    def weights(
        self,
        points: FloatArray,
        rates: FloatArray,
        rule: int,
        tolerance: float,
        tree_weights: FloatArray,
    ) -> csr_matrix:
        """Return the weights of the targets in the mean of the forest, shape (m, n).

        See :func:`mondrian_bo.trees.equivalent_weights.gaussian_weights`.
        """
        settings = self.prediction_settings(0.0, 1.0, rule)

        def dense_rows(start: int, end: int) -> FloatArray:
            rows = np.zeros((end - start, self.n_points))
            part = np.ascontiguousarray(points[:, start:end])
            for t in range(self.n_trees):
                tree = slice(t, t + 1)
                arrays, node_stats = trees_of(self._arrays, tree), trees_of(self._node_stats, tree)
                scale = float(tree_weights[t]), tolerance
                one = points_of(part, tree)
                self._kernels.weights(arrays, node_stats, one, rates, settings, scale, rows)
            return rows

        return sparse_rows(dense_rows, points.shape[1], self.n_points, tolerance)

    def sample_function(
        self, tree: int, key: int, points: FloatArray, rates: FloatArray, settings: Any
    ) -> FloatArray:
        """Return one random function of one tree's posterior at `points`, shape (m,).

        The last three parameters are those of :meth:`predict`.
        """
        result = np.empty(points.shape[1])
        self._kernels.sample(
            self._arrays,
            self._node_stats,
            tree,
            np.uint64(key),
            points,
            rates,
            settings,
            result,
        )
        return result

    def log_likelihood_terms(self) -> FloatArray:
        """Return the root messages seen from mu_H, shape (T, 4)."""
        terms = np.empty((self.n_trees, 4))
        self._kernels.likelihood(self._arrays, self._node_stats, self._message_settings(), terms)
        return terms

    @classmethod
    def _grow_part(
        cls,
        arrays: Tree,
        node_stats: Gaussian,
        targets: FloatArray,
        rates: FloatArray,
        growth: GrowthSettings,
        messages: Any,
    ) -> tuple[Tree, Gaussian]:
        """Grow some of the trees: one worker's part of `build`."""
        no_classes = np.empty(0, dtype=np.int32)
        sample_forest(arrays, arrays.points, len(targets), rates, no_classes, growth)
        cls._kernels.refresh(arrays, node_stats, targets, messages)
        return arrays, node_stats

    @classmethod
    def _predict_part(
        cls,
        arrays: Tree,
        node_stats: Gaussian,
        points: FloatArray,
        rates: FloatArray,
        settings: Any,
    ) -> tuple[FloatArray, FloatArray]:
        """Predict with some of the trees: one worker's part of `predict`."""
        means = np.empty((len(arrays.counters), points.shape[1]))
        variances = np.empty_like(means)
        cls._kernels.predict(arrays, node_stats, points, rates, settings, means, variances)
        return means, variances

    def _empty_stats(self, n_trees: int, n_dimensions: int) -> Gaussian:
        return empty_gaussian(n_trees)

    def _message_settings(self) -> Any:
        """Return what the kernels of messages depend on."""
        return self.hyperparameters

    def _growth_settings(self) -> GrowthSettings:
        return GrowthSettings(int(self.min_samples_split), float(self.lifetime), self._node_limit)

    def _is_full(self) -> bool:
        """Whether no tree has room for another split."""
        limit = self.max_nodes
        return limit is not None and int(self._arrays.counters[:, N_NODES].min()) + 2 > limit

    def _remaining_at_lifetime(self, gamma_2: float) -> float:
        # Compiling or loading the function for one scalar would take longer than a prediction.
        function: Any = remaining_variance
        return float(function.py_func(gamma_2, self.lifetime))

    def _refresh(self) -> None:
        if self.n_points > 0:
            settings = self._message_settings()
            self._kernels.refresh(self._arrays, self._node_stats, self.targets, settings)
