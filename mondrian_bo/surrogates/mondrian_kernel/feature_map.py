"""What the random features for the Laplace kernel share."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval

from mondrian_bo.array_types import FloatArray
from mondrian_bo.surrogates.estimators.validation import check_feature_weights


class LaplaceFeatureMap(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """A random map to features whose inner products approximate a Laplace kernel.

    The kernel is ``exp(-lifetime * sum_d feature_weights[d] * |x_d - x'_d|)``.

    Parameters
    ----------
    n_estimators : int
        Number of features that are not zero in a row, M.
    lifetime : float
        Inverse width of the kernel, in units of the inputs.
    feature_weights : array-like of shape (n_features,) or None, default=None
        Non-negative factors of the lifetime, for each input feature; None is all ones.
    random_state : int, RandomState instance or None, default=None
        Seed of the features.
    """

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "lifetime": [Interval(Real, 0, None, closed="left")],
        "feature_weights": ["array-like", None],
        "random_state": ["random_state"],
    }

    n_features_in_: int

    def __init__(
        self,
        n_estimators: int = 50,
        lifetime: float = 1.0,
        *,
        feature_weights: ArrayLike | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.lifetime = lifetime
        self.feature_weights = feature_weights
        self.random_state = random_state

    def _weights(self) -> FloatArray:
        weights = check_feature_weights(self.feature_weights, self.n_features_in_)
        return np.ones(self.n_features_in_) if weights is None else weights

    def _seed(self) -> np.random.SeedSequence:
        return seed_sequence(self.random_state)


def seed_sequence(random_state: int | np.random.RandomState | None) -> np.random.SeedSequence:
    """Return the seeds that a `random_state` argument stands for."""
    entropy = check_random_state(random_state).randint(2**31, size=4)
    return np.random.SeedSequence([int(word) for word in entropy])


def indicator_features(
    labels: NDArray[np.int32], n_labels: int, values: FloatArray | None = None
) -> csr_matrix:
    """Return the feature matrix with one entry per row and partition (Balog2016, eq. 2).

    Parameters
    ----------
    labels : int32 array of shape (n, M)
        The column of each row's cell in each partition.
    n_labels : int
        The number of columns, C.
    values : float64 array of shape (n, M) or None, default=None
        Entries in units of M^-1/2; None is all ones.

    Returns
    -------
    csr_matrix of shape (n, C)
        With M entries in every row, sorted by column.
    """
    n_rows, n_partitions = labels.shape
    data = np.full(labels.size, n_partitions**-0.5)
    if values is not None:
        data *= values.ravel()
    rows = np.arange(0, labels.size + 1, n_partitions, dtype=np.int32)
    # A copy of the labels, for sorting happens in place.
    matrix = csr_matrix((data, labels.flatten(), rows), shape=(n_rows, n_labels))
    matrix.sort_indices()
    return matrix
