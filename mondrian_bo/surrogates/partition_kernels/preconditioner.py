"""The preconditioner of systems with a random partition kernel (Davies2014, equations 9, 10)."""

from __future__ import annotations

import numpy as np
from scipy.sparse.linalg import LinearOperator

from mondrian_bo.shared.array_types import AnyArray, FloatArray
from mondrian_bo.surrogates.partition_kernels.operator import PartitionGram, add_cluster_sums


class PartitionPreconditioner(LinearOperator):
    """B, the average over partitions of the inverse of ``K_p + shift I``, matrix-free.

    Each inverse has the form, by Sherman and Morrison on every cluster C of the partition,

        ((K_p + shift I)^-1 v)_i = (v_i - sum of v over C(i) / (|C(i)| + shift)) / shift.

    Equation 10 as printed lacks the factor ``1 / shift`` of the second term; equation 9's factor m
    in place of 1/m changes nothing in conjugate gradients.

    Parameters
    ----------
    gram : PartitionGram
        A Gram matrix, of points with themselves.
    shift : float
        The sigma of equation 9, positive.

    Raises
    ------
    ValueError
        If `gram` is not a Gram matrix, or the shift is not positive.

    Notes
    -----
    A product takes O(m N) time, as one with `gram` does.
    """

    def __init__(self, gram: PartitionGram, shift: float) -> None:
        if not gram.is_symmetric:
            raise ValueError("gram must be a Gram matrix, of points with themselves")
        if not shift > 0.0:
            raise ValueError(f"shift must be positive, got {shift}")
        self.gram = gram
        self.shift = float(shift)
        self._weights = 1.0 / (gram.cluster_sizes() + self.shift)
        super().__init__(np.dtype(np.float64), gram.shape)  # type: ignore[call-arg]

    def _matvec(self, x: AnyArray) -> FloatArray:
        vector = np.ascontiguousarray(x, dtype=np.float64).reshape(-1)
        clusters = self.gram.rows
        means = np.zeros(len(vector))
        add_cluster_sums(clusters, clusters, self.gram.offsets, self._weights, vector, means)
        means += self.gram.alone * vector / (1.0 + self.shift)
        return np.asarray((vector - means / self.gram.n_partitions) / self.shift)  # (9), (10)

    def _rmatvec(self, x: AnyArray) -> FloatArray:
        return self._matvec(x)
