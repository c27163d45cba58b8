"""The result of a path over lifetimes: errors and evidence wherever a model changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from mondrian_bo.shared.argument_checks import check_count
from mondrian_bo.shared.array_types import FloatArray, IntArray
from mondrian_bo.surrogates.mondrian_kernel.forest import PartitionForest
from mondrian_bo.surrogates.mondrian_kernel.lifetime_paths.path_data import PathData
from mondrian_bo.surrogates.shared.lifetimes import PiecewiseByLifetime, check_criterion
from mondrian_bo.trees.lifetime_partitions import assign_cells

Criterion = Literal["validation_error", "log_marginal_likelihood"]
"""What a choice of lifetimes minimises or maximises."""


@dataclass(frozen=True)
class LifetimePath(PiecewiseByLifetime):
    """Errors and evidence of a model as functions of the lifetime.

    They are constant from ``lifetimes[i]`` until before ``lifetimes[i + 1]``, and from the last one
    to `max_lifetime`.

    Attributes
    ----------
    lifetimes : float64 array of shape (k,)
        0, and the times of cuts, in increasing order.
    max_lifetime : float
        Lifetime of the partitions.
    training_error, validation_error : float64 arrays of shape (k,)
        Root mean squared errors; the latter NaN without validation points.
    log_marginal_likelihood : float64 array of shape (k,)
        Log evidence of the training targets; NaN for models without evidence.
    n_cells : int64 array of shape (k,)
        Number of cells with training points: of features, C.
    partitions : PartitionForest
        The partitions of all points, training points first.
    coefficients : float64 array of shape (k, n_training) or None, default=None
        The contribution of each training point to the weights of its cells; None if they were not
        kept.
    """

    lifetimes: FloatArray
    max_lifetime: float
    training_error: FloatArray
    validation_error: FloatArray
    log_marginal_likelihood: FloatArray
    n_cells: IntArray
    partitions: PartitionForest
    coefficients: FloatArray | None = None

    def weights(self, index: int) -> tuple[FloatArray, NDArray[np.int32]]:
        """Return the weights of the features at ``lifetimes[index]``, O(n M).

        Returns
        -------
        weights : float64 array of shape (C,)
            One for each cell, also of those without training points; a prediction is M^-1/2 times
            the sum of the weights of a point's cells.
        cells : int32 array of shape (n, M)
            The cells of all points, as positions in `weights`.

        Raises
        ------
        ValueError
            If the coefficients were not kept.
        """
        if self.coefficients is None:
            raise ValueError("the path was computed without keep_weights=True")
        cells = np.empty((self.partitions.n_points, self.partitions.n_trees), dtype=np.int32)
        n_cells = assign_cells(self.partitions.arrays, float(self.lifetimes[index]), cells)
        shares = self.coefficients[index]
        n_trees = cells.shape[1]
        sums = np.bincount(cells[: len(shares)].ravel(), np.repeat(shares, n_trees), n_cells)
        return sums / np.sqrt(n_trees), cells

    def best_lifetime(self, criterion: Criterion | None = None) -> float:
        """Return the lifetime with the smallest validation error, or the largest evidence.

        It is the middle of the interval that has the best model.

        Parameters
        ----------
        criterion : {"validation_error", "log_marginal_likelihood"} or None, default=None
            What to compare; None is the validation error if there are validation points, and else
            the evidence.

        Returns
        -------
        float
            The lifetime, in inverse units of the inputs.

        Raises
        ------
        ValueError
            If the path does not have the criterion.
        """
        if criterion is None:
            known = not np.isnan(self.validation_error).any()
            criterion = "validation_error" if known else "log_marginal_likelihood"
        check_criterion(criterion, get_args(Criterion))
        score = getattr(self, criterion)
        if np.isnan(score).any():
            raise ValueError(f"this path has no {criterion}")
        return self._middle(int(np.argmin(score if criterion == "validation_error" else -score)))


class PathRecorder:
    """Collects errors and evidence at the positions of a path, in any order.

    Parameters
    ----------
    data : PathData
        The data.
    times : float64 array of shape (k,)
        The lifetimes of the path, 0 included.
    """

    def __init__(self, data: PathData, times: FloatArray) -> None:
        self._data = data
        self._times = times
        self._rows = np.full((4, len(times)), np.nan)
        self._coefficients: dict[int, FloatArray] = {}

    def record(
        self,
        positions: IntArray | int,
        n_cells: IntArray | int,
        training_error: FloatArray | float,
        validation_error: FloatArray | float,
        log_marginal_likelihood: FloatArray | float = np.nan,
        coefficients: FloatArray | None = None,
    ) -> None:
        """Record the model at a position, or the models at k positions with coefficients (k, n)."""
        columns = training_error, validation_error, log_marginal_likelihood, n_cells
        for row, values in zip(self._rows, columns, strict=True):
            row[positions] = values
        if coefficients is not None:
            keys = np.atleast_1d(positions).tolist()
            self._coefficients.update(zip(keys, np.atleast_2d(coefficients), strict=True))

    def path(self) -> LifetimePath:
        """Return the path of the recorded positions."""
        positions = np.flatnonzero(~np.isnan(self._rows[3]))
        training, validation, evidence, n_cells = self._rows[:, positions]
        return LifetimePath(
            self._times[positions],
            self._data.partitions.lifetime,
            training,
            validation,
            evidence,
            n_cells.astype(np.int64),
            self._data.partitions,
            np.stack([self._coefficients[int(i)] for i in positions])
            if self._coefficients
            else None,
        )


def check_evaluations(n_evaluations: int | None) -> None:
    """Check the number of lifetimes at which to compute errors: at least 1, or None.

    Raises
    ------
    TypeError, ValueError
        If it is no integer, or less than 1.
    """
    if n_evaluations is not None:
        check_count("n_evaluations", n_evaluations, 1)


def evaluated_positions(n_positions: int, n_evaluations: int | None) -> IntArray:
    """Return the positions of a path to evaluate, in order: all, or about `n_evaluations`.

    The first and the last one are always among them.
    """
    check_evaluations(n_evaluations)
    if n_evaluations is None or n_evaluations >= n_positions:
        return np.arange(n_positions)
    spread = np.linspace(0, n_positions - 1, max(n_evaluations, 2)).round()
    return np.unique(spread.astype(np.int64))


def root_mean_square(values: FloatArray) -> float:
    """Return the root of the mean square of values of shape (n,), or NaN without values."""
    return float(root_mean_squares(values[:, None])[0])


def root_mean_squares(values: FloatArray) -> FloatArray:
    """Return the root of the mean square of each column, or NaN without rows."""
    if len(values) == 0:
        return np.full(values.shape[1], np.nan)
    return np.asarray(np.sqrt(np.einsum("ij,ij->j", values, values) / len(values)))
