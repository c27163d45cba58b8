"""Gaussian mixtures, one per predicted point: the predictive distributions of a forest."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from mondrian_bo.shared.array_types import FloatArray, IntArray

_LOG_SQRT_2_PI = 0.5 * np.log(2.0 * np.pi)
"""Log of the normalising constant of a standard normal density."""

_SMALLEST_RELATIVE_STD = 1e-9
"""Smallest standard deviation of a component, in units of the targets' scale, for densities."""

_N_BISECTIONS = 100
"""Halvings of a quantile's bracket, by 1e30 in all: more than floating point resolves."""

_REACH = 40.0
"""Half-width of a bracket, in standard deviations: a normal tail beyond it underflows to 0."""

_LARGEST = float(np.finfo(np.float64).max)
"""Largest size of a quantile: brackets have finite ends."""


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

    @classmethod
    def of_components(
        cls,
        means: FloatArray,
        variances: FloatArray,
        scale: float = 0.0,
        weights: FloatArray | None = None,
    ) -> GaussianMixture:
        """Return the mixtures of C components with the same weights at each point.

        Parameters
        ----------
        means, variances : float64 arrays of shape (C, m)
            Moments of the components.
        scale : float, default=0.0
            Scale of the targets. Standard deviations are at least a billionth of it, so that
            densities are finite.
        weights : float64 array of shape (C,) or None, default=None
            Weights of the components, which sum to 1; None is equal ones.
        """
        n_components, n_points = means.shape
        if weights is None:
            weights = np.full(n_components, 1.0 / n_components)
        return cls(
            point=np.repeat(np.arange(n_points), n_components),
            weight=np.tile(weights, n_points),
            mean=means.T.ravel(),
            std=_stds(variances.T.ravel(), scale),
        )

    @classmethod
    def of_rows(cls, rows: FloatArray, scale: float) -> GaussianMixture:
        """Return the mixtures of components that are rows of a table.

        Parameters
        ----------
        rows : float64 array of shape (rows, 4)
            Point, weight, mean and variance of each component, as of the class.
        scale : float
            Scale of the targets, as in `of_components`.
        """
        return cls(
            point=rows[:, 0].astype(np.int64),
            weight=rows[:, 1],
            mean=rows[:, 2],
            std=_stds(rows[:, 3], scale),
        )

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
        with np.errstate(over="ignore"):  # in the ends, and in differences from the means
            reach = _REACH * self.std
            low = np.minimum.reduceat(self.mean - reach, self._starts).clip(min=-_LARGEST)
            high = np.maximum.reduceat(self.mean + reach, self._starts).clip(max=_LARGEST)
            for _ in range(_N_BISECTIONS):
                middle = 0.5 * low + 0.5 * high
                below = self.cdf(middle) < level
                low, high = np.where(below, middle, low), np.where(below, high, middle)
        return np.asarray(0.5 * low + 0.5 * high)

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


def _stds(variances: FloatArray, scale: float) -> FloatArray:
    """Return standard deviations for densities of targets of a scale: positive ones."""
    smallest = max(_SMALLEST_RELATIVE_STD * scale, float(np.finfo(np.float64).tiny))
    return np.maximum(np.sqrt(variances), smallest)
