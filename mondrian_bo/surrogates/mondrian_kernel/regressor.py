"""Bayesian ridge regression with the Mondrian kernel (Balog2016 and Balog2016thesis)."""

from __future__ import annotations

from numbers import Real
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from mondrian_bo.shared.array_types import FloatArray
from mondrian_bo.surrogates.estimators.base import UndoesInterruptions
from mondrian_bo.surrogates.estimators.locks import learns, reads
from mondrian_bo.surrogates.estimators.validation import (
    check_feature_weights,
    check_further_samples,
    check_samples,
    is_empty_batch,
    own_copy,
    seed_sequence,
)
from mondrian_bo.surrogates.mondrian_kernel.base import KernelRegressionWithPaths
from mondrian_bo.surrogates.mondrian_kernel.forest import PartitionForest
from mondrian_bo.surrogates.mondrian_kernel.lifetime_paths.forest_path import forest_path
from mondrian_bo.surrogates.mondrian_kernel.lifetime_paths.kernel_path import Direction, Method
from mondrian_bo.surrogates.mondrian_kernel.lifetime_paths.lifetime_path import LifetimePath
from mondrian_bo.surrogates.mondrian_kernel.lifetime_paths.path_data import (
    PathData,
    Validation,
    location_and_variance,
)
from mondrian_bo.surrogates.mondrian_kernel.model import KernelModel
from mondrian_bo.surrogates.shared.ensemble import Ensemble


class LifetimePaths(NamedTuple):
    """Paths of the kernel and the forest on the same partitions.

    Attributes
    ----------
    kernel : LifetimePath
        The weights of all trees are fitted jointly (Balog2016, eq. 3).
    forest : LifetimePath
        The weights of each tree are fitted independently (Balog2016, eq. 4).
    """

    kernel: LifetimePath
    forest: LifetimePath


