"""A learning curve, and a local linear regression of its outcome on its first part."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
from scipy.special import stdtr, stdtrit

from mondrian_bo.shared.array_types import FloatArray

_WIDTH = 0.5
"""Standard deviation of the weights of other curves, in standard deviations of all reports. Widths
from 0.25 to 1 give about the same on the development tasks of the suite ``curves``."""

_LEAST_WEIGHT = 0.05
"""Weight of a curve whose latest report is far away, so that no regression is without data; our
choice."""

_RIDGE = 0.3
"""Precision of the coefficients' prior, in units of the noise's: weak, as curves are few; our
choice."""

_PRIOR_SHAPE, _PRIOR_RATE = 1.0, 0.0001
"""Inverse-gamma prior of the noise's variance. It counts as two residuals of 0.01 standard
deviations: without it, equal outcomes of the first few curves would leave no variance at all. With
0.05, good trials that differ by less are never stopped. Chosen on the development tasks of the
suite ``curves``."""


class Curve:
    """The reports of one trial, with their running mean and maximum after a transform.

    Parameters
    ----------
    transform : callable or None, default=None
        Maps values, shape (m,), to the scale of the model. Until one is set, there are no features.

    Attributes
    ----------
    positions : list of float
        Where the reports stand, ascending.
    values : list of float
        The reports; larger is better, NaN allowed.
    """

    def __init__(self, transform: Callable[[FloatArray], FloatArray] | None = None) -> None:
        self.positions: list[float] = []
        self.values: list[float] = []
        self._scaled: list[float] = []
        self._totals: list[float] = []
        self._largest: list[float] = []
        self._transform = transform

    def extend(self, positions: Iterable[float], values: Iterable[float]) -> None:
        """Append reports, O(1) each; positions ascend."""
        self.positions.extend(positions)
        self.values.extend(values)
        self._follow()

    def set_transform(self, transform: Callable[[FloatArray], FloatArray]) -> None:
        """Transform all reports anew, unless the transform is the present one."""
        if transform is not self._transform:
            self._transform = transform
            self._scaled, self._totals, self._largest = [], [], []
            self._follow()

    def n_until(self, position: float) -> int:
        """Return the number of reports up to a position."""
        return bisect.bisect_right(self.positions, position)

    def features(self, n_reports: int) -> tuple[float, float, float, float, float]:
        """Return what the outcome is predicted from, after the first reports.

        Returns
        -------
        tuple of five floats
            One; the latest report; how far the mean and the largest are above it; and its gain
            since half of the reports. All are transformed.
        """
        latest = self._scaled[n_reports - 1]
        mean = self._totals[n_reports - 1] / n_reports
        middle = self._scaled[max((n_reports + 1) // 2 - 1, 0)]
        return 1.0, latest, mean - latest, self._largest[n_reports - 1] - latest, latest - middle

    def _follow(self) -> None:
        """Transform the latest reports."""
        if self._transform is None or len(self._scaled) == len(self.values):
            return
        for value in self._transform(np.array(self.values[len(self._scaled) :])).tolist():
            self._scaled.append(value)
            self._totals.append(value + (self._totals[-1] if self._totals else 0.0))
            self._largest.append(max(value, self._largest[-1]) if self._largest else value)


class StudentPrediction(NamedTuple):
    """Student t distributions of outcomes; all arrays have shape (m,)."""

    location: FloatArray
    scale: FloatArray
    freedom: FloatArray

    def probability(self, outcome: float | FloatArray) -> FloatArray:
        """Return the probabilities of more than an outcome."""
        return np.asarray(stdtr(self.freedom, (self.location - outcome) / self.scale))

    def quantiles(self, levels: FloatArray) -> FloatArray:
        """Return the quantiles at q levels, shape (m, q)."""
        scores = stdtrit(self.freedom[:, None], levels)
        return np.asarray(self.location[:, None] + self.scale[:, None] * scores)


class LocalRegression(NamedTuple):
    """Curves at one position, and their outcomes.

    The outcome is the latest report plus a linear function of the features plus noise. Coefficients
    and variance have a normal-inverse-gamma prior. Curves count with a weight that falls with the
    distance of their latest reports: bad curves vary more than good ones, and need not say how good
    ones continue.

    Attributes
    ----------
    features : float64 array of shape (n, 5)
        As :meth:`Curve.features` returns them.
    outcomes : float64 array of shape (n,)
        Transformed outcomes.
    """

    features: FloatArray
    outcomes: FloatArray

    def predict(self, features: FloatArray) -> StudentPrediction:
        """Predict the outcomes of curves, features of shape (m, 5)."""
        return self._predict(features, self._weights(features))

    def leave_one_out(self) -> StudentPrediction:
        """Predict the outcome of each curve from the others."""
        weights = self._weights(self.features)
        np.fill_diagonal(weights, 0.0)
        return self._predict(self.features, weights)

    def _weights(self, features: FloatArray) -> FloatArray:
        gaps = (features[:, None, 1] - self.features[None, :, 1]) / _WIDTH
        return np.asarray(np.exp(-0.5 * gaps * gaps) + _LEAST_WEIGHT)

    def _predict(self, features: FloatArray, weights: FloatArray) -> StudentPrediction:
        """Predict with weights of the curves, shape (m, n)."""
        n, d = self.features.shape
        residuals = self.outcomes - self.features[:, 1]
        squares = (self.features[:, :, None] * self.features[:, None, :]).reshape(n, d * d)
        precision = (weights @ squares).reshape(-1, d, d) + _RIDGE * np.eye(d)
        projected = weights @ (self.features * residuals[:, None])
        # One solution for the coefficients, and one for the variance of the prediction.
        solved = np.linalg.solve(precision, np.stack([projected, features], axis=2))
        coefficients = solved[:, :, 0]
        remaining = weights @ (residuals * residuals) - (coefficients * projected).sum(axis=1)
        shape = _PRIOR_SHAPE + 0.5 * weights.sum(axis=1)
        rate = _PRIOR_RATE + 0.5 * np.maximum(remaining, 0.0)
        leverage = (features * solved[:, :, 1]).sum(axis=1)
        return StudentPrediction(
            features[:, 1] + (features * coefficients).sum(axis=1),
            np.sqrt(rate / shape * (1.0 + leverage)),
            2.0 * shape,
        )
