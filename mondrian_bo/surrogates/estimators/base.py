"""Bases of the estimators: `fit` once, over a hook for each estimator."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from mondrian_bo.surrogates.estimators.validation import unchanged_by_failure
from mondrian_bo.surrogates.shared.writable_arrays import with_writable_arrays


class _OwnsItsArrays(BaseEstimator):
    """An estimator that can learn on after it was loaded from a file mapped read-only."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(with_writable_arrays(state))


class SupervisedEstimator(_OwnsItsArrays):
    """A regressor or a classifier. A failed `fit` leaves it unchanged.

    Attributes
    ----------
    n_features_in_, feature_names_in_ : int, ndarray of shape (n_features,)
        Number of features, and their names if the first data had string column names.
    """

    _parameter_constraints: dict[str, list[Any]] = {}  # noqa: RUF012

    n_features_in_: int

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Learn a batch of samples, and forget earlier ones.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite inputs on any scale.
        y : array-like of shape (n_samples,)
            Finite targets; for a classifier the class labels, numbers or strings.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a parameter, X or y is not as described. The estimator then stays unchanged.
        """
        self._validate_params()
        with unchanged_by_failure(self):
            self._fit(X, y)
        return self

    @abstractmethod
    def _fit(self, X: ArrayLike, y: ArrayLike) -> None:
        """Validate the samples and learn them. The parameters are within their constraints."""


class UnsupervisedEstimator(_OwnsItsArrays):
    """A transformer, a kernel or a density. A failed `fit` leaves it unchanged.

    Further attributes are those of :class:`SupervisedEstimator`.
    """

    n_features_in_: int

    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> Self:
        """Learn from inputs, and forget earlier ones.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite inputs.
        y : array-like of shape (n_samples,) or None, default=None
            Targets, which supervised kernels need. Others ignore them.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a parameter, X or y is not as described. The estimator then stays unchanged.
        """
        self._validate_params()
        with unchanged_by_failure(self):
            self._fit(X, y)
        return self

    @abstractmethod
    def _fit(self, X: ArrayLike, y: ArrayLike | None) -> None:
        """Validate the inputs and learn them. The parameters are within their constraints."""