class MondrianKernelRegressor(UndoesInterruptions, KernelRegressionWithPaths):
    """Gaussian-process regression with the Mondrian kernel, online.

    A target is the sum of the weights of the M cells that hold its input, plus noise. Weights and
    noise are normal, and the weights of all cells are fitted jointly (Balog2016, eq. 3): this is
    ridge regression on :class:`MondrianFeatures`, with the posterior of the function. As M grows,
    it becomes the Gaussian process with the Laplace kernel.

    Parameters
    ----------
    n_estimators, lifetime
        See :class:`MondrianFeatures`.
    noise_variance : float, default=0.01
        Variance of the noise.
    prior_variance : float, default=1.0
        Prior variance of the function. The ridge delta^2 is the noise variance over this one.
    normalize_y : bool, default=True
        Whether the prior mean is the mean of the targets, and both variances are in units of the
        variance of the targets. Otherwise the mean is 0, and the units are those of the targets.
    feature_weights, random_state, n_jobs
        See :class:`MondrianFeatures`.

    Attributes
    ----------
    model_ : KernelModel
        The partitions and the posterior.

    Notes
    -----
    With C cells and n samples, fitting takes O(min(C, n)^3 + n M^2), a new sample
    O(min(C, n)^2), a predicted mean O(M d depth) and a standard deviation O(min(C, n)^2).

    References
    ----------
    M. Balog, B. Lakshminarayanan, Z. Ghahramani, D. M. Roy, Y. W. Teh: The Mondrian Kernel, UAI
    2016 (Balog2016).

    Examples
    --------
    >>> import numpy as np
    >>> from mondrian_bo.surrogates import MondrianKernelRegressor
    >>> X = np.linspace(0, 1, 50)[:, None]
    >>> model = MondrianKernelRegressor(lifetime=3.0, random_state=0).fit(X, np.sin(6 * X[:, 0]))
    >>> mean, std = model.predict([[0.5], [3.0]], return_std=True)
    >>> bool(std[0] < std[1])
    True
    """

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012
        **KernelRegressionWithPaths._parameter_constraints,
        "lifetime": [Interval(Real, 0, None, closed="left")],
    }

    _learnt = "model_"

    model_: KernelModel

    def __init__(
        self,
        n_estimators: int = 50,
        lifetime: float = 1.0,
        *,
        noise_variance: float = 0.01,
        prior_variance: float = 1.0,
        normalize_y: bool = True,
        feature_weights: ArrayLike | None = None,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.lifetime = lifetime
        self.noise_variance = noise_variance
        self.prior_variance = prior_variance
        self.normalize_y = normalize_y
        self.feature_weights = feature_weights
        self.random_state = random_state
        self.n_jobs = n_jobs

    @learns
    def partial_fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Learn more samples (Balog2016, section 5 and Appendix C).

        The conditional Mondrian extends the partitions, new cells add equations, and each sample is
        an update of rank one. The result equals a fit from scratch on the extended partitions.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite inputs. A fitted estimator ignores a batch without rows.
        y : array-like of shape (n_samples,)
            Finite targets.

        Returns
        -------
        MondrianKernelRegressor
            The estimator.

        Raises
        ------
        ValueError
            As `fit`.
        """
        if not hasattr(self, "model_"):
            return self.fit(X, y)
        if is_empty_batch(self, X, y):
            return self
        data, targets = check_further_samples(self, X, y)
        model = self.model_
        n_known = model.partitions.n_points
        self._learn_completely(n_known, self._learn_more, model, data[None], targets)
        return self

    def _learn_more(self, model: KernelModel, points: FloatArray, targets: FloatArray) -> None:
        model.learn(points, targets)
        self._set_prior_variance(model)

    def _former(self, learnt: KernelModel, n_samples: int) -> dict[str, Any]:
        partitions = learnt.partitions.former(n_samples, self.n_jobs)
        return {"model_": self._solved(partitions, learnt.ridge)}

    @reads
    def predict_forest(self, X: ArrayLike) -> FloatArray:
        """Predict with the same partitions and prior, but independent trees (Balog2016, eq. 4).

        This is a Mondrian forest without hierarchical smoothing. With one tree it equals `predict`
        (Balog2016thesis, Appendix B.1).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Where to predict.

        Returns
        -------
        ndarray of shape (n_samples,)
            The mean over trees of the posterior means of their leaves.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If the estimator has not been fitted.
        """
        check_is_fitted(self, "model_")
        rows = self.model_.features(check_samples(self, X)[None])
        return np.asarray(self.model_.mean + rows @ self.model_.forest_weights)

    @reads
    def log_marginal_likelihood(self) -> float:
        """Return the log evidence of the training targets, given their mean if `normalize_y`.

        Returns
        -------
        float
            Natural logarithm of the evidence.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If the estimator is not fitted.
        """
        check_is_fitted(self, "model_")
        return self.model_.log_marginal_likelihood()

    @reads
    def lifetime_path(
        self,
        X: ArrayLike,
        y: ArrayLike,
        X_val: Validation = None,
        y_val: Validation = None,
        *,
        direction: Direction = "forward",
        method: Method = "auto",
        n_evaluations: int | None = None,
        keep_weights: bool = False,
    ) -> LifetimePath:
        """Return errors and evidence at every lifetime from 0 to `lifetime` (Balog2016, section 4).

        The estimator is not changed. As in the paper, the partitions are those of the training and
        validation inputs together.

        Parameters
        ----------
        X, y : array-likes
            Training data, as in `fit`.
        X_val, y_val : array-likes or None, default=None
            Validation data.
        direction, method, n_evaluations, keep_weights
            See
            :func:`mondrian_bo.surrogates.mondrian_kernel.lifetime_paths.kernel_path.kernel_path`.

        Returns
        -------
        LifetimePath
            Errors are in units of the targets.

        Raises
        ------
        ValueError
            If a parameter or the data are not as described.
        """
        return self._kernel_path(
            self._path_data(X, y, X_val, y_val),
            direction=direction,
            method=method,
            n_evaluations=n_evaluations,
            keep_weights=keep_weights,
        )

    @reads
    def forest_lifetime_path(
        self, X: ArrayLike, y: ArrayLike, X_val: Validation = None, y_val: Validation = None
    ) -> LifetimePath:
        """Return the path of the forest of `predict_forest` (Balog2016thesis, section 4.1).

        Parameters
        ----------
        X, y : array-likes
            Training data, as in `fit`.
        X_val, y_val : array-likes or None, default=None
            Validation data.

        Returns
        -------
        LifetimePath
            Errors and evidence at every lifetime where a prediction changes.

        Raises
        ------
        ValueError
            If a parameter or the data are not as described.
        """
        return self._forest_path(self._path_data(X, y, X_val, y_val))

    @reads
    def lifetime_paths(
        self,
        X: ArrayLike,
        y: ArrayLike,
        X_val: Validation = None,
        y_val: Validation = None,
        *,
        n_evaluations: int | None = None,
    ) -> LifetimePaths:
        """Return the paths of kernel and forest on the same partitions (Balog2016, section 8.3).

        Parameters
        ----------
        X, y : array-likes
            Training data, as in `fit`.
        X_val, y_val : array-likes or None, default=None
            Validation data.
        n_evaluations : int or None, default=None
            Number of lifetimes at which to evaluate the kernel; None is all.

        Returns
        -------
        LifetimePaths
            The path of `lifetime_path`, and that of `predict_forest`.
        """
        data = self._path_data(X, y, X_val, y_val)
        kernel = self._kernel_path(data, n_evaluations=n_evaluations)
        return LifetimePaths(kernel, self._forest_path(data))

    def _fit_weights(self, data: FloatArray, targets: FloatArray) -> None:
        partitions = self._new_partitions()
        partitions.build(own_copy(data)[None], targets, self.n_jobs)
        self._prior = float(self.prior_variance), bool(self.normalize_y)
        self.model_ = self._solved(partitions, self._ridge)

    def _solved(self, partitions: PartitionForest, ridge: float) -> KernelModel:
        """Return the model of partitions and their targets, with the prior of the last `fit`."""
        model = KernelModel(partitions, ridge, centred=self._prior[1])
        self._set_prior_variance(model)
        return model

    def _forest_path(self, data: PathData) -> LifetimePath:
        return forest_path(data, *self._variances(data))

    def _path_data(
        self, X: ArrayLike, y: ArrayLike, X_val: Validation, y_val: Validation
    ) -> PathData:
        self._validate_params()
        return self._sample_path_data(X, y, X_val, y_val, self.lifetime)

    def _new_partitions(self) -> PartitionForest:
        rates = check_feature_weights(self.feature_weights, self.n_features_in_)
        return PartitionForest(
            Ensemble(int(self.n_estimators), self.n_features_in_, seed_sequence(self.random_state)),
            np.ones(self.n_features_in_) if rates is None else rates,
            float(self.lifetime),
        )

    def _set_prior_variance(self, model: KernelModel) -> None:
        """Set the prior variance, in the squared units of the targets."""
        prior_variance, normalizes = self._prior
        _, unit = location_and_variance(model.partitions.targets, normalizes)
        model.prior_variance = unit * prior_variance
