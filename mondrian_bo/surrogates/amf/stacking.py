"""Stacked predictions of an aggregated forest: a linear combination with the least error so far.

The forecasts of a forest are f_1, ..., f_K, and m is the mean of the earlier targets. The stacked
prediction is ``m + sum_k b_k (f_k - m)``, clipped to the range of the targets so far. The
coefficients minimise the weighted squared error of these predictions on all samples, each forecast
before it was learnt, plus a penalty of ``0.3 u v |b - 1/K|^2``, where v is the weighted mean square
of ``y - m`` and u the mean weight of the samples: the equal coefficients that the stream begins
with count as much as 0.3 samples. This is ridge regression, of which only sums are kept.

The weight of a sample is about in inverse proportion to its predicted standard deviation. Otherwise
a few samples with large errors decide where the scatter of the targets differs.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from mondrian_bo.shared.array_types import FloatArray

_LEAST_DEVIATION = 0.01
"""Added to standard deviations, in units of the root mean predicted variance so far: weights stay
finite. Our choice."""

_PRIOR = 0.3
"""Number of samples that the prior, equal coefficients, counts as much as; chosen on the streams of
``docs/appendix/amf.md``, where 1 has errors that are larger by 1 %."""

_LEAST_PENALTY = 1e-14
"""Least penalty, in units of the largest sum of squares of a forecast: beside a sample whose weight
is 1e14 times that of all others the ridge would vanish, and the matrix be singular. Our choice."""

_MASS, _TOTAL, _COUNTED, _VARIANCES, _WEIGHTS, _WEIGHTED_VARIANCES, _PRODUCTS = range(7)
"""Entries of the sums of :class:`Stacking`: weights of all samples and their sum of targets; of the
samples with a forecast, their weights, variances, final weights and variances times these; then the
products of deviations."""


@njit(cache=True, nogil=True)
def _learn_ahead(ahead, targets, sample_weights, sums):  # type: ignore[no-untyped-def]
    """Add the errors of forecasts to the sums, sample by sample; see :meth:`Stacking.learn`."""
    n_trees, n_new, n_columns = ahead.shape
    row = np.empty(n_columns)
    for i in range(n_new):
        weight = sample_weights[i] if len(sample_weights) > 0 else 1.0
        if sums[_MASS] > 0.0:
            mean = sums[_TOTAL] / sums[_MASS]
            variance, first, square = 0.0, 0.0, 0.0
            for t in range(n_trees):
                variance += ahead[t, i, n_columns - 1]
                first += ahead[t, i, 0]
            first /= n_trees
            for t in range(n_trees):
                square += (ahead[t, i, 0] - first) ** 2
            variance = (variance + square) / n_trees
            for k in range(n_columns - 1):
                total = 0.0
                for t in range(n_trees):
                    total += ahead[t, i, k]
                row[k] = total / n_trees - mean
            row[n_columns - 1] = targets[i] - mean
            sums[_COUNTED] += weight
            sums[_VARIANCES] += weight * variance
            deviation = 1.0
            typical = sums[_VARIANCES] / sums[_COUNTED]
            if typical > 0.0:
                deviation = math.sqrt(variance / typical)
            final = weight / (deviation + _LEAST_DEVIATION)
            sums[_WEIGHTS] += final
            sums[_WEIGHTED_VARIANCES] += final * variance
            for k in range(n_columns):
                for other in range(n_columns):
                    sums[_PRODUCTS + k * n_columns + other] += final * row[k] * row[other]
        sums[_MASS] += weight
        sums[_TOTAL] += weight * targets[i]


class Stacking:
    """The sums of the squared errors of linear combinations of forecasts.

    Parameters
    ----------
    n_forecasts : int
        Number of forecasts, K.
    """

    def __init__(self, n_forecasts: int) -> None:
        self._n_forecasts = n_forecasts
        self._sums = np.zeros(_PRODUCTS + (n_forecasts + 1) ** 2)
        self._n_counted = 0
        self._solution: tuple[FloatArray, float] | None = None

    def learn(
        self, ahead: FloatArray, targets: FloatArray, sample_weights: FloatArray | None = None
    ) -> None:
        """Learn the errors of forecasts, in their order.

        Sums are added up one by one, so they do not depend on how samples are divided into calls.
        The first sample of all has no forecast that counts.

        Parameters
        ----------
        ahead : float64 array of shape (T, m, K + 1)
            Forecasts of each target by each tree, from the targets before it, and the variance of
            the first forecast.
        targets : float64 array of shape (m,)
            The targets.
        sample_weights : float64 array of shape (m,) or None, default=None
            Positive weights of the samples; None is all ones.
        """
        weights = np.empty(0) if sample_weights is None else sample_weights
        self._n_counted += len(targets) - (self._sums[_MASS] == 0.0)
        _learn_ahead(ahead, targets, weights, self._sums)
        self._solution = None

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore; in pickles of earlier versions the mean weight counts as 1."""
        self.__dict__.update({"_n_counted": int(state["_sums"][_COUNTED]), **state})

    @property
    def mean(self) -> float:
        """The mean of all targets, m."""
        mass = self._sums[_MASS]
        return float(self._sums[_TOTAL] / mass) if mass > 0.0 else 0.0

    @property
    def coefficients(self) -> FloatArray:
        """The coefficients of the deviations of the forecasts from the mean, b, shape (K,)."""
        return self._solve()[0]

    @property
    def scale(self) -> float:
        """Factor of the variances: the mean square error over the mean of the variances.

        Both means are weighted as the errors are, and have one more sample of the mean weight,
        whose error and variance are the weighted mean square of ``y - m``.
        """
        return self._solve()[1]

    def combine(self, forecasts: FloatArray, lowest: float, highest: float) -> FloatArray:
        """Return the stacked predictions, shape (m,), from forecasts of shape (m, K).

        `lowest` and `highest` are the range of the targets so far.
        """
        stacked = self.mean + (forecasts - self.mean) @ self.coefficients
        return np.asarray(np.clip(stacked, lowest, highest))

    def shares(self, stacked: FloatArray, lowest: float, highest: float) -> FloatArray:
        """Return the shares of linear combinations, before they are clipped, in the predictions.

        A prediction is this share of the combination and the rest of the mean m.
        """
        gap = stacked - self.mean
        clipped = np.clip(stacked, lowest, highest) - self.mean
        return np.divide(clipped, gap, out=np.ones_like(gap), where=clipped != gap)

    def _solve(self) -> tuple[FloatArray, float]:
        if self._solution is None:
            k = self._n_forecasts
            products = self._sums[_PRODUCTS:].reshape(k + 1, k + 1)
            total, weights = products[k, k], self._sums[_WEIGHTS]
            equal = np.full(k, 1.0 / k)
            # The loss of a typical sample with the prediction m.
            mean_weight = self._sums[_COUNTED] / max(self._n_counted, 1)
            unit = mean_weight * (total / weights) if weights > 0.0 else 0.0
            if unit > 0.0:
                largest = float(products.diagonal()[:k].max())
                penalty = max(_PRIOR * unit, _LEAST_PENALTY * largest)
                penalised = products[:k, :k] + penalty * np.eye(k)
                b = np.linalg.solve(penalised, products[:k, k] + penalty * equal)
                error = total - 2.0 * b @ products[:k, k] + b @ products[:k, :k] @ b
                variance = float(self._sums[_WEIGHTED_VARIANCES])
                scale = (max(float(error), 0.0) + unit) / (variance + unit)
                self._solution = np.asarray(b, dtype=np.float64), float(scale)
            else:
                self._solution = equal, 1.0
        return self._solution
