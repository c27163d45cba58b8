"""The Fast Cluster kernel (Davies2014, Algorithm 2)."""

from __future__ import annotations

import math
from numbers import Integral
from typing import Any

import numpy as np
from numba import njit
from sklearn.utils._param_validation import Interval

from mondrian_bo.shared.array_types import BoolArray, FloatArray
from mondrian_bo.surrogates.partition_kernels.kernel import PartitionKernel
from mondrian_bo.surrogates.partition_kernels.operator import Clusters
from mondrian_bo.surrogates.shared.scales import scaled

_LARGEST_EXPONENT = 1000
"""Largest exponent of two of a factor of inputs, which is finite up to 1023."""


class FastClusterKernel(PartitionKernel):
    """Fast Cluster kernel: partitions by the nearest of random centres, in random dimensions.

    Each partition keeps every dimension with probability 1/2, draws s uniformly from 0 to h and
    2^s of the training points as centres, and assigns points to the nearest centre in the kept
    dimensions (Davies2014, Algorithm 2).

    Parameters
    ----------
    n_partitions : int, default=200
        Number of partitions m.
    max_height : int, default=8
        The h of Algorithm 2: up to 2^h clusters. A larger h than log2(n_samples) counts as that.
    random_state : int, RandomState instance or None, default=None
        Seed of the partitions.

    Attributes
    ----------
    dimensions_ : bool ndarray of shape (n_partitions, n_features)
        The dimensions that each partition keeps.
    centres_ : list of ndarray of shape (2^s, kept dimensions)
        The centres of each partition.
    n_clusters_ : ndarray of shape (n_partitions,)
        Number of clusters of each partition.

    Notes
    -----
    Distances are Euclidean: scale the features first. A draw that keeps no dimension is repeated:
    it would put all points together, as s = 0 does already. The targets y are not used, so that the
    kernel may be fitted on more inputs than those with targets.

    `fit` takes O(m (D + 2^h)), assigning N points O(m N D 2^h / h).

    Examples
    --------
    >>> import numpy as np
    >>> from mondrian_bo.surrogates import FastClusterKernel
    >>> X = np.random.default_rng(0).normal(size=(100, 3))
    >>> kernel = FastClusterKernel(n_partitions=50, random_state=0).fit(X)
    >>> kernel(X[:2], X).shape
    (2, 100)
    >>> (kernel.gram(X) @ np.ones(100)).shape
    (100,)
    """

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012
        "n_partitions": [Interval(Integral, 1, None, closed="left")],
        "max_height": [Interval(Integral, 0, 30, closed="both")],
        "random_state": ["random_state"],
    }

    dimensions_: BoolArray
    centres_: list[FloatArray]

    def __init__(
        self,
        n_partitions: int = 200,
        *,
        max_height: int = 8,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_partitions = n_partitions
        self.max_height = max_height
        self.random_state = random_state

    def _draw(self, X: FloatArray, y: None, rng: np.random.RandomState) -> list[int]:
        n_samples, n_features = X.shape
        self._rate = _inverse_extent(X)
        highest = min(self.max_height, n_samples.bit_length() - 1)
        # Algorithm 2: d, s and C
        self.dimensions_ = np.array(
            [_some_dimensions(rng, n_features) for _ in range(self.n_partitions)]
        )
        self.centres_ = [
            X[rng.choice(n_samples, 2 ** rng.randint(highest + 1), replace=False)][:, kept]
            for kept in self.dimensions_
        ]
        return [len(centres) for centres in self.centres_]

    def _assign(self, X: FloatArray) -> Clusters:
        clusters = np.empty((len(self.centres_), len(X)), dtype=np.int32)
        # Squared distances stay within the range of float64, whatever the unit of the inputs is.
        points = scaled(X, self._rate)
        for row, kept, own in zip(clusters, self.dimensions_, self.centres_, strict=True):
            centres = np.ascontiguousarray(scaled(own, self._rate).T)
            nearest_centres(np.ascontiguousarray(points[:, kept]), centres, row)
        return clusters


@njit(cache=True, nogil=True)
def nearest_centres(points, centres, clusters):  # type: ignore[no-untyped-def]
    """Write the first of the nearest centres of each point into `clusters`.

    Parameters
    ----------
    points : float64 array of shape (n, d)
        Points.
    centres : float64 array of shape (d, k)
        Centres, dimension by dimension, so that vector instructions take several at a time.
    clusters : int32 array of shape (n,)
        Results.
    """
    n_centres = centres.shape[1]
    distances = np.empty(n_centres)
    for i in range(len(points)):
        for c in range(n_centres):
            distances[c] = 0.0
        for d in range(points.shape[1]):
            x = points[i, d]
            for c in range(n_centres):
                difference = x - centres[d, c]
                distances[c] += difference * difference
        nearest = 0
        for c in range(1, n_centres):
            if distances[c] < distances[nearest]:
                nearest = c
        clusters[i] = nearest


def _inverse_extent(X: FloatArray) -> FloatArray:
    """Return about the inverse of the largest range, shape (1,): a power of two, so it is exact."""
    half = float((0.5 * X.max(axis=0) - 0.5 * X.min(axis=0)).max())
    exponent = max(math.frexp(half)[1], -_LARGEST_EXPONENT)
    return np.array([math.ldexp(1.0, -exponent)])


def _some_dimensions(rng: np.random.RandomState, n_features: int) -> BoolArray:
    while True:
        kept = rng.random_sample(n_features) < 0.5
        if kept.any():
            return np.asarray(kept)
