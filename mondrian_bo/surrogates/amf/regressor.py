"""AMF, aggregated Mondrian forests, for regression (Mourtada2021)."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_matrix
from sklearn.utils._param_validation import StrOptions
from sklearn.utils._tags import Tags

from mondrian_bo.surrogates.amf.base import AggregatedEstimator
from mondrian_bo.surrogates.amf.model import AggregationModel, Step
from mondrian_bo.surrogates.estimators.equivalent_weights import EquivalentWeightsMixin
from mondrian_bo.surrogates.estimators.online_regressor import OnlineRegressor
from mondrian_bo.surrogates.estimators.predictive import PredictiveDistributionMixin
from mondrian_bo.trees.aggregation_nodes import REAL


class AMFRegressor(
    EquivalentWeightsMixin, PredictiveDistributionMixin, AggregatedEstimator, OnlineRegressor
):
    """Aggregated Mondrian forest for regression, online, with a predictive distribution.

    Every tree predicts with all its prunings at once, weighted by how well they have forecast so
    far (Mourtada2021, equations 4, 6 and 7; squared loss), exactly and in O(log n) nodes per tree
    and sample. The prediction is a mixture of Gaussians, over trees and over the nodes at which
    their prunings end. The Gaussian of a node has the mean of its targets and the mean loss of its
    forecasts. The default then moves the mixture to the linear combination of the forest's
    forecasts that has had the least error (`stacking`).

    Parameters
    ----------
    n_estimators : int, default=10
        Number of trees.
    step : float, "corollary" or "adaptive", default="adaptive"
        Learning rate of the aggregation. "adaptive" is ``n / (2 L)``, with L the squared loss of
        the best pruning: weights are then Gaussian likelihoods with the noise that this pruning
        leaves. "corollary" is ``1 / (8 B^2)`` for targets in an interval of length 2 B (Corollary
        2), where B follows the targets: the regret bounds hold, and the rate is cautious. Its
        error is larger on every stream of ``docs/appendix/amf.md``.
    use_aggregation : bool, default=True
        Whether trees predict with all prunings, or with their leaves alone.
    stacking : bool or "auto", default="auto"
        Whether the forest predicts with a linear combination of four forecasts, that with the least
        weighted squared error so far: all prunings or leaves alone, each with and without splitting
        off points outside of the data. "auto" is True with the adaptive `step`, aggregation and no
        `online_to_batch`, and False otherwise: the predictions are then those of the paper, to
        which its bounds apply. ``docs/appendix/amf.md`` has the errors. With stacking, samples of a
        batch are forecast and learnt one by one, which takes longer.
    bounds : array-like of shape (n_features, 2) or None, default=None
        A box that holds all data: trees are then unrestricted Mondrian partitions of it (Algorithms
        1 to 3), for which the regret bounds are proved. None restricts partitions to the data seen
        so far (Algorithms 4 to 6).
    feature_weights : array-like of shape (n_features,) or None, default=None
        Non-negative factors of the features' split rates; 0 ignores a feature. None is all ones.
    feature_relevance : bool, default=False
        Whether new splits favour features whose earlier splits reduced the loss. The regret bounds
        are for partitions that do not depend on the targets.
    online_to_batch : bool, default=False
        Whether to predict with the forest as it was before a sample chosen at random among those
        seen (Lemma 2): its excess risk is bounded. It costs a copy of the forest.
    record_losses : bool, default=False
        Whether to keep what :meth:`loss_trace` returns. It makes learning a batch slower.
    max_nodes : int or None, default=None
        Largest number of nodes of a tree, which bounds the memory. A tree without room for another
        split removes two leaves whose split has gained little or has had no samples for long, so it
        follows inputs that drift (``docs/amf.md``). Samples are kept until no tree has room, and up
        to four for each node, so an interrupted `partial_fit` of more cannot be undone, and `fit`
        must follow. It needs `bounds` of None and no `record_losses`. None is no limit.
    random_state : int, RandomState instance or None, default=None
        Seed of the trees. Results do not depend on `n_jobs`, nor on how a stream is divided into
        calls of `partial_fit`.
    n_jobs : int or None, default=None
        Number of trees to learn or predict at a time, as joblib counts.

    Attributes
    ----------
    model_ : AggregationModel
        The trees and the states of their nodes.
    offset_ : ndarray of shape (n_features,)
        What is subtracted from the features before they are rounded to single precision: the first
        value of a feature (its lower bound) from 1024 on, and 0 otherwise.

    Notes
    -----
    Features are scaled to [0, 1] by the range of the data seen so far (of `bounds`) and kept in
    single precision, as in scikit-learn's forests, without `offset_`. Values of a feature that
    differ, but are so small that rounding makes them equal (below 7e-46), raise a ValueError. An
    empty node repeats its parent's forecast, where the paper forecasts 0, so that results do not
    depend on where targets are centred. A point outside of a node's box is split off from it as
    often as in Algorithm 6, on average over its random draw, and is then forecast by the node. So
    without stacking, predictions return to the mean and the variance of all targets far from the
    data. Stacked predictions stay within the range of the targets.

    One sample says nothing about the spread of the targets: before a second sample, the standard
    deviation is 1, as without any sample.

    `fit` learns its samples in the order of the rows. It takes no weights: scikit-learn demands
    that weights equal repetition of rows, which an online learner cannot give. `partial_fit` takes
    weights as factors of losses and of counts. With the adaptive `step`, only their ratios count
    as long as losses, weights times squared errors, add up to more than 1e-300.

    A new sample takes O(T d log n), a prediction O(T d log n), memory is O(T n d).

    References
    ----------
    J. Mourtada, S. Gaïffas, E. Scornet: AMF: Aggregated Mondrian Forests for Online Learning
    (Mourtada2021).

    Examples
    --------
    >>> import numpy as np
    >>> from mondrian_bo.surrogates import AMFRegressor
    >>> forest = AMFRegressor(record_losses=True, random_state=0)
    >>> for x in np.random.default_rng(0).random((200, 1, 1)):
    ...     forest = forest.partial_fit(x, np.sin(6 * x[:, 0]))
    >>> losses = forest.loss_trace().loss.mean(axis=0)
    >>> bool(losses[100:].mean() < 0.1 * losses[:100].mean())
    True
    """

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012
        **AggregatedEstimator._parameter_constraints,
        "step": [AggregatedEstimator._STEP, StrOptions({"corollary", "adaptive"})],
        "stacking": ["boolean", StrOptions({"auto"})],
    }

    model_: AggregationModel

    def __init__(
        self,
        n_estimators: int = 10,
        *,
        step: Step = "adaptive",
        use_aggregation: bool = True,
        stacking: bool | Literal["auto"] = "auto",
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
        self.stacking = stacking
        self.bounds = bounds
        self.feature_weights = feature_weights
        self.feature_relevance = feature_relevance
        self.online_to_batch = online_to_batch
        self.record_losses = record_losses
        self.max_nodes = max_nodes
        self.random_state = random_state
        self.n_jobs = n_jobs

    def _reset(self, n_features: int) -> None:
        can_stack = bool(self.use_aggregation) and not self.online_to_batch
        if self.stacking == "auto":
            stacking = can_stack and self.step == "adaptive"
        else:
            stacking = bool(self.stacking)
        if stacking and not can_stack:
            raise ValueError(
                "stacking=True needs use_aggregation=True and online_to_batch=False; "
                "predictions with leaves alone, or of a forest of the past, are not combined"
            )
        self._settings = {
            **self._shared_settings(n_features),
            "n_classes": REAL,
            "step": self.step if isinstance(self.step, str) else float(self.step),
            "stacking": stacking,
        }
        self.model_ = self._new_model()

    def _weights(self, X: ArrayLike, tolerance: float) -> csr_matrix:
        return self.model_.weights(self._points(X), tolerance)

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()
        # The cautious rate needs more samples than scikit-learn's checks have.
        tags.regressor_tags.poor_score = self.step == "corollary"
        return tags
