"""AMF, aggregated Mondrian forests, for classification (Mourtada2021)."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils._param_validation import StrOptions

from mondrian_bo.shared.array_types import AnyArray, FloatArray
from mondrian_bo.surrogates.amf.base import AggregatedEstimator
from mondrian_bo.surrogates.estimators.online_classifier import LARGEST_DIRICHLET, OnlineClassifier
from mondrian_bo.trees.aggregation_predict import SUM, SUM_OF_LOGS

_DIRICHLET_OF_TWO, _DIRICHLET = 0.1, 0.01
"""Default smoothing for two classes and for more, those of the least loss in
``docs/appendix/amf.md``."""


class AMFClassifier(AggregatedEstimator, OnlineClassifier):
    """Aggregated Mondrian forest for classification, online.

    Every tree predicts with all its prunings at once, weighted by how well they have forecast so
    far (Mourtada2021, equations 5, 6 and 7; logarithmic loss), exactly and in O(log n) nodes per
    tree and sample.

    Parameters
    ----------
    n_estimators : int, default=10
        Number of trees.
    step : float, default=1.0
        Learning rate of the aggregation; 1 is that of Corollary 1.
    use_aggregation : bool, default=True
        Whether trees predict with all prunings, or with their leaves alone.
    split_pure : bool, default=False
        Whether cells are split whose samples are all of one class. If not, such a leaf is paused. A
        sample of another class is split off from it or, inside of its box, makes the box split
        until classes are apart.
    dirichlet : float or None, default=None
        Smoothing of the frequencies of classes in a node (equation 5). 1/2 is the
        Krichevsky-Trofimov forecaster of the paper, which Corollary 1 is for. None is 0.1 for two
        classes and 0.01 for more, which predict best (``docs/appendix/amf.md``).
    pooling : {"geometric", "arithmetic"}, default="geometric"
        Mean of the trees' probabilities. The paper's mean (equation 1) is arithmetic. The geometric
        mean, normalised, is sharper: trees that are unsure in different ways do not make an unsure
        forest. The logarithmic loss of either is at most the mean of the trees' losses, so that
        what is proved of the forest through its trees holds for both.
    bounds, feature_weights, feature_relevance, online_to_batch, record_losses, max_nodes
    random_state, n_jobs
        See :class:`AMFRegressor`. Bounds choose unrestricted partitions, which serve the theory:
        online losses are higher with them.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted.
    model_ : AggregationModel
        The trees and the states of their nodes.
    offset_ : ndarray of shape (n_features,)
        See :class:`AMFRegressor`.

    Notes
    -----
    Scales, single precision and weights are as in :class:`AMFRegressor`. Predictions follow the
    splits that are there, as in the package onelearn. Algorithm 6 first splits off a point that
    lies outside of the data of its leaf, which mixes in uniform forecasts of empty cells and
    predicted worse. The losses of :meth:`loss_trace` are those of Algorithm 6, or of its leaves
    without aggregation.

    `fit` learns its rows in their order, so `fit` and `partial_fit` give the same result for the
    same samples.

    A new sample takes O(T (d + K) log n) for K classes, a prediction O(T K log n); memory is
    O(T n (d + K)).

    References
    ----------
    J. Mourtada, S. Gaïffas, E. Scornet: AMF: Aggregated Mondrian Forests for Online Learning
    (Mourtada2021).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from mondrian_bo.surrogates import AMFClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> forest = AMFClassifier(random_state=0).fit(X, y)
    >>> forest.predict(X[:2])
    array([0, 0])
    """

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012
        **AggregatedEstimator._parameter_constraints,
        "step": [AggregatedEstimator._STEP],
        "split_pure": ["boolean"],
        "dirichlet": [AggregatedEstimator._STEP, None],
        "pooling": [StrOptions({"geometric", "arithmetic"})],
    }

    classes_: AnyArray

    def __init__(
        self,
        n_estimators: int = 10,
        *,
        step: float = 1.0,
        use_aggregation: bool = True,
        split_pure: bool = False,
        dirichlet: float | None = None,
        pooling: Literal["geometric", "arithmetic"] = "geometric",
        bounds: ArrayLike | None = None,
        feature_weights: ArrayLike | None = None,
        feature_relevance: bool = False,
        online_to_batch: bool = False,
        record_losses: bool = False,
        max_nodes: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.step = step
        self.use_aggregation = use_aggregation
        self.split_pure = split_pure
        self.dirichlet = dirichlet
        self.pooling = pooling
        self.bounds = bounds
        self.feature_weights = feature_weights
        self.feature_relevance = feature_relevance
        self.online_to_batch = online_to_batch
        self.record_losses = record_losses
        self.max_nodes = max_nodes
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _reset(self, n_features: int, n_classes: int) -> None:
        dirichlet = self.dirichlet
        if dirichlet is None:
            dirichlet = _DIRICHLET_OF_TWO if n_classes <= 2 else _DIRICHLET
        self._settings = {
            **self._shared_settings(n_features),
            "n_classes": n_classes,
            "dirichlet": min(float(dirichlet), LARGEST_DIRICHLET),
            "step": float(self.step),
            "split_pure": bool(self.split_pure),
        }
        self.model_ = self._new_model()

    def _probabilities(self, X: ArrayLike) -> FloatArray:
        points = self._points(X)
        pooling = SUM_OF_LOGS if self.pooling == "geometric" else SUM
        return self.model_.predict_proba(points, pooling, self.n_jobs)
