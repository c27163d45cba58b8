"""Functions drawn from the prior of a process, by random Fourier features."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numba import njit

from mondrian_bo.array_types import FloatArray, IntArray
from mondrian_bo.surrogates.gaussian_process.covariance import Covariance
from mondrian_bo.trees.random import hashed_normal, hashed_word

_N_FEATURES = 512


def draw_from_prior(
    covariance: Covariance, n_choices: IntArray, rng: np.random.Generator
) -> Callable[[FloatArray], FloatArray]:
    """Draw a function from a process of amplitude 1 with a Matern kernel.

    Frequencies have a multivariate t distribution with twice the smoothness as degrees of freedom;
    k categories are k points at a distance of 1 from each other. What equal inputs share of the
    noise is a number for every point, hashed from its coordinates.

    Parameters
    ----------
    covariance : Covariance
        The process.
    n_choices : int64 array of shape (d,)
        Numbers of choices of categorical columns; category -1 is one more.
    rng : numpy.random.Generator
        Source of randomness.

    References
    ----------
    A. Rahimi, B. Recht: Random features for large-scale kernel machines, NIPS 2007.
    """
    numeric = ~covariance.categorical
    freedom = 2.0 * covariance.smoothness
    tails = np.sqrt(freedom / rng.chisquare(freedom, _N_FEATURES))
    scales = np.sqrt(covariance.precisions)
    frequencies = rng.standard_normal((int(numeric.sum()), _N_FEATURES))
    frequencies *= scales[numeric][:, None] * tails
    # A row of frequencies for each choice: the points are its unit vectors over sqrt(2).
    choices = {
        int(j): rng.standard_normal((int(n_choices[j]) + 1, _N_FEATURES))
        * (math.sqrt(0.5) * scales[j] * tails)
        for j in np.flatnonzero(covariance.categorical)
    }
    phases = rng.uniform(0.0, 2.0 * math.pi, _N_FEATURES)
    weights = math.sqrt(2.0 / _N_FEATURES) * rng.standard_normal(_N_FEATURES)
    jump = math.sqrt(covariance.peak - 1.0)
    key = np.uint64(rng.integers(2**63)) if jump > 0.0 else np.uint64(0)

    def function(points: FloatArray) -> FloatArray:
        angles = points[:, numeric] @ frequencies + phases
        for j, rows in choices.items():
            angles += rows[points[:, j].astype(np.int64)]
        values = np.asarray(np.cos(angles) @ weights)
        if jump > 0.0:
            # Adding 0 makes one of both zeros.
            values += jump * _normals_of(np.ascontiguousarray(points + 0.0).view(np.uint64), key)
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
