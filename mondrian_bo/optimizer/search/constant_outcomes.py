"""Outcomes that are constant so far: their models say nothing of where they change."""

from __future__ import annotations

import numpy as np

from mondrian_bo.optimizer.constraints.constraints import Constraints
from mondrian_bo.optimizer.shared.search_trials import SearchTrials
from mondrian_bo.shared.array_types import FloatArray


def is_constant(values: FloatArray) -> bool:
    """Return whether there are two values or more, of shape (n,), and all are equal."""
    return bool(len(values) > 1 and values[-1] == values[0] and (values == values[0]).all())


def constant_constraints(constraints: Constraints) -> list[int]:
    """Return the numbers of the constraints whose values are constant."""
    return [i for i, one in enumerate(constraints.models) if is_constant(one.trials.values)]


def share_without_model(
    trials: SearchTrials, constraints: Constraints | None, has_eligible: bool, share: float
) -> float:
    """Return the share of suggestions that no acquisition chooses, with several outcomes.

    The model of a constant outcome has the same mean everywhere. What a score gains by it depends
    on the standard deviation alone, so suggestions repeat the corners and the middle of the space.

    Parameters
    ----------
    trials : SearchTrials
        The trials, with one objective or several.
    constraints : Constraints or None
        Models of constraints, if any.
    has_eligible : bool
        Whether a trial may be the incumbent. The objectives count then, and otherwise the
        constraints, except constant ones that hold.
    share : float
        The share where some outcomes that count are constant, and others are not.

    Returns
    -------
    float
        0 if no outcome that counts is constant, 1 if all of them are, otherwise `share`.
    """
    if has_eligible:
        constant = [is_constant(one) for one in np.atleast_2d(trials.values.T)]
        n_constant, n_varying = sum(constant), len(constant) - sum(constant)
    elif constraints is not None:
        numbers = constant_constraints(constraints)
        n_constant = sum(constraints.models[i].trials.values[0] < 0.0 for i in numbers)
        n_varying = sum(len(one.trials) > 1 for one in constraints.models) - len(numbers)
    else:
        return 0.0
    if n_constant == 0:
        return 0.0
    return share if n_varying else 1.0
