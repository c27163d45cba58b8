"""Kernels from any random partition of data (Davies2014, sections 3 and 4.1)."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial import KDTree
from sklearn.base import BaseEstimator, clone
from sklearn.cluster import KMeans
from sklearn.utils._param_validation import HasMethods, Interval
from sklearn.utils.validation import column_or_1d, validate_data

from mondrian_bo.shared.array_types import AnyArray, FloatArray
from mondrian_bo.surrogates.partition_kernels.kernel import PartitionKernel, numbers_among
from mondrian_bo.surrogates.partition_kernels.operator import Clusters

Partition = Callable[[FloatArray], ArrayLike]
"""A function from points to clusters."""

Partitioner = Callable[[FloatArray, Any, np.random.RandomState], Partition | ArrayLike]
"""A function of data, targets and a random state that returns a partition or clusters."""

_NOISE = -1
"""What scikit-learn's clusterers return for points of no cluster."""

_KMEANS_RESTART = KMeans(n_init=1)
"""The default clusterer: one k-means run from a random start, as in Davies2014, section 4.1.1."""


class RandomPartitionKernel(PartitionKernel):
    """Random partition kernel from any callable or clusterer.

    Parameters
    ----------
    partitioner : callable, estimator or None, default=None
        Source of a random partition (Davies2014, section 4.1). None is k-means from a random
        start, ``KMeans(n_init=1)``.

        A callable gets ``(X, y, rng)``, with `rng` a numpy RandomState, and returns the clusters of
        the rows of X as integers, or a function that returns the clusters of any inputs.

        Of an estimator, such as a clusterer or a classifier, copies are fitted, each with its own
        ``random_state``. The clusters are what a copy predicts, or the result of its `fit_predict`
        if it cannot predict; in that result -1 marks noise, points that are alone.
    n_partitions : int, default=200
        Number of partitions m.
    max_samples : float, default=1.0
        Share of the rows that a partition is made from, drawn without replacement.
    max_features : float, default=1.0
        Share of the features that a partition looks at, drawn without replacement.
    random_state : int, RandomState instance or None, default=None
        Seed of the partitions.

    Attributes
    ----------
    n_clusters_ : ndarray of shape (n_partitions,)
        Number of clusters of each partition.

    Notes
    -----
    Where a partition is known on the rows of X alone, another input belongs to the cluster of the
    nearest of these rows. An input in a cluster that holds no training point is alone: its kernel
    with every other input is 0 there, also with an equal one.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.cluster import AgglomerativeClustering
    >>> from mondrian_bo.surrogates import RandomPartitionKernel
    >>> X = np.random.default_rng(0).normal(size=(60, 4))
    >>> restarts = RandomPartitionKernel(n_partitions=20, random_state=0).fit(X)
    >>> restarts(X).shape
    (60, 60)
    >>> def halves(X, y, rng):
    ...     normal, offset = rng.normal(size=X.shape[1]), rng.normal()
    ...     return lambda Z: Z @ normal > offset
    >>> RandomPartitionKernel(halves, random_state=0).fit(X)(X[:2]).shape
    (2, 2)
    >>> bagged = RandomPartitionKernel(AgglomerativeClustering(5), max_features=0.5)
    >>> bagged.fit(X).gram(X).shape
    (60, 60)
    """

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012
        "partitioner": [callable, HasMethods(["fit"]), None],
        "n_partitions": [Interval(Integral, 1, None, closed="left")],
        "max_samples": [Interval(Real, 0, 1, closed="right")],
        "max_features": [Interval(Real, 0, 1, closed="right")],
        "random_state": ["random_state"],
    }

    _partitions: list[_KnownClusters]

    def __init__(
        self,
        partitioner: Partitioner | BaseEstimator | None = None,
        n_partitions: int = 200,
        *,
        max_samples: float = 1.0,
        max_features: float = 1.0,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.partitioner = partitioner
        self.n_partitions = n_partitions
        self.max_samples = max_samples
        self.max_features = max_features
        self.random_state = random_state

    def _check_training_data(self, X: Any, y: Any) -> tuple[Any, Any]:
        data = validate_data(self, X, dtype=np.float64)
        if y is None:
            return data, None
        targets = column_or_1d(y)
        if len(targets) != len(data):
            raise ValueError(f"X has {len(data)} rows and y {len(targets)}")
        return data, targets

    def _draw(self, X: FloatArray, y: Any, rng: np.random.RandomState) -> list[int]:
        self._partitions = [self._draw_one(X, y, rng) for _ in range(self.n_partitions)]
        return [len(partition.values) for partition in self._partitions]

    def _draw_one(self, X: FloatArray, y: Any, rng: np.random.RandomState) -> _KnownClusters:
        rows = _some(rng, X.shape[0], self.max_samples)
        columns = _some(rng, X.shape[1], self.max_features)
        data = np.ascontiguousarray(X[np.ix_(rows, columns)])
        targets = None if y is None else y[rows]
        partition = self._partition(data, targets, rng)
        if not callable(partition):
            partition = _NearestRow(data, _as_clusters(partition, len(data)))
        return _KnownClusters(partition, columns, data)

    def _partition(
        self, X: FloatArray, y: Any, rng: np.random.RandomState
    ) -> Partition | ArrayLike:
        partitioner = _KMEANS_RESTART if self.partitioner is None else self.partitioner
        if not hasattr(partitioner, "fit"):
            return partitioner(X, y, rng)
        estimator: Any = clone(partitioner)
        seeds = {
            name: rng.randint(2**31 - 1)
            for name in sorted(estimator.get_params(deep=True))
            if name == "random_state" or name.endswith("__random_state")
        }
        estimator.set_params(**seeds)
        if hasattr(estimator, "predict"):
            return _Predicted(estimator.fit(X, y))
        clusters = np.array(estimator.fit_predict(X), dtype=np.int64)
        noise = clusters == _NOISE
        # A number of its own for each: a cluster of one row, which nearby inputs belong to.
        clusters[noise] = clusters.max(initial=-1) + 1 + np.arange(np.count_nonzero(noise))
        return clusters

    def _assign(self, X: FloatArray) -> Clusters:
        return np.stack([partition.assign(X) for partition in self._partitions])


class _Predicted:
    """The clusters that a fitted estimator predicts."""

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def __call__(self, X: FloatArray) -> ArrayLike:
        predicted: ArrayLike = self.estimator.predict(X)
        return predicted


class _NearestRow:
    """The clusters of given rows, and of other points as those of the nearest row."""

    def __init__(self, rows: FloatArray, clusters: AnyArray) -> None:
        self.tree = KDTree(rows)
        self.clusters = clusters

    def __call__(self, X: FloatArray) -> AnyArray:
        return np.asarray(self.clusters[self.tree.query(X)[1]])


class _KnownClusters:
    """A partition whose clusters are numbered by those of the training points."""

    def __init__(self, partition: Partition, columns: NDArray[np.intp], data: FloatArray) -> None:
        self.partition = partition
        self.columns = columns
        self.values = np.unique(_as_clusters(partition(data), len(data)))

    def assign(self, X: FloatArray) -> Clusters:
        found = _as_clusters(self.partition(np.ascontiguousarray(X[:, self.columns])), len(X))
        return numbers_among(self.values, found)


def _some(rng: np.random.RandomState, n: int, share: float) -> NDArray[np.intp]:
    """Draw a share of n indices, at least one, in order; all without a draw."""
    if share == 1.0:
        return np.arange(n)
    return np.sort(rng.choice(n, max(1, round(share * n)), replace=False))


def _as_clusters(clusters: Any, n: int) -> AnyArray:
    """Check what a partition returned: one cluster for each of n inputs."""
    found = np.asarray(clusters)
    if found.shape != (n,):
        raise ValueError(
            f"the partitioner must return one cluster for each of {n} inputs, an array of shape "
            f"({n},); got shape {found.shape}"
        )
    if found.dtype.kind not in "biuUS":
        raise ValueError(
            f"the partitioner must return clusters as integers or strings, got {found.dtype}"
        )
    return found
