"""The part of a space where trials count: that at the target fidelity."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from mondrian_bo.optimizer.fidelities.fidelity import Fidelity
from mondrian_bo.search_space import RestrictedSpace, SearchSpace
from mondrian_bo.shared.array_types import FloatArray


class TargetSpace(RestrictedSpace):
    """The part of a space that is at the target fidelity.

    Parameters
    ----------
    space : SearchSpace
        The space, or a part of it.
    fidelity : Fidelity
        The fidelity of the space.
    """

    def __init__(self, space: SearchSpace, fidelity: Fidelity) -> None:
        self._whole, self._fidelity = space, fidelity
        fixed: Mapping[str, Any] = {}
        inequalities: tuple[Any, ...] = ()
        if isinstance(space, RestrictedSpace):
            fixed, inequalities = space.fixed, space.inequalities
        super().__init__(space, {**fixed, fidelity.name: fidelity.target}, inequalities)
        parameter: Any = space[fidelity.name]
        single = replace(parameter, low=fidelity.target, high=fidelity.target)
        self._single: SearchSpace | None = None
        try:
            self._single = SearchSpace({**self, fidelity.name: single})
        except ValueError:
            # The condition of another parameter names a value that is not the target.
            return
        # No search moves along a column with a single value.
        self.grid_sizes = np.where(self._is_held, 1, self._single.grid_sizes)

    def __reduce__(self) -> tuple[type[SearchSpace], tuple[object, ...]]:  # type: ignore[override]
        return type(self), (self._whole, self._fidelity)

    @cached_property
    def cardinality(self) -> float:
        """Number of distinct points at the target; see :attr:`SearchSpace.cardinality`."""
        return math.inf if self._single is None else self._single.cardinality

    def enumerate_rows(self) -> FloatArray:
        """List all distinct rows of a finite part; see :meth:`RestrictedSpace.enumerate_rows`."""
        if self._single is None:
            return super().enumerate_rows()
        return self._within(self._fidelity.at(self._single.enumerate_rows(), self._fidelity.unit))
