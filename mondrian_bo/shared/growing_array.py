"""An array to which rows are appended in amortised constant time."""

from __future__ import annotations

import numpy as np

from mondrian_bo.shared.array_types import FloatArray

_SMALLEST_CAPACITY = 64
"""Rows. Fewer would be copied several times within the first trials of a study."""

_GROWTH = 1.5
"""Factor of the rows that there is room for after a copy; a row is then copied twice on average."""


class GrowingArray:
    """Float64 rows of one shape, stored in an array with spare capacity.

    Parameters
    ----------
    *shape : int
        Shape of a row; no argument for scalars.
    """

    def __init__(self, *shape: int) -> None:
        self._array = np.empty((0, *shape))
        self._length = 0

    def __len__(self) -> int:
        return self._length

    @property
    def rows(self) -> FloatArray:
        """The rows, as a view that is valid until the next change."""
        return self._array[: self._length]

    def extend(self, rows: FloatArray) -> None:
        """Append rows, each in amortised O(1)."""
        end = self._length + len(rows)
        if end > len(self._array):
            # Pages of spare rows take no memory before they are written.
            capacity = max(_SMALLEST_CAPACITY, int(_GROWTH * end))
            grown = np.empty((capacity, *self._array.shape[1:]))
            grown[: self._length] = self.rows
            self._array = grown
        self._array[self._length : end] = rows
        self._length = end

    def shorten(self, length: int) -> None:
        """Remove all rows but the first `length`."""
        self._length = length

    def replace(self, rows: FloatArray) -> None:
        """Replace all rows, O(1): `rows` is kept without a copy and may be overwritten later."""
        self._array, self._length = rows, len(rows)
