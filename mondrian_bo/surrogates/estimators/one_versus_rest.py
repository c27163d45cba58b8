"""Several classes by classifiers of two: each class against the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.multiclass import check_classification_targets

from mondrian_bo.array_types import AnyArray, FloatArray, IntArray


def several_classes(y: ArrayLike) -> tuple[AnyArray, IntArray]:
    """Return the sorted classes of labels, two at least, and the number of each label.

    Raises
    ------
    ValueError
        If the labels are not discrete, or of one class alone.
    """
    check_classification_targets(y)
    classes, numbers = np.unique(np.asarray(y), return_inverse=True)
    if len(classes) < 2:
        raise ValueError(f"y must have two classes at least; got 1 class, {classes[0]}")
    return classes, numbers


def one_versus_rest(numbers: AnyArray, n_classes: int) -> FloatArray:
    """Return the targets, -1 and 1, of classifiers that tell one class from the rest.

    Parameters
    ----------
    numbers : array of shape (n,)
        Numbers of the classes.
    n_classes : int
        How many classes there are, two at least.

    Returns
    -------
    float64 array of shape (n_machines, n)
        One row for each class; of two classes, one row for the second.
    """
    positive = np.array([1]) if n_classes == 2 else np.arange(n_classes)
    return np.where(numbers == positive[:, None], 1.0, -1.0)


def decided_classes(values: FloatArray) -> IntArray:
    """Return the numbers of the classes that decision values stand for.

    Parameters
    ----------
    values : float64 array of shape (n, n_machines)
        Values of the classifiers of `one_versus_rest`.
    """
    if values.shape[1] == 1:
        return (values[:, 0] > 0.0).astype(np.int64)
    return np.asarray(values.argmax(axis=1))


class OneVersusRestMixin:
    """Decisions and classes, from the values of all machines that the estimator has."""

    classes_: AnyArray

    if TYPE_CHECKING:

        def _values(self, X: ArrayLike) -> FloatArray:
            """Return the values of all machines, (n_samples, n_machines), for X, checked here."""

    def decision_function(self, X: ArrayLike) -> FloatArray:
        """Return the decision values, shape (n_samples,) for two classes, else (.., n_classes)."""
        values = self._values(X)
        return values[:, 0] if len(self.classes_) == 2 else values

    def predict(self, X: ArrayLike) -> AnyArray:
        """Return the class of each input, shape (n_samples,)."""
        numbers = decided_classes(self._values(X))
        return np.asarray(self.classes_[numbers])
