"""One more point in the Gaussian process of a leaf."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from mondrian_bo.surrogates.gaussian_process.covariance import cross_kernel
from mondrian_bo.surrogates.gaussian_process_forest.leaf import PANEL, Posterior


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
    known = cross[0]
    known *= covariance.amplitude
    white, inverse = np.empty(n), np.zeros(n + 1)  # L^-1 k_*, and the new row of L^-1
    start = 0
    for first in range(0, n, PANEL):
        end = min(first + PANEL, n)
        panel = own.panels[start : start + end * (end - first)].reshape(end, end - first)
        start += panel.size
        white[first:end] = np.dot(known[:end], panel)
        inverse[:end] += np.dot(panel, white[first:end])
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
    new.points[:n], new.points[n] = own.points, point
    for side in range(2):
        value = 1.0 if side == 0 else target
        last = (value - np.dot(white, own.white[side])) / diagonal
        new.white[side, :n], new.white[side, n] = own.white[side], last
        for k in range(n):
            new.solved[side, k] = own.solved[side, k] + last * inverse[k]
        new.solved[side, n] = last * inverse[n]
    # The last panel gets one more row and column, or a panel begins.
    new.panels[:start] = own.panels[:start]
    panel = new.panels[start:].reshape(n + 1, width + 1)
    panel[:n, :width] = own.panels[start:].reshape(n, width)
    panel[n, :width] = 0.0
    panel[:, width] = inverse
    return new, variance
