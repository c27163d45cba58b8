"""The lifetime path of the Mondrian kernel, at the cost of a few fits.

See Balog2016, section 4.2.1, and Balog2016thesis, section 4.2. :func:`kernel_path` solves by nested
elimination while there are no more cells than points, and else by updates, see
:class:`UpdatedPath`.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Literal, NamedTuple, get_args

import numpy as np
from numba import njit

from mondrian_bo.shared.array_types import FloatArray, IntArray
from mondrian_bo.surrogates.mondrian_kernel.lifetime_paths.cuts import (
    CellHistory,
    Cut,
    CutSequence,
    merge,
    split,
)
from mondrian_bo.surrogates.mondrian_kernel.lifetime_paths.lifetime_path import (
    LifetimePath,
    PathRecorder,
    evaluated_positions,
    root_mean_squares,
)
from mondrian_bo.surrogates.mondrian_kernel.lifetime_paths.nested_elimination import (
    solve_states,
)
from mondrian_bo.surrogates.mondrian_kernel.lifetime_paths.path_data import PathData
from mondrian_bo.surrogates.mondrian_kernel.lifetime_paths.solvers import (
    DualSolver,
    PathSolver,
    PrimalSolver,
    RidgeFit,
    predict,
    ridge_log_evidence,
)

Direction = Literal["forward", "backward"]
"""Whether updates add cuts or remove them."""

Method = Literal["auto", "cholesky", "dual", "inverse"]
"""How the equations of a path are solved, see :func:`kernel_path`."""


def kernel_path(
    data: PathData,
    noise_variance: float,
    prior_variance: float,
    *,
    direction: Direction = "forward",
    method: Method = "auto",
    n_evaluations: int | None = None,
    keep_weights: bool = False,
) -> LifetimePath:
    """Return the path of the Mondrian kernel: Bayesian ridge regression on indicators of cells.

    Parameters
    ----------
    data : PathData
        The data.
    noise_variance : float
        Variance of the noise; the ridge delta^2 is its ratio to the prior variance.
    prior_variance : float
        Prior variance of the weights.
    direction : {"forward", "backward"}, default="forward"
        Whether updates add cuts, from lifetime 0 on, or remove them, from the last one back.
    method : {"auto", "cholesky", "dual"}, default="auto"
        "auto" solves the equations of the C cells by nested elimination, for all lifetimes at once,
        while there are no more cells than points, and else updates those of the n points. The
        others make updates throughout: "cholesky" of the Cholesky factor of the cells' equations,
        "dual" of the inverse of the points' equations. "inverse" is "cholesky" with a
        warning.
    n_evaluations : int or None, default=None
        Number of lifetimes, equally spread among the cuts, at which to compute errors; None is all.
    keep_weights : bool, default=False
        Whether to keep what :meth:`LifetimePath.weights` needs: n numbers for each lifetime.

    Returns
    -------
    LifetimePath
        At lifetime 0 and wherever a prediction may change.

    Raises
    ------
    TypeError, ValueError
        If direction or method is not one of those, or `n_evaluations` no positive integer.

    Notes
    -----
    Nested elimination takes four to five times as long as one fit at the end. Each update costs
    O(min(C, n)^2), and each evaluation O((n + n_validation) M) more.
    """
    for name, found, accepted in (
        ("direction", direction, get_args(Direction)),
        ("method", method, get_args(Method)),
    ):
        if found not in accepted:
            raise ValueError(f"{name} must be one of {list(accepted)}, got {found!r}")
    if method == "inverse":
        warnings.warn(
            'method="inverse" means method="cholesky". Use method="cholesky".',
            FutureWarning,
            stacklevel=2,
        )
    ridge = noise_variance / prior_variance
    n_points = len(data.targets)
    cuts = CutSequence(data.partitions, n_points)
    positions = evaluated_positions(len(cuts) + 1, n_evaluations)
    solutions: Iterator[_Solutions]
    if method == "auto":
        history = CellHistory(cuts)
        few = history.n_cells(history.state_of_position[positions]) <= n_points
        solutions = chain(
            _eliminate(data, history, ridge, positions[few]),
            _update(data, cuts, ridge, positions[~few], DualSolver, direction),
        )
    else:
        solver = DualSolver if method == "dual" else PrimalSolver
        solutions = _update(data, cuts, ridge, positions, solver, direction)
    recorder = PathRecorder(data, np.append(0.0, cuts.times))
    for part in solutions:
        residual = part.residuals[:n_points]
        recorder.record(
            part.positions,
            part.n_cells,
            root_mean_squares(residual),
            root_mean_squares(part.residuals[n_points:]),
            ridge_log_evidence(n_points, part.log_determinants, part.quadratics, prior_variance),
            residual.T / ridge if keep_weights else None,
        )
    return recorder.path()


SolverClass = type[PrimalSolver] | type[DualSolver]
"""The class of the equations that are updated."""


class _Solutions(NamedTuple):
    """Solutions at some positions of a path.

    Attributes
    ----------
    positions : int64 array of shape (k,)
        Positions, the numbers of cuts before.
    n_cells : int64 array of shape (k,)
        Number of cells with training points.
    residuals : float64 array of shape (n + n_validation, k)
        Targets minus predictions, at training and validation points.
    log_determinants, quadratics : float64 arrays of shape (k,)
        Terms of the evidences, see :class:`RidgeFit`.
    """

    positions: IntArray
    n_cells: IntArray
    residuals: FloatArray
    log_determinants: FloatArray
    quadratics: FloatArray


def _eliminate(
    data: PathData, history: CellHistory, ridge: float, positions: IntArray
) -> Iterator[_Solutions]:
    """Yield solutions by nested elimination."""
    if len(positions) == 0:
        return
    n_points = len(data.targets)
    targets = np.concatenate([data.targets, data.validation])
    states, index = np.unique(history.state_of_position[positions], return_inverse=True)
    rows, solutions = solve_states(history, data.targets, ridge, states)
    for fits in solutions:
        start, end = np.searchsorted(index, [fits.first, fits.first + len(fits.squares)])
        here, columns = positions[start:end], index[start:end] - fits.first
        n_cells = history.n_cells(states[index[start:end]])
        residuals = np.empty((len(targets), len(here)))
        weights = np.take(fits.weights, columns, axis=1)
        _write_residuals(weights, rows, history.cut_off, here, targets, residuals)
        squares = np.einsum("ij,ij->j", residuals[:n_points], residuals[:n_points])
        yield _Solutions(
            here,
            n_cells,
            residuals,
            fits.log_determinants[columns] + (n_points - n_cells) * math.log(ridge),
            # The terms of L(lambda) in Balog2016, section 4.2.1: a sum of squares does not cancel.
            squares / ridge + fits.squares[columns],
        )


def _update(
    data: PathData,
    cuts: CutSequence,
    ridge: float,
    positions: IntArray,
    solver: SolverClass,
    direction: Direction,
) -> Iterator[_Solutions]:
    """Yield solutions by updates, one at a time."""
    if len(positions) == 0:
        return
    targets = np.concatenate([data.targets, data.validation])
    ends = int(positions[0]), int(positions[-1])
    n_points = len(data.targets)
    path = UpdatedPath(
        cuts, lambda cells: solver(cells[:n_points], cuts.n_numbers, data.targets, ridge)
    )
    evaluated = set(positions.tolist())
    for position in path.walk(*(ends if direction == "forward" else ends[::-1])):
        if position in evaluated:
            fit = path.fit()
            predicted = predict(fit.weights, path.cells[n_points:])
            yield _Solutions(
                np.array([position]),
                np.array([path.n_cells]),
                (targets - np.concatenate([fit.fitted, predicted]))[:, None],
                np.array([fit.log_determinant]),
                np.array([fit.quadratic]),
            )


class UpdatedPath:
    """The cells of a path and their ridge regression, updated cut by cut (Balog2016, 4.2.1).

    Parameters
    ----------
    cuts : CutSequence
        The cuts.
    new_solver : callable
        Takes the cells of all points and returns the equations of the training points.

    Attributes
    ----------
    cells : int64 array of shape (n_all, M)
        The current cells of all points.
    n_cells : int
        Number of current cells with training points.
    """

    def __init__(self, cuts: CutSequence, new_solver: Callable[[IntArray], PathSolver]) -> None:
        self._cuts = cuts
        self._new_solver = new_solver
        self.cells: IntArray = cuts.first_cells()
        self.n_cells = self.cells.shape[1]
        self._fit: RidgeFit | None = None

    def walk(self, start: int, stop: int) -> Iterator[int]:
        """Add or remove cuts one by one; yield each number of cuts from `start` to `stop`."""
        cuts = self._cuts
        for i in range(start):
            self._apply(split, cuts[i], 1)
        self._solver = self._new_solver(self.cells)
        yield start
        for i in range(start, stop):
            if self._apply(split, cuts[i], 1):
                self._solver.split(cuts[i])
            yield i + 1
        for i in range(start - 1, stop - 1, -1):
            if self._apply(merge, cuts[i], -1):
                self._solver.merge(cuts[i])
            yield i

    def _apply(self, change: Callable[[IntArray, Cut], None], cut: Cut, growth: int) -> bool:
        """Change the cells; return whether the equations change."""
        change(self.cells, cut)
        if cut.splits_training:
            self.n_cells += growth
            self._fit = None
        return cut.splits_training

    def fit(self) -> RidgeFit:
        """Return the solution at the current cells."""
        if self._fit is None:
            self._fit = self._solver.fit()
        return self._fit


@njit(cache=True, nogil=True, fastmath={"contract"})
def _write_residuals(weights, rows, cut_off, positions, targets, residuals):  # type: ignore[no-untyped-def]
    """Write targets minus predictions, without weights of cells that the point has left."""
    scale = 1.0 / math.sqrt(rows.shape[1])
    total = np.empty(len(positions))
    for i in range(len(rows)):
        total[:] = 0.0
        for t in range(rows.shape[1]):
            stop = len(positions)
            if cut_off[i, t] <= positions[-1]:
                stop = np.searchsorted(positions, cut_off[i, t])
            row = weights[rows[i, t]]
            for j in range(stop):
                total[j] += row[j]
        for j in range(len(total)):
            residuals[i, j] = targets[i] - scale * total[j]
