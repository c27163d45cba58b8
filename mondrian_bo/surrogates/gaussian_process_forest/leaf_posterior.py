"""The posterior of the Gaussian process in a leaf, and one more point in it."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from mondrian_bo.shared.array_types import FloatArray
from mondrian_bo.surrogates.gaussian_process.covariance import cross_kernel

PANEL = 48
"""Number of columns of a panel of the whitening matrix, our choice: products of smaller matrices
cost more than they save."""


class Posterior(NamedTuple):
    """The posterior of a leaf's process, as a function of the leaf's mean.

    A is the covariance of the targets before it is multiplied by `scale`, and L its lower Cholesky
    factor.

    Attributes
    ----------
    points : float64 array of shape (n, d)
        The points.
    white : float64 array of shape (2, n)
        L^-1 1 and L^-1 y.
    solved : float64 array of shape (2, n)
        A^-1 1 and A^-1 y.
    panels : float64 array of shape (k,)
        The transpose of L^-1, which is upper triangular. A panel has 48 of its columns, without the
        rows below the diagonal of the last of them, and the panels follow each other.
    """

    points: FloatArray
    white: FloatArray
    solved: FloatArray
    panels: FloatArray


@njit(cache=True, nogil=True)
def append_point(own, point, target, covariance):  # type: ignore[no-untyped-def]
    """Return the posterior of the points so far and a further one.

    The Cholesky factor and its inverse get one more row; all else stays.

    Parameters
    ----------
    own : Posterior
        The posterior of at least one point.
    point : float64 array of shape (d,)
        The further point.
    target : float
        Its target.
    covariance : Covariance
        Hyper-parameters of the process.

    Returns
    -------
    posterior : Posterior
        The posterior.
    variance : float
        Variance of the target given the others, the square of the last entry of L. If it is not
        positive, the former posterior is returned.
    """
    n, d = own.points.shape
    cross, factors = np.empty((1, n)), np.empty((0, n))
    cross_kernel(point.copy().reshape(1, d), own.points, covariance, cross, factors)
    # Loops in place of array expressions, which compile for a second longer.
    known = cross[0]
    for k in range(n):
        known[k] *= covariance.amplitude
    white, inverse = np.empty(n), np.zeros(n + 1)  # L^-1 k_*, and the new row of L^-1
    start = 0
    for first in range(0, n, PANEL):
        end = min(first + PANEL, n)
        panel = own.panels[start : start + end * (end - first)].reshape(end, end - first)
        start += panel.size
        part = np.dot(known[:end], panel)
        for k in range(end - first):
            white[first + k] = part[k]
        product = np.dot(panel, part)
        for k in range(end):
            inverse[k] += product[k]
    variance = covariance.amplitude + covariance.noise - np.dot(white, white)
    if not variance > 0.0:
        return own, variance
    diagonal = math.sqrt(variance)
    for k in range(n):
        inverse[k] /= -diagonal
    inverse[n] = 1.0 / diagonal
    width = n % PANEL
    start = len(own.panels) - n * width
    new = Posterior(
        np.empty((n + 1, d)),
        np.empty((2, n + 1)),
        np.empty((2, n + 1)),
        np.empty(start + (n + 1) * (width + 1)),
    )
    for j in range(d):
        for k in range(n):
            new.points[k, j] = own.points[k, j]
        new.points[n, j] = point[j]
    for side in range(2):
        value = 1.0 if side == 0 else target
        last = (value - np.dot(white, own.white[side])) / diagonal
        new.white[side, n] = last
        for k in range(n):
            new.white[side, k] = own.white[side, k]
            new.solved[side, k] = own.solved[side, k] + last * inverse[k]
        new.solved[side, n] = last * inverse[n]
    # The last panel gets one more row and column, or a panel begins.
    for k in range(start):
        new.panels[k] = own.panels[k]
    for k in range(n + 1):
        row = start + k * (width + 1)
        for j in range(width):
            new.panels[row + j] = own.panels[start + k * width + j] if k < n else 0.0
        new.panels[row + width] = inverse[k]
    return new, variance
