"""What the AMF regressor and the AMF classifier share."""

from __future__ import annotations

from copy import deepcopy
from numbers import Integral, Real
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from mondrian_bo.shared.array_types import AnyArray, FloatArray, IntArray
from mondrian_bo.surrogates.amf.model import AggregationModel
from mondrian_bo.surrogates.estimators.base import UndoesInterruptions
from mondrian_bo.surrogates.estimators.locks import reads
from mondrian_bo.surrogates.estimators.tree_paths import TreePathsMixin
from mondrian_bo.surrogates.estimators.validation import (
    N_JOBS,
    all_finite,
    check_bounds,
    check_differences,
    check_feature_weights,
    check_sample_weight,
    check_samples,
    check_weighted_squares,
    seed_sequence,
)
from mondrian_bo.surrogates.shared.ensemble import Ensemble
from mondrian_bo.trees.tree import Tree

_LEAST_OFFSET = 1024.0
"""Least size of a first value that is subtracted from its feature, in the unit of the feature; our
choice: single precision resolves differences of 1e-4 there. Smaller ones stay, bit for bit."""


_SMALLEST = float(np.finfo(np.float32).tiny)
"""Least size of numbers that single precision holds with all their digits: 1.18e-38."""


class LossTrace(NamedTuple):
    """Losses of each tree along the stream, all of shape (n_estimators, n_samples).

    Attributes
    ----------
    loss : float64 array
        Loss of the forecast of each sample, made before its target was learnt: that of all
        prunings or, with ``use_aggregation=False``, of the leaf that holds the sample.
    cumulative : float64 array
        Its running sum.
    best_pruning : float64 array
        Cumulative loss, at each time, of the pruning that is best in hindsight.
    regret : float64 array
        ``cumulative - best_pruning``; with aggregation, Mourtada2021, equation 9, bounds it by
        ``|T| log(2) / step`` for the pruning T.
    """

    loss: FloatArray
    cumulative: FloatArray
    best_pruning: FloatArray
    regret: FloatArray


def _offset(first: FloatArray) -> FloatArray:
    """Return what is subtracted from features, given their first values or their lower bounds.

    One sample decides, so that results do not depend on how a stream is divided into batches.
    """
    return np.where(np.abs(first) >= _LEAST_OFFSET, first, 0.0)


def _points_of(data: FloatArray, offset: FloatArray) -> NDArray[np.float32]:
    """Return finite data without the offset in single precision.

    Raises
    ------
    ValueError
        If a value is too large.
    """
    with np.errstate(over="ignore"):
        points = (data - offset).astype(np.float32)
    if not all_finite(points):
        raise ValueError("X has values that are too large for single precision")
    return points


