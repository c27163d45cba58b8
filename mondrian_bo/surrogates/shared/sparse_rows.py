"""Sparse matrices that are computed a few dense rows at a time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.sparse import csr_matrix, vstack

from mondrian_bo.shared.array_types import FloatArray

_LARGEST = 4_000_000
"""Entries of the dense rows at a time: 32 MB."""


def sparse_rows(
    rows_of: Callable[[int, int], FloatArray], n_rows: int, n_columns: int, tolerance: float
) -> csr_matrix:
    """Return the entries of dense rows that are larger than a tolerance in absolute value.

    Parameters
    ----------
    rows_of : function
        Returns the rows from one number to another, float64 of shape (rows, n_columns).
    n_rows, n_columns : int
        Shape of the matrix.
    tolerance : float
        Entries of at most this size are left out.

    Returns
    -------
    csr_matrix of shape (n_rows, n_columns)
        The kept entries.
    """
    step = max(1, _LARGEST // max(n_columns, 1))
    parts = []
    for start in range(0, n_rows, step):
        rows = rows_of(start, min(start + step, n_rows))
        rows[np.abs(rows) <= tolerance] = 0.0
        parts.append(csr_matrix(rows))
    return csr_matrix(vstack(parts, format="csr"))
