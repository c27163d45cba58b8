"""Feature matrices of cells, and the products of these matrices."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from mondrian_bo.shared.array_types import FloatArray, IntArray


def indicator_features(
    cells: NDArray[np.int32], n_cells: int, values: FloatArray | None = None
) -> csr_matrix:
    """Return the feature matrix Phi with one entry per row and partition (Balog2016, eq. 2).

    Parameters
    ----------
    cells : int32 array of shape (n, M)
        The cell of each row in each partition, which is its column.
    n_cells : int
        Number of cells, C.
    values : float64 array of shape (n, M) or None, default=None
        Entries in units of M^-1/2; None is all ones.

    Returns
    -------
    csr_matrix of shape (n, C)
        With M entries in every row, sorted by column.
    """
    n_rows, n_partitions = cells.shape
    data = np.full(cells.size, n_partitions**-0.5)  # (2)
    if values is not None:
        data *= values.ravel()
    rows = np.arange(0, cells.size + 1, n_partitions, dtype=np.int32)
    # `flatten` copies: the matrix is sorted in place.
    matrix = csr_matrix((data, cells.flatten(), rows), shape=(n_rows, n_cells))
    matrix.sort_indices()
    return matrix


def normal_equations(
    cells: IntArray, n_cells: int, targets: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return Phi^T Phi and Phi^T targets, O(n M^2 + C^2) (Balog2016, section 4.2.1).

    Parameters
    ----------
    cells : int64 array of shape (n, M)
        The cells of the points, numbered from 0.
    n_cells : int
        Number of cells, C.
    targets : float64 array of shape (n,)
        Targets of the points.

    Returns
    -------
    tuple of float64 arrays of shape (C, C) and (C,)
        Both with the factor M^-1/2 of the features.
    """
    n_trees = cells.shape[1]
    gram: FloatArray = np.empty((n_cells, n_cells))
    count_shared_points(cells, gram)
    np.multiply(gram, 1.0 / n_trees, out=gram)
    moments: FloatArray = np.zeros(n_cells)
    add_to_cells(targets, cells, moments)
    moments *= n_trees**-0.5
    return gram, moments


@njit(cache=True, nogil=True)
def count_shared_points(cells, counts):  # type: ignore[no-untyped-def]
    """Count the points that each pair of cells shares.

    Parameters
    ----------
    cells : integer array of shape (n, M)
        The cells of the points.
    counts : float64 array of shape (C, C)
        Result.
    """
    counts[:] = 0.0
    for t in range(cells.shape[1]):
        # Points are visited cell by cell, so that the row being written stays in the cache.
        for i in np.argsort(cells[:, t]):
            row = counts[cells[i, t]]
            for s in range(cells.shape[1]):
                row[cells[i, s]] += 1.0


@njit(cache=True, nogil=True)
def count_shared_cells(cells, counts):  # type: ignore[no-untyped-def]
    """Count the cells that each pair of points shares: M times their kernel (Balog2016, 3.1).

    `cells` are as in :func:`count_shared_points`; `counts` is the result, of shape (n, n).
    """
    for i in range(cells.shape[0]):
        for j in range(i + 1):
            count = 0
            for t in range(cells.shape[1]):
                count += cells[i, t] == cells[j, t]  # (1)
            counts[i, j] = count
            counts[j, i] = count


@njit(cache=True, nogil=True)
def add_to_cells(values, cells, sums):  # type: ignore[no-untyped-def]
    """Add the value of each point to the sums of its cells.

    Parameters
    ----------
    values : float64 array of shape (n,)
        Values of the points.
    cells : integer array of shape (n, M)
        The cells of the points.
    sums : float64 array of shape (C,)
        Result.
    """
    for i in range(cells.shape[0]):
        for t in range(cells.shape[1]):
            sums[cells[i, t]] += values[i]
