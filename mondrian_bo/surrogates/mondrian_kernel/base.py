"""Bases of the estimators of the Mondrian kernel and the Mondrian grid."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from copy import copy
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_matrix
from sklearn.base import RegressorMixin
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted, validate_data

from mondrian_bo.shared.array_types import AnyArray, FloatArray
from mondrian_bo.surrogates.estimators.base import SupervisedEstimator, UndoesInterruptions
from mondrian_bo.surrogates.estimators.equivalent_weights import EquivalentWeightsMixin
from mondrian_bo.surrogates.estimators.locks import lock_of, reads
from mondrian_bo.surrogates.estimators.predictive import PredictiveMomentsMixin
from mondrian_bo.surrogates.estimators.validation import (
    N_JOBS,
    check_samples,
    check_training_data,
    own_copy,
)
from mondrian_bo.surrogates.mondrian_kernel.cell_weights import CellWeights
from mondrian_bo.surrogates.mondrian_kernel.descent_step import LOSSES, Loss
from mondrian_bo.surrogates.mondrian_kernel.features import (
    MondrianFeatures,
    rows_of,
    training_rows_of,
)
from mondrian_bo.surrogates.mondrian_kernel.lifetime_paths.kernel_path import kernel_path
from mondrian_bo.surrogates.mondrian_kernel.lifetime_paths.lifetime_path import LifetimePath
from mondrian_bo.surrogates.mondrian_kernel.lifetime_paths.path_data import (
    PathData,
    Validation,
    sample_path_data,
)
from mondrian_bo.surrogates.mondrian_kernel.model import CellPosterior
from mondrian_bo.surrogates.mondrian_kernel.online_descent import OnlineSettings, online_settings

Samples = tuple[ArrayLike, ArrayLike, Validation, Validation]
"""Inputs and targets, and those for validation; the latter may be None."""


class KernelEstimator(SupervisedEstimator):
    """An estimator of the weights of the cells of random partitions."""

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "prior_variance": [Interval(Real, 0, None, closed="neither")],
        "random_state": ["random_state"],
    }

    _has_numeric_targets = True

    n_estimators: int
    prior_variance: float
    random_state: int | np.random.RandomState | None

    def _fit(self, X: ArrayLike, y: ArrayLike) -> None:
        if self._has_numeric_targets:
            data, targets = check_training_data(self, X, y)
            targets = own_copy(targets)
        else:
            data, targets = validate_data(self, X, y, dtype=np.float64)
        self._fit_weights(data, targets)

    @abstractmethod
    def _fit_weights(self, data: FloatArray, targets: AnyArray) -> None:
        """Sample random partitions of checked inputs and fit the weights of their cells.

        Targets are a copy if they are numeric, and otherwise classes, at least two.
        """


class KernelRegression(
    EquivalentWeightsMixin, PredictiveMomentsMixin, RegressorMixin, KernelEstimator
):
    """Gaussian-process regression by Bayesian ridge regression on cells."""

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012
        **KernelEstimator._parameter_constraints,
        "noise_variance": [Interval(Real, 0, None, closed="neither")],
        "normalize_y": ["boolean"],
    }

    noise_variance: float
    normalize_y: bool
    model_: CellPosterior

    @property
    def _ridge(self) -> float:
        """The regularisation delta^2 of Balog2016: the variance of the noise over the prior's."""
        return float(self.noise_variance) / float(self.prior_variance)

    def _moments(self, X: ArrayLike, with_variance: bool) -> tuple[FloatArray, FloatArray]:
        check_is_fitted(self, "model_")
        return self.model_.predict_targets(check_samples(self, X)[None], with_variance)

    def _weights(self, X: ArrayLike, tolerance: float) -> csr_matrix:
        return self.model_.equivalent_weights(check_samples(self, X)[None], tolerance)


