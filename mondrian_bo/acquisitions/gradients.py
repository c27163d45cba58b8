"""Derivatives of acquisitions by differences: how a score changes with the moments it is given."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

_STEP = 1e-5
"""Step of a component's mean or deviation, in its deviations."""


@njit(cache=True, nogil=True)
def moved_moments(means, stds):  # type: ignore[no-untyped-def]
    """Return all moments as they are and with each moved by a step, to be scored in one call.

    Parameters
    ----------
    means, stds : float64 arrays of shape (C, m)
        Predictions of C components at m rows.

    Returns
    -------
    means, stds : float64 arrays of shape (C, (2 C + 1) m)
        As they are at all rows; then, for each component, with its mean moved, and with its
        deviation moved.
    """
    n_components, m = means.shape
    n_copies = 2 * n_components + 1
    moved_means = np.empty((n_components, n_copies * m))
    moved_stds = np.empty((n_components, n_copies * m))
    for c in range(n_components):
        for i in range(m):
            for k in range(n_copies):
                moved_means[c, k * m + i] = means[c, i]
                moved_stds[c, k * m + i] = stds[c, i]
            step = _STEP * stds[c, i]
            moved_means[c, (2 * c + 1) * m + i] += step
            moved_stds[c, (2 * c + 2) * m + i] += step
    return moved_means, moved_stds


@njit(cache=True, nogil=True, error_model="numpy")
def gradient_of(scores, stds, mean_gradients, std_gradients):  # type: ignore[no-untyped-def]
    """Return the derivatives of scores by the rows.

    Parameters
    ----------
    scores : float64 array of shape ((2 C + 1) m,)
        Of what :func:`moved_moments` returns.
    stds : float64 array of shape (C, m)
        Predicted standard deviations.
    mean_gradients, std_gradients : float64 arrays of shape (C, m, d)
        Derivatives of the predictions.

    Returns
    -------
    float64 array of shape (m, d)
        Derivatives; 0 where they are not finite: where the score is minus infinity there is no way
        up.
    """
    n_components, m, d = mean_gradients.shape
    gradient = np.zeros((m, d))
    for c in range(n_components):
        for i in range(m):
            step, first = _STEP * stds[c, i], (2 * c + 1) * m + i
            by_mean = (scores[first] - scores[i]) / step
            by_std = (scores[first + m] - scores[i]) / step
            for j in range(d):
                gradient[i, j] += by_mean * mean_gradients[c, i, j]
                gradient[i, j] += by_std * std_gradients[c, i, j]
    for i in range(m):
        for j in range(d):
            if not math.isfinite(gradient[i, j]):
                gradient[i, j] = 0.0
    return gradient
