"""Checks of the estimators' input, with a short cut for arrays that need no conversion."""

from __future__ import annotations

from typing import Any, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import validate_data

FloatArray = NDArray[np.float64]


def check_samples(estimator: Any, X: ArrayLike) -> FloatArray:
    """Return X as a finite C-ordered float64 array with the features the estimator was fitted on.

    It is writable, for numba would compile everything once more for arrays that are not.

    Raises
    ------
    ValueError
        If X cannot be that.
    """
    if _is_sound(X, estimator):
        return X
    data = validate_data(estimator, X, dtype=np.float64, reset=False)
    return np.require(data, np.float64, ["C", "W"])


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


def own_copy(array: FloatArray) -> FloatArray:
    """Return a contiguous, writable copy: what the caller does to the data must not reach us."""
    return np.array(array, dtype=np.float64, order="C")


def check_bounds(bounds: ArrayLike | None, n_features: int) -> tuple[FloatArray, FloatArray] | None:
    """Return lower and upper ends of the features, or None as it is given.

    Raises
    ------
    ValueError
        If `bounds` is not finite of shape (n_features, 2) with lower < upper.
    """
    if bounds is None:
        return None
    ends = np.asarray(bounds, dtype=np.float64)
    if ends.shape != (n_features, 2):
        raise ValueError(f"bounds must have shape ({n_features}, 2), got {ends.shape}")
    if not np.all(np.isfinite(ends)) or not np.all(ends[:, 0] < ends[:, 1]):
        raise ValueError("bounds must be finite with lower < upper in every row")
    return ends[:, 0].copy(), ends[:, 1].copy()


def check_feature_weights(weights: ArrayLike | None, n_features: int) -> FloatArray | None:
    """Return the factors of the features' split rates, or None as it is given.

    Raises
    ------
    ValueError
        If `weights` is not finite, non-negative and of shape (n_features,), or zero throughout.
    """
    if weights is None:
        return None
    factors = np.array(weights, dtype=np.float64)
    if factors.shape != (n_features,):
        raise ValueError(f"feature_weights must have shape ({n_features},), got {factors.shape}")
    if not np.all(np.isfinite(factors)) or np.any(factors < 0.0) or not np.any(factors > 0.0):
        raise ValueError("feature_weights must be finite, non-negative and not all zero")
    return factors
