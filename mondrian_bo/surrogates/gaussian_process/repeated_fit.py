"""The hyper-parameters of processes whose points become more: one fit after the other."""

from __future__ import annotations

import math

from mondrian_bo.shared.array_types import BoolArray, FloatArray
from mondrian_bo.surrogates.gaussian_process.covariance import Covariance
from mondrian_bo.surrogates.gaussian_process.fit import (
    Estimate,
    LeafData,
    Prior,
    best_estimates,
    fit_hyperparameters,
    initial_estimates,
)

_ITERATIONS = 5
"""Largest number of iterations of a later fit, our choice. It starts where the last one ends."""

_ITERATIONS_OF_RESTARTS = 50
"""Largest number of iterations of a later fit that starts anew, our choice."""


class RepeatedFit:
    """Estimates of hyper-parameters that are fitted again as the number of points grows.

    A later fit starts where the last one ended, which takes few iterations. It stays at a local
    maximum that the last one ended at, such as one that explains variation by noise. So at times a
    second fit starts anew, and the better one counts.

    Parameters
    ----------
    categorical : bool array of shape (d,)
        Which dimensions hold categories.
    prior : Prior
        Prior of the hyper-parameters.
    growth : float, default=1.05
        Factor of the number of points from which on a fit is due again.
    first_iterations : int, default=100
        Largest number of iterations of the first fit, which starts far from the maximum.
    restart_growth : float, default=inf
        The same as `growth` for fits that start anew; infinity is never.

    Attributes
    ----------
    estimates : list of Estimate
        The present estimate for each smoothness, the best first.
    n_due : float
        Number of points from which on the next fit is due; infinite if none is.
    """

    def __init__(
        self,
        categorical: BoolArray,
        prior: Prior,
        *,
        growth: float = 1.05,
        first_iterations: int = 100,
        restart_growth: float = math.inf,
    ) -> None:
        self._prior = prior
        self._growth = growth
        self._first_iterations = first_iterations
        self._restart_growth = restart_growth
        self._start = initial_estimates(categorical, prior)
        self.estimates = self._start
        self.n_due = 0.0
        self._n_at_restart = 0

    def fit(self, leaves: list[LeafData], n_points: int) -> None:
        """Fit to some leaves of all points, of which there are `n_points`.

        See :func:`fit_hyperparameters`, also for the time.
        """
        is_first = self._n_at_restart == 0
        iterations = self._first_iterations if is_first else _ITERATIONS
        found = fit_hyperparameters(leaves, self.estimates, self._prior, iterations)
        if is_first:
            self._n_at_restart = n_points
        elif n_points >= self._restart_growth * self._n_at_restart:
            iterations = _ITERATIONS_OF_RESTARTS
            anew = fit_hyperparameters(leaves, self._start, self._prior, iterations)
            found = best_estimates(found, anew)
            self._n_at_restart = n_points
        self.estimates, self.n_due = found, self._growth * n_points

    def prepare(self, leaf: tuple[FloatArray, FloatArray], max_iterations: int) -> None:
        """Start the first fit from the estimates for another leaf, of so many iterations."""
        self.estimates = fit_hyperparameters([leaf], self.estimates, self._prior, max_iterations)

    def start_from(self, covariance: Covariance) -> None:
        """Set the hyper-parameters of one smoothness, from which the next fit starts."""
        nu = covariance.smoothness
        others = [one for one in self.estimates if one.covariance.smoothness != nu]
        self.estimates = [Estimate(covariance), *others]

    def fix(self, covariance: Covariance) -> None:
        """Set the hyper-parameters; no fit changes them."""
        self.estimates = [self.estimates[0]._replace(covariance=covariance)]
        self.n_due = math.inf
