"""Ridge regression on indicators of cells, updated exactly while cells split and merge.

:class:`PrimalSolver` has an equation for each cell (Balog2016, section 4.2.1; Balog2016thesis,
section 4.2). :class:`DualSolver` has an equation for each training point; it is the smaller one if
there are more cells than points.
"""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from mondrian_bo.shared.array_types import FloatArray, IntArray
from mondrian_bo.surrogates.mondrian_kernel.cell_matrices import (
    add_to_cells,
    count_shared_cells,
    normal_equations,
)
from mondrian_bo.surrogates.mondrian_kernel.lifetime_paths.cholesky_system import (
    NOT_POSITIVE_DEFINITE,
    CholeskySystem,
)
from mondrian_bo.surrogates.mondrian_kernel.lifetime_paths.cuts import Cut

_TOLERANCE = 1e-10
"""Relative error of an updated inverse beyond which it is computed anew: a refinement step squares
the error, so solutions are then accurate to machine precision."""


class RidgeFit(NamedTuple):
    """A ridge solution.

    Attributes
    ----------
    weights : float64 array of shape (n_numbers,)
        Weight of each cell, by its number; 0 for numbers that are not in use.
    fitted : float64 array of shape (n,)
        Predictions at the training points.
    log_determinant : float
        log det (Phi Phi^T + ridge I).
    quadratic : float
        ``targets^T (Phi Phi^T + ridge I)^-1 targets``.
    """

    weights: FloatArray
    fitted: FloatArray
    log_determinant: float
    quadratic: float

    def log_marginal_likelihood(self, prior_variance: float) -> float:
        """Return the log evidence of the targets under weights of this prior variance."""
        return float(
            ridge_log_evidence(
                len(self.fitted), self.log_determinant, self.quadratic, prior_variance
            )
        )


def ridge_log_evidence(
    n_points: int,
    log_determinant: FloatArray | float,
    quadratic: FloatArray | float,
    prior_variance: float,
) -> FloatArray | float:
    """Return the log evidence (Balog2016, 4.2.1, L(lambda)) from the terms of `RidgeFit`."""
    constant = n_points * math.log(2.0 * math.pi * prior_variance)
    return -0.5 * (constant + log_determinant + quadratic / prior_variance)  # L(lambda)


class PathSolver(Protocol):
    """A ridge regression whose cells change; the caller changes the array of cells first."""

    def split(self, cut: Cut) -> None:
        """Update the equations after the split of a cell; both parts hold training points."""
        ...

    def merge(self, cut: Cut) -> None:
        """Update the equations after the merge of two cells that hold training points."""
        ...

    def fit(self) -> RidgeFit:
        """Return the solution at the current cells."""
        ...


def predict(weights: FloatArray, cells: IntArray) -> FloatArray:
    """Return predictions for points in known cells, O(M) each."""
    result = np.empty(len(cells))
    _predict(weights, cells, result)
    return result


class PrimalSolver:
    """The equations ``(Phi^T Phi + ridge I) w = Phi^T targets`` of all cells (Balog2016, 4.2.1).

    Parameters
    ----------
    cells : int64 array of shape (n, M)
        Cells of the training points, which the caller changes.
    n_numbers : int
        Cell numbers are smaller than this.
    targets : float64 array of shape (n,)
        Targets of the training points.
    ridge : float
        The regularisation delta^2.

    Notes
    -----
    A split deletes one equation and adds two, a merge deletes two and adds one: O(C^2).
    """

    def __init__(self, cells: IntArray, n_numbers: int, targets: FloatArray, ridge: float) -> None:
        self._cells = cells
        self._targets = targets
        self._ridge = ridge
        self._place = np.full(n_numbers, -1)
        self._used = np.unique(cells)
        self._place[self._used] = np.arange(len(self._used))
        gram, moments = normal_equations(self._place[cells], len(self._used), targets)
        gram.flat[:: len(gram) + 1] += ridge  # A of Balog2016, 4.2.1
        self._system = CholeskySystem(gram, moments)

    @property
    def _n_trees(self) -> int:
        return int(self._cells.shape[1])

    @property
    def _scale(self) -> float:
        return float(self._n_trees**-0.5)

    def split(self, cut: Cut) -> None:
        """Split a cell, O(C^2)."""
        self._delete(cut.parent)
        self._append([(cut.left, cut.left_members), (cut.right, cut.right_members)])

    def merge(self, cut: Cut) -> None:
        """Merge two cells, O(C^2)."""
        self._delete(cut.left)
        self._delete(cut.right)
        self._append([(cut.parent, np.concatenate([cut.left_members, cut.right_members]))])

    def fit(self) -> RidgeFit:
        """Return the solution, O(C^2 + n M)."""
        weights = np.zeros(len(self._place))
        weights[self._used] = self._system.solution()
        fitted = predict(weights, self._cells)
        residual = self._targets - fitted
        n_points, n_cells = len(fitted), len(self._used)
        # The terms of L(lambda) in Balog2016, section 4.2.1: a sum of squares does not cancel.
        quadratic = float(residual @ residual) / self._ridge + float(weights @ weights)
        log_determinant = self._system.log_determinant()
        log_determinant += (n_points - n_cells) * math.log(self._ridge)
        return RidgeFit(weights, fitted, log_determinant, quadratic)

    def _delete(self, cell: int) -> None:
        place = int(self._place[cell])
        self._system.delete(place)
        self._used = np.delete(self._used, place)
        self._place[cell] = -1
        self._place[self._used[place:]] -= 1

    def _append(self, new: list[tuple[int, NDArray[np.int32]]]) -> None:
        n_points, n_cells = len(self._cells), len(self._used)
        columns = np.empty((len(new), n_cells))
        corner = np.zeros((len(new), len(new)))
        moments = np.empty(len(new))
        for q, (_, members) in enumerate(new):
            inside = members[members < n_points]
            # A new cell has no place yet; other cells of its partition share no point with it.
            places = self._place[self._cells[inside]].ravel()
            columns[q] = np.bincount(places[places >= 0], minlength=n_cells) / self._n_trees
            corner[q, q] = len(inside) / self._n_trees + self._ridge
            moments[q] = self._scale * self._targets[inside].sum()
        self._system.append(columns, corner, moments)
        added = np.array([cell for cell, _ in new])
        self._place[added] = n_cells + np.arange(len(new))
        self._used = np.concatenate([self._used, added])


