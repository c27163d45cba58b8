"""Leave-one-out predictions of a Gaussian process that is fitted to given targets alone."""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

from mondrian_bo.shared.array_types import BoolArray, FloatArray
from mondrian_bo.shared.blas_threads import single_threaded_blas
from mondrian_bo.surrogates.gaussian_process.covariance import factorise
from mondrian_bo.surrogates.gaussian_process.fit import (
    Prior,
    fit_hyperparameters,
    initial_estimates,
)

_ITERATIONS = 30
"""Largest number of iterations of the fit, our choice: more change no ranks."""


def left_out_moments(
    points: FloatArray, targets: FloatArray, categorical: BoolArray, prior: Prior
) -> tuple[FloatArray, FloatArray]:
    """Predict each target from all others, by a process whose hyper-parameters fit all of them.

    Parameters
    ----------
    points : float64 array of shape (n, d)
        The points.
    targets : float64 array of shape (n,)
        Their targets, of mean 0 and variance 1.
    categorical : bool array of shape (d,)
        Which dimensions hold categories.
    prior : Prior
        Prior of the hyper-parameters.

    Returns
    -------
    means, stds : float64 arrays of shape (n,)
        The predicted means and standard deviations of the targets. Takes O(n^3) time.
    """
    initial = initial_estimates(categorical, prior)
    covariance = fit_hyperparameters([(points, targets)], initial, prior, _ITERATIONS)[0].covariance
    with single_threaded_blas():
        factor = factorise(covariance.of_targets(points) + prior.mean_variance)
        inverse, _ = lapack.dpotri(factor, lower=1)  # the lower triangle of K_y^-1
        alpha, _ = lapack.dpotrs(factor, targets, lower=1)
    precisions = inverse.diagonal()
    # Rasmussen2006, eq. 5.12
    return targets - alpha / precisions, 1.0 / np.sqrt(precisions)
