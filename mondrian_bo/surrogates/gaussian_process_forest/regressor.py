"""Regression by a Mondrian forest with Gaussian processes in its leaves."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_matrix
from sklearn.utils._param_validation import Interval

from mondrian_bo.surrogates.estimators.equivalent_weights import EquivalentWeightsMixin
from mondrian_bo.surrogates.estimators.validation import check_bounds, check_feature_weights
from mondrian_bo.surrogates.gaussian_process_forest.model import GaussianProcessForestModel
from mondrian_bo.surrogates.mondrian_forest.base import ForestRegressor
from mondrian_bo.surrogates.shared.ensemble import Ensemble


class GaussianProcessForestRegressor(EquivalentWeightsMixin, ForestRegressor):
    """Mondrian forest with a Gaussian process in each leaf, online, with predictive distribution.

    The leaves of a tree are blocks of at most `block_size` samples. The targets of a block are its
    mean plus a Gaussian process plus noise, and the hierarchical Gaussian of Lakshminarayanan2016
    joins the means. A forest of at most `block_size` samples is one Gaussian process.

    Features are scaled by their ranges. The forest learns a lengthscale for each feature, how
    smooth the processes are (Matern 5/2 or 1/2) and how much of the noise equal inputs share. The
    split rate of a feature is its inverse lengthscale, so features without effect are hardly ever
    split. Leave-one-out residuals correct the variances, see
    :mod:`mondrian_bo.surrogates.gaussian_process_forest.variance_correction`.

    Parameters
    ----------
    n_estimators : int, default=10
        Number of trees.
    block_size : int, default=500
        Largest number of samples of a leaf. No split separates equal inputs: a leaf of inputs that
        all are equal has no limit, see the notes.
    bounds : array-like of shape (n_features, 2) or None, default=None
        Lower and upper end of each feature, which scale it to [0, 1]. None follows the range of
        the data seen so far. Data may lie outside the bounds.
    feature_weights : array-like of shape (n_features,) or None, default=None
        Non-negative factors of the scaled features; 0 ignores a feature. None is all ones. The
        search for lengthscales starts in inverse proportion to them.
    random_state : int, RandomState instance or None, default=None
        Seed of the trees.
    n_jobs : int or None, default=None
        Number of threads that share the trees in predictions at more than 256 points, as in
        joblib. Learning uses one thread.

    Attributes
    ----------
    model_ : GaussianProcessForestModel
        The trees and their Gaussian processes.
    prior_mean_ : float
        Prior mean of the targets: their mean when the scales were last refreshed. `weights` refers
        to it.

    Notes
    -----
    With T trees and leaves of at most m samples, fitting takes O(T n m^2), a prediction O(T m^2),
    and a new sample O(T m^2) on average plus the cost of storing it. Scales and hyper-parameters
    are refreshed whenever the number of samples has grown by a quarter.

    Where an input repeats r times and r is larger than `block_size`, m is r: with few different
    inputs, as of a single binary feature, fitting takes O(T n^3). For such data take
    :class:`MondrianForestRegressor`, or the mean of the targets of each input.

    A first `partial_fit` grows the trees in a batch. Later ones insert sample after sample. After
    the same first batch, the result does not depend on how the rest of the stream is divided.

    References
    ----------
    As of :class:`MondrianForestRegressor`, for the trees and the hierarchy of the means.

    Examples
    --------
    >>> import numpy as np
    >>> from mondrian_bo.surrogates import GaussianProcessForestRegressor
    >>> forest = GaussianProcessForestRegressor(block_size=30, random_state=0)
    >>> X = np.linspace(0, 1, 60)[:, None]
    >>> between = X[:-1] + 0.5 / 59
    >>> mean = forest.fit(X, np.sin(6 * X[:, 0])).predict(between)
    >>> bool(abs(mean - np.sin(6 * between[:, 0])).max() < 0.01)
    True
    """

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012
        **ForestRegressor._parameter_constraints,
        "block_size": [Interval(Integral, 2, None, closed="left")],
    }

    _readers_take_turns = True

    model_: GaussianProcessForestModel

    def __init__(
        self,
        n_estimators: int = 10,
        *,
        block_size: int = 500,
        bounds: ArrayLike | None = None,
        feature_weights: ArrayLike | None = None,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.block_size = block_size
        self.bounds = bounds
        self.feature_weights = feature_weights
        self.random_state = random_state
        self.n_jobs = n_jobs

    @property
    def prior_mean_(self) -> float:
        """Prior mean of the targets: their mean when the scales were last refreshed."""
        return self.model_.target_mean

    def _weights(self, X: ArrayLike, tolerance: float) -> csr_matrix:
        return self.model_.weights(self._points(X), tolerance)

    def _model_for(self, n_features: int) -> Callable[[Ensemble], GaussianProcessForestModel]:
        return partial(
            GaussianProcessForestModel,
            block_size=self.block_size,
            bounds=check_bounds(self.bounds, n_features),
            feature_weights=check_feature_weights(self.feature_weights, n_features),
        )
