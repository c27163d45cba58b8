"""The posterior over the lifetime, given its prior (Balog2016, Appendix B)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from mondrian_bo.shared.array_types import FloatArray, IntArray
from mondrian_bo.surrogates.mondrian_kernel.lifetime_paths.lifetime_path import LifetimePath

Cdf = Callable[[FloatArray], FloatArray]
"""A cumulative distribution function of the lifetime."""

_MORE_LIFETIMES = 100
"""Number of lifetimes beside one of each interval if their number has no limit, our choice."""


_HALVINGS = 60
"""Halvings of the interval that holds a quantile: its width falls below the precision of its ends,
except beside 0, where 1e-18 of an interval is left."""


@dataclass(frozen=True)
class LifetimePosterior:
    """Posterior probabilities of the intervals of lifetimes that share a model.

    Attributes
    ----------
    ends : float64 array of shape (k + 1,)
        Ends of the intervals, from 0 to the largest lifetime.
    probabilities : float64 array of shape (k,)
        Posterior probabilities; within an interval the posterior is the prior, restricted to it.
    log_evidence : float
        Log of the marginal likelihood of the targets, averaged over the prior.
    cdf : callable or None, default=None
        Cumulative distribution function of the prior; None is the uniform distribution.
    """

    ends: FloatArray
    probabilities: FloatArray
    log_evidence: float
    cdf: Cdf | None = None

    def representatives(self, n_most: int | None) -> tuple[FloatArray, FloatArray]:
        """Return lifetimes that represent the posterior, with weights.

        Within an interval the evidence is constant, but the prediction at a new input is not: its
        features depend on the lifetime. So an interval of a large probability has several
        lifetimes, equally spaced quantiles of the prior within it.

        Parameters
        ----------
        n_most : int or None
            Largest number of lifetimes. If more intervals have positive probability, the lifetimes
            are `n_most` equally spaced quantiles. None takes one or more of every interval: one
            more for each hundredth of the probability.

        Returns
        -------
        lifetimes : float64 array of shape (n,)
            In increasing order.
        weights : float64 array of shape (n,)
            They add up to 1.
        """
        possible = np.flatnonzero(self.probabilities > 0.0)
        probabilities = self.probabilities[possible] / self.probabilities.sum()
        if n_most is not None and len(possible) > n_most:
            levels = (np.arange(n_most) + 0.5) / n_most
            return self._quantiles(levels), np.full(n_most, 1.0 / n_most)
        n_more = _MORE_LIFETIMES if n_most is None else n_most - len(possible)
        counts = 1 + (n_more * probabilities).astype(np.int64)
        within = np.concatenate([(np.arange(count) + 0.5) / count for count in counts])
        lifetimes = self._within(np.repeat(possible, counts), within)
        return lifetimes, np.repeat(probabilities / counts, counts)

    def quantile(self, level: float) -> float:
        """Return a quantile of the lifetime.

        Parameters
        ----------
        level : float
            Level in [0, 1].

        Returns
        -------
        float
            The quantile.

        Raises
        ------
        ValueError
            If the level is not in [0, 1].
        """
        if not 0.0 <= level <= 1.0:
            raise ValueError(f"level must be in [0, 1], got {level}")
        return float(self._quantiles(np.array([level]))[0])

    def _quantiles(self, levels: FloatArray) -> FloatArray:
        totals = np.append(0.0, np.cumsum(self.probabilities))
        totals /= totals[-1]
        if self.cdf is None:
            return np.interp(levels, totals, self.ends)
        # The last interval whose probability adds to the total has the level 1.
        last = int(np.flatnonzero(np.diff(totals) > 0.0)[-1])
        intervals = np.minimum(np.searchsorted(totals, levels, side="right") - 1, last)
        widths = totals[intervals + 1] - totals[intervals]
        return self._within(intervals, (levels - totals[intervals]) / widths)

    def _within(self, intervals: IntArray, shares: FloatArray) -> FloatArray:
        """Return quantiles of the prior restricted to intervals, at levels `shares`.

        The share 0 is where the prior's mass in the interval begins, and 1 where it ends.
        """
        low, high = self.ends[intervals], self.ends[intervals + 1]
        if self.cdf is None:
            return low + (high - low) * shares
        below, above = self.cdf(low), self.cdf(high)
        targets = below + (above - below) * np.minimum(shares, 1.0)
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            found = self.cdf(middle)
            beyond = (found >= targets) & (found > below)
            low, high = np.where(beyond, low, middle), np.where(beyond, middle, high)
        return high


def lifetime_posterior(path: LifetimePath, cdf: Cdf | None = None) -> LifetimePosterior:
    """Return the posterior over lifetimes of a path.

    Parameters
    ----------
    path : LifetimePath
        A path with the log marginal likelihood at every lifetime where the model changes.
    cdf : callable or None, default=None
        Cumulative distribution function of the prior, whose support must be within
        [0, ``path.max_lifetime``]; for instance ``scipy.stats.uniform(0, 10).cdf``. None is the
        uniform distribution; on [0, 0] it has all its mass at 0.

    Returns
    -------
    LifetimePosterior
        The posterior.

    Raises
    ------
    ValueError
        If the path has no marginal likelihood, or the prior has mass outside of the path.
    """
    if np.isnan(path.log_marginal_likelihood).any():
        raise ValueError("this path has no log_marginal_likelihood")
    ends = np.append(path.lifetimes, path.max_lifetime)
    if cdf is not None:
        shares = np.asarray(cdf(ends), dtype=np.float64)
    elif path.max_lifetime > 0.0:
        shares = ends / path.max_lifetime
    else:
        shares = np.array([0.0, 1.0])
    masses = np.diff(shares)
    if shares.shape != ends.shape or not np.all(masses >= 0.0) or abs(masses.sum() - 1.0) > 1e-6:
        raise ValueError(
            f"the prior's distribution function must rise from 0 to 1 on [0, {ends[-1]:g}], "
            f"got {shares[0]:g} and {shares[-1]:g} at the ends"
        )
    with np.errstate(divide="ignore"):
        logs = np.log(masses) + path.log_marginal_likelihood
    total = float(logsumexp(logs))
    return LifetimePosterior(ends, np.exp(logs - total), total, cdf)
