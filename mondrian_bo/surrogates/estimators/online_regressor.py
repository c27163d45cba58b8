"""The base of regressors that learn weighted samples one after the other."""

from __future__ import annotations

from abc import abstractmethod
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin

from mondrian_bo.shared.array_types import AnyArray, FloatArray
from mondrian_bo.surrogates.estimators.base import SupervisedEstimator
from mondrian_bo.surrogates.estimators.locks import learns
from mondrian_bo.surrogates.estimators.validation import (
    check_further_samples,
    check_training_data,
    is_empty_batch,
    unchanged_by_failure,
)


class OnlineRegressor(RegressorMixin, SupervisedEstimator):
    """A regressor that learns sample after sample; `fit` learns its rows in their order."""

    @learns
    def partial_fit(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Learn more samples, one after the other.

        Invalid samples raise the errors of `fit` and leave the estimator unchanged. A call that is
        interrupted, as by Ctrl-C, is undone at the next one.

        Parameters
        ----------
        X, y : array-likes
            Samples, as in `fit`. A fitted estimator ignores a batch without rows.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Weights from 0 to 1e30, and at most 1e290 when multiplied by the square of any target.
            None is all ones. Samples of weight 0 are ignored.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a parameter, X, y or a weight is not as described.
        """
        if not hasattr(self, "n_features_in_"):
            self._validate_params()
            with unchanged_by_failure(self):
                return self._learn_first(X, y, sample_weight)
        if is_empty_batch(self, X, y):
            return self
        data, targets = check_further_samples(self, X, y)
        return self._learn(data, targets, sample_weight)

    def _fit(self, X: ArrayLike, y: ArrayLike) -> None:
        self._learn_first(X, y, None)

    def _learn_first(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None) -> Self:
        data, targets = check_training_data(self, X, y)
        self._reset(data.shape[1])
        return self._learn(np.ascontiguousarray(data), targets, sample_weight)

    @abstractmethod
    def _reset(self, n_features: int) -> None:
        """Forget all samples; raise ValueError if a parameter does not suit the features."""

    @abstractmethod
    def _learn(self, data: AnyArray, targets: FloatArray, sample_weight: ArrayLike | None) -> Self:
        """Validate the weights, and learn validated samples."""
