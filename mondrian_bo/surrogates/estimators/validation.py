"""Checks of the estimators' input, with a short cut for arrays that need no conversion."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from mondrian_bo.array_types import AnyArray, FloatArray

_LARGEST_LABEL = 1e145
_LARGEST_WEIGHT = 1e30
_FLOATS = (np.dtype(np.float64), np.dtype(np.float32))
_FEW = 1000


def check_samples(
    estimator: Any, X: ArrayLike, precision: type[np.floating[Any]] = np.float64
) -> AnyArray:
    """Return X as a finite C-ordered array with the features the estimator was fitted on.

    It is writable, for numba would compile everything once more for arrays that are not. It has
    the given floating point type.

    Raises
    ------
    ValueError
        If X cannot be that.
    """
    sound = _sound(X, estimator, precision)
    if sound is not None:
        return sound
    data = validate_data(estimator, X, dtype=precision, reset=False)
    return np.require(data, precision, ["C", "W"])


def check_labelled_samples(
    estimator: Any, X: ArrayLike, y: ArrayLike, precision: type[np.floating[Any]] = np.float64
) -> tuple[AnyArray, FloatArray]:
    """Return X as `check_samples` does and y as finite float64 labels, one per row.

    Raises
    ------
    ValueError
        If X or y cannot be that.
    """
    if isinstance(y, np.ndarray) and y.dtype in _FLOATS:
        sound = _sound(X, estimator, precision)
        if sound is not None and y.shape == sound.shape[:1] and _all_finite(y):
            return sound, y.astype(np.float64, copy=False)
    data, labels = validate_data(estimator, X, y, dtype=precision, y_numeric=True, reset=False)
    return np.ascontiguousarray(data), np.asarray(labels, dtype=np.float64)


def check_squares(labels: FloatArray) -> None:
    """Check that sums of squares of labels stay finite.

    Raises
    ------
    ValueError
        If a label is too large.
    """
    # Where the sum of squares is no larger, no label is; it takes least time of few labels.
    if np.vdot(labels, labels) <= _LARGEST_LABEL:
        return
    if max(labels.max(), -labels.min()) > _LARGEST_LABEL:
        raise ValueError(f"y has values beyond {_LARGEST_LABEL:g}, whose squares overflow")


def is_empty_batch(estimator: Any, X: Any, y: Any) -> bool:
    """Whether there are no samples, but the features that the estimator was fitted on."""
    return bool(np.shape(X) == (0, getattr(estimator, "n_features_in_", None)) and len(y) == 0)


def check_sample_weight(sample_weight: ArrayLike | None, n_samples: int) -> FloatArray | None:
    """Return the weights of samples, or None as it is given.

    Raises
    ------
    ValueError
        If `sample_weight` is not of shape (n_samples,) with numbers from 0 to 1e30.
    """
    if sample_weight is None:
        return None
    weights = np.array(sample_weight, dtype=np.float64)
    if weights.shape != (n_samples,):
        raise ValueError(f"sample_weight must have shape ({n_samples},), got {weights.shape}")
    if not np.all((weights >= 0.0) & (weights <= _LARGEST_WEIGHT)):
        raise ValueError(
            f"sample_weight must be non-negative and finite, at most {_LARGEST_WEIGHT:g}"
        )
    return weights


@contextmanager
def unchanged_by_failure(estimator: Any) -> Iterator[None]:
    """Give an estimator its attributes back if the block raises: what was learnt stays usable."""
    before = dict(vars(estimator))
    try:
        yield
    except (TypeError, ValueError):
        for name in set(vars(estimator)) - set(before):
            delattr(estimator, name)
        for name, attribute in before.items():
            setattr(estimator, name, attribute)
        raise


def _sound(X: Any, estimator: Any, precision: type[np.floating[Any]]) -> AnyArray | None:
    """Return X in the given precision if scikit-learn's validation would do no more.

    That validation takes longer than learning a sample does, and online learning calls it for each.
    """
    if (
        type(X) is not np.ndarray
        or X.dtype not in _FLOATS
        or X.ndim != 2
        or X.shape[0] == 0
        or X.shape[1] != estimator.n_features_in_
        or not (flags := X.flags).c_contiguous
        or not flags.writeable
        or hasattr(estimator, "feature_names_in_")
        or not _all_finite(X)
    ):
        return None
    if X.dtype == precision:
        return X
    data = X.astype(precision)
    return data if _all_finite(data) else None


def _all_finite(array: AnyArray) -> bool:
    # What is finite has a finite sum of squares, mostly, which takes least time of few numbers.
    if array.size <= _FEW and math.isfinite(np.vdot(array, array)):
        return True
    return bool(np.isfinite(array).all())


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


def seed_sequence(random_state: int | np.random.RandomState | None) -> np.random.SeedSequence:
    """Return the seeds that a `random_state` parameter stands for."""
    entropy = check_random_state(random_state).randint(2**31, size=4)
    return np.random.SeedSequence([int(word) for word in entropy])
