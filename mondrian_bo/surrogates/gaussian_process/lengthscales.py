"""Split rates from the lengthscales of a Gaussian process that is fitted to the targets.

A split is informative where targets differ on its two sides, which is along features with short
lengthscales. Trees whose split rates are proportional to the inverse lengthscales hardly ever split
an irrelevant feature. The caution of :mod:`mondrian_bo.surrogates.shared.relevance` applies: the
partitions are not independent of the targets.
"""

from __future__ import annotations

import numpy as np

from mondrian_bo.shared.array_types import FloatArray
from mondrian_bo.surrogates.gaussian_process.fit import (
    REGRESSION_PRIOR,
    fit_hyperparameters,
    initial_estimates,
)
from mondrian_bo.surrogates.shared.scales import scaled

_MOST_POINTS = 300
"""Largest number of points in the fit, our choice: enough for lengthscales, within a second."""

_ITERATIONS = 50
"""Largest number of iterations of the fit, our choice: rates need no precise maximum."""


def inverse_lengthscales(
    points: FloatArray, rates: FloatArray, targets: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """Return the inverse lengthscales of a Gaussian process fitted to the targets, shape (d,).

    They are divided by their mean over the features with positive rates.

    Parameters
    ----------
    points : float64 array of shape (n, d)
        The points.
    rates : float64 array of shape (d,)
        Factors of the features; the lengthscales are in units of the scaled features. Features
        with rate 0 are ignored.
    targets : float64 array of shape (n,)
        Their targets, with mean 0 and variance 1.
    rng : numpy.random.Generator
        Draws the points for the fit, at most 300, so that it takes a second at most for any n.

    Returns
    -------
    float64 array of shape (d,)
        Positive; without meaning for ignored features.
    """
    if len(targets) > _MOST_POINTS:
        part = rng.choice(len(targets), _MOST_POINTS, replace=False)
        points, targets = points[part], targets[part]
    initial = initial_estimates(np.zeros(len(rates), dtype=np.bool_), REGRESSION_PRIOR)
    leaf = scaled(points, rates), targets
    best, *_ = fit_hyperparameters([leaf], initial, REGRESSION_PRIOR, _ITERATIONS)
    inverse = np.sqrt(best.covariance.precisions)
    counts = rates > 0.0
    return np.asarray(inverse / inverse[counts].mean() if counts.any() else inverse)
