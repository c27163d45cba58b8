"""Kernels of partitions that the data themselves define (Davies2014, section 4.2)."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Tags
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import validate_data

from mondrian_bo.shared.array_types import FloatArray
from mondrian_bo.surrogates.partition_kernels.kernel import PartitionKernel, numbers_among
from mondrian_bo.surrogates.partition_kernels.operator import Clusters


class MembershipKernel(PartitionKernel):
    """Kernel of given partitions: the columns of a membership matrix.

    Each column of X is a partition of its rows, by value: users by whether they have seen a film,
    words by whether a document has them (Davies2014, section 4.2), or the clusters of several
    clusterings, side by side.

    Parameters
    ----------
    n_partitions : int or None, default=None
        How many columns to draw, with replacement. None takes every column once, which is the
        expectation.
    random_state : int, RandomState instance or None, default=None
        Seed of the draw.

    Attributes
    ----------
    columns_ : ndarray of shape (m,)
        The columns that are the partitions.
    values_ : list of ndarray
        The values of each of these, the clusters, in order.
    n_clusters_ : ndarray of shape (m,)
        Number of clusters of each partition.

    Notes
    -----
    X may be sparse. A row with a value that its column did not have in training is alone in that
    partition.

    Examples
    --------
    >>> import numpy as np
    >>> from mondrian_bo.surrogates import MembershipKernel
    >>> seen = np.array([[1, 0, 1], [1, 1, 1], [0, 1, 0]])
    >>> MembershipKernel().fit(seen)(seen).round(2)
    array([[1.  , 0.67, 0.  ],
           [0.67, 1.  , 0.33],
           [0.  , 0.33, 1.  ]])
    """

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012
        "n_partitions": [Interval(Integral, 1, None, closed="left"), None],
        "random_state": ["random_state"],
    }

    columns_: NDArray[np.intp]
    values_: list[FloatArray]

    def __init__(
        self,
        n_partitions: int | None = None,
        *,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_partitions = n_partitions
        self.random_state = random_state

    def _check_training_data(self, X: Any, y: Any) -> tuple[Any, Any]:
        return validate_data(self, X, dtype=np.float64, accept_sparse="csc"), None

    def _check_data(self, X: Any) -> Any:
        return validate_data(self, X, dtype=np.float64, accept_sparse="csc", reset=False)

    def _draw(self, X: Any, y: None, rng: np.random.RandomState) -> list[int]:
        n_columns = X.shape[1]
        self.columns_ = (
            np.arange(n_columns)
            if self.n_partitions is None
            else np.sort(rng.randint(n_columns, size=self.n_partitions))
        )
        self.values_ = [np.unique(_column(X, column)) for column in self.columns_]
        return [len(values) for values in self.values_]

    def _assign(self, X: Any) -> Clusters:
        clusters = np.empty((len(self.columns_), X.shape[0]), dtype=np.int32)
        for row, column, values in zip(clusters, self.columns_, self.values_, strict=True):
            row[:] = numbers_among(values, _column(X, column))
        return clusters

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def _column(X: Any, column: int) -> FloatArray:
    chosen: Any = X[:, [column]]
    return np.asarray(chosen.toarray() if hasattr(chosen, "toarray") else chosen)[:, 0]