class KernelRegressionWithPaths(KernelRegression):
    """A regression with Mondrian processes, whose models at all lifetimes can be followed."""

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012
        **KernelRegression._parameter_constraints,
        "feature_weights": ["array-like", None],
        "n_jobs": N_JOBS,
    }

    feature_weights: ArrayLike | None
    n_jobs: int | None

    def _sample_path_data(
        self, X: ArrayLike, y: ArrayLike, X_val: Validation, y_val: Validation, max_lifetime: float
    ) -> PathData:
        return sample_path_data(
            X,
            y,
            X_val,
            y_val,
            n_estimators=self.n_estimators,
            max_lifetime=max_lifetime,
            normalize_y=bool(self.normalize_y),
            feature_weights=self.feature_weights,
            random_state=self.random_state,
            n_jobs=self.n_jobs,
        )

    def _kernel_path(self, data: PathData, **options: Any) -> LifetimePath:
        return kernel_path(data, *self._variances(data), **options)

    def _variances(self, data: PathData) -> tuple[float, float]:
        return data.variances(float(self.noise_variance), float(self.prior_variance))


class LinearMachine(UndoesInterruptions, KernelEstimator):
    """A linear model on Mondrian features whose loss has no closed form (Balog2016, 4.2.2).

    The weights minimise ``prior_variance * sum(losses) + |w|^2 / 2``.
    """

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012
        **KernelEstimator._parameter_constraints,
        **MondrianFeatures._parameter_constraints,
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }

    _learnt = "features_"

    _learning_rate: float

    _kept: ClassVar[tuple[str, ...]] = ("prior_variance",)
    """Parameters of the objective, which descent has from the first samples on."""

    lifetime: float
    feature_weights: ArrayLike | None
    tol: float
    max_iter: int
    n_jobs: int | None
    features_: MondrianFeatures
    n_iter_: int

    _cell_weights: CellWeights

    @property
    @reads
    def coef_(self) -> FloatArray:
        """Weights of the cells, shape (1 or n_classes, n_cells).

        Each access makes a new array.
        """
        return self._cell_weights.coef

    @coef_.setter
    def coef_(self, coef: FloatArray) -> None:
        self._cell_weights = CellWeights(coef)

    def __getstate__(self) -> dict[str, Any]:
        """Store the weights as an array, as pickles of earlier versions have them."""
        with lock_of(self).of_reader(self._readers_take_turns):
            state = super().__getstate__()
            weights = state.pop("_cell_weights", None)
            return state if weights is None else state | {"coef_": weights.coef}

    def __setstate__(self, state: dict[str, Any]) -> None:
        weights = {"_cell_weights": CellWeights(state["coef_"])} if "coef_" in state else {}
        super().__setstate__({key: state[key] for key in state if key != "coef_"} | weights)

    @reads
    def lifetime_path(
        self,
        X: ArrayLike,
        y: ArrayLike,
        X_val: Validation = None,
        y_val: Validation = None,
        *,
        learning_rate: float | None = None,
        n_evaluations: int | None = 200,
    ) -> LifetimePath:
        """Return errors at lifetimes from 0 to `lifetime` (Balog2016, section 4.2.2).

        The estimator is not changed. Stochastic gradient descent continues from cut to cut, so the
        weights are near those of `fit`, not equal to them.

        Parameters
        ----------
        X, y, X_val, y_val
            See :meth:`MondrianKernelRegressor.lifetime_path`.
        learning_rate : float or None, default=None
            Length of the first step, see :func:`sgd_lifetime_path`; None is 1.0 for classification
            and 0.1 for regression.
        n_evaluations : int or None, default=200
            Number of lifetimes at which to compute errors; None is all.

        Returns
        -------
        LifetimePath
            Errors are shares of wrong classes, or root mean squared errors in units of the targets.

        Raises
        ------
        ValueError
            If a parameter or the data are not as described.
        """
        self._validate_params()
        n_samples = max(np.size(y), 1)  # the path refuses None and no samples
        settings = {
            "alpha": 1.0 / (self.prior_variance * n_samples),
            "learning_rate": self._learning_rate if learning_rate is None else learning_rate,
            "n_estimators": self.n_estimators,
            "max_lifetime": self.lifetime,
            "n_evaluations": n_evaluations,
            "feature_weights": self.feature_weights,
            "random_state": self.random_state,
            "n_jobs": self.n_jobs,
        }
        return self._path((X, y, X_val, y_val), settings)

    @abstractmethod
    def _path(self, data: Samples, settings: dict[str, Any]) -> LifetimePath:
        """Return the path of :func:`sgd_lifetime_path` for the loss of the estimator."""

    def _new_features(self) -> MondrianFeatures:
        return MondrianFeatures(
            self.n_estimators,
            self.lifetime,
            feature_weights=self.feature_weights,
            random_state=self.random_state,
            n_jobs=self.n_jobs,
        )

    def _fit_features(self, data: FloatArray) -> csr_matrix:
        self._keep_settings(*self._kept)
        self.features_ = self._new_features()
        return training_rows_of(self.features_.fit(data))

    def _descend(self, data: FloatArray, targets: FloatArray, loss: Loss, epsilon: float) -> None:
        """Take a gradient step at each of further samples, whose targets have shape (K, m).

        Cells that are new have the weight 0, their prior mean. Without `coef_` all weights are 0.
        O(M log M) a sample besides its cells, amortised.
        """
        variance = float(self._setting("prior_variance"))
        settings = online_settings(LOSSES[loss], variance, float(epsilon), self._learning_rate)
        if hasattr(self, "_cell_weights"):
            state = features, _ = self.features_, self._cell_weights
            n_known = features.partitions_.n_points
            self._learn_completely(n_known, _learn_more, *state, data, targets, settings)
        else:
            self.features_ = self._new_features().fit(data)
            weights = CellWeights(np.zeros((len(targets), 0)))
            self._cell_weights = _descended(self.features_, weights, targets, settings)
            self.n_iter_ = 1

    def _former(self, learnt: MondrianFeatures, n_samples: int) -> dict[str, Any]:
        features = copy(learnt)
        features.partitions_ = features.partitions_.former(n_samples, self.n_jobs)
        return {"features_": features}

    def _keep(self, models: Sequence[Any]) -> None:
        """Keep the weights of fitted linear models: of one, or of one for each class."""
        self.coef_ = np.concatenate([np.atleast_2d(model.coef_) for model in models])
        self.n_iter_ = int(max(np.max(model.n_iter_) for model in models))

    def _solver_options(self) -> dict[str, Any]:
        """Return the options of scikit-learn's linear models."""
        return {
            "C": self.prior_variance,
            # The features of a partition add up to a constant, so an intercept is not needed.
            "fit_intercept": False,
            "tol": self.tol,
            "max_iter": self.max_iter,
        }

    def _values(self, X: ArrayLike) -> FloatArray:
        """Return the functions at inputs, shape (n_samples, 1 or n_classes)."""
        check_is_fitted(self, "_cell_weights")
        return self._cell_weights.values(rows_of(self.features_, check_samples(self, X)))


def _learn_more(
    features: MondrianFeatures,
    weights: CellWeights,
    data: FloatArray,
    targets: FloatArray,
    settings: OnlineSettings,
) -> dict[str, Any]:
    """Extend the partitions, and return the weights after a step at each sample."""
    features.partial_fit(data)
    return {"_cell_weights": _descended(features, weights, targets, settings)}


def _descended(
    features: MondrianFeatures, weights: CellWeights, targets: FloatArray, settings: OnlineSettings
) -> CellWeights:
    """Return the weights after a step at each of the last samples of the partitions."""
    partitions = features.partitions_
    n_before = partitions.n_points - targets.shape[1]
    cells = partitions.cells[n_before:]
    return weights.descended(cells, partitions.n_cells, targets, n_before, settings)
