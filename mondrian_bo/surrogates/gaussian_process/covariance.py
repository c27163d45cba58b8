"""The covariance of a Gaussian process with noise, and its Cholesky factor."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from mondrian_bo.array_types import BoolArray, FloatArray
from mondrian_bo.surrogates.gaussian_process.kernel import cross_kernel, kernel_matrix

_SMALLEST_JITTER = 1e-10
"""First addition to the diagonal, relative to its mean: far below any noise that is fitted."""

_LARGEST_JITTER = 1e-2
"""Largest single addition, relative to the mean diagonal: rounding errors never need so much."""

_NO_FACTORS: FloatArray = np.empty((0, 0))
"""No room for gradient factors."""


class Covariance(NamedTuple):
    """Hyper-parameters of Gaussian processes with a Matern kernel, without their mean.

    Compiled functions take it as an argument.

    Attributes
    ----------
    precisions : float64 array of shape (d,)
        Inverse squared lengthscales.
    amplitude : float
        Variance of the process.
    noise : float
        Variance of the noise, the shared part included.
    categorical : bool array of shape (d,)
        Which dimensions hold categories.
    smoothness : float, default=2.5
        Parameter nu of the Matern kernel: 0.5 or 2.5.
    shared_noise : float, default=0
        Variance of the noise that targets at equal inputs have in common. It is part of the
        function, whose kernel is discontinuous at distance 0.
    """

    precisions: FloatArray
    amplitude: float
    noise: float
    categorical: BoolArray
    smoothness: float = 2.5
    shared_noise: float = 0.0

    @property
    def independent_noise(self) -> float:
        """Variance of the noise that is independent for each target."""
        return self.noise - self.shared_noise

    @property
    def peak(self) -> float:
        """The kernel of equal points, in units of the amplitude."""
        return 1.0 + self.shared_noise / self.amplitude

    def between(self, points: FloatArray, others: FloatArray) -> FloatArray:
        """Return the covariances of the function at two sets of points, shape (m, n)."""
        result = np.empty((len(points), len(others)))
        cross_kernel(points, others, self, result, _NO_FACTORS)
        result *= self.amplitude
        return result

    def of_targets(self, points: FloatArray) -> FloatArray:
        """Return the lower triangle of the covariances of targets at points, shape (n, n)."""
        n = len(points)
        result = np.zeros((n, n))
        kernel_matrix(points, self, result, _NO_FACTORS)
        result *= self.amplitude
        result[np.diag_indices(n)] += self.independent_noise
        return result


def factorise(matrix: FloatArray) -> FloatArray:
    """Return the lower Cholesky factor of a covariance matrix.

    Only the lower triangle of the matrix is read, and the matrix may be overwritten. If rounding
    has made it indefinite, its diagonal is increased step by step.

    Raises
    ------
    numpy.linalg.LinAlgError
        If the matrix has NaN or infinite entries, or is far from positive definite.
    """
    jitter = _SMALLEST_JITTER * float(matrix.diagonal().mean())
    largest = _LARGEST_JITTER * float(matrix.diagonal().mean())
    while True:
        factor, info = lapack.dpotrf(matrix, lower=1, clean=1)
        if info == 0:
            return np.asarray(factor)
        if not jitter < largest:
            raise np.linalg.LinAlgError("The covariance matrix is not positive definite.")
        matrix[np.diag_indices(len(matrix))] += jitter
        jitter *= 10.0