class DualSolver:
    """The inverse of ``Phi Phi^T + ridge I``, an equation for each training point.

    Parameters are those of :class:`PrimalSolver`.

    Notes
    -----
    A split or merge changes the matrix by a term of rank two: O(n^2). Each solution is refined with
    the exact matrix, which consists of counts. If the refinement shows an error of the updated
    inverse beyond 1e-10, the inverse is computed anew.
    """

    def __init__(self, cells: IntArray, n_numbers: int, targets: FloatArray, ridge: float) -> None:
        self._cells = cells
        self._n_numbers = n_numbers
        self._targets = targets
        self._ridge = ridge
        self._counts = np.empty((len(cells), len(cells)))
        count_shared_cells(cells, self._counts)
        self._refresh()

    def split(self, cut: Cut) -> None:
        """Split a cell, O(n^2)."""
        self._change(cut, -1.0)

    def merge(self, cut: Cut) -> None:
        """Merge two cells, O(n^2)."""
        self._change(cut, 1.0)

    def fit(self) -> RidgeFit:
        """Return the solution, O(n^2 + n M)."""
        coefficients = self._inverse @ self._targets
        correction = self._inverse @ self._residual(coefficients)
        if np.abs(correction).max() > _TOLERANCE * np.abs(coefficients).max():
            self._refresh()
            coefficients = self._inverse @ self._targets
            correction = self._inverse @ self._residual(coefficients)
        coefficients += correction
        n_trees = self._cells.shape[1]
        weights = np.zeros(self._n_numbers)
        add_to_cells(coefficients, self._cells, weights)
        weights *= n_trees**-0.5
        fitted = self._targets - self._ridge * coefficients
        quadratic = float(self._targets @ coefficients)
        return RidgeFit(weights, fitted, self._log_determinant, quadratic)

    def _residual(self, coefficients: FloatArray) -> FloatArray:
        explained = self._counts @ coefficients / self._cells.shape[1]
        return np.asarray(self._targets - explained - self._ridge * coefficients)

    def _change(self, cut: Cut, sign: float) -> None:
        n_points = len(self._cells)
        left = cut.left_members[cut.left_members < n_points]
        right = cut.right_members[cut.right_members < n_points]
        growth = _change_pairs(
            self._inverse, self._counts, left, right, sign, 1.0 / self._cells.shape[1]
        )
        if growth > 0.0:
            self._log_determinant += math.log(growth)
        else:
            self._refresh()

    def _refresh(self) -> None:
        n_points = len(self._counts)
        matrix = self._counts / self._cells.shape[1]
        matrix.flat[:: n_points + 1] += self._ridge
        try:
            factor = cho_factor(matrix, overwrite_a=True, check_finite=False)
        except np.linalg.LinAlgError:
            raise np.linalg.LinAlgError(NOT_POSITIVE_DEFINITE) from None
        self._log_determinant = 2.0 * float(np.log(factor[0].diagonal()).sum())
        inverse = cho_solve(factor, np.eye(n_points), overwrite_b=True, check_finite=False)
        self._inverse: FloatArray = np.ascontiguousarray(inverse)


@njit(cache=True, nogil=True)
def _predict(weights, cells, result):  # type: ignore[no-untyped-def]
    """Write M^-1/2 times the sum of the weights of each row's cells."""
    scale = 1.0 / math.sqrt(cells.shape[1])
    for i in range(cells.shape[0]):
        total = 0.0
        for t in range(cells.shape[1]):
            total += weights[cells[i, t]]
        result[i] = scale * total


@njit(cache=True, nogil=True, fastmath={"reassoc", "nsz", "contract"})
def _change_pairs(inverse, counts, left, right, sign, step):  # type: ignore[no-untyped-def]
    """Add ``sign * step`` to the matrix between the points of two cells, and update its inverse.

    The update is that of rank two in Balog2016thesis, Lemma 4.1. Returns the factor by which the
    determinant grows. Rounding can make the factor negative or zero; then nothing but the counts is
    changed.
    """
    size = len(inverse)
    one, two = np.zeros(size), np.zeros(size)
    for i in left:
        row = inverse[i]
        for j in range(size):
            one[j] += row[j]
    for i in right:
        row = inverse[i]
        for j in range(size):
            two[j] += row[j]
    within_one, within_two, between = 0.0, 0.0, 0.0
    for i in left:
        within_one += one[i]
        for j in right:
            counts[i, j] += sign
            counts[j, i] += sign
    for i in right:
        within_two += two[i]
        between += one[i]
    change = sign * step
    diagonal = 1.0 + change * between
    growth = diagonal * diagonal - change * change * within_one * within_two
    if growth <= 0.0:
        return growth
    cross = change * diagonal / growth
    own_one = -change * change * within_two / growth
    own_two = -change * change * within_one / growth
    for i in range(size):
        along_one = own_one * one[i] + cross * two[i]
        along_two = cross * one[i] + own_two * two[i]
        row = inverse[i]
        for j in range(size):
            row[j] -= along_one * one[j] + along_two * two[j]
    return growth
