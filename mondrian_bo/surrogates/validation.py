"""Checks of the estimators' input, with a short cut for arrays that need no conversion."""

from __future__ import annotations

from typing import Any, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import validate_data

FloatArray = NDArray[np.float64]


def check_samples(estimator: Any, X: ArrayLike) -> FloatArray:
    """Return X as a finite C-ordered float64 array with the features the estimator was fitted on.

    Raises
    ------
    ValueError
        If X cannot be that.
    """
    if _is_sound(X, estimator):
        return X
    data = validate_data(estimator, X, dtype=np.float64, reset=False)
    return np.ascontiguousarray(data)


def check_labelled_samples(
    estimator: Any, X: ArrayLike, y: ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """Return X as `check_samples` does and y as finite float64 labels, one per row.

    Raises
    ------
    ValueError
        If X or y cannot be that.
    """
    if (
        _is_sound(X, estimator)
        and isinstance(y, np.ndarray)
        and y.dtype == np.float64
        and y.shape == X.shape[:1]
        and np.isfinite(y).all()
    ):
        return X, y
    data, labels = validate_data(estimator, X, y, dtype=np.float64, y_numeric=True, reset=False)
    return np.ascontiguousarray(data), np.asarray(labels, dtype=np.float64)


def _is_sound(X: Any, estimator: Any) -> TypeGuard[FloatArray]:
    """Whether scikit-learn's validation would return X as it is.

    That validation takes longer than learning a sample does, and online learning calls it for each.
    """
    return (
        type(X) is np.ndarray
        and X.dtype == np.float64
        and X.ndim == 2
        and X.flags.c_contiguous
        and X.flags.writeable
        and X.shape[1] == estimator.n_features_in_
        and X.shape[0] > 0
        and not hasattr(estimator, "feature_names_in_")
        and bool(np.isfinite(X).all())
    )
