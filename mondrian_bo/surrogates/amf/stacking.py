"""Stacked predictions of an aggregated forest: a linear combination with the least error so far.

The forecasts of a forest are f_1, ..., f_K, and m is the mean of the earlier targets. The stacked
prediction is ``m + sum_k b_k (f_k - m)``. The coefficients minimise the weighted squared error of
these predictions on all samples, each forecast before it was learnt, plus a penalty of
``v |b - 1/K|^2``, where v is the mean square of ``y - m``: the equal weights that the stream begins
with count as much as one sample. This is ridge regression, of which only sums are kept.
"""

from __future__ import annotations

import numpy as np

from mondrian_bo.array_types import FloatArray


class Stacking:
    """The sums of the squared errors of linear combinations of forecasts.

    Parameters
    ----------
    n_forecasts : int
        Number of forecasts, K.
    """

    def __init__(self, n_forecasts: int) -> None:
        self._n_forecasts = n_forecasts
        self._mass = 0.0
        self._total = 0.0
        # Sums of products of the deviations of forecasts and target, of variances, and of weights.
        self._sums = np.zeros((n_forecasts + 1) ** 2 + 2)
        self._solution: tuple[FloatArray, float] | None = None

    def learn(
        self,
        forecasts: FloatArray,
        variances: FloatArray,
        targets: FloatArray,
        importance: FloatArray | None = None,
    ) -> None:
        """Learn the errors of forecasts, in their order.

        Sums are added up one by one, so they do not depend on how samples are divided into calls.
        The first sample of all has no forecast that counts.

        Parameters
        ----------
        forecasts : float64 array of shape (m, K)
            Forecasts of each target from the targets before it.
        variances : float64 array of shape (m,)
            The variances that were predicted.
        targets : float64 array of shape (m,)
            The targets.
        importance : float64 array of shape (m,) or None, default=None
            Positive weights of the samples; None is all ones.
        """
        weights = np.ones(len(targets)) if importance is None else importance
        # The mean before each sample, and after the last.
        masses = np.add.accumulate(np.concatenate(([self._mass], weights)))
        totals = np.add.accumulate(np.concatenate(([self._total], weights * targets)))
        means = totals / np.maximum(masses, np.finfo(np.float64).tiny)
        start = 0 if self._mass > 0.0 else 1
        self._mass, self._total = float(masses[-1]), float(totals[-1])
        deviations = np.column_stack((forecasts, targets))[start:] - means[start:-1, None]
        products = deviations[:, :, None] * deviations[:, None, :]
        ones = np.ones((len(products), 1))
        rows = np.hstack(
            (products.reshape(len(ones), deviations.shape[1] ** 2), variances[start:, None], ones)
        )
        rows *= weights[start:, None]
        self._sums = np.add.accumulate(np.vstack((self._sums, rows)))[-1]
        self._solution = None

    @property
    def mean(self) -> float:
        """The mean of all targets, m."""
        return self._total / self._mass if self._mass > 0.0 else 0.0

    @property
    def coefficients(self) -> FloatArray:
        """The coefficients of the deviations of the forecasts from the mean, b, shape (K,)."""
        return self._solve()[0]

    @property
    def scale(self) -> float:
        """Factor of the variances: the mean square error over the mean of the variances.

        Both have one more sample, whose error and variance are the mean square of ``y - m``.
        """
        return self._solve()[1]

    def combine(self, forecasts: FloatArray) -> FloatArray:
        """Return the stacked predictions, shape (m,), from forecasts of shape (m, K)."""
        return np.asarray(self.mean + (forecasts - self.mean) @ self.coefficients)

    def _solve(self) -> tuple[FloatArray, float]:
        if self._solution is None:
            k = self._n_forecasts
            products = self._sums[:-2].reshape(k + 1, k + 1)
            total, variance, mass = products[k, k], self._sums[-2], self._sums[-1]
            equal = np.full(k, 1.0 / k)
            unit = total / mass if mass > 0.0 else 0.0
            if unit > 0.0:
                penalised = products[:k, :k] + unit * np.eye(k)
                b = np.linalg.solve(penalised, products[:k, k] + unit * equal)
                error = total - 2.0 * b @ products[:k, k] + b @ products[:k, :k] @ b
                scale = (max(float(error), 0.0) + unit) / (float(variance) + unit)
                self._solution = b, scale
            else:
                self._solution = equal, 1.0
        return self._solution
