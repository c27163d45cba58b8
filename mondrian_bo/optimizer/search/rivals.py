"""What a trial competes with where the user has set some of its parameters."""

from __future__ import annotations

import numpy as np

from mondrian_bo.optimizer.shared.trials import N_BEST, Trials
from mondrian_bo.search_space import RestrictedSpace, SearchSpace
from mondrian_bo.shared.array_types import FloatArray


def rivals_within(space: SearchSpace, trials: Trials) -> FloatArray:
    """Return the best trials in a part of a space, and the best of all trials moved there.

    The latter are good guesses while few trials have the fixed values.

    Parameters
    ----------
    space : SearchSpace
        The part; a :class:`RestrictedSpace` with fixed values.
    trials : Trials
        All trials, at least one.

    Returns
    -------
    float64 array of shape (k, d)
        At most 20 rows of the part. Takes O(n d) for n trials.
    """
    assert isinstance(space, RestrictedSpace)
    inside = np.flatnonzero(space.has_fixed(trials.rows))
    best = inside[np.argsort(-trials.values[inside], kind="stable")[:N_BEST]]
    rows = np.concatenate([trials.rows[best], trials.best_rows()])
    return space.snap(space.filled(rows))
