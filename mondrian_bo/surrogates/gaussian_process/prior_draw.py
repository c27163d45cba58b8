"""Functions drawn from the prior of a Gaussian process, by random Fourier features."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numba import njit

from mondrian_bo.shared.array_types import FloatArray, IntArray
from mondrian_bo.surrogates.gaussian_process.covariance import Covariance
from mondrian_bo.trees.random import hashed_normal, hashed_word

_N_FEATURES = 512
"""Fourier features of a draw: the error of its covariance is about 1 / sqrt(512) = 4 %."""

_FARTHEST = 1e25
"""Bound of scaled coordinates, without unit: angles of float32 stay below 3e38."""


def draw_from_prior(
    covariance: Covariance, n_choices: IntArray, rng: np.random.Generator
) -> Callable[[FloatArray], FloatArray]:
    """Draw a function from a process with a Matern kernel, mean 0 and amplitude 1.

    The spectral density of the kernel is a multivariate t distribution with 2 nu degrees of freedom
    (Rasmussen2006, eq. 4.15). The k choices of a categorical column are represented by k points at
    distance 1 from each other. The shared noise is a normal number for each point, hashed from its
    coordinates.

    Parameters
    ----------
    covariance : Covariance
        Hyper-parameters of the process.
    n_choices : int64 array of shape (d,)
        Number of choices of each categorical column; category -1 is an additional one.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    callable
        Maps points of shape (m, d) to values of shape (m,), float64 with the precision of float32.

    References
    ----------
    A. Rahimi, B. Recht: Random features for large-scale kernel machines, NIPS 2007.
    """
    numeric = ~covariance.categorical
    freedom = 2.0 * covariance.smoothness
    tails = np.sqrt(freedom / rng.chisquare(freedom, _N_FEATURES))
    inverse_lengthscales = np.sqrt(covariance.precisions)
    frequencies = rng.standard_normal((int(numeric.sum()), _N_FEATURES))
    frequencies *= inverse_lengthscales[numeric][:, None] * tails
    # Choice c is the point e_c / sqrt(2), so its angles are a row of frequencies over sqrt(2).
    choice_angles = {
        int(j): rng.standard_normal((int(n_choices[j]) + 1, _N_FEATURES))
        * (math.sqrt(0.5) * inverse_lengthscales[j] * tails)
        for j in np.flatnonzero(covariance.categorical)
    }
    phases = rng.uniform(0.0, 2.0 * math.pi, _N_FEATURES)
    weights = math.sqrt(2.0 / _N_FEATURES) * rng.standard_normal(_N_FEATURES)
    # Cosines of float32 take a tenth of the time, and their rounding is far below the error of the
    # features.
    single_frequencies, single_phases = frequencies.astype(np.float32), phases.astype(np.float32)
    single_weights = weights.astype(np.float32)
    single_choices = {j: angles.astype(np.float32) for j, angles in choice_angles.items()}
    noise_std = math.sqrt(covariance.peak - 1.0)
    key = np.uint64(rng.integers(2**63)) if noise_std > 0.0 else np.uint64(0)

    def function(points: FloatArray) -> FloatArray:
        near = np.clip(points[:, numeric], -_FARTHEST, _FARTHEST)
        angles = near.astype(np.float32) @ single_frequencies + single_phases
        for j, of_choices in single_choices.items():
            angles += of_choices[points[:, j].astype(np.int64)]
        values = np.asarray(np.cos(angles) @ single_weights, dtype=np.float64)
        if noise_std > 0.0:
            # Adding 0 turns -0 into 0, which has other bits.
            words = np.ascontiguousarray(points + 0.0).view(np.uint64)
            values += noise_std * _normals_of(words, key)
        return values

    return function


@njit(cache=True, nogil=True)
def _normals_of(rows, key):  # type: ignore[no-untyped-def]
    """Return a standard normal number for each row of 64-bit words, equal for equal rows."""
    result = np.empty(len(rows))
    for i in range(len(rows)):
        word = key
        for j in range(rows.shape[1]):
            word = hashed_word(word, rows[i, j])
        result[i] = hashed_normal(word, 0)
    return result
