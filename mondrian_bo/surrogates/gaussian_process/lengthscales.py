"""How fast labels change along each feature, as a Gaussian process sees it: rates for cuts.

A cut tells something where labels differ on its two sides: along features with short lengthscales.
Trees whose cuts are drawn at rates in proportion to the inverse lengthscales hardly ever cut an
irrelevant feature. The caution of :mod:`mondrian_bo.surrogates.shared.relevance` holds here as
well: such trees look at labels.
"""

from __future__ import annotations

import numpy as np

from mondrian_bo.array_types import FloatArray
from mondrian_bo.surrogates.gaussian_process.fit import REGRESSION_PRIOR, fit, start
from mondrian_bo.surrogates.shared.scales import scaled

_N_LABELS = 300
_ITERATIONS = 50


def inverse_lengthscales(
    points: FloatArray, rates: FloatArray, targets: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """Return the inverse lengthscales of a process fitted to some labels, shape (d,).

    Their mean is 1, over the features that are not ignored.

    Parameters
    ----------
    points : float64 array of shape (n, d)
        The points.
    rates : float64 array of shape (d,)
        What they are scaled with: the lengthscales are in units of the scaled features. Features
        with rate 0 are ignored.
    targets : float64 array of shape (n,)
        Their labels, in standard deviations from their mean.
    rng : numpy.random.Generator
        Draws at most 300 labels to fit to, which takes a second at most for any n.
    """
    if len(targets) > _N_LABELS:
        part = rng.choice(len(targets), _N_LABELS, replace=False)
        points, targets = points[part], targets[part]
    first = start(np.zeros(len(rates), dtype=np.bool_), REGRESSION_PRIOR)
    found = fit([(scaled(points, rates), targets)], first, REGRESSION_PRIOR, _ITERATIONS)[0]
    inverse = np.sqrt(found.precisions)
    counts = rates > 0.0
    return np.asarray(inverse / inverse[counts].mean() if counts.any() else inverse)
