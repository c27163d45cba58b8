"""Mondrian forest classification (Lakshminarayanan, Roy and Teh 2014) for scikit-learn."""

from __future__ import annotations

import math
from copy import deepcopy
from functools import partial
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from mondrian_bo.shared.array_types import AnyArray, FloatArray, IntArray
from mondrian_bo.surrogates.estimators.base import UndoesInterruptions
from mondrian_bo.surrogates.estimators.online_classifier import OnlineClassifier
from mondrian_bo.surrogates.estimators.tree_paths import TreePathsMixin
from mondrian_bo.surrogates.estimators.validation import (
    N_JOBS,
    check_bounds,
    check_feature_weights,
    check_sample_weight,
    check_samples,
    own_copy,
    seed_sequence,
)
from mondrian_bo.surrogates.mondrian_forest.class_forest import ClassForest
from mondrian_bo.surrogates.shared.ensemble import Ensemble
from mondrian_bo.surrogates.shared.regrowth import Regrowth
from mondrian_bo.surrogates.shared.relevance import RELEVANCE_START, learnt_rates
from mondrian_bo.surrogates.shared.scales import Scales
from mondrian_bo.trees.tree import Tree

_DISCOUNT_PER_FEATURE = 10.0
"""Default discount per feature, in inverse time of data in the unit cube; 10 as in the paper."""


