"""What online classifiers share: labels, batches and what follows from probabilities."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from mondrian_bo.array_types import AnyArray, FloatArray
from mondrian_bo.surrogates.estimators.classes import (
    check_labels,
    check_same_classes,
    class_numbers,
)
from mondrian_bo.surrogates.estimators.validation import check_samples, is_empty_batch


class OnlineClassifier(ClassifierMixin, BaseEstimator):
    """A classifier that learns sample after sample, with classes known from the start."""

    classes_: AnyArray
    n_features_in_: int

    _precision: type[np.floating[Any]] = np.float64

    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn more samples, one after the other. Invalid input changes nothing.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite inputs. Without rows nothing changes, once something has been learnt.
        y : array-like of shape (n_samples,)
            Class labels: numbers or strings.
        classes : array-like of shape (n_classes,) or None, default=None
            All labels that may ever come; used by the first call, and may be repeated later. None
            in the first call stands for the labels of `y`.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Non-negative weights; None is all ones. Samples of weight 0 are left out.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            If a parameter, X, y or a weight is not as described, if a label is not among the
            classes, or if `classes` are not those of the first call.
        """
        if not hasattr(self, "classes_"):
            return self._start(X, y, classes, sample_weight)
        check_same_classes(classes, self.classes_)
        if is_empty_batch(self, X, y):
            return self
        data = check_samples(self, X, self._precision)
        numbers = class_numbers(check_labels(y, len(data)), self.classes_)
        return self._learn(data, numbers, sample_weight)

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Return the probabilities of the classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Where to predict.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities, in the order of `classes_`.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If nothing has been learnt.
        """
        return self._probabilities(X)

    def predict_log_proba(self, X: ArrayLike) -> FloatArray:
        """Return the logarithms of the probabilities, shape (n_samples, n_classes); may be -inf."""
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))

    def predict(self, X: ArrayLike) -> AnyArray:
        """Return the most probable class of each input, shape (n_samples,).

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If nothing has been learnt.
        """
        chosen = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[chosen])

    @abstractmethod
    def _probabilities(self, X: ArrayLike) -> FloatArray:
        """Return the probabilities at each row of X, which is checked here."""

    @abstractmethod
    def _start(
        self,
        X: ArrayLike,
        y: ArrayLike,
        classes: ArrayLike | None,
        sample_weight: ArrayLike | None,
    ) -> Self:
        """Check the parameters and learn the first samples."""

    @abstractmethod
    def _learn(
        self, data: AnyArray, numbers: NDArray[np.int32], sample_weight: ArrayLike | None
    ) -> Self:
        """Learn checked samples, with the numbers of their classes."""
