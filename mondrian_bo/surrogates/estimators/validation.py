"""Validation of the estimators' input, with a fast path for arrays that need no conversion."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from mondrian_bo.shared.array_types import AnyArray, FloatArray, IntArray

_LARGEST_TARGET = 1e145
"""Largest absolute target: sums of squares of up to 1e17 such targets stay below 1e308."""

_LARGEST_WEIGHT = 1e30
"""Largest sample weight: sums of weights, and of weighted targets, stay finite."""

_LARGEST_FACTOR = 1e100
"""Largest factor of a feature's split rate, our choice: rates, and sums of them, stay finite."""

_FLOATS = (np.dtype(np.float64), np.dtype(np.float32))
"""Types of arrays that the fast path accepts."""

N_JOBS = [
    Interval(Integral, None, -1, closed="right"),
    Interval(Integral, 1, None, closed="left"),
    None,
]
"""Constraints of the parameter `n_jobs`: joblib knows no 0 threads."""

_FEW = 1000
"""Number of entries up to which one dot product is faster than a test of every entry."""


def check_samples(estimator: Any, X: ArrayLike) -> AnyArray:
    """Return X as a finite, C-ordered float64 array.

    The array is writable, because numba compiles every function anew for read-only arrays. X must
    have the features that the estimator was fitted on.

    Raises
    ------
    ValueError
        If X cannot be that.
    """
    ready = _ready(X, estimator)
    if ready is not None:
        return ready
    data = validate_data(estimator, X, dtype=np.float64, reset=False)
    return np.require(data, np.float64, ["C", "W"])


def check_training_data(estimator: Any, X: ArrayLike, y: ArrayLike) -> tuple[AnyArray, FloatArray]:
    """Return the first samples of a regressor: X and y as float64 arrays.

    The estimator gets the attributes `n_features_in_` and `feature_names_in_`. The arrays may be
    those of the caller.

    Raises
    ------
    ValueError
        If X or y is not numeric and finite, or if differences of inputs or the squares of targets
        overflow.
    """
    check_numeric(y)
    data, values = validate_data(estimator, X, y, dtype=np.float64, y_numeric=True)
    check_differences(data)
    targets = np.asarray(values, dtype=np.float64)
    check_squares(targets)
    return data, targets


def check_further_samples(
    estimator: Any, X: ArrayLike, y: ArrayLike
) -> tuple[AnyArray, FloatArray]:
    """Return further samples of a fitted regressor: X as `check_samples` does, float64 targets.

    Raises
    ------
    ValueError
        If X or y is not numeric and finite, if X has other features than the first samples, or if
        differences of inputs or the squares of targets overflow.
    """
    if isinstance(y, np.ndarray) and y.dtype in _FLOATS:
        ready = _ready(X, estimator)
        if ready is not None and y.shape == ready.shape[:1] and all_finite(y):
            targets = y.astype(np.float64, copy=False)
            check_differences(ready)
            check_squares(targets)
            return ready, targets
    check_numeric(y)
    data, values = validate_data(estimator, X, y, dtype=np.float64, y_numeric=True, reset=False)
    check_differences(data)
    targets = np.asarray(values, dtype=np.float64)
    check_squares(targets)
    return np.ascontiguousarray(data), targets


def check_new_targets(y: ArrayLike, n_samples: int) -> FloatArray:
    """Return the targets of inputs that a regressor predicts as a float64 array.

    Raises
    ------
    ValueError
        If y is not numeric and finite of shape (n_samples,).
    """
    check_numeric(y)
    targets = _real(y, "y")
    if targets.shape != (n_samples,):
        raise ValueError(
            f"y must have shape ({n_samples},), one target per row of X; got shape {targets.shape}"
        )
    if not all_finite(targets):
        raise ValueError("y contains NaN or infinity")
    return targets


