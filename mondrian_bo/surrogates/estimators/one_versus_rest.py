"""Multiclass classification by binary classifiers, one for each class against the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from mondrian_bo.shared.array_types import AnyArray, FloatArray, IntArray
from mondrian_bo.surrogates.estimators.locks import reads
from mondrian_bo.surrogates.estimators.validation import sorted_classes


def several_classes(y: ArrayLike) -> tuple[AnyArray, IntArray]:
    """Return the sorted classes, at least two, and the index of each sample's class.

    Raises
    ------
    ValueError
        If the class labels are not discrete, not of one type, or all equal.
    """
    classes, numbers = sorted_classes(y)
    if len(classes) < 2:
        raise ValueError(f"y must have at least two classes; got 1 class, {classes[0]}")
    return classes, numbers


def one_versus_rest(numbers: AnyArray, n_classes: int) -> FloatArray:
    """Return the targets, -1 and 1, of one binary classifier for each class.

    Parameters
    ----------
    numbers : array of shape (n,)
        Indices of the samples' classes.
    n_classes : int
        Number of classes, at least two.

    Returns
    -------
    float64 array of shape (n_machines, n)
        One row for each class; with two classes, one row for the second.
    """
    positive = np.array([1]) if n_classes == 2 else np.arange(n_classes)
    return np.where(numbers == positive[:, None], 1.0, -1.0)


def decided_classes(values: FloatArray) -> IntArray:
    """Return the indices of the classes that decision values select.

    Parameters
    ----------
    values : float64 array of shape (n, n_machines)
        Decision values of the classifiers of `one_versus_rest`.

    Returns
    -------
    int64 array of shape (n,)
        The largest decision value decides; with one classifier, its sign.
    """
    if values.shape[1] == 1:
        return (values[:, 0] > 0.0).astype(np.int64)
    return np.asarray(values.argmax(axis=1))


class OneVersusRestMixin:
    """Decision values and classes, from the values of the binary classifiers."""

    classes_: AnyArray

    if TYPE_CHECKING:

        def _values(self, X: ArrayLike) -> FloatArray:
            """Validate X; return the binary decision values, shape (n_samples, n_machines)."""

    @reads
    def decision_function(self, X: ArrayLike) -> FloatArray:
        """Return decision values.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite inputs.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Of two classes, one value, positive for the second class; else one for each class.

        Raises
        ------
        sklearn.exceptions.NotFittedError
            If the estimator is not fitted.
        """
        values = self._values(X)
        return values[:, 0] if len(self.classes_) == 2 else values

    @reads
    def predict(self, X: ArrayLike) -> AnyArray:
        """Return the class of each input, shape (n_samples,).

        Parameters and errors are those of :meth:`decision_function`.
        """
        numbers = decided_classes(self._values(X))
        return np.asarray(self.classes_[numbers])
