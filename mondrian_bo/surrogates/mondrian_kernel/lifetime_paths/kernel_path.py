"""The lifetime path of the Mondrian kernel, at the cost of a few fits.

See Balog2016, 4.2.1; Balog2016thesis, 4.2.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import chain
from typing import Literal, NamedTuple, get_args

import numpy as np
from numba import njit

from mondrian_bo.array_types import FloatArray, IntArray
from mondrian_bo.surrogates.mondrian_kernel.lifetime_paths.cell_history import CellHistory
from mondrian_bo.surrogates.mondrian_kernel.lifetime_paths.cuts import CutSequence
from mondrian_bo.surrogates.mondrian_kernel.lifetime_paths.lifetime_path import (
    LifetimePath,
    PathRecorder,
    evaluated_positions,
    root_mean_squares,
)
from mondrian_bo.surrogates.mondrian_kernel.lifetime_paths.nested_elimination import (
    NestedElimination,
)
from mondrian_bo.surrogates.mondrian_kernel.lifetime_paths.path_data import PathData
from mondrian_bo.surrogates.mondrian_kernel.lifetime_paths.solvers import log_evidence, predict
from mondrian_bo.surrogates.mondrian_kernel.lifetime_paths.updated_path import (
    UpdatedForm,
    UpdatedPath,
)

Direction = Literal["forward", "backward"]
Method = Literal["auto"] | UpdatedForm


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
        Variance of the weights under the prior.
    direction : {"forward", "backward"}, default="forward"
        Whether updates add cuts, from lifetime 0 on, or remove them, from the last one back.
    method : {"auto", "cholesky", "inverse", "dual"}, default="auto"
        "auto" solves the equations of all C cells by nested elimination, for all lifetimes at once,
        while there are no more cells than points, and else updates those of all n points. The
        others make updates throughout: of the Cholesky factor or the inverse of the equations of
        the cells, or of the inverse of those of the points.
    n_evaluations : int or None, default=None
        At how many lifetimes, equally spread among the cuts, to note errors; None is all.
    keep_weights : bool, default=False
        Whether to keep what :meth:`LifetimePath.weights` needs, n numbers for each lifetime.

    Returns
    -------
    LifetimePath
        At lifetime 0 and wherever a prediction may change.

    Raises
    ------
    ValueError
        If direction or method is not one of those.

    Notes
    -----
    Nested elimination takes four to five times as long as one fit at the end. Each update costs
    O(min(C, n)^2), and each evaluation O((n + n_validation) M) more.
    """
    for name, found, accepted in (
        ("direction", direction, get_args(Direction)),
        ("method", method, ("auto", *get_args(UpdatedForm))),
    ):
        if found not in accepted:
            raise ValueError(f"{name} must be one of {list(accepted)}, got {found!r}")
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
            _update(data, cuts, ridge, positions[~few], "dual", direction),
        )
    else:
        solutions = _update(data, cuts, ridge, positions, method, direction)
    recorder = PathRecorder(data, np.append(0.0, cuts.times))
    for part in solutions:
        residual = part.residuals[:n_points]
        recorder.record(
            part.positions,
            part.n_cells,
            root_mean_squares(residual),
            root_mean_squares(part.residuals[n_points:]),
            log_evidence(n_points, part.log_determinants, part.quadratics, prior_variance),
            residual.T / ridge if keep_weights else None,
        )
    return recorder.path()


class _Solutions(NamedTuple):
    """Solutions at some positions of a path.

    Attributes
    ----------
    positions : int64 array of shape (k,)
        The positions.
    n_cells : int64 array of shape (k,)
        Number of cells with training points.
    residuals : float64 array of shape (n + n_validation, k)
        Labels less predictions, at training and validation points.
    log_determinants, quadratics : float64 arrays of shape (k,)
        What evidences are made of, see :class:`RidgeFit`.
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
    labels = np.concatenate([data.targets, data.validation])
    states, index = np.unique(history.state_of_position[positions], return_inverse=True)
    rows, solutions = NestedElimination(history, data.targets, ridge, states).solve()
    for fits in solutions:
        start, end = np.searchsorted(index, [fits.first, fits.first + len(fits.squares)])
        here, columns = positions[start:end], index[start:end] - fits.first
        n_cells = history.n_cells(states[index[start:end]])
        residuals = np.empty((len(labels), len(here)))
        weights = np.take(fits.weights, columns, axis=1)
        _write_residuals(weights, rows, history.cut_off, here, labels, residuals)
        squares = np.einsum("ij,ij->j", residuals[:n_points], residuals[:n_points])
        yield _Solutions(
            here,
            n_cells,
            residuals,
            fits.log_determinants[columns] + (n_points - n_cells) * math.log(ridge),
            # Two sums of squares, with nothing to cancel (Balog2016, section 4.2.1).
            squares / ridge + fits.squares[columns],
        )


def _update(
    data: PathData,
    cuts: CutSequence,
    ridge: float,
    positions: IntArray,
    form: UpdatedForm,
    direction: Direction,
) -> Iterator[_Solutions]:
    """Yield solutions by updates, one at a time."""
    if len(positions) == 0:
        return
    labels = np.concatenate([data.targets, data.validation])
    ends = int(positions[0]), int(positions[-1])
    path = UpdatedPath(cuts, data.targets, ridge, form)
    evaluated = set(positions.tolist())
    for position in path.walk(*(ends if direction == "forward" else ends[::-1])):
        if position in evaluated:
            fit = path.fit()
            predicted = predict(fit.weights, path.labels[len(data.targets) :])
            yield _Solutions(
                np.array([position]),
                np.array([path.n_cells]),
                (labels - np.concatenate([fit.fitted, predicted]))[:, None],
                np.array([fit.log_determinant]),
                np.array([fit.quadratic]),
            )


@njit(cache=True, nogil=True, fastmath={"contract"})
def _write_residuals(weights, rows, cut_off, positions, labels, residuals):  # type: ignore[no-untyped-def]
    """Write labels less predictions; weights count until a point is cut off from their cell."""
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
            residuals[i, j] = labels[i] - scale * total[j]
