"""Where labels lie farther from predictions than expected, and where nearer."""

from __future__ import annotations

import numpy as np

from mondrian_bo.array_types import FloatArray
from mondrian_bo.surrogates.mondrian_forest.model import HierarchicalGaussianModel

_STRENGTH = 100.0


class VarianceCorrection:
    """What the variances of a mixture are to be multiplied by, from leave-one-out residuals.

    A model with one variance of the noise is too sure where there is more of it and not sure enough
    where there is less; and a mixture counts what its components differ by as uncertainty of their
    mean, although they err independently. Both show in what is left of each label once all others
    are known. Its square, in units of the variance it was predicted with, is 1 on average if all is
    well; a Mondrian forest with constant leaves (Lakshminarayanan2016) tells what it is where.

    Parameters
    ----------
    n_trees, n_dimensions : int
        Numbers of trees and dimensions.
    seed : numpy.random.SeedSequence
        Source of all randomness.
    bounds : tuple of two float64 arrays of shape (d,), or None
        Lower and upper ends of the dimensions; None follows the range of the data.
    feature_weights : float64 array of shape (d,) or None
        Weights of the dimensions' split rates.

    Notes
    -----
    Factors are shrunk towards 1 as if 100 more labels had confirmed that, because the residuals
    come from labels that the model was fitted to.
    """

    def __init__(
        self,
        n_trees: int,
        n_dimensions: int,
        seed: np.random.SeedSequence,
        bounds: tuple[FloatArray, FloatArray] | None,
        feature_weights: FloatArray | None,
    ) -> None:
        self._forest = HierarchicalGaussianModel(
            n_trees,
            n_dimensions,
            seed,
            branch_off="bridge",
            hyperparameters="leave_one_out",
            bounds=bounds,
            feature_weights=feature_weights,
        )

    def learn(self, points: FloatArray, residuals: FloatArray, variances: FloatArray) -> None:
        """Learn from points, once; O(T d n log n).

        Parameters
        ----------
        points : float64 array of shape (1, n, d)
            The points.
        residuals, variances : float64 arrays of shape (C, n)
            Labels minus their means given all other labels, by each component of the mixture, and
            their variances given these.
        """
        expected = variances.mean(axis=0) + residuals.var(axis=0)
        self._forest.learn(points, residuals.mean(axis=0) ** 2 / expected)

    def at(self, points: FloatArray) -> FloatArray:
        """Return the factors at points of shape (1, m, d), shape (m,), all positive."""
        means, _ = self._forest.predict(points)
        weight = self._forest.n_points / (self._forest.n_points + _STRENGTH)
        return np.asarray(1.0 - weight + weight * np.maximum(means.mean(axis=0), 0.0))
