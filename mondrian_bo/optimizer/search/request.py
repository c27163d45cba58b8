"""What a search needs to know for a suggestion."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mondrian_bo.optimizer.constraints.constraints import Constraints
from mondrian_bo.optimizer.maximization.valid_rows import ValidRows
from mondrian_bo.search_space import SearchSpace
from mondrian_bo.shared.array_types import FloatArray


@dataclass(frozen=True, eq=False)
class Request:
    """A request for the next trial.

    Attributes
    ----------
    space : SearchSpace
        Where to search: the space of the trials or a part of it.
    pending : float64 array of shape (k, d)
        Trials that are running.
    index : int
        Number of the suggestion. Without a model, the suggestion is the point of this number in the
        quasi-random sequence.
    rng : numpy.random.Generator
        Source of all other randomness.
    is_taken : callable
        Whether a row of shape (d,) has been tried or is running.
    constraints : Constraints or None
        Models of the constraints, at least one of which has a value.
    valid : ValidRows or None
        Which rows may be suggested; None is all.
    has_fixed : bool, default=False
        Whether the user has set a parameter of the trial. The suggestion is then the best one with
        that value, however good other trials are.
    """

    space: SearchSpace
    pending: FloatArray
    index: int
    rng: np.random.Generator
    is_taken: Callable[[FloatArray], bool]
    constraints: Constraints | None
    valid: ValidRows | None
    has_fixed: bool = False
