"""Ridge regression on the cells of Mondrian grids, updated as lifetimes change."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from mondrian_bo.shared.argument_checks import is_number
from mondrian_bo.shared.array_types import FloatArray
from mondrian_bo.surrogates.mondrian_grid.cells import GridCells
from mondrian_bo.surrogates.mondrian_kernel.lifetime_paths.cuts import Cut
from mondrian_bo.surrogates.mondrian_kernel.lifetime_paths.lifetime_path import root_mean_square
from mondrian_bo.surrogates.mondrian_kernel.lifetime_paths.solvers import (
    DualSolver,
    PathSolver,
    PrimalSolver,
    RidgeFit,
    predict,
)
from mondrian_bo.surrogates.shared.lifetimes import check_lifetimes

_BACK = 0.8
"""Number of cells per point below which the dual form changes back to the primal one; our choice.

It is less than 1, so that a search near 1 does not change the form at every step.
"""

_MANY, _SHARE = 5, 0.1
"""Number of cuts, and further cuts per equation, beyond which solving anew is taken for faster than
updating; our choice, not measured."""


class GridModel:
    """A ridge regression whose lifetimes can be moved (Balog2016thesis, section 5.1).

    Parameters
    ----------
    cells : GridCells
        The grids, which the model changes.
    targets : float64 array of shape (n,)
        Training targets, minus the prior mean.
    validation : float64 array of shape (n_validation,)
        Targets of the other points of the grids, minus the same mean.
    noise_variance, prior_variance : float
        Variances of noise and weights; the ridge delta^2 is their ratio.

    Notes
    -----
    Each cell that an added cut splits or a removed cut merges costs O(min(C, n)^2).
    """

    def __init__(
        self,
        cells: GridCells,
        targets: FloatArray,
        validation: FloatArray,
        noise_variance: float,
        prior_variance: float,
    ) -> None:
        self.cells = cells
        self._targets = targets
        self._validation = validation
        self._ridge = noise_variance / prior_variance
        self._prior_variance = prior_variance
        self._is_dual = False
        self._solver: PathSolver | None = None
        self._fit: RidgeFit | None = None

    @property
    def lifetimes(self) -> FloatArray:
        """A copy of the lifetimes, shape (d,)."""
        return self.cells.lifetimes.copy()

    def set_lifetime(self, dimension: int, lifetime: float) -> None:
        """Raise or lower a lifetime.

        Raises
        ------
        TypeError
            If the lifetime is not a number.
        ValueError
            If the lifetime is not finite and at least 0.
        """
        if not is_number(lifetime):
            raise TypeError(f"lifetime must be a number, got {lifetime!r}")
        lifetimes = self.lifetimes
        lifetimes[dimension] = lifetime
        self.set_lifetimes(lifetimes)

    def set_lifetimes(self, lifetimes: ArrayLike) -> None:
        """Set all lifetimes: first those that fall, then those that rise.

        If many cuts change, the equations are solved anew.

        Parameters
        ----------
        lifetimes : array-like of shape (d,)
            The new lifetimes.

        Raises
        ------
        ValueError
            If the lifetimes are not finite numbers that are at least 0, one for each dimension.
        """
        new = check_lifetimes(lifetimes, len(self.cells.lifetimes))
        size = min(self.cells.n_cells, len(self._targets))
        if self.cells.n_cuts_between(new) > _MANY + _SHARE * size:
            self._solver = None
        for d in np.argsort(new - self.cells.lifetimes):
            for cut, is_split in self.cells.changes(int(d), float(new[d])):
                self._fit = None
                self._follow(cut, is_split)

    def fit(self) -> RidgeFit:
        """Return the solution at the current lifetimes."""
        if self._fit is None:
            if self._solver is None:
                self._is_dual = self.cells.n_cells > len(self._targets)
                self._solver = self._new_solver()
            self._fit = self._solver.fit()
        return self._fit

    def _follow(self, cut: Cut, is_split: bool) -> None:
        """Update the equations, or drop them if the other form has fewer."""
        if self._solver is None:
            return
        n_cells, n_points = self.cells.n_cells, len(self._targets)
        if n_cells > n_points if not self._is_dual else n_cells < _BACK * n_points:
            self._solver = None
        elif is_split:
            self._solver.split(cut)
        else:
            self._solver.merge(cut)

    def training_error(self) -> float:
        """Return the root mean squared error at the training points."""
        return root_mean_square(self.fit().fitted - self._targets)

    def validation_error(self) -> float:
        """Return the root mean squared error at the other points, or NaN without other points."""
        cells = self.cells.numbers[len(self._targets) :]
        return root_mean_square(predict(self.fit().weights, cells) - self._validation)

    def log_marginal_likelihood(self) -> float:
        """Return the log evidence of the training targets."""
        return self.fit().log_marginal_likelihood(self._prior_variance)

    def _new_solver(self) -> PathSolver:
        """Solve the equations of the current form from scratch."""
        cells = self.cells.numbers[: len(self._targets)]
        form = DualSolver if self._is_dual else PrimalSolver
        return form(cells, self.cells.n_numbers, self._targets, self._ridge)
