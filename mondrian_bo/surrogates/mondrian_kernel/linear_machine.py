"""What linear models on Mondrian features share, whose losses have no closed form."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from mondrian_bo.array_types import FloatArray
from mondrian_bo.surrogates.estimators.validation import check_samples
from mondrian_bo.surrogates.mondrian_kernel.features import MondrianFeatures


class LinearMachine(BaseEstimator):
    """Weights of Mondrian features that minimise ``prior_variance * sum(losses) + |w|^2 / 2``.

    Parameters
    ----------
    n_estimators : int
        Number of partitions, M.
    lifetime : float
        Inverse width of the kernel, in units of the inputs.
    prior_variance : float
        Variance of the function under the prior: scikit-learn's C.
    feature_weights : array-like of shape (n_features,) or None
        Non-negative factors of the lifetime, for each input feature; None is all ones.
    tol : float
        Where scikit-learn's solver stops.
    max_iter : int
        Iterations of the solver at most.
    random_state : int, RandomState instance or None
        Seed of the partitions and of the solver.
    n_jobs : int or None
        Number of partitions to sample at a time, as joblib counts.
    """

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012
        **MondrianFeatures._parameter_constraints,
        "prior_variance": [Interval(Real, 0, None, closed="neither")],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }

    n_estimators: int
    lifetime: float
    prior_variance: float
    feature_weights: ArrayLike | None
    tol: float
    max_iter: int
    random_state: int | np.random.RandomState | None
    n_jobs: int | None
    n_features_in_: int
    features_: MondrianFeatures
    coef_: FloatArray
    n_iter_: int

    def _learn_features(self, data: FloatArray) -> csr_matrix:
        self.features_ = MondrianFeatures(
            self.n_estimators,
            self.lifetime,
            feature_weights=self.feature_weights,
            random_state=self.random_state,
            n_jobs=self.n_jobs,
        )
        return self.features_.fit_transform(data)

    def _keep(self, models: Sequence[Any]) -> None:
        """Keep the weights of fitted linear models, one for each machine."""
        self.coef_ = np.concatenate([np.atleast_2d(model.coef_) for model in models])
        self.n_iter_ = int(max(np.max(model.n_iter_) for model in models))

    def _solver_options(self) -> dict[str, Any]:
        """Return what scikit-learn's linear models are to be told."""
        return {
            "C": self.prior_variance,
            # A constant is the sum of the cells of any partition.
            "fit_intercept": False,
            "tol": self.tol,
            "max_iter": self.max_iter,
        }

    def _values(self, X: ArrayLike) -> FloatArray:
        """Return the functions at inputs, shape (n_samples, n_machines)."""
        check_is_fitted(self, "coef_")
        return np.asarray(self.features_.transform(check_samples(self, X)) @ self.coef_.T)

    def _path_options(self, n_samples: int) -> dict[str, Any]:
        """Return the arguments of :func:`sgd_lifetime_path` that say the same as ours."""
        self._validate_params()
        return {
            "alpha": 1.0 / (self.prior_variance * n_samples),
            "n_estimators": self.n_estimators,
            "max_lifetime": self.lifetime,
            "feature_weights": self.feature_weights,
            "random_state": self.random_state,
            "n_jobs": self.n_jobs,
        }
