"""What has been tried: rows, values, the best of them, and what need not be tried again."""

from __future__ import annotations

import heapq

import numpy as np

from mondrian_bo.array_types import BoolArray, FloatArray
from mondrian_bo.surrogates.shared.growing_array import GrowingArray

_N_INCUMBENTS = 10


class Trials:
    """Trials as rows of the unit cube with values, larger is better.

    Parameters
    ----------
    n_dimensions : int
        Dimension d of the rows.
    """

    def __init__(self, n_dimensions: int) -> None:
        self._rows = GrowingArray(n_dimensions)
        self._values = GrowingArray()
        self._best: list[tuple[bool, float, int]] = []
        self._known: set[bytes] = set()
        # Rows by which of their entries are NaN.
        self._excluded: dict[bytes, tuple[BoolArray, set[bytes]]] = {}

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def rows(self) -> FloatArray:
        """The points, shape (n, d); NaN at inactive parameters."""
        return self._rows.rows

    @property
    def values(self) -> FloatArray:
        """Their values, shape (n,); may be infinite, not NaN."""
        return self._values.rows

    def tell(self, row: FloatArray, value: float, feasible: bool = True) -> None:
        """Add a trial, O(1).

        Parameters
        ----------
        row : float64 array of shape (d,)
            The point; NaN at inactive parameters.
        value : float
            Its value, larger is better; may be infinite, not NaN.
        feasible : bool, default=True
            Whether it satisfies what else is asked for: such trials rank before all others.
        """
        # Of equal values the earlier trial ranks higher.
        entry = (feasible, value, -len(self))
        self._rows.extend(row[None])
        self._values.extend(np.array([value]))
        if len(self._best) < _N_INCUMBENTS:
            heapq.heappush(self._best, entry)
        else:
            heapq.heappushpop(self._best, entry)
        self.avoid(row)

    def is_known(self, row: FloatArray) -> bool:
        """Whether this trial has been told, or refused with `avoid` or `exclude`."""
        return row.tobytes() in self._known or any(
            np.where(gaps, np.nan, row).tobytes() in rows for gaps, rows in self._excluded.values()
        )

    def avoid(self, row: FloatArray) -> None:
        """Count a row as known without a value, as for a trial that failed."""
        self._known.add(row.tobytes())

    def exclude(self, row: FloatArray) -> None:
        """Count all rows as known that have the values of this one, whatever else they have."""
        gaps = np.isnan(row)
        self._excluded.setdefault(gaps.tobytes(), (gaps, set()))[1].add(row.tobytes())

    def incumbents(self) -> FloatArray:
        """Return the rows of the ten best trials, best first, shape (k, d)."""
        return self.rows[[-index for _, _, index in sorted(self._best, reverse=True)]]

    def feasible_incumbents(self) -> FloatArray:
        """Return the rows of those of `incumbents` that are feasible."""
        best = sorted(self._best, reverse=True)
        return self.rows[[-index for feasible, _, index in best if feasible]]

    def best(self) -> tuple[FloatArray, float]:
        """Return row and value of the best trial."""
        _, value, index = max(self._best)
        return self.rows[-index], value
