"""Branches of a conditional space, and what each of them may gain by its own trials alone.

A branch has one set of active parameters, and one value of each category that others depend on. A
model of all trials expects a branch to be as smooth as those with most trials. So a branch with few
trials, all of them bad, seems to be known. The model of its own trials knows how little they say.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mondrian_bo.optimizer.maximization.candidates import quasi_random_rows
from mondrian_bo.optimizer.maximization.valid_rows import ValidRows
from mondrian_bo.search_space import SearchSpace
from mondrian_bo.shared.array_types import BoolArray, FloatArray

TRIALS_PER_NUMBER = 5
"""Least number of trials in a branch for each number that varies in it, our choice: with fewer of
them, the branch is unknown."""

_N_POINTS = 4096
"""Number of quasi-random points over all branches, our choice: a branch that none of them is in
hardly counts."""

_CHECKED = 64
"""Number of rows whose validity is checked at a time, our choice: one valid row is enough."""


class Branch(NamedTuple):
    """A branch of a space.

    Attributes
    ----------
    trials : bool array of shape (n,)
        Which trials are in it.
    points : float64 array of shape (k, d)
        Points in it: its trials, and quasi-random ones.
    is_known : bool
        Whether it has at least one trial, and five for each number that varies in it.
    """

    trials: BoolArray
    points: FloatArray
    is_known: bool


def branches(
    space: SearchSpace,
    tried: FloatArray,
    rng: np.random.Generator,
    valid: ValidRows | None = None,
) -> list[Branch]:
    """Return the branches of a conditional space; none if there are no conditions.

    A branch without a valid row among its trials and points is left out: the search cannot reach
    it.

    Parameters
    ----------
    space : SearchSpace
        The space.
    tried : float64 array of shape (n, d)
        The trials.
    rng : numpy.random.Generator
        Source of the quasi-random points.
    valid : ValidRows or None, default=None
        Which rows the search may suggest; None is all.
    """
    conditions = [parameter.condition for parameter in space.parameters]
    parents = {condition.parent for condition in conditions if condition is not None}
    if not parents:
        return []
    is_parent = np.array([name in parents for name in space.names]) & space.is_categorical
    points = quasi_random_rows(space, 0, _N_POINTS, rng.random(space.n_dimensions))
    rows = np.concatenate([tried, points])
    # Rows with equal keys are in one branch.
    keys = np.where(np.isnan(rows), -1.0, np.where(is_parent, rows, 0.0))
    kinds, numbers = np.unique(keys, axis=0, return_inverse=True)
    found = []
    for number in range(len(kinds)):
        inside = numbers.ravel() == number
        trials, own = inside[: len(tried)], rows[inside]
        # An inactive number does not vary: the difference of NaN is NaN.
        varies = (np.ptp(own, axis=0) > 0.0) & ~space.is_categorical
        is_known = int(trials.sum()) >= max(TRIALS_PER_NUMBER * int(varies.sum()), 1)
        # The points of a known branch are checked where they are used.
        if is_known or valid is None or _has_valid(own, valid):
            found.append(Branch(trials, own, is_known))
    return found


def _has_valid(rows: FloatArray, valid: ValidRows) -> bool:
    """Whether at least one row is valid; the later rows are not checked."""
    parts = (rows[i : i + _CHECKED] for i in range(0, len(rows), _CHECKED))
    return any(valid.contains(part).any() for part in parts)
