"""The data of a lifetime path: partitions of the training and validation inputs together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_X_y

from mondrian_bo.array_types import FloatArray
from mondrian_bo.surrogates.estimators.validation import check_feature_weights, check_squares
from mondrian_bo.surrogates.mondrian_kernel.feature_map import seed_sequence
from mondrian_bo.surrogates.mondrian_kernel.forest import PartitionForest


@dataclass(frozen=True)
class PathData:
    """The data that paths of different models share.

    Attributes
    ----------
    partitions : PartitionForest
        Partitions of the training points and, after them, of the validation points.
    targets : float64 array of shape (n,)
        Training labels, less the prior mean.
    validation : float64 array of shape (n_validation,)
        Validation labels, less the same mean.
    variance_unit : float
        What the variances of noise and prior are multiples of.
    """

    partitions: PartitionForest
    targets: FloatArray
    validation: FloatArray
    variance_unit: float

    def variances(self, noise_variance: float, prior_variance: float) -> tuple[float, float]:
        """Return the variances of noise and prior in the square of the units of the labels."""
        return noise_variance * self.variance_unit, prior_variance * self.variance_unit


def label_variance(targets: FloatArray) -> float:
    """Return the variance of labels, or 1 if they are constant."""
    variance = float(np.var(targets))
    tiny = (4.0 * np.finfo(np.float64).eps * float(np.abs(targets).max())) ** 2
    return variance if variance > tiny else 1.0


def sample_path_data(
    X: ArrayLike,
    y: ArrayLike,
    X_val: ArrayLike | None,
    y_val: ArrayLike | None,
    *,
    n_estimators: int,
    max_lifetime: float,
    normalize_y: bool = True,
    feature_weights: ArrayLike | None = None,
    random_state: int | np.random.RandomState | None = None,
    n_jobs: int | None = None,
) -> PathData:
    """Check data and sample partitions of them up to a lifetime.

    Parameters
    ----------
    X, y : array-likes of shapes (n, n_features) and (n,)
        Training data.
    X_val, y_val : array-likes of shapes (n_validation, n_features) and (n_validation,), or None
        Validation data.
    n_estimators, feature_weights, normalize_y, random_state, n_jobs
        See :class:`mondrian_bo.surrogates.MondrianKernelRegressor`.
    max_lifetime : float
        Until when the processes run.

    Raises
    ------
    ValueError
        If the data are not finite numbers of these shapes.
    """
    points, labels, held_out = check_path_data(X, y, X_val, y_val)
    weights = check_feature_weights(feature_weights, points.shape[1])
    partitions = PartitionForest(
        n_estimators,
        points.shape[1],
        seed_sequence(random_state),
        np.ones(points.shape[1]) if weights is None else weights,
        float(max_lifetime),
    )
    partitions.build(points[None], np.concatenate([labels, held_out]), n_jobs)
    mean = float(labels.mean()) if normalize_y else 0.0
    unit = label_variance(labels) if normalize_y else 1.0
    return PathData(partitions, labels - mean, held_out - mean, unit)


def check_path_data(
    X: ArrayLike, y: ArrayLike, X_val: ArrayLike | None, y_val: ArrayLike | None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return all inputs, training inputs first, and the labels of both parts.

    Raises
    ------
    ValueError
        If the data are not finite numbers of the right shapes.
    """
    data, labels = check_X_y(X, y, dtype=np.float64, y_numeric=True)
    labels = np.asarray(labels, dtype=np.float64)
    held_out, held_out_labels = np.empty((0, data.shape[1])), np.empty(0)
    if X_val is not None or y_val is not None:
        if X_val is None or y_val is None:
            raise ValueError("X_val and y_val must be given together")
        held_out, held_out_labels = check_X_y(X_val, y_val, dtype=np.float64, y_numeric=True)
        held_out_labels = np.asarray(held_out_labels, dtype=np.float64)
        if held_out.shape[1] != data.shape[1]:
            raise ValueError(
                f"X_val must have the {data.shape[1]} features of X, got {held_out.shape[1]}"
            )
    for values in (labels, held_out_labels):
        check_squares(values)
    return np.concatenate([data, held_out]), labels, held_out_labels
