"""The data of a lifetime path: partitions of the training and validation inputs together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_X_y, validate_data

from mondrian_bo.shared.array_types import FloatArray
from mondrian_bo.surrogates.estimators.validation import (
    check_feature_weights,
    check_numeric,
    check_squares,
    seed_sequence,
)
from mondrian_bo.surrogates.mondrian_kernel.forest import PartitionForest
from mondrian_bo.surrogates.shared.ensemble import Ensemble

Validation: TypeAlias = ArrayLike | None
"""Inputs or targets to validate with; None is none."""


@dataclass(frozen=True)
class PathData:
    """The data that paths of different models share.

    Attributes
    ----------
    partitions : PartitionForest
        Partitions of the training points and, after them, of the validation points.
    targets : float64 array of shape (n,)
        Training targets, minus the prior mean.
    validation : float64 array of shape (n_validation,)
        Validation targets, minus the same mean.
    variance_unit : float
        The unit of the variances of noise and prior.
    """

    partitions: PartitionForest
    targets: FloatArray
    validation: FloatArray
    variance_unit: float

    def variances(self, noise_variance: float, prior_variance: float) -> tuple[float, float]:
        """Return the variances of noise and prior, in the squared units of the targets."""
        return noise_variance * self.variance_unit, prior_variance * self.variance_unit


def target_variance(targets: FloatArray) -> float:
    """Return the variance of targets, or 1 if they are constant."""
    return float(np.var(targets)) or 1.0 if targets.min() < targets.max() else 1.0


def location_and_variance(targets: FloatArray, normalize: bool) -> tuple[float, float]:
    """Return the prior mean and the unit of variances: 0 and 1 unless targets are normalised."""
    return (float(targets.mean()), target_variance(targets)) if normalize else (0.0, 1.0)


def sample_path_data(
    X: ArrayLike,
    y: ArrayLike,
    X_val: Validation,
    y_val: Validation,
    *,
    n_estimators: int,
    max_lifetime: float,
    normalize_y: bool = True,
    feature_weights: ArrayLike | None = None,
    random_state: int | np.random.RandomState | None = None,
    n_jobs: int | None = None,
) -> PathData:
    """Check data, and sample partitions of all inputs up to a lifetime.

    Parameters
    ----------
    X, y : array-likes of shapes (n, n_features) and (n,)
        Training data.
    X_val, y_val : array-likes of shapes (n_validation, n_features) and (n_validation,), or None
        Validation data.
    n_estimators, feature_weights, normalize_y, random_state, n_jobs
        See :class:`mondrian_bo.surrogates.MondrianKernelRegressor`.
    max_lifetime : float
        Lifetime of the partitions.

    Returns
    -------
    PathData
        The partitions and the targets.

    Raises
    ------
    ValueError
        If the data are not finite numbers of these shapes, or if X and X_val have different feature
        names.
    """
    points, targets, held_out = check_path_data(X, y, X_val, y_val)
    rates = check_feature_weights(feature_weights, points.shape[1])
    partitions = PartitionForest(
        Ensemble(n_estimators, points.shape[1], seed_sequence(random_state)),
        np.ones(points.shape[1]) if rates is None else rates,
        float(max_lifetime),
    )
    partitions.build(points[None], np.concatenate([targets, held_out]), n_jobs)
    mean, unit = location_and_variance(targets, normalize_y)
    return PathData(partitions, targets - mean, held_out - mean, unit)


class TrainingInputs(BaseEstimator):
    """Keeps the feature names of X for those of X_val; warnings of scikit-learn have its name."""


def check_path_data(
    X: ArrayLike, y: ArrayLike, X_val: Validation, y_val: Validation
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return all inputs, training inputs first, the training targets and the validation targets.

    Raises
    ------
    ValueError
        If the data are not finite numbers of the right shapes, or if X and X_val have different
        feature names.
    """
    check_numeric(y)
    data, targets = check_X_y(X, y, dtype=np.float64, y_numeric=True)
    targets = np.asarray(targets, dtype=np.float64)
    held_out, held_out_targets = np.empty((0, data.shape[1])), np.empty(0)
    if X_val is not None or y_val is not None:
        if X_val is None or y_val is None:
            raise ValueError("X_val and y_val must be given together")
        check_numeric(y_val, "y_val")
        held_out, held_out_targets = check_X_y(X_val, y_val, dtype=np.float64, y_numeric=True)
        held_out_targets = np.asarray(held_out_targets, dtype=np.float64)
        if held_out.shape[1] != data.shape[1]:
            raise ValueError(
                f"X_val must have the {data.shape[1]} features of X, got {held_out.shape[1]}"
            )
        inputs = TrainingInputs()
        validate_data(inputs, X, skip_check_array=True)
        validate_data(inputs, X_val, skip_check_array=True, reset=False)
    for values in (targets, held_out_targets):
        check_squares(values)
    return np.concatenate([data, held_out]), targets, held_out_targets