class AggregatedEstimator(TreePathsMixin, UndoesInterruptions):
    """Parameters, checks and learning of the AMF estimators."""

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "use_aggregation": ["boolean"],
        "bounds": ["array-like", None],
        "feature_weights": ["array-like", None],
        "feature_relevance": ["boolean"],
        "online_to_batch": ["boolean"],
        "record_losses": ["boolean"],
        "max_nodes": [Interval(Integral, 1, None, closed="left"), None],
        "random_state": ["random_state"],
        "n_jobs": N_JOBS,
    }
    _STEP = Interval(Real, 0, None, closed="neither")

    _learnt = "model_"

    _settings: dict[str, Any]
    model_: AggregationModel
    offset_: FloatArray
    n_features_in_: int

    @reads
    def weighted_depth(self, X: ArrayLike) -> FloatArray:
        """Return the depth at which the prunings end that predict each input (Mourtada2021, 5.1).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite inputs.

        Returns
        -------
        ndarray of shape (n_samples, n_estimators)
            The mean depth, weighted as the prunings are, or the depth of the leaf without
            aggregation.
        """
        # First, as it raises NotFittedError while there is no `model_`.
        points = self._points(X)
        return self.model_.weighted_depths(points)

    @reads
    def loss_trace(self) -> LossTrace:
        """Return the losses of each tree along the stream; needs ``record_losses=True``.

        Returns
        -------
        LossTrace
            Losses, their running sums, those of the best pruning and the regret, each a float64
            array of shape (n_estimators, n_samples).

        Raises
        ------
        ValueError
            If losses have not been recorded.
        sklearn.exceptions.NotFittedError
            If the estimator is not fitted.
        """
        check_is_fitted(self, "model_")
        if not self.model_.forest.records:
            raise ValueError("losses are recorded with record_losses=True only")
        loss, best = self.model_.losses()
        cumulative = np.cumsum(loss, axis=1)
        return LossTrace(loss, cumulative, best, cumulative - best)

    def _new_model(self) -> AggregationModel:
        # A copy, as a model draws seeds from its ensemble's.
        return AggregationModel(**deepcopy(self._settings))

    def _leaves(self, X: ArrayLike) -> tuple[Tree, IntArray]:
        points = self._points(X)
        forest = self.model_.forest
        if forest.n_points == 0:
            raise ValueError("there are no trees yet: all samples have had the weight 0")
        return forest.arrays, forest.leaves(points)

    def _points(self, X: ArrayLike) -> NDArray[np.float32]:
        check_is_fitted(self, "model_")
        return _points_of(check_samples(self, X), self.offset_)[None]

    def _learn(self, data: FloatArray, targets: AnyArray, sample_weight: ArrayLike | None) -> Self:
        """Learn checked samples, and skip those of weight 0."""
        weights = check_sample_weight(sample_weight, len(targets))
        if weights is not None and np.any(weights == 0.0):
            counted = weights > 0.0
            data, targets, weights = data[counted], targets[counted], weights[counted]
        model, offset = self.model_, self.offset_
        check_weighted_squares(weights, targets, model.largest_target)
        n_known = model.n_points
        if n_known == 0 and not model.scales.is_fixed and len(data) > 0:
            offset = _offset(data[0])
        points = _points_of(data, offset)
        check_differences(points)
        self._check_not_lost(data, points)
        self._check_within_bounds(points)
        self.offset_ = offset
        self._learn_completely(n_known, model.learn, points[None], targets, weights, self.n_jobs)
        return self

    def _former(self, learnt: AggregationModel, n_samples: int) -> dict[str, Any]:
        forest = learnt.forest
        if n_samples > forest.n_points:
            raise RuntimeError(
                "partial_fit was interrupted, and its samples cannot be removed, as the trees of "
                f"max_nodes={forest.max_nodes} nodes have not kept all samples: call `fit`"
            )
        points, targets, sample_weights = forest.samples
        weights = sample_weights[:n_samples] if len(sample_weights) > 0 else None
        model = self._new_model()
        part = points[:, :n_samples].copy(), targets[:n_samples].copy()
        model.learn(*part, weights, self.n_jobs)
        return {"model_": model}

    def _check_not_lost(self, data: FloatArray, points: NDArray[np.float32]) -> None:
        """Raise a ValueError if rounding makes a feature constant because its values are too small.

        A batch decides only while the feature has had no other value: then nothing can be learnt
        from the feature. Small values beside larger ones are as good as 0.
        """
        if len(points) < 2:
            return
        lowest, highest = points.min(axis=0), points.max(axis=0)
        is_lost = (lowest == highest) & (np.abs(highest) < _SMALLEST)
        if not is_lost.any():
            return
        known = self.model_.scales.range
        is_lost &= np.minimum(lowest, known[0]) == np.maximum(highest, known[1])
        is_lost &= np.any(data != data[0], axis=0)
        if is_lost.any():
            raise ValueError(
                "X has values that are too small for single precision: the features "
                f"{np.flatnonzero(is_lost).tolist()} vary, but all their values are below "
                f"{_SMALLEST:.3g} in size and become equal; multiply them by a constant"
            )

    def _check_within_bounds(self, points: NDArray[np.float32]) -> None:
        """Raise a ValueError if samples lie outside of the box of unrestricted partitions."""
        box = self.model_.forest.box
        if len(box) == 0:
            return
        outside = np.flatnonzero(np.any((points < box[0]) | (points > box[1]), axis=0))
        if len(outside) > 0:
            raise ValueError(
                f"X has values outside of the given bounds in the features {outside.tolist()}; "
                "partitions of the whole box (bounds=...) cannot grow, partitions restricted to "
                "the data (bounds=None) can"
            )

    def _box(self, n_features: int) -> tuple[FloatArray, FloatArray] | None:
        """Set the offset; return the bounds in single precision, as the data are.

        Raises
        ------
        ValueError
            If they are not as described, or too large or too close for single precision.
        """
        self.offset_ = np.zeros(n_features)
        bounds = check_bounds(self.bounds, n_features)
        if bounds is None:
            return None
        self.offset_ = _offset(bounds[0])
        with np.errstate(over="ignore"):
            lower, upper = ((ends - self.offset_).astype(np.float32) for ends in bounds)
        if not np.all(np.isfinite([lower, upper])) or not np.all(lower < upper):
            raise ValueError(
                "bounds must be finite, with lower < upper in every row, in single precision"
            )
        return lower.astype(np.float64), upper.astype(np.float64)

    def _shared_settings(self, n_features: int) -> dict[str, Any]:
        """Return arguments of :class:`AggregationModel`.

        Raises
        ------
        ValueError
            If `max_nodes` is given together with `bounds` or `record_losses`.
        """
        if self.max_nodes is not None and (self.bounds is not None or self.record_losses):
            raise ValueError(
                "max_nodes needs bounds=None and record_losses=False: partitions of a whole box "
                "have no limit of nodes, and recorded losses are kept for all samples"
            )
        return {
            "max_nodes": None if self.max_nodes is None else int(self.max_nodes),
            "ensemble": Ensemble(
                int(self.n_estimators), n_features, seed_sequence(self.random_state)
            ),
            "use_aggregation": bool(self.use_aggregation),
            "bounds": self._box(n_features),
            "unrestricted": self.bounds is not None,
            "feature_weights": check_feature_weights(self.feature_weights, n_features),
            "feature_relevance": bool(self.feature_relevance),
            "record": bool(self.record_losses),
            "online_to_batch": bool(self.online_to_batch),
        }