class MondrianForestClassifier(TreePathsMixin, UndoesInterruptions, OnlineClassifier):
    """Mondrian forest for classification, online, with smoothed class probabilities.

    Trees are Mondrian processes over the data whose blocks are split until they hold one class.
    Each node has a distribution over the classes that is shrunk towards its parent's (interpolated
    Kneser-Ney smoothing), and a point outside of a node's data may branch off above it, so that
    predictions far from the data are uniform over the classes.

    Parameters
    ----------
    n_estimators : int, default=10
        Number of trees.
    min_samples_split : int, default=2
        Blocks with fewer samples are not split, whatever the samples' weights.
    lifetime : float, default=inf
        Blocks are not split later than this, in the time of data scaled to the unit cube, where a
        block of side lengths e splits at rate sum(e).
    discount : float or None, default=None
        Rate gamma at which nodes become independent of their ancestors: a node of duration t
        inherits the share exp(-gamma t) from its parent. None is 10 times the number of features
        as in the paper, or 10 times the sum of `feature_weights`.
    bounds : array-like of shape (n_features, 2) or None, default=None
        Lower and upper end of each feature for the scaling to [0, 1]. None follows the range of the
        data seen so far: `partial_fit` grows the trees anew where the range has changed, at every
        change with up to 64 samples and later whenever their number has grown by a quarter. Right
        after that the trees have the distribution of a batch. In between, splits keep the scale of
        the range at which they were made. Data may lie outside the bounds.
    feature_weights : array-like of shape (n_features,) or None, default=None
        Non-negative factors of the features' split rates; 0 ignores a feature. None is all ones.
    feature_relevance : bool, default=False
        Whether splits favour features whose earlier splits reduced the loss, for data with
        irrelevant features. `fit` then grows the trees twice. The paper's trees do not depend on
        the classes in this way.
    max_nodes : int or None, default=None
        Largest number of nodes of a tree. A tree without room for another split keeps its splits
        and goes on learning ("extend node" of Khannouz2022). The samples are kept nevertheless.
        None is no limit.
    random_state : int, RandomState instance or None, default=None
        Seed of the trees. Results do not depend on `n_jobs`.
    n_jobs : int or None, default=None
        Number of workers (threads by default, any joblib backend). None is 1 unless in a
        ``joblib.parallel_config`` context. Small batches use one worker.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted.
    forest_ : ClassForest
        The trees and their counts.
    scales_ : Scales
        The scales of the features.

    Notes
    -----
    A leaf of one class is not split, and where `lifetime` is infinite its discount is 0: inside the
    box of its data the tree gives that class the probability 1, and the forest may give others the
    probability 0. A finite `lifetime` smooths leaves too.

    Fitting takes O(T d n log n), a new sample O(T (d + K) log n) for balanced trees, a prediction
    likewise, with T trees and K classes. `fit` samples trees in a batch; `partial_fit` always
    inserts sample after sample, so that its result does not depend on how a stream is divided.
    A sample of another class may cause a leaf to be sampled anew, at a cost that grows with the
    size of the leaf.

    `fit` takes no weights: those of `partial_fit` equal repeating each sample on the spot, in
    distribution and for ``min_samples_split=2``.

    References
    ----------
    B. Lakshminarayanan, D. M. Roy, Y. W. Teh: Mondrian Forests: Efficient Online Random Forests,
    NIPS 2014.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mondrian_bo.surrogates import MondrianForestClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> forest = MondrianForestClassifier(random_state=0).fit(X[::2], y[::2])
    >>> forest.partial_fit(X[1::4], y[1::4]).score(X[3::4], y[3::4]) > 0.9
    True
    """

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "min_samples_split": [Interval(Integral, 2, None, closed="left")],
        "lifetime": [
            Interval(Real, 0, None, closed="neither"),
            Interval(Real, 0, None, closed="right"),
        ],
        "discount": [Interval(Real, 0, None, closed="neither"), None],
        "bounds": ["array-like", None],
        "feature_weights": ["array-like", None],
        "feature_relevance": ["boolean"],
        "max_nodes": [Interval(Integral, 1, None, closed="left"), None],
        "random_state": ["random_state"],
        "n_jobs": N_JOBS,
    }

    _learnt = "forest_"

    classes_: AnyArray
    forest_: ClassForest
    scales_: Scales

    def __init__(
        self,
        n_estimators: int = 10,
        *,
        min_samples_split: int = 2,
        lifetime: float = math.inf,
        discount: float | None = None,
        bounds: ArrayLike | None = None,
        feature_weights: ArrayLike | None = None,
        feature_relevance: bool = False,
        max_nodes: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.min_samples_split = min_samples_split
        self.lifetime = lifetime
        self.discount = discount
        self.bounds = bounds
        self.feature_weights = feature_weights
        self.feature_relevance = feature_relevance
        self.max_nodes = max_nodes
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _learn_batch(self, data: FloatArray, numbers: NDArray[np.int32]) -> Self:
        self._n_first = len(numbers)
        state = self.forest_, self.scales_, self._regrowth
        self.forest_ = self._grow(*state, own_copy(data)[None], numbers)
        return self

    def _grow(
        self,
        forest: ClassForest,
        scales: Scales,
        regrowth: Regrowth,
        points: FloatArray,
        numbers: NDArray[np.int32],
    ) -> ClassForest:
        """Grow the trees of a batch and return them."""
        scales.follow(points)
        forest.build(points, numbers, scales.rates, self.n_jobs)
        if self._setting("feature_relevance") and len(numbers) >= RELEVANCE_START:
            scales.feature_weights = scales.feature_weights * learnt_rates(
                forest.arrays, forest.code_lengths()
            )
            forest = forest.unlearnt()
            forest.build(points, numbers, scales.rates, self.n_jobs)
        regrowth.grown(forest.n_points)
        return forest

    def _probabilities(self, X: ArrayLike) -> FloatArray:
        """Return the mean over trees (Algorithms 7 and 8 of the paper)."""
        points = self._points(X)
        if self.forest_.n_points == 0:  # all samples have had the weight 0
            n_classes = len(self.classes_)
            return np.full((points.shape[1], n_classes), 1.0 / n_classes)
        return self.forest_.predict_proba(points, self.scales_.rates, self.n_jobs)

    def _leaves(self, X: ArrayLike) -> tuple[Tree, IntArray]:
        points = self._points(X)
        if self.forest_.n_points == 0:
            raise ValueError("there are no trees yet: all samples have had the weight 0")
        return self.forest_.arrays, self.forest_.leaves(points)

    def _points(self, X: ArrayLike) -> FloatArray:
        check_is_fitted(self, "forest_")
        return check_samples(self, X)[None]

    def _learn(
        self, data: FloatArray, numbers: NDArray[np.int32], sample_weight: ArrayLike | None
    ) -> Self:
        weights = check_sample_weight(sample_weight, len(data))
        if weights is not None:
            counted = weights > 0.0
            data, numbers, weights = data[counted], numbers[counted], weights[counted]
        state = forest, _, _ = self.forest_, self.scales_, self._regrowth
        self._learn_completely(forest.n_points, self._insert, *state, data, numbers, weights)
        return self

    def _insert(
        self,
        forest: ClassForest,
        scales: Scales,
        regrowth: Regrowth,
        data: FloatArray,
        numbers: NDArray[np.int32],
        weights: FloatArray | None,
    ) -> None:
        """Insert samples one after the other."""
        known, start = forest.n_points, 0
        learns_relevance = self._setting("feature_relevance")
        while start < len(data):
            end, milestone = len(data), RELEVANCE_START
            while learns_relevance and milestone <= known + start:
                milestone *= 2
            if learns_relevance:
                end = min(end, milestone - known)
            count, is_outgrown = regrowth.until_next(data[None, start:end], forest.n_points)
            end = start + count
            points = np.ascontiguousarray(data[start:end])[None]
            sample_weights = None if weights is None else weights[start:end]
            forest.extend(
                points, numbers[start:end], scales.follow(points), sample_weights, self.n_jobs
            )
            if is_outgrown:
                forest.regrow(scales.rates, self.n_jobs)
                regrowth.grown(forest.n_points)
            if learns_relevance and forest.n_points == milestone:
                own = check_feature_weights(self._setting("feature_weights"), data.shape[1])
                learnt = learnt_rates(forest.arrays, forest.code_lengths())
                scales.feature_weights = learnt if own is None else own * learnt
            start = end

    def _former(self, learnt: ClassForest, n_samples: int) -> dict[str, Any]:
        all_points, numbers, sample_weights = learnt.samples
        points, numbers = all_points[0, :n_samples], numbers[:n_samples]
        weights = sample_weights[:n_samples] if len(sample_weights) > 0 else None
        n_first = self._n_first
        former, scales, regrowth = self._new_state()
        if n_first > 0:
            first = points[:n_first].copy()[None], numbers[:n_first].copy()
            former = self._grow(former, scales, regrowth, *first)
        later = None if weights is None else weights[n_first:]
        self._insert(former, scales, regrowth, points[n_first:], numbers[n_first:], later)
        return {"forest_": former, "scales_": scales, "_regrowth": regrowth}

    def _reset(self, n_features: int, n_classes: int) -> None:
        self._keep_settings("feature_relevance", "feature_weights")
        weights = check_feature_weights(self.feature_weights, n_features)
        self._new_scales = partial(
            Scales, n_features, check_bounds(self.bounds, n_features), weights
        )
        discount = self.discount
        if discount is None:
            total = float(n_features if weights is None else weights.sum())
            discount = _DISCOUNT_PER_FEATURE * total
        self._new_forest = partial(
            ClassForest,
            Ensemble(int(self.n_estimators), n_features, seed_sequence(self.random_state)),
            n_classes=n_classes,
            discount=float(discount),
            min_samples_split=self.min_samples_split,
            lifetime=float(self.lifetime),
            max_nodes=None if self.max_nodes is None else int(self.max_nodes),
        )
        self._n_first = 0
        self.forest_, self.scales_, self._regrowth = self._new_state()

    def _new_state(self) -> tuple[ClassForest, Scales, Regrowth]:
        """Return what has learnt nothing."""
        scales = self._new_scales()
        # A copy, as a forest draws seeds from its ensemble's.
        return deepcopy(self._new_forest)(), scales, Regrowth(scales)
