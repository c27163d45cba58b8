"""Correction of predictive variances by leave-one-out residuals."""

from __future__ import annotations

import numpy as np

from mondrian_bo.shared.array_types import FloatArray
from mondrian_bo.surrogates.mondrian_forest.model import HierarchicalGaussianModel
from mondrian_bo.surrogates.shared.ensemble import Ensemble

_STRENGTH = 100.0
"""Number of targets by which factors are shrunk towards 1, our choice.

The hyper-parameters are fitted to the same targets, so the residuals are too small. 30, 200 and 300
are no better on the sets of docs/appendix/regression.md.
"""


class VarianceCorrection:
    """Factors of a mixture's variances, learnt from its leave-one-out residuals.

    Variances can be wrong for two reasons. A model with one variance of the noise underestimates it
    in some regions and overestimates it in others. And a mixture counts the differences between its
    components as uncertainty, although their errors partly cancel in its mean. Both affect the
    squared leave-one-out residuals in units of their predicted variances, whose expectation is 1 if
    the variances are right. A Mondrian forest with constant leaves (Lakshminarayanan2016) is fitted
    to these squares; its prediction at a point is the factor there.

    Parameters
    ----------
    ensemble : Ensemble
        Number of trees, dimension of the points, and seed.
    bounds : tuple of two float64 arrays of shape (d,), or None
        Lower and upper ends of the dimensions; None follows the range of the data.
    feature_weights : float64 array of shape (d,) or None
        Factors of the dimensions' split rates.

    Notes
    -----
    Factors are shrunk towards 1 by 100 further targets.
    """

    def __init__(
        self,
        ensemble: Ensemble,
        bounds: tuple[FloatArray, FloatArray] | None,
        feature_weights: FloatArray | None,
    ) -> None:
        self._model = HierarchicalGaussianModel(
            ensemble,
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
            Targets minus their leave-one-out means in each component of the mixture, and their
            leave-one-out variances.
        """
        expected = variances.mean(axis=0) + residuals.var(axis=0)
        self._model.learn(points, residuals.mean(axis=0) ** 2 / expected)

    def factors(self, points: FloatArray, n_jobs: int | None = 1) -> FloatArray:
        """Return the factors at points of shape (1, m, d), shape (m,), all positive."""
        means, _ = self._model.predict(points, n_jobs)
        weight = self._model.n_points / (self._model.n_points + _STRENGTH)
        return np.asarray(1.0 - weight + weight * np.maximum(means.mean(axis=0), 0.0))
