"""The categorical parameter of a search space."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property

import numpy as np

from mondrian_bo.search_space.conditions import (
    Condition,
    check_condition,
    distinct_values,
    equal_values,
)
from mondrian_bo.shared.array_types import FloatArray


@dataclass(frozen=True)
class Categorical:
    """A parameter that takes one of several unordered choices.

    Parameters
    ----------
    choices : sequence
        At least one object of any type. Two of the same type may not be equal; ``True``, ``1`` and
        ``1.0`` are different choices.
    condition : Condition or None, default=None
        When the parameter is active; None is always.

    Raises
    ------
    TypeError
        If ``choices`` is not a sequence (a string is not taken as one), or ``condition`` is wrong.
    ValueError
        If ``choices`` is empty or holds duplicates.
    """

    choices: Sequence[object]
    _: KW_ONLY
    condition: Condition | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "choices", distinct_values(self.choices, "Categorical", "choices"))
        check_condition(self.condition, "Categorical")

    @property
    def n_values(self) -> int:
        """Number of choices."""
        return len(self.choices)

    def index(self, value: object) -> int:
        """Return the index of a choice.

        A choice of the same type is preferred to one that only compares equal.

        Parameters
        ----------
        value : object
            The choice.

        Returns
        -------
        int
            From 0 to ``n_values - 1``.

        Raises
        ------
        ValueError
            If the value is no choice.
        """
        try:
            found = self._positions.get((type(value), value))
            if found is None:
                found = self._first_positions.get(value)
            if found is not None:
                return found
        except TypeError:
            # A value or a choice without a hash is compared with all choices.
            pass
        equal = [i for i, choice in enumerate(self.choices) if equal_values(choice, value)]
        if not equal:
            raise ValueError(f"must be one of {self.choices}, got {value!r}.")
        return next((i for i in equal if type(self.choices[i]) is type(value)), equal[0])

    @cached_property
    def _positions(self) -> dict[tuple[type, object], int]:
        """Places of the choices by type and value; a TypeError if a choice has no hash."""
        return {(type(choice), choice): i for i, choice in enumerate(self.choices)}

    @cached_property
    def _first_positions(self) -> dict[object, int]:
        """The place of the first of equal choices; a TypeError if a choice has no hash."""
        return {choice: i for i, choice in reversed(tuple(enumerate(self.choices)))}

    def to_unit(self, value: object) -> float:
        """Return the index of a choice, which encodes it.

        Parameters
        ----------
        value : object
            The choice.

        Returns
        -------
        float
            From 0 to ``n_values - 1``, a whole number.

        Raises
        ------
        ValueError
            If the value is no choice.
        """
        return float(self.index(value))

    def from_unit(self, unit: float) -> object:
        """Return the choice at an index.

        Parameters
        ----------
        unit : float
            Index in [0, n_values - 1]; it is rounded to the nearest whole number.

        Returns
        -------
        object
            The choice.
        """
        return self.choices[round(unit)]

    def from_units(self, units: FloatArray) -> list[object]:
        """Return the choices at indices, as `from_unit` does.

        Parameters
        ----------
        units : float64 array of shape (m,)
            Indices in [0, n_values - 1].

        Returns
        -------
        list of m objects
            The choices; at NaN, any choice.
        """
        places = np.rint(np.nan_to_num(units)).astype(np.int64).tolist()
        return [self.choices[place] for place in places]
