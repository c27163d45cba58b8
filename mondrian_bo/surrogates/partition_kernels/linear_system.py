"""Linear systems (K + shift I) x = b with the Gram matrix K of a random partition kernel."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse.linalg import LinearOperator, cg
from sklearn.exceptions import ConvergenceWarning

from mondrian_bo.shared.array_types import AnyArray, FloatArray
from mondrian_bo.surrogates.partition_kernels.operator import PartitionGram
from mondrian_bo.surrogates.partition_kernels.preconditioner import PartitionPreconditioner

_LEAST_SHIFT = 0.1
"""Least shift of the preconditioner, in units of the kernel's diagonal, our choice.

Conjugate gradients take more iterations with smaller shifts; no command prints this comparison.
"""


@dataclass(eq=False, repr=False)
class ShiftedSystem:
    """Solves with ``K + shift I``: matrix-free by conjugate gradients, or by a dense Cholesky.

    Parameters
    ----------
    gram : PartitionGram
        The Gram matrix K of N points.
    shift : float
        A positive multiple of the identity.
    dense : bool
        Whether to factorise the dense matrix, O(m N^2 + N^3), instead of O(m N) an iteration.
    preconditioned : bool, default=True
        Whether conjugate gradients use :class:`PartitionPreconditioner`. Its shift is that of the
        system, and 0.1 at least: smaller shifts take more iterations.
    tol : float, default=1e-10
        Residual, relative to the right-hand side, at which conjugate gradients stop.
    max_iter : int, default=1000
        Iterations at most; a :class:`~sklearn.exceptions.ConvergenceWarning` says when they do not
        suffice.

    Attributes
    ----------
    n_iterations : list of int
        Iterations of each right-hand side solved so far.
    """

    gram: PartitionGram
    shift: float
    _: KW_ONLY
    dense: bool
    preconditioned: bool = True
    tol: float = 1e-10
    max_iter: int = 1000
    n_iterations: list[int] = field(default_factory=list, init=False)

    def solve(self, right: FloatArray) -> FloatArray:
        """Return the solution for right-hand sides of shape (N,) or (N, k), of the same shape.

        Raises
        ------
        numpy.linalg.LinAlgError
            If the dense matrix is not positive definite in floating point.
        """
        if self.dense:
            return np.asarray(cho_solve(self._factor, right))
        if right.ndim == 2:
            columns = [self.solve(column) for column in right.T]
            return np.stack(columns, axis=1) if columns else np.zeros_like(right)
        n_done = 0

        def count(_: object) -> None:
            nonlocal n_done
            n_done += 1

        solution, failure = cg(
            _ShiftedGram(self.gram, self.shift),
            right,
            rtol=self.tol,
            atol=0.0,
            maxiter=self.max_iter,
            M=self._preconditioner,
            callback=count,
        )
        self.n_iterations.append(n_done)
        if failure:
            warnings.warn(
                f"conjugate gradients have not converged to tol={self.tol:g} within "
                f"max_iter={self.max_iter} iterations; a larger noise or max_iter helps",
                ConvergenceWarning,
                stacklevel=2,
            )
        return np.asarray(solution)

    @cached_property
    def _factor(self) -> Any:
        matrix = self.gram.toarray()
        matrix[np.diag_indices_from(matrix)] += self.shift
        try:
            return cho_factor(matrix, lower=True, overwrite_a=True)
        except np.linalg.LinAlgError:
            raise np.linalg.LinAlgError(
                "the Gram matrix plus a multiple of the identity is not positive definite in "
                f"floating point: the multiple {self.shift:g} is too small beside its diagonal of "
                "1. It is noise_variance / signal_variance in regression, and 0.5 / C in "
                "classification."
            ) from None

    @cached_property
    def _preconditioner(self) -> PartitionPreconditioner | None:
        if not self.preconditioned:
            return None
        return PartitionPreconditioner(self.gram, max(self.shift, _LEAST_SHIFT))


class _ShiftedGram(LinearOperator):
    """The matrix ``K + shift I``, matrix-free."""

    def __init__(self, gram: PartitionGram, shift: float) -> None:
        self.gram = gram
        self.shift = shift
        super().__init__(np.dtype(np.float64), gram.shape)  # type: ignore[call-arg]

    def _matvec(self, x: AnyArray) -> FloatArray:
        return np.asarray(self.gram.matvec(x) + self.shift * x)
