"""The posterior over the lifetime, given its prior (Balog2016, Appendix B)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from mondrian_bo.shared.array_types import FloatArray
from mondrian_bo.surrogates.mondrian_kernel.lifetime_paths.lifetime_path import LifetimePath

Cdf = Callable[[FloatArray], FloatArray]
"""A cumulative distribution function of the lifetime."""

_MORE_LIFETIMES = 100
"""Number of lifetimes beside one of each interval if their number has no limit, our choice."""


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
    """

    ends: FloatArray
    probabilities: FloatArray
    log_evidence: float

    def representatives(self, n_most: int | None) -> tuple[FloatArray, FloatArray]:
        """Return lifetimes that represent the posterior, with weights.

        Within an interval the evidence is constant, but the prediction at a new input is not: its
        features depend on the lifetime. So an interval of a large probability has several
        lifetimes, evenly spaced.

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
            lifetimes = [self.quantile(level) for level in levels]
            return np.array(lifetimes), np.full(n_most, 1.0 / n_most)
        n_more = _MORE_LIFETIMES if n_most is None else n_most - len(possible)
        counts = 1 + (n_more * probabilities).astype(np.int64)
        within = [(np.arange(count) + 0.5) / count for count in counts]
        starts, widths = self.ends[possible], np.diff(self.ends)[possible]
        lifetimes = np.repeat(starts, counts) + np.repeat(widths, counts) * np.concatenate(within)
        return lifetimes, np.repeat(probabilities / counts, counts)

    def quantile(self, level: float) -> float:
        """Return a quantile of the lifetime, linear within intervals.

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
        totals = np.append(0.0, np.cumsum(self.probabilities))
        return float(np.interp(level, totals / totals[-1], self.ends))


def lifetime_posterior(path: LifetimePath, cdf: Cdf | None = None) -> LifetimePosterior:
    """Return the posterior over lifetimes of a path.

    Parameters
    ----------
    path : LifetimePath
        A path with the log marginal likelihood at every lifetime where the model changes.
    cdf : callable or None, default=None
        Cumulative distribution function of the prior, whose support must be within
        [0, ``path.max_lifetime``]; for instance ``scipy.stats.uniform(0, 10).cdf``. None is the
        uniform distribution.

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
    shares = np.asarray(ends / path.max_lifetime if cdf is None else cdf(ends), dtype=np.float64)
    masses = np.diff(shares)
    if shares.shape != ends.shape or not np.all(masses >= 0.0) or abs(masses.sum() - 1.0) > 1e-6:
        raise ValueError(
            f"the prior's distribution function must rise from 0 to 1 on [0, {ends[-1]:g}], "
            f"got {shares[0]:g} and {shares[-1]:g} at the ends"
        )
    with np.errstate(divide="ignore"):
        logs = np.log(masses) + path.log_marginal_likelihood
    total = float(logsumexp(logs))
    return LifetimePosterior(ends, np.exp(logs - total), total)
