"""The complete trials of a study as rows of a search space, for reading a study at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import optuna
from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial, TrialState

from mondrian_bo.integrations.optuna.study.distributions import joined, to_space, values_under
from mondrian_bo.integrations.optuna.study.learnt_conditions import ConditionLearner
from mondrian_bo.search_space import SearchSpace
from mondrian_bo.search_space.lenient_encoding import encode_leniently
from mondrian_bo.shared.array_types import FloatArray


class TrialRows(NamedTuple):
    """Trials as rows.

    Attributes
    ----------
    space : SearchSpace
        The parameters that have more than one value, with the conditions that the trials show.
    distributions : dict
        Their latest distributions. Of a parameter with a single possible value in each trial, it is
        a distribution of all these values.
    rows : float64 array of shape (n, d)
        The trials; NaN where one lacks a parameter.
    """

    space: SearchSpace
    distributions: dict[str, BaseDistribution]
    rows: FloatArray


def trial_rows(trials: Sequence[FrozenTrial]) -> TrialRows | None:
    """Encode trials; None if no parameter has more than one value or can be a model's input."""
    distributions: dict[str, BaseDistribution] = {}
    singles: dict[str, BaseDistribution] = {}
    for trial in trials:
        for name, one in trial.distributions.items():
            if one.single():
                singles[name] = joined(singles.get(name), one)
            else:
                distributions[name] = one
    for name, one in singles.items():
        # Nothing is suggested here, so what a trial cannot choose is an input like any other.
        if name not in distributions and not one.single():
            distributions[name] = one
    learner = ConditionLearner()
    internal = []
    for trial in trials:
        values = values_under(distributions, trial.params)
        internal.append(values)
        learner.learn(values, distributions)
    space = to_space(distributions, learner.conditions)
    if space is None:
        return None
    return TrialRows(space, distributions, encode_leniently(space, internal))


def finite_trials(study: optuna.Study) -> list[FrozenTrial]:
    """Return the complete trials of which all values are finite."""
    trials = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    return [trial for trial in trials if np.isfinite(trial.values).all()]


def is_feasible(trial: FrozenTrial) -> bool:
    """Return whether a trial violates no constraint."""
    return all(value <= 0.0 for value in trial.constraints.values())
