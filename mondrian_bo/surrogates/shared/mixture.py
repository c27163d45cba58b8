"""Gaussian mixtures, one per predicted point: the predictive distributions of a forest."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from mondrian_bo.array_types import FloatArray, IntArray

_LOG_SQRT_2_PI = 0.5 * np.log(2.0 * np.pi)
"""Log of the normalising constant of a standard normal density."""

_N_BISECTIONS = 100
"""Halvings of a quantile's bracket, by 1e30 in all: more than floating point resolves."""

_REACH = 40.0
"""Half-width of a bracket, in standard deviations: a normal tail beyond it underflows to 0."""


@dataclass(frozen=True, eq=False)
class GaussianMixture:
    """A Gaussian mixture for each of m points (Lakshminarayanan2016, eq. 3 and 5).

    Parameters
    ----------
    point : int array of shape (rows,)
        Index of the point of each component, ascending; every point has a component.
    weight : float array of shape (rows,)
        Weights of the components; those of a point sum to 1.
    mean : float array of shape (rows,)
        Means of the components.
    std : float array of shape (rows,)
        Standard deviations of the components, positive.
    """

    point: IntArray
    weight: FloatArray
    mean: FloatArray
    std: FloatArray

    def __len__(self) -> int:
        """Return the number of points m."""
        return len(self._starts)

    def logpdf(self, values: ArrayLike) -> FloatArray:
        """Return the log density at one value per point, shape (m,).

        It is minus infinity where the density is below the smallest number of its logarithm: more
        than about 1e154 standard deviations from all components.
        """
        with np.errstate(divide="ignore", over="ignore"):
            standardised = (self._per_row(values) - self.mean) / self.std
            terms = np.log(self.weight) - np.log(self.std) - 0.5 * standardised**2
            peak = np.maximum.reduceat(terms, self._starts)
            shift = np.where(np.isfinite(peak), peak, 0.0)
            total: FloatArray = np.add.reduceat(np.exp(terms - shift[self.point]), self._starts)
            return np.asarray(shift + np.log(total) - _LOG_SQRT_2_PI)

    def cdf(self, values: ArrayLike) -> FloatArray:
        """Return the distribution function at one value per point, shape (m,)."""
        standardised = (self._per_row(values) - self.mean) / self.std
        return np.asarray(np.add.reduceat(self.weight * ndtr(standardised), self._starts))

    def quantile(self, level: float) -> FloatArray:
        """Return the quantile of every point at a level in (0, 1), shape (m,).

        Bisection finds it to floating-point resolution.
        """
        # At the lower end every component has less than `level` below it, at the upper end more.
        reach = _REACH * self.std
        low = np.minimum.reduceat(self.mean - reach, self._starts)
        high = np.maximum.reduceat(self.mean + reach, self._starts)
        for _ in range(_N_BISECTIONS):
            middle = 0.5 * (low + high)
            below = self.cdf(middle) < level
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return np.asarray(0.5 * (low + high))

    def sample(self, n_samples: int, rng: np.random.Generator) -> FloatArray:
        """Draw independent values, shape (m, n_samples)."""
        cumulative = np.cumsum(self.weight)
        # Inverse transform sampling of a component, within the weights of each point.
        before = np.concatenate([[0.0], cumulative])[self._starts]
        ends = np.append(self._starts[1:], len(self.weight)) - 1
        share = rng.random((len(self), n_samples))
        target = before[:, None] + share * (cumulative[ends] - before)[:, None]
        chosen = np.searchsorted(cumulative, target, side="right")
        chosen = np.clip(chosen, self._starts[:, None], ends[:, None])
        noise = rng.standard_normal(chosen.shape)
        return np.asarray(self.mean[chosen] + self.std[chosen] * noise)

    @cached_property
    def _starts(self) -> IntArray:
        """The first component of each point."""
        return np.flatnonzero(np.diff(self.point, prepend=-1))

    def _per_row(self, values: ArrayLike) -> FloatArray:
        return np.asarray(values, dtype=np.float64)[self.point]
