"""The base of online classifiers: class labels, batches, and predictions from probabilities."""

from __future__ import annotations

from abc import abstractmethod
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import unique_labels
from sklearn.utils.validation import validate_data

from mondrian_bo.shared.array_types import AnyArray, BoolArray, FloatArray
from mondrian_bo.surrogates.estimators.base import SupervisedEstimator
from mondrian_bo.surrogates.estimators.locks import learns, reads
from mondrian_bo.surrogates.estimators.validation import (
    check_differences,
    check_samples,
    comparable_labels,
    is_empty_batch,
    sorted_classes,
    unchanged_by_failure,
)

LARGEST_DIRICHLET = 1e100
"""Smoothing in place of larger ones, whose products with the number of classes may overflow: beside
it weights of at most 1e30 vanish, and all classes are equally probable to the last bit."""

_LARGEST_EXACT = 2**53
"""Number from which on neighbouring whole numbers may be equal as float64."""

_BLOCK = 4096
"""Labels looked up at a time, so that memory does not grow with the batch."""


class OnlineClassifier(ClassifierMixin, SupervisedEstimator):
    """A classifier that learns sample after sample, with classes fixed by its first batch."""

    classes_: AnyArray

    @learns
    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn more samples, one after the other.

        Invalid input leaves the estimator unchanged. A call that is interrupted, as by Ctrl-C, is
        undone at the next access. The class docstring says how the result relates to that of `fit`.

        Parameters
        ----------
        X, y : array-likes
            Samples, as in `fit`. A fitted estimator ignores a batch without rows.
        classes : array-like of shape (n_classes,) or None, default=None
            All class labels of the stream. The first call needs them, and None there means the
            labels of `y`. Later calls may repeat them.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Weights from 0 to 1e30; None is all ones. Samples of weight 0 are ignored.

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
            self._validate_params()
            with unchanged_by_failure(self):
                return self._learn(*self._start(X, y, classes), sample_weight)
        check_same_classes(classes, self.classes_)
        if is_empty_batch(self, X, y):
            return self
        data = check_samples(self, X)
        check_differences(data)
        numbers = class_numbers(check_labels(y, len(data)), self.classes_)
        return self._learn(data, numbers, sample_weight)

    @reads
    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Return the probabilities of the classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite inputs.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Columns are those of `classes_`. Rows have the sum 1.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If the estimator is not fitted.
        """
        return self._probabilities(X)

    @reads
    def predict_log_proba(self, X: ArrayLike) -> FloatArray:
        """Return the logarithms of :meth:`predict_proba`; parameters and errors are the same.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Natural logarithms; minus infinity where the probability is 0.
        """
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self.predict_proba(X)))

    @reads
    def predict(self, X: ArrayLike) -> AnyArray:
        """Return the most probable class of each input.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite inputs.

        Returns
        -------
        ndarray of shape (n_samples,)
            The classes.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If the estimator is not fitted.
        """
        chosen = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[chosen])

    @abstractmethod
    def _probabilities(self, X: ArrayLike) -> FloatArray:
        """Validate X and return the probabilities of the classes at each row."""

    def _fit(self, X: ArrayLike, y: ArrayLike) -> None:
        self._learn_batch(*self._start(X, y, None))

    def _start(
        self, X: ArrayLike, y: ArrayLike, classes: ArrayLike | None
    ) -> tuple[AnyArray, NDArray[np.int32]]:
        """Validate the first samples and forget earlier ones; return inputs, class indices."""
        data, labels = validate_data(self, X, y, dtype=np.float64)
        check_differences(data)
        self.classes_ = initial_classes(labels, classes)
        self._reset(data.shape[1], len(self.classes_))
        return np.ascontiguousarray(data), class_numbers(labels, self.classes_)

    @abstractmethod
    def _reset(self, n_features: int, n_classes: int) -> None:
        """Forget all samples; raise ValueError if a parameter does not suit the features."""

    def _learn_batch(self, data: AnyArray, numbers: NDArray[np.int32]) -> Self:
        """Learn the validated samples of `fit`: by default one after the other."""
        return self._learn(data, numbers, None)

    @abstractmethod
    def _learn(
        self, data: AnyArray, numbers: NDArray[np.int32], sample_weight: ArrayLike | None
    ) -> Self:
        """Validate the weights, and learn validated samples: inputs and indices of classes."""


def initial_classes(y: ArrayLike, classes: ArrayLike | None) -> AnyArray:
    """Return the sorted classes of a classifier.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Class labels of the first samples.
    classes : array-like of shape (n_classes,) or None
        All class labels of the stream; None is those of `y`.

    Returns
    -------
    array of shape (n_classes,)
        Numbers or strings.

    Raises
    ------
    ValueError
        If the labels are not discrete, or not among `classes`, or if `classes` is empty.
    """
    known, _ = sorted_classes(y)
    if classes is not None:
        with comparable_labels():
            known = np.asarray(unique_labels(classes))
        if len(known) == 0:
            raise ValueError(
                f"classes must hold all labels of the stream, got {np.asarray(classes).tolist()}; "
                "None is the labels of y"
            )
    class_numbers(y, known)
    return known


def class_numbers(y: ArrayLike, classes: AnyArray) -> NDArray[np.int32]:
    """Return the index of each class label in the sorted `classes`.

    Raises
    ------
    ValueError
        If a label is not among them.
    """
    labels = np.asarray(y)
    numbers = np.empty(labels.shape, dtype=np.int32)
    for start in range(0, len(labels), _BLOCK):
        part = slice(start, start + _BLOCK)
        numbers[part] = _numbers_of_block(labels[part], classes)
    return numbers


def _numbers_of_block(labels: AnyArray, classes: AnyArray) -> NDArray[np.intp]:
    numbers, found = labels_among(labels, classes)
    if not np.all(found):
        unknown = np.unique(labels[~found])
        raise ValueError(
            f"y contains labels that are not among the classes {classes.tolist()}: "
            f"{unknown.tolist()}. Pass all labels of the stream as `classes` in the first call of "
            "partial_fit."
        )
    return numbers


def labels_among(
    labels: AnyArray, classes: AnyArray, name: str = "y"
) -> tuple[NDArray[np.intp], BoolArray]:
    """Return the index of each label in the sorted `classes`, and whether it is one of them.

    Raises
    ------
    ValueError
        If a label, in what the message calls `name`, cannot be compared with the classes.
    """
    if labels.dtype != classes.dtype and _would_be_rounded(labels, classes):
        labels, classes = labels.astype(object), classes.astype(object)
    try:
        numbers = np.asarray(np.searchsorted(classes, labels))
    except TypeError as error:
        raise ValueError(
            f"{name} contains labels of another type than the classes {classes.tolist()}"
        ) from error
    return numbers, np.asarray(classes[np.minimum(numbers, len(classes) - 1)] == labels)


def _would_be_rounded(labels: AnyArray, classes: AnyArray) -> bool:
    """Return whether NumPy compares labels and sorted classes as floats that may be rounded."""
    are_numbers = labels.dtype.kind in "iuf" and classes.dtype.kind in "iuf"
    if not are_numbers or np.result_type(labels.dtype, classes.dtype).kind != "f":
        return False
    return max(abs(float(classes[0])), abs(float(classes[-1]))) >= _LARGEST_EXACT


def check_labels(y: ArrayLike, n_samples: int) -> AnyArray:
    """Return class labels as an array of shape (n_samples,).

    Raises
    ------
    ValueError
        If y does not have one label for each sample.
    """
    labels = np.asarray(y)
    if labels.shape == (n_samples, 1):
        labels = labels[:, 0]
    if labels.shape != (n_samples,):
        raise ValueError(
            f"y must have shape ({n_samples},), one label per row of X; got shape {labels.shape}"
        )
    return labels


def check_same_classes(classes: ArrayLike | None, known: AnyArray) -> None:
    """Check that `classes`, if given, are the known classes.

    Raises
    ------
    ValueError
        If they differ.
    """
    if classes is None:
        return
    with comparable_labels():
        repeated = unique_labels(classes)
    if not np.array_equal(repeated, known):
        raise ValueError(
            f"classes={np.asarray(classes).tolist()} are not those of the first call of "
            f"partial_fit, {known.tolist()}"
        )
