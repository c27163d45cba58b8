"""What the solvers of ridge regression have in common: exact updates of A w = b.

A is symmetric and positive definite, and each update costs O(C^2) where solving anew takes O(C^3)
(Balog2016thesis, section 4.2 and Appendix D; Balog2016, section 4.2.1 and Appendix C). There are
two forms:
:class:`mondrian_bo.surrogates.mondrian_kernel.lifetime_paths.cholesky_system.CholeskySystem`, and
:class:`mondrian_bo.surrogates.mondrian_kernel.lifetime_paths.inverse_system.InverseSystem` as the
reference.
"""

from __future__ import annotations

from typing import Protocol

from mondrian_bo.array_types import FloatArray

NOT_POSITIVE_DEFINITE = (
    "the regularised matrix is not positive definite in floating point: "
    "the noise variance is too small beside the prior variance"
)


class LinearSystem(Protocol):
    """A symmetric positive definite system A w = b of C equations."""

    @property
    def size(self) -> int:
        """Number of equations, C."""
        ...

    def append(self, columns: FloatArray, corner: FloatArray, moments: FloatArray) -> None:
        """Border A by p more rows and columns, O(p C^2).

        See Balog2016thesis, Lemma 4.4 and Appendix D.

        Parameters
        ----------
        columns : float64 array of shape (p, C)
            Entries between the new and the old equations.
        corner : float64 array of shape (p, p)
            Entries among the new ones.
        moments : float64 array of shape (p,)
            New entries of b.

        Raises
        ------
        numpy.linalg.LinAlgError
            If the new matrix is not positive definite.
        """
        ...

    def delete(self, index: int) -> None:
        """Remove an equation (Balog2016thesis, Lemma 4.3); later ones move up. O(C^2)."""
        ...

    def add(self, vector: FloatArray, value: float) -> None:
        """Add ``vector vector^T`` to A and ``value * vector`` to b, O(C^2).

        See Balog2016thesis, Cor. 4.2.
        """
        ...

    def solution(self) -> FloatArray:
        """Return w, shape (C,), O(C^2)."""
        ...

    def log_determinant(self) -> float:
        """Return log det A."""
        ...
