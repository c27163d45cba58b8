"""The covariance of a Gaussian process with noise, and its Cholesky factor."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from mondrian_bo.array_types import BoolArray, FloatArray
from mondrian_bo.surrogates.gaussian_process.kernel import cross_kernel, kernel_matrix

_LARGEST_JITTER = 1e-2


class Covariance(NamedTuple):
    """Parameters of the processes, shared by all blocks.

    Attributes
    ----------
    precisions : float64 array of shape (d,)
        Inverse squared lengthscales.
    amplitude : float
        Variance of a process.
    noise : float
        Variance of the noise, the shared part included.
    categorical : bool array of shape (d,)
        Which dimensions hold categories.
    smoothness : float, default=2.5
        Of the Matern kernel: 0.5 or 2.5.
    shared : float, default=0
        Variance of the part of the noise that equal inputs have in common: it belongs to the
        process, whose kernel jumps at distance 0.
    """

    precisions: FloatArray
    amplitude: float
    noise: float
    categorical: BoolArray
    smoothness: float = 2.5
    shared: float = 0.0

    @property
    def own_noise(self) -> float:
        """Variance of the noise that every label has of its own."""
        return self.noise - self.shared

    @property
    def peak(self) -> float:
        """The kernel at distance 0, in units of the amplitude."""
        return 1.0 + self.shared / self.amplitude

    def between(self, points: FloatArray, others: FloatArray) -> FloatArray:
        """Return the covariances between two sets of points, shape (m, n), without noise."""
        result = np.empty((len(points), len(others)))
        kernel = self.precisions, self.categorical, self.smoothness, self.peak
        cross_kernel(points, others, *kernel, result)
        result *= self.amplitude
        return result

    def of_labels(self, points: FloatArray) -> FloatArray:
        """Return the covariances of the labels of points, (n, n), the lower triangle alone."""
        n = len(points)
        result = np.zeros((n, n))
        kernel = self.precisions, self.categorical, self.smoothness, self.peak
        kernel_matrix(points, *kernel, result, np.empty((0, 0)))
        result *= self.amplitude
        result[np.diag_indices(n)] += self.own_noise
        return result


def factorise(matrix: FloatArray) -> FloatArray:
    """Return the lower Cholesky factor of a covariance matrix, whose lower triangle counts.

    It may be overwritten.

    The diagonal is raised as little as need be where rounding has made the matrix indefinite.

    Raises
    ------
    numpy.linalg.LinAlgError
        If the matrix holds NaN or infinity, or is no covariance by far.
    """
    jitter = 1e-10 * float(matrix.diagonal().mean())
    largest = _LARGEST_JITTER * float(matrix.diagonal().mean())
    while True:
        factor, info = lapack.dpotrf(matrix, lower=1, clean=1)
        if info == 0:
            return np.asarray(factor)
        if not jitter < largest:
            raise np.linalg.LinAlgError("The covariance matrix is not positive definite.")
        matrix[np.diag_indices(len(matrix))] += jitter
        jitter *= 10.0
