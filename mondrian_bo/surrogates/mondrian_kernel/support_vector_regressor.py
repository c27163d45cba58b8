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

from mondrian_bo.shared.array_types import FloatArray
from mondrian_bo.surrogates.estimators.locks import learns, reads
from mondrian_bo.surrogates.estimators.validation import (
    check_further_samples,
    check_training_data,
    is_empty_batch,
    own_copy,
    unchanged_by_failure,
)
from mondrian_bo.surrogates.mondrian_kernel.base import LinearMachine, Samples
from mondrian_bo.surrogates.mondrian_kernel.lifetime_paths.lifetime_path import LifetimePath
from mondrian_bo.surrogates.mondrian_kernel.lifetime_paths.path_data import (
    check_path_data,
    location_and_variance,
)
from mondrian_bo.surrogates.mondrian_kernel.lifetime_paths.sgd_path import sgd_lifetime_path


class MondrianKernelSVR(RegressorMixin, LinearMachine):
    """Support vector regression with the Mondrian kernel (Balog2016, section 4.2.2).

    The weights w of the cells of Mondrian partitions minimise
    ``prior_variance * sum(max(0, |z - f(x)| - epsilon)) + |w|^2 / 2``, where z are the targets
    scaled to mean 0 and variance 1, and f(x) is M^-1/2 times the sum of the weights of the M cells
    that hold x. As M grows, this becomes support vector regression with the Laplace kernel. Unlike
    :class:`MondrianKernelRegressor` it is robust to outliers, and it has no standard deviations.

    Parameters
    ----------
    n_estimators, lifetime
        See :class:`MondrianFeatures`.
    epsilon : float, default=0.1
        Errors up to this size have no loss, in units of the standard deviation of the targets.
    prior_variance : float, default=1.0
        Prior variance of f: scikit-learn's C.
    feature_weights
        See :class:`MondrianFeatures`.
    tol, max_iter, random_state
        See :class:`MondrianKernelClassifier`.
    n_jobs
        See :class:`MondrianFeatures`.

    Attributes
    ----------
    features_ : MondrianFeatures
        The fitted partitions.
    coef_ : ndarray of shape (1, n_cells)
        Weights of the cells, for the scaled targets. Each access makes a new array.
    n_iter_ : int
        Number of iterations of the solver.

    Notes
    -----
    There is no intercept: the features of a partition add up to a constant. Far from all data the
    prediction is the mean of the targets. The weights are those of :class:`sklearn.svm.LinearSVR`.
    An iteration costs O(n M), and a prediction O(M d depth).

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

    _learning_rate = 0.1
    _kept = "epsilon", "prior_variance"

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

    @learns
    def partial_fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Take a step of stochastic gradient descent at each sample (Balog2016, section 4.2.2).

        The conditional Mondrian extends the partitions, and new cells start with weight 0. The
        first call starts from weights of 0 and sets the scale of the targets, their mean and
        deviation; after `fit` descent goes on from its weights. Steps have the same length
        throughout, so weights are near those of `fit`, not equal to them. O(M log M) a sample,
        after O(M d depth) for its cells. The objective (`epsilon`, `prior_variance`) is that of the
        first samples or of the last `fit`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite inputs. A fitted estimator ignores a batch without rows.
        y : array-like of shape (n_samples,)
            Finite targets.

        Returns
        -------
        MondrianKernelSVR
            The estimator.

        Raises
        ------
        ValueError
            As `fit`.
        """
        self._validate_params()
        if hasattr(self, "_cell_weights"):
            if not is_empty_batch(self, X, y):
                self._step(*check_further_samples(self, X, y))
        else:
            with unchanged_by_failure(self):
                self._keep_settings(*self._kept)
                data, targets = check_training_data(self, X, y)
                self._mean, self._deviation = _location_and_scale(targets)
                self._step(data, targets)
        return self

    def _step(self, data: FloatArray, targets: FloatArray) -> None:
        scaled = (targets - self._mean) / self._deviation
        epsilon = self._setting("epsilon")
        self._descend(own_copy(data), scaled[None], "epsilon_insensitive", epsilon)

    @reads
    def predict(self, X: ArrayLike) -> FloatArray:
        """Predict targets.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite inputs.

        Returns
        -------
        ndarray of shape (n_samples,)
            The predictions, in the units of the targets.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If the estimator is not fitted.
        """
        values = self._values(X)[:, 0]
        return np.asarray(self._mean + self._deviation * values)

    def _fit_weights(self, data: FloatArray, targets: FloatArray) -> None:
        mean, deviation = _location_and_scale(targets)
        rows = self._fit_features(data)
        solver = LinearSVR(
            epsilon=self.epsilon, random_state=self.random_state, **self._solver_options()
        ).fit(rows, (targets - mean) / deviation)
        self._keep([solver])
        self._mean, self._deviation = mean, deviation

    def _path(self, data: Samples, settings: dict[str, Any]) -> LifetimePath:
        inputs, targets, held_out = check_path_data(*data)
        mean, deviation = _location_and_scale(targets)
        n_training = len(targets)
        path = sgd_lifetime_path(
            inputs[:n_training],
            (targets - mean) / deviation,
            inputs[n_training:] if len(held_out) > 0 else None,
            (held_out - mean) / deviation if len(held_out) > 0 else None,
            loss="epsilon_insensitive",
            epsilon=self.epsilon,
            **settings,
        )
        return replace(
            path,
            training_error=deviation * path.training_error,
            validation_error=deviation * path.validation_error,
        )


def _location_and_scale(targets: FloatArray) -> tuple[float, float]:
    """Return the mean and the standard deviation of targets; 1 for constant targets."""
    mean, variance = location_and_variance(targets, normalize=True)
    return mean, float(np.sqrt(variance))
