"""Predictions of one block, compiled: most of what a suggestion costs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from mondrian_bo.array_types import FloatArray
from mondrian_bo.surrogates.gaussian_process.kernel import cross_kernel, kernel_and_slope

SMALLEST_SHARE = 1e-12
"""Variances of a function are at least this share of the prior's."""


class Posterior(NamedTuple):
    """What the points of a block say, as a function of its mean.

    Attributes
    ----------
    points : float64 array of shape (n, d)
        The points.
    whitening : float64 array of shape (n, n)
        Inverse and transpose of the lower Cholesky factor of the covariance A of the labels.
    ones, targets : float64 arrays of shape (n,)
        A^-1 1 and A^-1 y.
    scale : float
        What all covariances are multiplied by.
    """

    points: FloatArray
    whitening: FloatArray
    ones: FloatArray
    targets: FloatArray
    scale: float


class Moments(NamedTuple):
    """Predictions at m points, with their gradients or empty arrays of shape (0, d) instead.

    Attributes
    ----------
    means, variances : float64 arrays of shape (m,)
    mean_gradients, variance_gradients : float64 arrays of shape (m, d)
    """

    means: FloatArray
    variances: FloatArray
    mean_gradients: FloatArray
    variance_gradients: FloatArray


@njit(cache=True, nogil=True)
def predict_leaf(  # type: ignore[no-untyped-def]
    posterior,
    precisions,
    amplitude,
    categorical,
    smoothness,
    peak,
    mean,
    variance,
    noise,
    rows,
    places,
    moments,
):
    """Write the predictions of a block, and their gradients where there is room for them.

    Parameters
    ----------
    posterior : Posterior
        The block.
    precisions, amplitude, categorical, smoothness, peak
        As in :class:`mondrian_bo.surrogates.gaussian_process.covariance.Covariance`.
    mean, variance : float
        Posterior of the block's mean given all labels.
    noise : float
        Added to the variances.
    rows : float64 array of shape (m, d)
        Points.
    places : int64 array of shape (k,)
        Which of the points to predict.
    moments : Moments
        Of all points; those of `places` are written.
    """
    d, n = rows.shape[1], posterior.points.shape[0]
    m = len(places)
    points = np.empty((m, d))
    for i in range(m):
        points[i] = rows[places[i]]
    with_gradients = len(moments.mean_gradients) > 0
    cross = np.empty((m, n))
    slope = np.empty((m if with_gradients else 0, n))
    if with_gradients:
        kernel_and_slope(
            points, posterior.points, precisions, categorical, smoothness, peak, cross, slope
        )
        slope *= amplitude
    else:
        cross_kernel(points, posterior.points, precisions, categorical, smoothness, peak, cross)
    cross *= amplitude
    weights = posterior.targets - mean * posterior.ones
    means = np.dot(cross, weights)
    explained = np.dot(cross, posterior.ones)
    white = np.dot(cross, posterior.whitening)
    for i in range(m):
        place, left = places[i], 1.0 - explained[i]
        own = amplitude * peak
        for k in range(n):
            own -= white[i, k] * white[i, k]
        own = posterior.scale * max(own, SMALLEST_SHARE * amplitude)
        moments.means[place] = mean + means[i]
        moments.variances[place] = own + variance * left * left + noise
    if not with_gradients:
        return
    pull = np.dot(white, posterior.whitening.T)
    for i in range(m):
        left = variance * (1.0 - explained[i])
        for k in range(n):
            pull[i, k] = -2.0 * (posterior.scale * pull[i, k] + left * posterior.ones[k])
            pull[i, k] *= slope[i, k]
            slope[i, k] *= weights[k]
    # The sums over k of s_ik (x_ij - x_kj), two products of matrices.
    of_mean = np.dot(slope, posterior.points)
    of_variance = np.dot(pull, posterior.points)
    for i in range(m):
        place = places[i]
        mean_sum, variance_sum = slope[i].sum(), pull[i].sum()
        for j in range(d):
            factor = 0.0 if categorical[j] else precisions[j]
            at = points[i, j]
            moments.mean_gradients[place, j] = factor * (at * mean_sum - of_mean[i, j])
            moments.variance_gradients[place, j] = factor * (at * variance_sum - of_variance[i, j])
