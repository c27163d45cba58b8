"""Mondrian forest classification (Lakshminarayanan, Roy and Teh 2014) for scikit-learn."""

from __future__ import annotations

import math
from copy import deepcopy
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
from mondrian_bo.surrogates.mondrian_forest.class_model import ClassModel
from mondrian_bo.surrogates.shared.ensemble import Ensemble
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
    model_ : ClassModel
        The trees and the scales of the features.

    Notes
    -----
    A leaf of one class is not split, and where `lifetime` is infinite its discount is 0: inside the
    box of its data the tree gives that class the probability 1, and the forest may give others the
    probability 0. A finite `lifetime` smooths leaves too.

    Fitting takes O(T d n log n), a new sample O(T (d + K) log n) for balanced trees, a prediction
    likewise, with T trees and K classes. `fit` samples trees in a batch; `partial_fit` always
    inserts sample after sample, so that its result does not depend on how a stream is divided.
    With `bounds`, the trees of both have the same distribution, and without them approximately so,
    unless `feature_relevance` or `max_nodes` is set. A sample of another class may cause a leaf to
    be sampled anew, at a cost that grows with the size of the leaf.

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

    _learnt = "model_"

    classes_: AnyArray
    model_: ClassModel

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

    @property
    def forest_(self) -> ClassForest:
        """The trees and their counts."""
        return self.model_.forest

    @property
    def scales_(self) -> Scales:
        """The scales of the features."""
        return self.model_.scales

    def _learn_batch(self, data: FloatArray, numbers: NDArray[np.int32]) -> Self:
        self._n_first = len(numbers)
        self.model_.learn_batch(own_copy(data)[None], numbers, self.n_jobs)
        return self

    def _probabilities(self, X: ArrayLike) -> FloatArray:
        """Return the mean over trees (Algorithms 7 and 8 of the paper)."""
        points = self._points(X)
        if self.model_.n_points == 0:  # all samples have had the weight 0
            n_classes = len(self.classes_)
            return np.full((points.shape[1], n_classes), 1.0 / n_classes)
        return self.forest_.predict_proba(points, self.scales_.rates, self.n_jobs)

    def _leaves(self, X: ArrayLike) -> tuple[Tree, IntArray]:
        points = self._points(X)
        if self.model_.n_points == 0:
            raise ValueError("there are no trees yet: all samples have had the weight 0")
        return self.forest_.arrays, self.forest_.leaves(points)

    def _points(self, X: ArrayLike) -> FloatArray:
        check_is_fitted(self, "model_")
        return check_samples(self, X)[None]

    def _learn(
        self, data: FloatArray, numbers: NDArray[np.int32], sample_weight: ArrayLike | None
    ) -> Self:
        weights = check_sample_weight(sample_weight, len(data))
        if weights is not None:
            counted = weights > 0.0
            data, numbers, weights = data[counted], numbers[counted], weights[counted]
        model = self.model_
        samples = data[None], numbers, weights
        self._learn_completely(model.n_points, model.learn, *samples, self.n_jobs)
        return self

    def _former(self, learnt: ClassModel, n_samples: int) -> dict[str, Any]:
        points, numbers, sample_weights = learnt.forest.samples
        n_first, later = self._n_first, slice(self._n_first, n_samples)
        former = self._new_model()
        if n_first > 0:
            first = points[:, :n_first].copy(), numbers[:n_first].copy()
            former.learn_batch(*first, self.n_jobs)
        weights = sample_weights[later] if len(sample_weights) > 0 else None
        former.learn(points[:, later], numbers[later], weights, self.n_jobs)
        return {"model_": former}

    def _reset(self, n_features: int, n_classes: int) -> None:
        weights = check_feature_weights(self.feature_weights, n_features)
        discount = self.discount
        if discount is None:
            total = float(n_features if weights is None else weights.sum())
            discount = _DISCOUNT_PER_FEATURE * total
        bounds = check_bounds(self.bounds, n_features)
        self._settings: dict[str, Any] = {
            "ensemble": Ensemble(
                int(self.n_estimators), n_features, seed_sequence(self.random_state)
            ),
            "bounds": bounds,
            "feature_weights": weights,
            "feature_relevance": bool(self.feature_relevance),
            "n_classes": n_classes,
            "discount": float(discount),
            "min_samples_split": self.min_samples_split,
            "lifetime": float(self.lifetime),
            "max_nodes": None if self.max_nodes is None else int(self.max_nodes),
        }
        self._n_first = 0
        self.model_ = self._new_model()

    def _new_model(self) -> ClassModel:
        # A copy, as a forest draws seeds from its ensemble's.
        return ClassModel(**deepcopy(self._settings))

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore; in pickles of earlier versions the estimator has the parts of its model."""
        super().__setstate__(_with_model(state) if "_new_forest" in state else state)


def _with_model(former: dict[str, Any]) -> dict[str, Any]:
    """Return the state of an estimator whose pickle has the parts of a model."""
    state = former.copy()
    new_forest, new_scales = state.pop("_new_forest"), state.pop("_new_scales")
    _, bounds, feature_weights = new_scales.args
    kept = state.pop("_kept_settings", None) or state
    state["_settings"] = {
        "ensemble": new_forest.args[0],
        "bounds": bounds,
        "feature_weights": feature_weights,
        "feature_relevance": bool(kept["feature_relevance"]),
        **new_forest.keywords,
    }
    # A call that was interrupted set the forest aside.
    unfinished = state.get("_unfinished")
    forest = state.pop("forest_") if unfinished is None else unfinished[1]
    model = ClassModel.of_parts(
        deepcopy(state["_settings"]), forest, state.pop("scales_"), state.pop("_regrowth")
    )
    if unfinished is None:
        return {**state, "model_": model}
    return {**state, "_unfinished": (unfinished[0], model)}
