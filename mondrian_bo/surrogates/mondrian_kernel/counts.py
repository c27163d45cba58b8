"""Sums over points and the cells they are in."""

from __future__ import annotations

import numpy as np
from numba import njit

from mondrian_bo.array_types import FloatArray, IntArray


def normal_equations(
    cells: IntArray, n_cells: int, targets: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return Phi^T Phi and Phi^T targets of the features of cells, O(n M^2 + C^2).

    Parameters
    ----------
    cells : int64 array of shape (n, M)
        The cells of the points, numbered from 0.
    n_cells : int
        Number of cells, C.
    targets : float64 array of shape (n,)
        What is predicted.

    Returns
    -------
    tuple of float64 arrays of shape (C, C) and (C,)
        Both with the normalisation M^-1/2 of the features.
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
    """Write how many points each two cells have in common.

    Parameters
    ----------
    cells : integer array of shape (n, M)
        The cells of the points.
    counts : float64 array of shape (C, C)
        Result.
    """
    counts[:] = 0.0
    for t in range(cells.shape[1]):
        # Cell after cell, so that a row of the result is in the cache while it is written.
        for i in np.argsort(cells[:, t]):
            row = counts[cells[i, t]]
            for s in range(cells.shape[1]):
                row[cells[i, s]] += 1.0


@njit(cache=True, nogil=True)
def count_shared_cells(cells, counts):  # type: ignore[no-untyped-def]
    """Write how many cells each two points have in common.

    Parameters
    ----------
    cells : integer array of shape (n, M)
        The cells of the points.
    counts : float64 array of shape (n, n)
        Result.
    """
    for i in range(cells.shape[0]):
        for j in range(i + 1):
            count = 0
            for t in range(cells.shape[1]):
                count += cells[i, t] == cells[j, t]
            counts[i, j] = count
            counts[j, i] = count


@njit(cache=True, nogil=True)
def add_to_cells(values, cells, sums):  # type: ignore[no-untyped-def]
    """Add the value of each point to those of its cells.

    Parameters
    ----------
    values : float64 array of shape (n,)
        What to add.
    cells : integer array of shape (n, M)
        The cells of the points.
    sums : float64 array of shape (C,)
        Result.
    """
    for i in range(cells.shape[0]):
        for t in range(cells.shape[1]):
            sums[cells[i, t]] += values[i]
