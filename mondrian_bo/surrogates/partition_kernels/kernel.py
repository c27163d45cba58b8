"""What random partition kernels share: clusters of points, features, Gram matrices."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_matrix
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from mondrian_bo.shared.array_types import AnyArray, FloatArray, IntArray
from mondrian_bo.surrogates.estimators.base import UnsupervisedEstimator
from mondrian_bo.surrogates.estimators.locks import reads
from mondrian_bo.surrogates.partition_kernels.operator import ALONE, Clusters, PartitionGram


class PartitionKernel(ClassNamePrefixFeaturesOutMixin, TransformerMixin, UnsupervisedEstimator):
    """Base of the random partition kernels (Davies2014, definitions 1 and 2).

    k(a, b) is the share of m random partitions that put a and b into the same cluster. `fit` draws
    the partitions, and `assign` returns the clusters of any points. :meth:`gram` and
    :meth:`cross_gram` return matrix-free operators. Calling the kernel returns dense arrays, so
    that a fitted one may be the ``kernel`` of :class:`sklearn.svm.SVC`. :meth:`transform` returns
    sparse features whose inner products are the kernel. As of all sparse transformers, the output
    cannot be a data frame: ``set_output(transform="pandas")`` makes :meth:`transform` raise a
    ValueError.

    Attributes
    ----------
    n_clusters_ : ndarray of shape (m,)
        Number of clusters of each partition.
    """

    n_clusters_: IntArray

    def _fit(self, X: ArrayLike, y: ArrayLike | None) -> None:
        """Draw the partitions."""
        data, targets = self._check_training_data(X, y)
        rng = check_random_state(getattr(self, "random_state", None))
        self.n_clusters_ = np.asarray(self._draw(data, targets, rng), dtype=np.int64)

    @reads
    def assign(self, X: Any) -> Clusters:
        """Return the cluster of each input in each partition.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs, seen in training or not.

        Returns
        -------
        int32 array of shape (n_partitions, n_samples)
            Numbers from 0 to ``n_clusters_[p] - 1`` in row p; -1 for an input that is alone in a
            cluster of its own.
        """
        check_is_fitted(self, "n_clusters_")
        return self._assign(self._check_data(X))

    @reads
    def gram(self, X: Any) -> PartitionGram:
        """Return the Gram matrix of inputs, matrix-free.

        Parameters
        ----------
        X : array-like of shape (N, n_features)
            Inputs.

        Returns
        -------
        PartitionGram
            A linear operator of shape (N, N): ``K @ v`` takes O(m N).
        """
        return PartitionGram(self.assign(X), None, self.n_clusters_)

    @reads
    def cross_gram(self, X: Any, Y: Any) -> PartitionGram:
        """Return the matrix k(x, y) between two sets of inputs, matrix-free.

        Parameters
        ----------
        X : array-like of shape (a, n_features)
            Inputs of the rows.
        Y : array-like of shape (b, n_features)
            Inputs of the columns.

        Returns
        -------
        PartitionGram
            A linear operator of shape (a, b): a product takes O(m (a + b)).
        """
        return PartitionGram(self.assign(X), self.assign(Y), self.n_clusters_)

    def __call__(self, X: Any, Y: Any | None = None) -> FloatArray:
        """Return the dense matrix k(x, y), of X with itself if there is no Y; O(m n_X n_Y)."""
        return (self.gram(X) if Y is None or Y is X else self.cross_gram(X, Y)).toarray()

    @reads
    def transform(self, X: Any) -> csr_matrix:
        """Return sparse features with ``features @ features.T`` equal to the kernel.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        csr_matrix of shape (n_samples, n_columns)
            A column for each cluster of each partition, ``sum(n_clusters_)`` in all. Rows hold
            m^-1/2 in the columns of the clusters that hold the input. Clusters of a lone input have
            no column.
        """
        gram = self.gram(X)
        shared = gram.memberships()[:, : int(gram.offsets[-1])]
        return csr_matrix(shared / np.sqrt(gram.n_partitions))

    @property
    def _n_features_out(self) -> int:
        return int(self.n_clusters_.sum())

    def _check_training_data(self, X: Any, y: Any) -> tuple[Any, Any]:
        """Return X and y as arrays, and note the number of features."""
        return validate_data(self, X, dtype=np.float64), None

    def _check_data(self, X: Any) -> Any:
        return validate_data(self, X, dtype=np.float64, reset=False)

    @abstractmethod
    def _draw(self, X: Any, y: Any, rng: np.random.RandomState) -> Any:
        """Draw and keep the partitions; return their numbers of clusters."""

    @abstractmethod
    def _assign(self, X: Any) -> Clusters:
        """Return the clusters of checked inputs, shape (m, n)."""


def numbers_among(known: AnyArray, values: AnyArray) -> Clusters:
    """Return the indices of values in a sorted array, or ``ALONE`` for those it does not have."""
    places = np.minimum(np.searchsorted(known, values), len(known) - 1)
    return np.where(known[places] == values, places, ALONE).astype(np.int32)
