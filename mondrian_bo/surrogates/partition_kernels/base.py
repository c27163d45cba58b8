"""What the estimators with a random partition kernel share."""

from __future__ import annotations

import sys
from numbers import Integral, Real
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import validate_data

from mondrian_bo.shared.array_types import AnyArray, FloatArray
from mondrian_bo.surrogates.estimators.base import SupervisedEstimator
from mondrian_bo.surrogates.partition_kernels.fast_cluster_kernel import FastClusterKernel
from mondrian_bo.surrogates.partition_kernels.linear_system import ShiftedSystem
from mondrian_bo.surrogates.partition_kernels.operator import Clusters, PartitionGram

Solver = Literal["auto", "cg", "dense"]
"""How linear systems are solved."""

DENSE_LIMIT = 2000
"""Number of points up to which ``solver="auto"`` works with dense matrices, and of clusters up to
which a matrix-free likelihood is exact: seconds of O(N^3), and 32 MB a matrix."""


class PartitionKernelMixin:
    """Fits a kernel; the estimator works with its Gram matrix and the clusters of new inputs."""

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012
        "kernel": [HasMethods(["fit", "assign", "gram"]), None],
        "random_state": ["random_state"],
    }

    kernel: BaseEstimator | None
    random_state: int | np.random.RandomState | None
    kernel_: Any

    def _fit_kernel(self, X: FloatArray, y: AnyArray | ArrayLike | None) -> PartitionGram:
        """Fit a copy of the kernel; return the Gram matrix of the training points."""
        if self.kernel is None:
            kernel: Any = FastClusterKernel(random_state=self.random_state)
        else:
            kernel = clone(self.kernel)
        self.kernel_ = kernel.fit(X, y)
        gram: PartitionGram = self.kernel_.gram(self._as_known(X))
        return gram

    def _clusters(self, X: ArrayLike) -> Clusters:
        """Return the clusters of new inputs, which are checked here."""
        data = validate_data(self, X, dtype=np.float64, reset=False)
        clusters: Clusters = self.kernel_.assign(self._as_known(data))
        return clusters

    def _as_known(self, X: FloatArray) -> Any:
        """Return checked inputs as a frozen kernel expects them that was fitted with names.

        Raises
        ------
        ValueError
            If its names are others, or in another order.
        """
        names = getattr(self, "feature_names_in_", None)
        known = getattr(self.kernel_, "feature_names_in_", None)
        if names is None or known is None:
            return X
        if not np.array_equal(names, known):
            raise ValueError(
                "The feature names should match those that the kernel was fitted with, in the same "
                f"order: got {list(names)}, and the kernel has {list(known)}."
            )
        # The kernel would warn of inputs without names. Names of another library are checked above.
        pandas = sys.modules.get("pandas")
        return X if pandas is None else pandas.DataFrame(X, columns=names)


class PartitionSolver(PartitionKernelMixin, SupervisedEstimator):
    """An estimator that solves linear systems with the Gram matrix of its kernel."""

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012
        **PartitionKernelMixin._parameter_constraints,
        "solver": [StrOptions({"auto", "cg", "dense"})],
        "preconditioned": ["boolean"],
        "tol": [Interval(Real, 0, 1, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }

    solver: Solver
    preconditioned: bool
    tol: float
    max_iter: int

    def _is_dense(self, n_points: int) -> bool:
        """Whether systems of so many training points are solved with dense matrices."""
        return self.solver == "dense" or (self.solver == "auto" and n_points <= DENSE_LIMIT)

    def _system(self, gram: PartitionGram, shift: float, dense: bool) -> ShiftedSystem:
        return ShiftedSystem(
            gram,
            shift,
            dense=dense,
            preconditioned=self.preconditioned,
            tol=self.tol,
            max_iter=self.max_iter,
        )
