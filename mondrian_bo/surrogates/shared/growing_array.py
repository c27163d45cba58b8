"""An array that rows are added to, in amortised constant time each."""

from __future__ import annotations

import numpy as np

from mondrian_bo.array_types import FloatArray


class GrowingArray:
    """Float64 rows of one shape, the first `len` of an array with room for more.

    Parameters
    ----------
    *shape : int
        Shape of a row; none for numbers.
    """

    def __init__(self, *shape: int) -> None:
        self._array = np.empty((0, *shape))
        self._length = 0

    def __len__(self) -> int:
        return self._length

    @property
    def rows(self) -> FloatArray:
        """The rows, a view that is valid until the next change."""
        return self._array[: self._length]

    def extend(self, rows: FloatArray) -> None:
        """Add rows, O(1) for each in the long run."""
        end = self._length + len(rows)
        if end > len(self._array):
            grown = np.empty((max(end, 64, 3 * len(self._array) // 2), *self._array.shape[1:]))
            grown[: self._length] = self.rows
            self._array = grown
        self._array[self._length : end] = rows
        self._length = end

    def shorten(self, length: int) -> None:
        """Keep the first so many rows."""
        self._length = length

    def replace(self, rows: FloatArray) -> None:
        """Have these rows instead, O(1): they are not copied, and may be written to later on."""
        self._array, self._length = rows, len(rows)
