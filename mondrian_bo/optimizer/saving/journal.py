"""What an optimizer was told, in order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from mondrian_bo.shared.array_types import FloatArray
from mondrian_bo.shared.growing_array import GrowingArray


class Batch(NamedTuple):
    """Trials that are told with the values to learn.

    Attributes
    ----------
    rows : float64 array of shape (m, d)
        Encoded points.
    values : float64 array of shape (m, K)
        Their values; NaN where there is none.
    constraints : float64 array of shape (m, q)
        Values of the constraints; NaN where unknown.
    nan_is_failure : bool
        What NaN means; see `RowOptimizer.tell_rows`.
    observed : float64 array of shape (m, K + q, 2) or None, default=None
        With known standard errors, values and constraints as observed, and these errors.
    """

    rows: FloatArray
    values: FloatArray
    constraints: FloatArray
    nan_is_failure: bool
    observed: FloatArray | None = None


class Journal:
    """Batches of trials. An optimizer that is told them again has the same trials.

    Parameters
    ----------
    n_dimensions, n_objectives : int
        Numbers d and K of columns.
    """

    # Made when the first errors are known; NaN in trials without any.
    _observed: GrowingArray | None = None

    def __init__(self, n_dimensions: int, n_objectives: int) -> None:
        self._rows = GrowingArray(n_dimensions)
        self._values = GrowingArray(n_objectives)
        self._constraints = GrowingArray(0)
        # Numbers of trials and of constraints, and whether NaN is a failure.
        self._batches = GrowingArray(3)

    def __len__(self) -> int:
        """Return the number of batches."""
        return len(self._batches)

    def __iter__(self) -> Iterator[Batch]:
        start, n_objectives = 0, self._values.rows.shape[1]
        for n_trials, n_constraints, nan_is_failure in self._batches.rows.astype(int).tolist():
            here = slice(start, start + n_trials)
            observed = None
            if self._observed is not None:
                own = self._observed.rows[here, : n_objectives + n_constraints].copy()
                observed = None if np.isnan(own[..., 1]).all() else own
            yield Batch(
                self._rows.rows[here].copy(),
                self._values.rows[here].copy(),
                self._constraints.rows[here, :n_constraints].copy(),
                bool(nan_is_failure),
                observed,
            )
            start += n_trials

    def append(self, batch: Batch) -> None:
        """Add a batch, in amortised O(m)."""
        m, n_constraints = batch.constraints.shape
        n_columns = self._constraints.rows.shape[1]
        if n_constraints > n_columns:
            wider = GrowingArray(n_constraints)
            wider.extend(_padded(self._constraints.rows, n_constraints))
            self._constraints = wider
            n_columns = n_constraints
        if batch.observed is not None or self._observed is not None:
            self._note(batch.observed, m, self._values.rows.shape[1] + n_columns)
        self._rows.extend(batch.rows)
        self._values.extend(batch.values)
        self._constraints.extend(_padded(batch.constraints, n_columns))
        # The last step: a batch without its line is removed by `shorten`.
        line = np.array([[m, n_constraints, batch.nan_is_failure]], dtype=np.float64)
        self._batches.extend(line)

    def _note(self, observed: FloatArray | None, m: int, n_columns: int) -> None:
        """Add what was observed in the next m trials; None is no known error."""
        noted = self._observed
        if noted is None or noted.rows.shape[1] < n_columns:
            wider = GrowingArray(n_columns, 2)
            former = np.full((len(self._rows), 0, 2), np.nan) if noted is None else noted.rows
            wider.extend(_padded(former, n_columns))
            noted = wider
        noted.shorten(len(self._rows))
        noted.extend(
            _padded(np.full((m, 0, 2), np.nan) if observed is None else observed, n_columns)
        )
        self._observed = noted

    def shorten(self, n_batches: int) -> None:
        """Remove all batches but the first ones, and what is left of an interrupted `append`."""
        self._batches.shorten(n_batches)
        n_trials = int(self._batches.rows[:, 0].sum())
        for array in (self._rows, self._values, self._constraints):
            array.shorten(n_trials)
        if self._observed is not None:
            self._observed.shorten(n_trials)

    def arrays(self) -> dict[str, FloatArray]:
        """Return the content as arrays, which `load` takes."""
        arrays = {
            "rows": self._rows.rows,
            "values": self._values.rows,
            "constraints": self._constraints.rows,
            "batches": self._batches.rows,
        }
        if self._observed is not None:
            arrays.update(observed=self._observed.rows[..., 0], errors=self._observed.rows[..., 1])
        return arrays

    def load(self, arrays: Mapping[str, FloatArray]) -> None:
        """Take the content of another journal; this one is empty.

        Raises
        ------
        ValueError
            If shapes contradict each other.
        """
        batches, n_trials = arrays["batches"], len(arrays["rows"])
        constraints = arrays["constraints"]
        if batches.ndim != 2 or batches.shape[1] != 3 or constraints.ndim != 2:
            raise ValueError("`batches` or `constraints` has another shape.")
        is_count = (batches >= 0.0) & (batches % 1.0 == 0.0)
        if not is_count.all() or batches[:, 0].sum() != n_trials:
            raise ValueError("`batches` does not divide the trials.")
        if (batches[:, 1] > constraints.shape[1]).any():
            raise ValueError("`constraints` has too few columns.")
        mine = {"rows": self._rows, "values": self._values}
        for name, array in mine.items():
            if arrays[name].shape != (n_trials, *array.rows.shape[1:]):
                raise ValueError(f"`{name}` has shape {arrays[name].shape}.")
            array.extend(arrays[name])
        if len(constraints) != n_trials:
            raise ValueError(f"`constraints` has shape {constraints.shape}.")
        self._constraints = GrowingArray(constraints.shape[1])
        self._constraints.extend(constraints)
        if "errors" in arrays:
            n_columns = self._values.rows.shape[1] + constraints.shape[1]
            observed = np.stack([arrays["observed"], arrays["errors"]], axis=-1)
            if observed.shape != (n_trials, n_columns, 2) or (observed[..., 1] < 0.0).any():
                raise ValueError(
                    "`observed` or `errors` has another shape, or an error is below 0."
                )
            self._observed = GrowingArray(n_columns, 2)
            self._observed.extend(observed)
        self._batches.extend(batches)


def _padded(columns: FloatArray, n_columns: int) -> FloatArray:
    """Add columns of NaN on the right."""
    padding = [(0, 0)] * columns.ndim
    padding[1] = 0, n_columns - columns.shape[1]
    return np.pad(columns, padding, constant_values=np.nan)
