"""Derivatives of an acquisition's scores with respect to the candidates.

The derivatives follow from those of the prediction by the chain rule. Derivatives of the scores
with respect to the moments of the components are finite differences, so any acquisition has them.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

_STEP = 1e-5
"""Step of a finite difference in a component's mean or deviation, in its deviations: small
against the curvature of a score, and large against its rounding error."""


@njit(cache=True, nogil=True)
def moved_moments(means, stds, scale=1.0):  # type: ignore[no-untyped-def]
    """Return all moments unchanged and with each moved by a step, to be scored in one call.

    Parameters
    ----------
    means, stds : float64 arrays of shape (C, m)
        Predictions of C components at m rows.
    scale : float, default=1.0
        Factor of the deviations.

    Returns
    -------
    means, stds : float64 arrays of shape (C, (2 C + 1) m)
        Unchanged at all rows; then, for each component, with its mean moved, and with its deviation
        moved.
    """
    n_components, m = means.shape
    n_copies = 2 * n_components + 1
    moved_means = np.empty((n_components, n_copies * m))
    moved_stds = np.empty((n_components, n_copies * m))
    for c in range(n_components):
        for i in range(m):
            std = scale * stds[c, i]
            for k in range(n_copies):
                moved_means[c, k * m + i] = means[c, i]
                moved_stds[c, k * m + i] = std
            step = _STEP * std
            moved_means[c, (2 * c + 1) * m + i] += step
            moved_stds[c, (2 * c + 2) * m + i] += step
    return moved_means, moved_stds


@njit(cache=True, nogil=True, error_model="numpy")
def gradient_of(scores, stds, mean_gradients, std_gradients, scale=1.0):  # type: ignore[no-untyped-def]
    """Return the derivatives of scores with respect to the rows.

    Parameters
    ----------
    scores : float64 array of shape ((2 C + 1) m,)
        Scores of what :func:`moved_moments` returns.
    stds : float64 array of shape (C, m)
        Predicted standard deviations.
    mean_gradients, std_gradients : float64 arrays of shape (C, m, d)
        Derivatives of the predictions.
    scale : float, default=1.0
        Factor of the deviations, as there.

    Returns
    -------
    float64 array of shape (m, d)
        Derivatives; 0 where they are not finite, such as where the score is minus infinity.
    """
    n_components, m, d = mean_gradients.shape
    gradient = np.zeros((m, d))
    for c in range(n_components):
        for i in range(m):
            step, first = _STEP * (scale * stds[c, i]), (2 * c + 1) * m + i
            by_mean = (scores[first] - scores[i]) / step
            by_std = (scores[first + m] - scores[i]) / step
            for j in range(d):
                gradient[i, j] += by_mean * mean_gradients[c, i, j]
                gradient[i, j] += by_std * (scale * std_gradients[c, i, j])
    for i in range(m):
        for j in range(d):
            if not math.isfinite(gradient[i, j]):
                gradient[i, j] = 0.0
    return gradient
