"""Gram matrices of random partition kernels, never formed (Davies2014, section 3.3)."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.linalg import LinearOperator

from mondrian_bo.shared.array_types import AnyArray, FloatArray

Clusters = NDArray[np.int32]
"""Cluster of each point in each partition, shape (m, n), or `ALONE`."""

ALONE = -1
"""In place of the cluster of a point that shares its cluster with no other."""


@njit(cache=True, nogil=True)
def add_cluster_sums(rows, columns, offsets, weights, vector, result):  # type: ignore[no-untyped-def]
    """Add to each row the weighted sum over its cluster, for all partitions (equation 8).

    Parameters
    ----------
    rows, columns : int32 arrays of shape (m, a) and (m, b)
        Clusters, partition by partition, so that the sums of one partition stay in the cache.
    offsets : int64 array of shape (m + 1,)
        The clusters of partition p are ``offsets[p]`` to ``offsets[p + 1]`` of all.
    weights : float64 array of shape (offsets[m],)
        Factors of the clusters.
    vector : float64 array of shape (b,)
        What is summed.
    result : float64 array of shape (a,)
        What is added to.
    """
    largest = 0
    for p in range(len(rows)):
        largest = max(largest, offsets[p + 1] - offsets[p])
    sums = np.empty(largest)
    for p in range(len(rows)):
        first = offsets[p]
        n_clusters = offsets[p + 1] - first
        for c in range(n_clusters):
            sums[c] = 0.0
        for j in range(columns.shape[1]):
            cluster = columns[p, j]
            if cluster >= 0:
                sums[cluster] += vector[j]
        for c in range(n_clusters):
            sums[c] *= weights[first + c]
        for i in range(rows.shape[1]):
            cluster = rows[p, i]
            if cluster >= 0:
                result[i] += sums[cluster]  # (8)


@njit(cache=True, nogil=True)
def count_together(rows, columns, counts):  # type: ignore[no-untyped-def]
    """Write how many partitions put each pair of points together into `counts`, int32 (a, b)."""
    for i in range(rows.shape[1]):
        for j in range(columns.shape[1]):
            counts[i, j] = 0
        for p in range(len(rows)):
            cluster = rows[p, i]
            if cluster >= 0:
                for j in range(columns.shape[1]):
                    counts[i, j] += columns[p, j] == cluster


class PartitionGram(LinearOperator):
    """Matrix K of a random partition kernel between two sets of points, matrix-free.

    ``K[i, j]`` is the share of the partitions that put points i and j together (Davies2014,
    definition 2, equation 6).

    Parameters
    ----------
    rows : int32 array of shape (m, a)
        Cluster of each point of the rows in each partition, or ``ALONE``.
    columns : int32 array of shape (m, b) or None
        Likewise for the columns; None for a Gram matrix, of points with themselves.
    n_clusters : int array of shape (m,)
        Number of clusters of each partition; those of partition p are numbered from 0.

    Notes
    -----
    A product with a vector takes O(m (a + b)) time, ``2 m N`` operations for a Gram matrix. Memory
    is that of the clusters, 4 bytes each.
    """

    def __init__(
        self, rows: Clusters, columns: Clusters | None, n_clusters: NDArray[np.integer[Any]]
    ) -> None:
        self.rows = np.ascontiguousarray(rows, dtype=np.int32)
        self.is_symmetric = columns is None
        self.columns = (
            self.rows if columns is None else np.ascontiguousarray(columns, dtype=np.int32)
        )
        self.n_clusters = np.asarray(n_clusters, dtype=np.int64)
        self.offsets = np.concatenate([[0], np.cumsum(self.n_clusters)]).astype(np.int64)
        self._ones = np.ones(self.offsets[-1])
        super().__init__(  # type: ignore[call-arg]
            np.dtype(np.float64), (self.rows.shape[1], self.columns.shape[1])
        )

    @property
    def n_partitions(self) -> int:
        """Number of partitions m."""
        return len(self.rows)

    @cached_property
    def alone(self) -> FloatArray:
        """In how many partitions each point of the rows is alone, shape (a,)."""
        return np.asarray(np.count_nonzero(self.rows < 0, axis=0), dtype=np.float64)

    @cached_property
    def n_groups(self) -> int:
        """Number of clusters of all partitions, counting those of a point that is alone."""
        return int(self.offsets[-1] + self.alone.sum())

    def memberships(self) -> csr_array:
        """Return Z of shape (a, n_groups), with ``K = Z Z' / m`` for a Gram matrix.

        An entry is 1 where the point is in the cluster, and 0 elsewhere; m entries in each row.
        """
        groups = self.rows + self.offsets[:-1, None]
        alone = self.rows < 0
        groups[alone] = self.offsets[-1] + np.arange(np.count_nonzero(alone))
        n_points = self.rows.shape[1]
        # Much of scikit-learn refuses 64-bit indices where 32 bits suffice.
        fits = max(groups.size, self.n_groups) <= np.iinfo(np.int32).max
        kind = np.int32 if fits else np.int64
        columns = groups.T.ravel().astype(kind)
        starts = np.arange(n_points + 1, dtype=kind) * self.n_partitions
        shape = (n_points, self.n_groups)
        return csr_array((np.ones(groups.size), columns, starts), shape=shape)

    def toarray(self) -> FloatArray:
        """Return the dense matrix, O(m a b)."""
        counts = np.empty(self.shape, dtype=np.int32)
        count_together(self.rows, self.columns, counts)
        dense: FloatArray = counts / self.n_partitions
        if self.is_symmetric:
            np.fill_diagonal(dense, 1.0)
        return dense

    def restricted(self, points: AnyArray) -> PartitionGram:
        """Return the Gram matrix of some of the points, given by indices or a mask."""
        if not self.is_symmetric:
            raise ValueError("only a Gram matrix, of points with themselves, can be restricted")
        return PartitionGram(self.rows[:, points], None, self.n_clusters)

    def cross(self, rows: Clusters) -> PartitionGram:
        """Return the matrix between other points, of these clusters, and the points of the rows."""
        return PartitionGram(rows, self.rows, self.n_clusters)

    def cluster_sizes(self) -> FloatArray:
        """Return the number of points of the rows in each cluster, shape (sum(n_clusters),)."""
        sizes = [
            np.bincount(clusters[clusters >= 0], minlength=int(n))
            for clusters, n in zip(self.rows, self.n_clusters, strict=True)
        ]
        return np.concatenate(sizes).astype(np.float64)

    def _matvec(self, x: AnyArray) -> FloatArray:
        return self._product(self.rows, self.columns, x)

    def _rmatvec(self, x: AnyArray) -> FloatArray:
        return self._product(self.columns, self.rows, x)

    def _product(self, rows: Clusters, columns: Clusters, x: AnyArray) -> FloatArray:
        vector = np.ascontiguousarray(x, dtype=np.float64).reshape(-1)
        result = np.zeros(rows.shape[1])
        add_cluster_sums(rows, columns, self.offsets, self._ones, vector, result)
        if self.is_symmetric:
            result += self.alone * vector
        return result / self.n_partitions  # (6), with m partitions
