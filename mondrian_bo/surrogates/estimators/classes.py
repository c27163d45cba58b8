"""Class labels of online classifiers: which there are, and their numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.multiclass import check_classification_targets, unique_labels

from mondrian_bo.array_types import AnyArray

_BLOCK = 4096


def initial_classes(y: ArrayLike, classes: ArrayLike | None) -> AnyArray:
    """Return the sorted classes that a classifier is to know.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        The first labels.
    classes : array-like of shape (n_classes,) or None
        All labels that may ever come; None for those of `y`.

    Raises
    ------
    ValueError
        If the labels are not discrete, or not among `classes`.
    """
    try:
        check_classification_targets(y)
        known = np.asarray(np.unique(np.asarray(y)) if classes is None else unique_labels(classes))
    except TypeError as error:
        raise ValueError(f"labels must be all numbers or all strings ({error})") from error
    class_numbers(y, known)
    return known


def class_numbers(y: ArrayLike, classes: AnyArray) -> NDArray[np.int32]:
    """Return the numbers of labels in the sorted `classes`.

    Raises
    ------
    ValueError
        If a label is not among them.
    """
    labels = np.asarray(y)
    numbers = np.empty(labels.shape, dtype=np.int32)
    # In blocks, so that what is needed meanwhile does not grow with the batch.
    for start in range(0, len(labels), _BLOCK):
        part = slice(start, start + _BLOCK)
        numbers[part] = _numbers_of_block(labels[part], classes)
    return numbers


def _numbers_of_block(labels: AnyArray, classes: AnyArray) -> NDArray[np.intp]:
    try:
        numbers = np.searchsorted(classes, labels)
    except TypeError as error:
        raise ValueError(
            f"y contains labels that are of another type than the classes {classes.tolist()}"
        ) from error
    found = classes[np.minimum(numbers, len(classes) - 1)] == labels
    if not np.all(found):
        unknown = np.unique(labels[~found])
        raise ValueError(
            f"y contains labels that are not among the classes {classes.tolist()}: "
            f"{unknown.tolist()}. Name all labels that may come as `classes` in the first call of "
            "partial_fit."
        )
    return np.asarray(numbers)


def check_labels(y: ArrayLike, n_samples: int) -> AnyArray:
    """Return labels as an array.

    Raises
    ------
    ValueError
        If there is not one label for each sample.
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
    """Check classes that are given again.

    Raises
    ------
    ValueError
        If they are not those that are known.
    """
    if classes is not None and not np.array_equal(unique_labels(classes), known):
        raise ValueError(
            f"classes={np.asarray(classes).tolist()} are not those of the first call of "
            f"partial_fit, {known.tolist()}"
        )
