"""Support vector regression with the Mondrian kernel (Balog2016, 4.2.2)."""

from __future__ import annotations

from dataclasses import replace
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin
from sklearn.svm import LinearSVR
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import validate_data

from mondrian_bo.array_types import FloatArray
from mondrian_bo.surrogates.estimators.validation import check_squares, unchanged_by_failure
from mondrian_bo.surrogates.mondrian_kernel.lifetime_paths.lifetime_path import LifetimePath
from mondrian_bo.surrogates.mondrian_kernel.lifetime_paths.path_data import (
    check_path_data,
    label_variance,
)
from mondrian_bo.surrogates.mondrian_kernel.lifetime_paths.sgd_path import sgd_lifetime_path
from mondrian_bo.surrogates.mondrian_kernel.linear_machine import LinearMachine


class MondrianKernelSVR(RegressorMixin, LinearMachine):
    """Support vector regression with the Mondrian kernel.

    Minimises ``prior_variance * sum(max(0, |z - f(x)| - epsilon)) + |w|^2 / 2``, where z are the
    labels scaled to mean 0 and variance 1, over the weights w of the cells of Mondrian partitions;
    f(x) is the sum of M^-1/2 times the weights of the M cells that hold x. As M grows, this becomes
    the machine with the Laplace kernel. Unlike :class:`MondrianKernelRegressor` it withstands
    outliers, and has no standard deviations.

    Parameters
    ----------
    n_estimators : int, default=50
        Number of partitions, M.
    lifetime : float, default=1.0
        Inverse width of the kernel, in units of the inputs.
    epsilon : float, default=0.1
        Errors up to this cost nothing, in units of the standard deviation of the labels.
    prior_variance : float, default=1.0
        Variance of f under the prior: scikit-learn's C.
    feature_weights : array-like of shape (n_features,) or None, default=None
        Non-negative factors of the lifetime, for each input feature; None is all ones.
    tol : float, default=1e-4
        Where scikit-learn's solver stops.
    max_iter : int, default=1000
        Iterations at most; a :class:`~sklearn.exceptions.ConvergenceWarning` says when they do not
        suffice.
    random_state : int, RandomState instance or None, default=None
        Seed of the partitions and of the solver. Results do not depend on `n_jobs`.
    n_jobs : int or None, default=None
        Number of partitions to sample at a time, as joblib counts.

    Attributes
    ----------
    features_ : MondrianFeatures
        The fitted partitions.
    coef_ : ndarray of shape (1, n_cells)
        Weights of the cells, for the scaled labels.
    n_iter_ : int
        Iterations of the solver.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if the first data had string column names.

    Notes
    -----
    There is no intercept: the cells of a partition add up to a constant already. Far from all data
    the prediction is the mean of the labels. The weights are those of
    :class:`sklearn.svm.LinearSVR`, at O(n M) for an iteration; predicting takes O(M d depth) an
    input.

    References
    ----------
    M. Balog, B. Lakshminarayanan, Z. Ghahramani, D. M. Roy, Y. W. Teh: The Mondrian Kernel, UAI
    2016 (Balog2016).

    Examples
    --------
    >>> import numpy as np
    >>> from mondrian_bo.surrogates import MondrianKernelSVR
    >>> X = np.linspace(0, 1, 50)[:, None]
    >>> model = MondrianKernelSVR(lifetime=3.0, random_state=0).fit(X, np.sin(6 * X[:, 0]))
    >>> bool(abs(model.predict([[0.25]])[0] - np.sin(1.5)) < 0.2)
    True
    """

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012
        **LinearMachine._parameter_constraints,
        "epsilon": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        n_estimators: int = 50,
        lifetime: float = 1.0,
        *,
        epsilon: float = 0.1,
        prior_variance: float = 1.0,
        feature_weights: ArrayLike | None = None,
        tol: float = 1e-4,
        max_iter: int = 1000,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.lifetime = lifetime
        self.epsilon = epsilon
        self.prior_variance = prior_variance
        self.feature_weights = feature_weights
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Sample partitions of the inputs, and learn the weights of their cells.

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
            labels = np.asarray(labels, dtype=np.float64)
            check_squares(labels)
            mean, unit = _location_and_scale(labels)
            rows = self._learn_features(data)
            solver = LinearSVR(
                epsilon=self.epsilon, random_state=self.random_state, **self._solver_options()
            ).fit(rows, (labels - mean) / unit)
        self._keep([solver])
        self._mean, self._unit = mean, unit
        return self

    def predict(self, X: ArrayLike) -> FloatArray:
        """Predict labels, shape (n_samples,)."""
        values = self._values(X)[:, 0]
        return np.asarray(self._mean + self._unit * values)

    def lifetime_path(
        self,
        X: ArrayLike,
        y: ArrayLike,
        X_val: ArrayLike | None = None,
        y_val: ArrayLike | None = None,
        *,
        learning_rate: float = 0.1,
        n_evaluations: int | None = 200,
    ) -> LifetimePath:
        """Return errors at lifetimes from 0 to `lifetime` (Balog2016, section 4.2.2).

        The estimator itself is not changed. The weights follow from stochastic gradient descent
        that goes on from cut to cut; they are near those of `fit`, not equal.

        Parameters
        ----------
        X, y : array-likes
            Training data, as in `fit`.
        X_val, y_val : array-likes or None, default=None
            Validation data.
        learning_rate, n_evaluations
            See :func:`sgd_lifetime_path`.

        Returns
        -------
        LifetimePath
            Root mean squared errors are in units of the labels.

        Raises
        ------
        ValueError
            If a parameter or the data are not as described.
        """
        inputs, labels, held_out = check_path_data(X, y, X_val, y_val)
        mean, unit = _location_and_scale(labels)
        n_training = len(labels)
        path = sgd_lifetime_path(
            inputs[:n_training],
            (labels - mean) / unit,
            inputs[n_training:] if X_val is not None else None,
            (held_out - mean) / unit if X_val is not None else None,
            loss="epsilon_insensitive",
            epsilon=self.epsilon,
            learning_rate=learning_rate,
            n_evaluations=n_evaluations,
            **self._path_options(n_training),
        )
        return replace(
            path,
            training_error=unit * path.training_error,
            validation_error=unit * path.validation_error,
        )


def _location_and_scale(labels: FloatArray) -> tuple[float, float]:
    """Return mean and standard deviation of labels, or 1 if they are constant."""
    return float(labels.mean()), float(np.sqrt(label_variance(labels)))
