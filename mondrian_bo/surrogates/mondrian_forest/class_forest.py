"""A growing forest whose nodes count classes, smoothed by interpolated Kneser-Ney."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from mondrian_bo.shared.array_types import AnyArray, FloatArray
from mondrian_bo.surrogates.estimators.tree_paths import node_indicator
from mondrian_bo.surrogates.shared.ensemble import Ensemble
from mondrian_bo.surrogates.shared.growing_forest import GrowingForest
from mondrian_bo.surrogates.shared.parallel import (
    FEW_POINTS,
    run_on_trees,
    run_parallel,
    split_trees,
)
from mondrian_bo.trees.growth import GrowthSettings, sample_forest
from mondrian_bo.trees.kneser_ney import (
    KneserNey,
    empty_counts,
    extend_counts,
    predict_classes,
    refresh_counts,
)
from mondrian_bo.trees.tree import Tree, nodes_used

_LEAST_NODES = 8
"""Smallest capacity of a tree, in nodes, our choice: the first points enlarge no arrays."""


class ClassForest(GrowingForest[KneserNey]):
    """Mondrian trees for classes; blocks of one class are not split.

    Parameters
    ----------
    ensemble, min_samples_split
        See :class:`GrowingForest`.
    n_classes : int
        Number of classes K; targets are int32 numbers below it.
    discount : float
        Speed gamma of the discounts.
    lifetime : float, default=inf
        Blocks are not split later than this.
    max_nodes : int or None, default=None
        See :class:`GaussianForest`.
    """

    def __init__(
        self,
        ensemble: Ensemble,
        *,
        n_classes: int,
        discount: float,
        min_samples_split: int = 2,
        lifetime: float = np.inf,
        max_nodes: int | None = None,
    ) -> None:
        super().__init__(
            ensemble,
            empty_counts(ensemble.n_trees, n_classes),
            np.empty(0, dtype=np.int32),
            min_samples_split=min_samples_split,
            max_nodes=max_nodes,
        )
        self._renew = partial(
            ClassForest,
            n_classes=n_classes,
            discount=discount,
            min_samples_split=min_samples_split,
            lifetime=lifetime,
            max_nodes=max_nodes,
        )
        self._ensemble = ensemble
        self.n_classes = n_classes
        self.discount = discount
        self.lifetime = lifetime

    def build(
        self,
        points: FloatArray,
        targets: NDArray[np.int32],
        rates: FloatArray,
        n_jobs: int | None = 1,
    ) -> None:
        """Grow the trees from a batch, O(T d n log n); the forest must be empty.

        Parameters
        ----------
        targets : int32 array of shape (n,)
            Classes; kept.
        points, rates, n_jobs
            See :meth:`GaussianForest.build`.
        """
        n = self._n_that_fit(len(targets))
        first = points if n == len(targets) else np.ascontiguousarray(points[:, :n])
        settings = (targets[:n], rates, self._growth_settings())
        self._grow_batch(_grow_part, first, targets[:n], settings, max(2 * n, _LEAST_NODES), n_jobs)
        self._set_node_capacity(max(nodes_used(self._arrays), _LEAST_NODES))
        if n < len(targets):
            self.extend(points[:, n:], targets[n:], rates[None], None, n_jobs)

    def extend(
        self,
        points: AnyArray,
        targets: AnyArray,
        rates: FloatArray,
        sample_weights: FloatArray | None = None,
        n_jobs: int | None = 1,
    ) -> None:
        """Learn points one after the other.

        Parameters
        ----------
        points, targets, rates
            See :meth:`GrowingForest.extend`; at least one point.
        sample_weights : float64 array of shape (m,) or None, default=None
            Positive weights of the samples; None is all ones.
        n_jobs : int or None, default=1
            Number of workers, as joblib counts; one if there are few points.
        """
        start = self.n_points
        end = self._store(points, targets, sample_weights)
        self._make_room_for_all_nodes(end)
        run_on_trees(
            _extend_part,
            (self._arrays, self._node_stats),
            (self._targets[:end], self._importance, start, rates, self._growth_settings()),
            n_jobs if end - start > FEW_POINTS else 1,
        )
        self.n_points = end

    def regrow(self, rates: FloatArray, n_jobs: int | None = 1) -> None:
        """Grow the trees anew, from the same points; O(T d n log n).

        Parameters
        ----------
        rates : float64 array of shape (d,)
            Split rates of the dimensions.
        n_jobs : int or None, default=1
            Number of workers, as joblib counts.
        """
        points, targets, weights = self._regrown = self.samples
        sample_weights = weights if len(weights) > 0 else None
        self.forget()
        self.extend(points, targets, rates[None], sample_weights, n_jobs)
        self._regrown = None

    def _growth_settings(self) -> GrowthSettings:
        return GrowthSettings(int(self.min_samples_split), float(self.lifetime), self._node_limit)

    def unlearnt(self) -> ClassForest:
        """Return an empty forest with the same settings and other random streams."""
        return self._renew(self._ensemble._replace(seed=self._ensemble.seed.spawn(1)[0]))

    def code_lengths(self) -> FloatArray:
        """Return the loss of each node's forecasts of its block's targets, shape (T, capacity).

        The forecasts are those of Krichevsky and Trofimov (Mourtada2021, equation 5), whose
        cumulative logarithmic loss depends on the counts alone. O(n T log n).
        """
        indicator, offsets = node_indicator(self._arrays, self.leaves(self.points))
        sample_weights = (
            self.sample_weights if len(self.sample_weights) > 0 else np.ones(self.n_points)
        )
        classes = np.zeros((self.n_points, self.n_classes))
        classes[np.arange(self.n_points), self.targets] = sample_weights
        counts = indicator.T @ classes
        prior = 0.5
        lengths = gammaln(counts.sum(axis=1) + prior * self.n_classes) - gammaln(
            prior * self.n_classes
        )
        lengths -= np.sum(gammaln(counts + prior) - gammaln(prior), axis=1)
        result = np.zeros(self._arrays.parent.shape)
        for t, (start, end) in enumerate(pairwise(offsets)):
            result[t, : end - start] = lengths[start:end]
        return result

    def predict_proba(
        self, points: FloatArray, rates: FloatArray, n_jobs: int | None = 1
    ) -> FloatArray:
        """Return the probabilities of the classes, shape (m, K): the mean over the trees.

        Parameters
        ----------
        points : float64 array of shape (S, m, d)
            Where to predict.
        rates : float64 array of shape (d,)
            Split rates of the dimensions.
        n_jobs : int or None, default=1
            Number of workers, as joblib counts; the result does not depend on it.

        Returns
        -------
        float64 array of shape (m, K)
            Each row adds up to 1.
        """
        # Each worker predicts some points with all trees, so the order of sums is always the same.
        parts = split_trees(points.shape[1], n_jobs if points.shape[1] > FEW_POINTS else 1)
        settings = (rates, self.discount, self.n_classes)
        results = run_parallel(
            _predict_part,
            [
                (self._arrays, self._node_stats, np.ascontiguousarray(points[:, part]), *settings)
                for part in parts
            ],
        )
        total = results[0] if len(results) == 1 else np.concatenate(results)
        return np.asarray(total / total.sum(axis=1, keepdims=True))


def _grow_part(
    arrays: Tree,
    node_stats: KneserNey,
    targets: NDArray[np.int32],
    rates: FloatArray,
    settings: GrowthSettings,
) -> tuple[Tree, KneserNey]:
    """Grow some of the trees: one worker's part of `ClassForest.build`."""
    sample_forest(arrays, arrays.points, len(targets), rates, targets, settings)
    refresh_counts(arrays, node_stats, targets, np.empty(0))
    return arrays, node_stats


def _extend_part(
    arrays: Tree,
    node_stats: KneserNey,
    targets: NDArray[np.int32],
    sample_weights: FloatArray,
    start: int,
    rates: FloatArray,
    settings: GrowthSettings,
) -> tuple[Tree, KneserNey]:
    """Learn with some of the trees: one worker's part of `ClassForest.extend`."""
    extend_counts(
        arrays, node_stats, arrays.points, targets, sample_weights, start, rates, settings
    )
    return arrays, node_stats


def _predict_part(
    arrays: Tree,
    node_stats: KneserNey,
    points: FloatArray,
    rates: FloatArray,
    discount: float,
    n_classes: int,
) -> FloatArray:
    """Predict some of the points: one worker's part of `ClassForest.predict_proba`."""
    result = np.empty((points.shape[1], n_classes))
    predict_classes(arrays, node_stats, points, rates, discount, result)
    return result