def check_numeric(y: ArrayLike, name: str = "y") -> None:
    """Check that the targets of a regressor are numbers.

    Raises
    ------
    ValueError
        If they are strings, dates or other objects, or integers beyond the range of float64.
    """
    values = np.asarray(y)
    if values.ndim == 0 or values.dtype.kind in "biufc":
        return  # scikit-learn's validation refuses scalars and complex numbers.
    if values.dtype.kind in "mM":
        # As numbers, dates in nanoseconds would be integers.
        raise ValueError(
            f"{name} must hold numbers, the targets of a regression; got dtype {values.dtype}. "
            "Encode it as a number, or use a classifier for classes."
        )
    for value in values.ravel().tolist():
        if values.dtype.kind != "O" or not _is_number(value, name):
            raise ValueError(
                f"{name} must hold numbers, the targets of a regression; got {value!r} of type "
                f"{type(value).__name__}. Encode it as a number, or use a classifier for classes."
            )


def _is_number(value: Any, name: str) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    except OverflowError as error:
        raise ValueError(f"{name} has values that are too large for float64") from error
    return True


def _real(values: ArrayLike, name: str) -> FloatArray:
    """Return a float64 copy of an argument, which messages call `name`.

    Raises
    ------
    ValueError
        If an entry is not a number, is complex or too large.
    """
    if np.iscomplexobj(values):
        raise ValueError(f"{name} must hold real numbers, got complex ones")
    try:
        return np.array(values, dtype=np.float64)
    except (TypeError, OverflowError) as error:
        raise ValueError(f"{name} must hold real numbers ({error})") from error


def check_differences(data: AnyArray) -> None:
    """Check that differences of inputs stay finite in the precision of the array.

    Raises
    ------
    ValueError
        If an input is too large.
    """
    # A finite sum of squares implies inputs far below the limit.
    if data.size <= _FEW and math.isfinite(np.vdot(data, data)):
        return
    largest = 0.5 * float(np.finfo(data.dtype).max)
    if max(data.max(), -data.min()) > largest:
        raise ValueError(
            f"X has values beyond {largest:.3g}, whose differences overflow in {data.dtype}"
        )


def check_squares(targets: FloatArray) -> None:
    """Check that sums of squares of targets stay finite.

    Raises
    ------
    ValueError
        If a target is too large.
    """
    # A small sum of squares implies small targets, and is the fastest test for few of them.
    if np.vdot(targets, targets) <= _LARGEST_TARGET:
        return
    if max(targets.max(), -targets.min()) > _LARGEST_TARGET:
        raise ValueError(f"y has values beyond {_LARGEST_TARGET:g}, whose squares overflow")


def sorted_classes(y: ArrayLike) -> tuple[AnyArray, IntArray]:
    """Return the sorted classes of class labels, and the index of each label's class.

    Raises
    ------
    ValueError
        If the labels are not discrete, or not of one type.
    """
    with comparable_labels():
        check_classification_targets(y)
        return np.unique(np.asarray(y), return_inverse=True)


@contextmanager
def comparable_labels() -> Iterator[None]:
    """Raise ValueError where the block fails because class labels have no order."""
    try:
        yield
    except TypeError as error:
        raise ValueError(f"class labels must be all numbers or all strings ({error})") from error


def is_empty_batch(estimator: Any, X: Any, y: Any) -> bool:
    """Return whether X and y hold no samples, and X the features of the first samples."""
    if type(X) is np.ndarray and X.size > 0:
        return False  # without the costs of `np.shape`, for single samples
    return bool(np.shape(X) == (0, getattr(estimator, "n_features_in_", None)) and len(y) == 0)


def check_sample_weight(sample_weight: ArrayLike | None, n_samples: int) -> FloatArray | None:
    """Return the weights of samples as a float64 array; None stays None.

    Raises
    ------
    ValueError
        If `sample_weight` is not of shape (n_samples,) with numbers from 0 to 1e30.
    """
    if sample_weight is None:
        return None
    weights = _real(sample_weight, "sample_weight")
    if weights.shape != (n_samples,):
        raise ValueError(f"sample_weight must have shape ({n_samples},), got {weights.shape}")
    if not np.all((weights >= 0.0) & (weights <= _LARGEST_WEIGHT)):
        wrong = weights[~((weights >= 0.0) & (weights <= _LARGEST_WEIGHT))][0]
        remedy = (
            ". Before weights that grow reach that, start a new estimator with weights near 1"
            if wrong > _LARGEST_WEIGHT
            else ""
        )
        raise ValueError(
            f"sample_weight must be non-negative and finite, at most {_LARGEST_WEIGHT:g}; "
            f"got {wrong:g}{remedy}"
        )
    return weights


