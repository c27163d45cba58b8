"""Rows of numbers from river's dictionaries, whose features may appear and disappear."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np

from mondrian_bo.shared.array_types import FloatArray

_DAY = 86400.0
"""Seconds of a day, the unit of dates."""

_ONE_DAY = np.timedelta64(1, "D")
"""The unit of dates of numpy."""

_EPOCH = np.datetime64("1970-01-01")
"""The day from which dates of numpy are counted."""

_FIRST_DAY = date(1970, 1, 1).toordinal()
"""The day from which dates with and without a time are counted."""


class FeatureTable:
    """The columns of the features seen so far, in the order of their appearance, then by name.

    A number, a truth value, a date (in days since 1970; a time without a zone is in UTC) or a
    duration (in days) is a column. Dates and durations may be those of numpy. Another value, such
    as a string or a duration in years or months, is a column of its own, which is 1 where the
    feature has the value and else 0. A sample that lacks a number has the mean of the numbers
    learnt so far.
    """

    def __init__(self) -> None:
        self._columns: dict[Hashable, int] = {}
        self._counts: list[float] = []
        self._sums: list[float] = []

    def __len__(self) -> int:
        return len(self._columns)

    def copy(self) -> FeatureTable:
        """Return a table that learns independently."""
        other = FeatureTable()
        other._columns = self._columns.copy()
        other._counts, other._sums = self._counts.copy(), self._sums.copy()
        return other

    def learn(self, x: Mapping[Hashable, Any]) -> FloatArray:
        """Add the features of a sample that are new; return its row, shape (n_columns,)."""
        # Sorted, as the order of the features in a sample must not matter.
        for key, number in sorted((_column(*item) for item in x.items()), key=repr):
            column = self._columns.setdefault(key, len(self._columns))
            if column == len(self._counts):
                self._counts.append(0.0)
                self._sums.append(0.0)
            # Values of a category are 0 where they are absent.
            if not isinstance(key, _Category):
                self._counts[column] += 1.0
                self._sums[column] += number
        return self.row(x)

    def row(self, x: Mapping[Hashable, Any]) -> FloatArray:
        """Return the row of a sample, shape (n_columns,); features that are not known are ignored.

        Raises
        ------
        ValueError
            If a number is not finite or not real, or a value is a list or another collection.
        """
        row = self.defaults()
        for name, value in x.items():
            key, number = _column(name, value)
            if not np.isfinite(number):
                raise ValueError(f"the feature {name!r} must be finite, got {value!r}")
            column = self._columns.get(key)
            if column is not None:
                row[column] = number
        return row

    def before(self, row: FloatArray, n_known: int) -> FloatArray:
        """Return what samples have in the columns from `n_known` on that they were learnt without.

        They have no new category, so 0. A new number is constant until it appears, as in `row`.
        """
        new = list(self._columns)[n_known:]
        absent = np.array([isinstance(key, _Category) for key in new])
        return np.where(absent, 0.0, row[n_known:])

    def defaults(self) -> FloatArray:
        """Return the row of a sample without features, shape (n_columns,)."""
        return np.array(self._sums) / np.maximum(self._counts, 1.0)


class _Category(tuple[Hashable, Hashable]):
    """The name of a feature and one of its values that are no numbers."""

    __slots__ = ()


def _column(name: Hashable, value: Any) -> tuple[Hashable, float]:
    """Return the name of the column that a value belongs to, and the number there."""
    if isinstance(value, datetime):
        # A time without a zone must not depend on that of the machine.
        known = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
        return name, known.timestamp() / _DAY
    if isinstance(value, date):
        return name, float(value.toordinal() - _FIRST_DAY)
    if isinstance(value, timedelta):
        return name, value / timedelta(days=1)
    if isinstance(value, np.datetime64):
        value = value - _EPOCH
    if isinstance(value, np.timedelta64):
        if np.isnat(value):
            return name, float("nan")
        # Years and months are no numbers of days: such durations are categories.
        if np.datetime_data(value.dtype)[0] in ("Y", "M"):
            return _Category((name, value)), 1.0
        return name, float(value / _ONE_DAY)
    is_complex = np.iscomplexobj(value)
    try:
        if not is_complex and not isinstance(value, str):
            return name, float(value)
    except OverflowError:
        raise ValueError(f"the feature {name!r} is too large for a float") from None
    except (TypeError, ValueError):
        pass
    if is_complex or not isinstance(value, Hashable):
        raise ValueError(
            f"the feature {name!r} must be a real number, a truth value, a date or a category such "
            f"as a string; got {value!r}"
        )
    return _Category((name, value)), 1.0
