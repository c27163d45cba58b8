"""Bayesian ridge regression with the Mondrian kernel (Balog2016 and Balog2016thesis)."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted, validate_data

from mondrian_bo.array_types import FloatArray
from mondrian_bo.surrogates.estimators.predictive import PredictiveMomentsMixin
from mondrian_bo.surrogates.estimators.validation import (
    check_feature_weights,
    check_labelled_samples,
    check_samples,
    check_squares,
    own_copy,
    unchanged_by_failure,
)
from mondrian_bo.surrogates.mondrian_kernel.feature_map import seed_sequence
from mondrian_bo.surrogates.mondrian_kernel.forest import PartitionForest
from mondrian_bo.surrogates.mondrian_kernel.lifetime_paths.forest_path import forest_path
from mondrian_bo.surrogates.mondrian_kernel.lifetime_paths.kernel_path import (
    Direction,
    Method,
    kernel_path,
)
from mondrian_bo.surrogates.mondrian_kernel.lifetime_paths.lifetime_path import LifetimePath
from mondrian_bo.surrogates.mondrian_kernel.lifetime_paths.path_data import (
    PathData,
    label_variance,
    sample_path_data,
)
from mondrian_bo.surrogates.mondrian_kernel.model import KernelModel


class LifetimePaths(NamedTuple):
    """Paths of two models on the same partitions.

    Attributes
    ----------
    kernel : LifetimePath
        All weights fitted jointly (Balog2016, eq. 3).
    forest : LifetimePath
        The weights of each tree fitted on their own (eq. 4).
    """

    kernel: LifetimePath
    forest: LifetimePath


class MondrianKernelRegressor(PredictiveMomentsMixin, RegressorMixin, BaseEstimator):
    """Gaussian-process regression with the Mondrian kernel, online.

    Labels are sums of the weights of the M cells that hold an input, plus noise. Weights and noise
    are normal, and the weights of all cells are fitted jointly (Balog2016, eq. 3): ridge regression
    on :class:`MondrianFeatures`, with the posterior of the function. As M grows, this becomes the
    Gaussian process with the Laplace kernel.

    Parameters
    ----------
    n_estimators : int, default=50
        Number of partitions, M.
    lifetime : float, default=1.0
        Inverse width of the kernel, in units of the inputs.
    noise_variance : float, default=0.01
        Variance of the noise.
    prior_variance : float, default=1.0
        Variance of the function under the prior. The ridge delta^2 is the ratio of the two.
    normalize_y : bool, default=True
        Whether the prior mean is the mean of the labels, and both variances are in units of the
        variance of the labels. Otherwise the mean is 0, and the units are those of the labels.
    feature_weights : array-like of shape (n_features,) or None, default=None
        Non-negative factors of the lifetime, for each input feature; None is all ones.
    random_state : int, RandomState instance or None, default=None
        Seed of the partitions. Results do not depend on `n_jobs`.
    n_jobs : int or None, default=None
        Number of partitions to sample at a time, as joblib counts.

    Attributes
    ----------
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if the first data had string column names.
    model_ : KernelModel
        The partitions and the posterior.

    Notes
    -----
    With C cells and n samples, fitting takes O(min(C, n)^3 + n M^2), a new sample
    O(min(C, n)^2), predicting a mean O(M d depth) and a standard deviation O(min(C, n)^2).

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
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "lifetime": [Interval(Real, 0, None, closed="left")],
        "noise_variance": [Interval(Real, 0, None, closed="neither")],
        "prior_variance": [Interval(Real, 0, None, closed="neither")],
        "normalize_y": ["boolean"],
        "feature_weights": ["array-like", None],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
    }

    model_: KernelModel
    n_features_in_: int

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

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Forget what was learnt, sample partitions of a batch and solve for the weights.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite inputs.
        y : array-like of shape (n_samples,)
            Finite labels.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a parameter, X or y is not as described.
        """
        self._validate_params()
        with unchanged_by_failure(self):
            data, labels = validate_data(self, X, y, dtype=np.float64, y_numeric=True)
            labels = own_copy(labels)
            check_squares(labels)
            partitions = self._new_partitions()
        partitions.build(own_copy(data)[None], labels, self.n_jobs)
        ridge = float(self.noise_variance) / float(self.prior_variance)
        self.model_ = KernelModel(partitions, ridge, centred=bool(self.normalize_y))
        self._follow_scale()
        return self

    def partial_fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Learn more samples (section 5 and Appendix C of Balog2016).

        Partitions are extended by the conditional Mondrian, new cells border the equations, and
        each sample is an update of rank one. The result equals solving from scratch on the
        extended partitions.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite inputs.
        y : array-like of shape (n_samples,)
            Finite labels.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a parameter, X or y is not as described.
        """
        if not hasattr(self, "model_"):
            return self.fit(X, y)
        data, labels = check_labelled_samples(self, X, y)
        check_squares(labels)
        self.model_.learn(data[None], labels)
        self._follow_scale()
        return self

    def _moments(self, X: ArrayLike, with_variance: bool) -> tuple[FloatArray, FloatArray]:
        check_is_fitted(self, "model_")
        return self.model_.predict_labels(check_samples(self, X)[None], with_variance)

    def predict_forest(self, X: ArrayLike) -> FloatArray:
        """Predict with the same partitions and prior, but each tree fitted on its own (eq. 4).

        That is a Mondrian forest without hierarchical smoothing; for one tree it is `predict`
        (Balog2016thesis, Appendix B.1).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Where to predict.

        Returns
        -------
        ndarray of shape (n_samples,)
            Means over trees of the posterior means of their leaves.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If nothing has been learnt.
        """
        check_is_fitted(self, "model_")
        rows = self.model_.features(check_samples(self, X)[None])
        return np.asarray(self.model_.mean + rows @ self.model_.forest_weights)

    def log_marginal_likelihood(self) -> float:
        """Return the log evidence of the learnt labels, given their mean if they are normalised."""
        check_is_fitted(self, "model_")
        return self.model_.log_marginal_likelihood()

    def lifetime_path(
        self,
        X: ArrayLike,
        y: ArrayLike,
        X_val: ArrayLike | None = None,
        y_val: ArrayLike | None = None,
        *,
        direction: Direction = "forward",
        method: Method = "auto",
        n_evaluations: int | None = None,
        keep_weights: bool = False,
    ) -> LifetimePath:
        """Return errors and evidence at every lifetime from 0 to `lifetime` (Balog2016, section 4).

        The estimator itself is not changed. Partitions are sampled of the training and validation
        inputs together, as in the paper.

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
            Errors are in units of the labels.

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

    def forest_lifetime_path(
        self,
        X: ArrayLike,
        y: ArrayLike,
        X_val: ArrayLike | None = None,
        y_val: ArrayLike | None = None,
    ) -> LifetimePath:
        """Return the path of the forest of `predict_forest` alone (Balog2016thesis, section 4.1).

        Parameters
        ----------
        X, y, X_val, y_val : array-likes
            Data, as in `lifetime_path`.

        Returns
        -------
        LifetimePath
            Exact at every lifetime where anything changes, at about the cost of the trees.

        Raises
        ------
        ValueError
            If a parameter or the data are not as described.
        """
        return self._forest_path(self._path_data(X, y, X_val, y_val))

    def lifetime_paths(
        self,
        X: ArrayLike,
        y: ArrayLike,
        X_val: ArrayLike | None = None,
        y_val: ArrayLike | None = None,
        *,
        n_evaluations: int | None = None,
    ) -> LifetimePaths:
        """Return the paths of kernel and forest on the same partitions (section 8.3).

        Parameters
        ----------
        X, y, X_val, y_val : array-likes
            Data, as in `lifetime_path`.
        n_evaluations : int or None, default=None
            At how many lifetimes to evaluate the kernel; None is all.

        Returns
        -------
        LifetimePaths
            The path of `lifetime_path`, and that of `predict_forest`.
        """
        data = self._path_data(X, y, X_val, y_val)
        kernel = self._kernel_path(data, n_evaluations=n_evaluations)
        return LifetimePaths(kernel, self._forest_path(data))

    def _kernel_path(self, data: PathData, **options: Any) -> LifetimePath:
        return kernel_path(data, *self._variances(data), **options)

    def _forest_path(self, data: PathData) -> LifetimePath:
        return forest_path(data, *self._variances(data))

    def _variances(self, data: PathData) -> tuple[float, float]:
        return data.variances(float(self.noise_variance), float(self.prior_variance))

    def _path_data(
        self, X: ArrayLike, y: ArrayLike, X_val: ArrayLike | None, y_val: ArrayLike | None
    ) -> PathData:
        self._validate_params()
        return sample_path_data(
            X,
            y,
            X_val,
            y_val,
            n_estimators=self.n_estimators,
            max_lifetime=self.lifetime,
            normalize_y=bool(self.normalize_y),
            feature_weights=self.feature_weights,
            random_state=self.random_state,
            n_jobs=self.n_jobs,
        )

    def _new_partitions(self) -> PartitionForest:
        weights = check_feature_weights(self.feature_weights, self.n_features_in_)
        return PartitionForest(
            self.n_estimators,
            self.n_features_in_,
            seed_sequence(self.random_state),
            np.ones(self.n_features_in_) if weights is None else weights,
            float(self.lifetime),
        )

    def _follow_scale(self) -> None:
        """Set the prior variance in the units of the labels."""
        unit = label_variance(self.model_.partitions.targets) if self.normalize_y else 1.0
        self.model_.prior_variance = unit * float(self.prior_variance)