def check_weighted_squares(
    weights: FloatArray | None, targets: AnyArray, largest_known: float = 0.0
) -> None:
    """Check that sums of squares of targets stay finite when they are multiplied by weights.

    Parameters
    ----------
    weights : float64 array of shape (n_samples,) or None
        Checked weights; None is all ones.
    targets : array of shape (n_samples,)
        Checked targets.
    largest_known : float, default=0.0
        Largest absolute value of earlier targets, which forecast these.

    Raises
    ------
    ValueError
        If the largest weight times the square of the largest target is too large.
    """
    if weights is None or len(weights) == 0:
        return
    weight = float(weights.max())
    largest = max(float(targets.max()), -float(targets.min()), largest_known)
    if weight * largest**2 > _LARGEST_TARGET**2:
        raise ValueError(
            f"sample_weight of up to {weight:g} times squares of targets of up to {largest:g} "
            f"overflows: products must be at most {_LARGEST_TARGET**2:g}. Divide the targets, or "
            "all weights, by a constant."
        )


@contextmanager
def unchanged_by_failure(estimator: Any) -> Iterator[None]:
    """Restore an estimator's attributes if the block raises, so that it stays as it was."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        estimator.__dict__ = before
        raise


def _ready(X: Any, estimator: Any) -> FloatArray | None:
    """Return X as float64, or None if X needs scikit-learn's validation.

    That validation takes longer than learning one sample.
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
        or not all_finite(X)
    ):
        return None
    return X.astype(np.float64, copy=False)


def all_finite(array: AnyArray) -> bool:
    """Return whether all entries are finite."""
    # A finite sum of squares implies finite entries, and is the fastest test for few of them.
    if array.size <= _FEW and math.isfinite(np.vdot(array, array)):
        return True
    return bool(np.isfinite(array).all())


def own_copy(array: FloatArray) -> FloatArray:
    """Return a C-ordered, writable float64 copy, safe from later changes by the caller."""
    return np.array(array, dtype=np.float64, order="C")


def check_bounds(bounds: ArrayLike | None, n_features: int) -> tuple[FloatArray, FloatArray] | None:
    """Return the lower and the upper ends of the features; None stays None.

    Raises
    ------
    ValueError
        If `bounds` is not finite of shape (n_features, 2) with lower < upper.
    """
    if bounds is None:
        return None
    ends = _real(bounds, "bounds")
    if ends.shape != (n_features, 2):
        raise ValueError(f"bounds must have shape ({n_features}, 2), got {ends.shape}")
    good = np.isfinite(ends).all(axis=1) & (ends[:, 0] < ends[:, 1])
    if not good.all():
        feature = int(np.argmin(good))
        raise ValueError(
            "bounds must be finite with lower < upper in every row; "
            f"got {ends[feature].tolist()} for feature {feature}"
        )
    return ends[:, 0].copy(), ends[:, 1].copy()


def check_feature_weights(
    weights: ArrayLike | None, n_features: int, name: str = "feature_weights"
) -> FloatArray | None:
    """Return the factors of the features' split rates; None stays None.

    Raises
    ------
    ValueError
        If `weights`, which the message calls `name`, is not of shape (n_features,) with numbers
        from 0 to 1e100, or zero throughout.
    """
    if weights is None:
        return None
    factors = _real(weights, name)
    if factors.shape != (n_features,):
        raise ValueError(f"{name} must have shape ({n_features},), got {factors.shape}")
    if not np.all(np.isfinite(factors)) or np.any(factors < 0.0) or not np.any(factors > 0.0):
        raise ValueError(
            f"{name} must be finite, non-negative and not all zero; got {factors.tolist()}"
        )
    if np.any(factors > _LARGEST_FACTOR):
        raise ValueError(
            f"{name} must be at most {_LARGEST_FACTOR:g}; got {factors.tolist()}. Where only their "
            "ratios count, divide them by the largest"
        )
    return factors


def seed_sequence(random_state: int | np.random.RandomState | None) -> np.random.SeedSequence:
    """Return the seeds that a `random_state` parameter stands for."""
    entropy = check_random_state(random_state).randint(2**31, size=4)
    return np.random.SeedSequence([int(word) for word in entropy])
