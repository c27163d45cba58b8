"""Reading an Optuna study: its finished trials, each read once, and its running ones."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from mondrian_bo.integrations.optuna.study.comparable_trials import ComparableTrials
from mondrian_bo.integrations.optuna.study.distributions import internal_of, joined, union
from mondrian_bo.integrations.optuna.study.fixed_values import internal_enqueued
from mondrian_bo.integrations.optuna.study.learnt_conditions import ConditionLearner
from mondrian_bo.integrations.optuna.study.proposals import (
    internal_values,
    proposed_values,
    replaced_values,
)
from mondrian_bo.integrations.optuna.study.pruned_trials import PrunedTrials
from mondrian_bo.integrations.optuna.study.study_curves import is_noted_as_unordered
from mondrian_bo.integrations.optuna.study.trial_feed import Feed, TrialFeed, local_time
from mondrian_bo.shared.array_types import FloatArray

N_WITHOUT = 10
"""Number of finished trials after which a warning names a parameter that none of them has."""

_MANY_CHANGES = 5
"""Changes of a range after which it counts as dynamic, and is widened; our choice."""


class FinishedTrial(NamedTuple):
    """A finished trial as the sampler uses it.

    Attributes
    ----------
    values : dict
        The parameters that it asked for, in Optuna's internal representation.
    unasked : dict
        The parameters that were proposed and that it did not ask for.
    outcomes : tuple of float
        Its values, or the one imputed if it was pruned; NaN if it failed.
    constraints : dict
        The values of its constraints by name.
    error : float
        Standard error of its value if that is a prediction, else 0.
    attributes : mapping
        What the user has set on the trial.
    replaced : dict
        The numbers that were proposed outside of the ranges that it asked for, where it got the
        nearest ones.
    singles : tuple of str
        The parameters that were proposed, and whose ranges in this trial had one value.
    """

    values: dict[str, float]
    unasked: dict[str, float]
    outcomes: tuple[float, ...]
    constraints: dict[str, float]
    error: float
    attributes: Mapping[str, Any]
    replaced: dict[str, float]
    singles: tuple[str, ...]


class StudyReader:
    """The finished trials of one study, with its distributions and conditions.

    Parameters
    ----------
    fidelity : str or None, default=None
        Name of the fidelity: pruned trials are compared with complete ones of their own.

    Attributes
    ----------
    finished : list of FinishedTrial
        In the order they were noticed, and of several noticed at once in the order they finished.
        It is a new list once another study has taken the place of this one in the storage.
    distributions : dict
        The latest distribution of each parameter that has more than one value.
    conditions : ConditionLearner
        Which choices activate which parameters.
    constraints : list of str
        Names of all constraints, in the order they were noticed.
    constants : dict or None
        Parameters with one value in all trials with an outcome; None before the first of them.
    singles : dict
        The parameters that trials asked for with a single possible value, such as
        ``suggest_int("n", 5, 5)``. Each has a distribution of all these values.
    """

    def __init__(self, fidelity: str | None = None) -> None:
        self._fidelity = fidelity
        self._feed = TrialFeed()
        self._reported: set[str] = set()
        self._forget()

    def _forget(self) -> None:
        """Forget all trials; the next ones are absorbed as the first ones of a study."""
        self.finished: list[FinishedTrial] = []
        self._has_errors = False
        self.constraints: list[str] = []
        self.distributions: dict[str, BaseDistribution] = {}
        self.conditions = ConditionLearner()
        self.constants: dict[str, Any] | None = None
        self.singles: dict[str, BaseDistribution] = {}
        self._changes: dict[str, int] = {}
        self._complete: list[FrozenTrial] = []
        self._comparable = ComparableTrials(self._complete, self._fidelity)
        # By the keys of groups of complete trials.
        self._pruned: dict[str | None, PrunedTrials] = {}
        self._is_unordered = False
        # The latest distributions of parameters whose choices have changed, and those that changed
        # since.
        self._recoded: dict[str, BaseDistribution] = {}
        self._conflicts: set[str] = set()
        self._is_recoding = False

    def read(self, study: optuna.Study) -> list[FrozenTrial]:
        """Read new trials and return the running ones; O(new and running trials)."""
        feed = self._feed.read(study)
        if feed.is_new:
            self._forget()
        self._absorb_all(feed, study)
        if self._conflicts:
            feed = self._read_recoded(study)
        self._feed.acknowledge()
        return feed.running

    def _read_recoded(self, study: optuna.Study) -> Feed:
        """Read all trials again, with the numbers of choices in the latest distributions."""
        names = self._conflicts.union(self._recoded)
        states = (TrialState.COMPLETE, TrialState.PRUNED)
        trials = study.get_trials(deepcopy=False, states=states)
        latest: dict[str, BaseDistribution] = {}
        for trial in sorted(trials, key=lambda one: local_time(one.datetime_complete)):
            for name in names.intersection(trial.distributions):
                if not trial.distributions[name].single():
                    latest[name] = trial.distributions[name]
        self._forget()
        self._recoded, self._is_recoding = latest, True
        # The latest read was not acknowledged, so this one has all trials.
        feed = self._feed.read(study)
        self._absorb_all(feed, study)
        self._is_recoding = False
        return feed

    def running_values(self, trial: FrozenTrial) -> dict[str, float]:
        """Return the values of a running trial: proposed, enqueued, and asked for.

        Choices have their numbers in the study's latest distributions.
        """
        internal, proposed = self._values_of(trial)
        return {**proposed, **internal_enqueued(trial, self.distributions), **internal}

    def names(self) -> set[str]:
        """Return the names of the parameters that finished trials have had."""
        names = {*self.distributions, *(self.constants or {})}
        return names.union(*(trial.values for trial in self.finished))

    def errors_of(self, trials: Sequence[FinishedTrial]) -> FloatArray | None:
        """Return the standard errors of m values and their q constraints, shape (m, 1 + q).

        None while no value of the study is a prediction.
        """
        if not self._has_errors:
            return None
        errors = np.zeros((len(trials), 1 + len(self.constraints)))
        errors[:, 0] = [trial.error for trial in trials]
        return errors

    def _absorb_all(self, feed: Feed, study: optuna.Study) -> None:
        """Note the finished trials of a read."""
        directions = study.directions
        if len(directions) == 1 and not self._is_unordered:
            pruned = (one for one in feed.finished if one.state == TrialState.PRUNED)
            if any(one.intermediate_values for one in pruned):
                self._is_unordered = is_noted_as_unordered(study)
        for trial in feed.finished:
            self._absorb(trial, directions)

    def _absorb(self, trial: FrozenTrial, directions: Sequence[StudyDirection]) -> None:
        """Note a finished trial, and learn from one that has a value what the space is."""
        value = _value(trial, len(directions))
        outcomes, error = self._note_outcomes(trial, value, directions)
        constraints = trial.constraints
        self.constraints.extend(name for name in constraints if name not in self.constraints)
        internal, proposed = self._values_of(trial)
        unasked = {name: proposed[name] for name in proposed if name not in internal}
        own = trial.distributions
        # Optuna does not ask the sampler for a range of one value, so nothing was noted.
        singles = tuple(name for name in proposed if name in internal and own[name].single())
        collapsed = {name: proposed[name] for name in singles if proposed[name] != internal[name]}
        replaced = {**collapsed, **replaced_values(trial)}
        attributes = trial.user_attrs
        self.finished.append(
            FinishedTrial(
                internal, unasked, outcomes, constraints, error, attributes, replaced, singles
            )
        )
        # Without a value, it may have ended before it asked for all its parameters.
        if value is not None:
            self._learn_space(trial, internal)

    def _note_outcomes(
        self, trial: FrozenTrial, value: float | None, directions: Sequence[StudyDirection]
    ) -> tuple[tuple[float, ...], float]:
        """Return the outcomes of a trial, imputed if it was pruned, and the standard error."""
        if len(directions) > 1:
            return tuple(trial.values or [math.nan] * len(directions)), 0.0
        if trial.state == TrialState.PRUNED:
            key, complete = self._comparable.group_of(trial)
            if key not in self._pruned:
                maximize = directions[0] == StudyDirection.MAXIMIZE
                self._pruned[key] = PrunedTrials(complete, maximize)
            outcome, error = self._pruned[key].impute(trial, value, self._is_unordered)
            self._has_errors |= error > 0.0
            return (outcome,), error
        if trial.state == TrialState.COMPLETE:
            self._complete.append(trial)
        return (math.nan if value is None else value,), 0.0

    def _values_of(self, trial: FrozenTrial) -> tuple[dict[str, float], dict[str, float]]:
        """Return the values that a trial has asked for, and those that were proposed for it."""
        internal, proposed = internal_values(trial), proposed_values(trial)
        if self._recoded:
            self._recode(trial, internal, proposed)
        return internal, proposed

    def _learn_space(self, trial: FrozenTrial, internal: Mapping[str, float]) -> None:
        """Learn distributions, constants and conditions from a trial that has a value."""
        own = trial.distributions
        distributions = {name: self._recoded.get(name, own[name]) for name in internal}
        if self._recoded:
            self._note_conflicts(
                name
                for name, latest in self._recoded.items()
                if own.get(name, latest) != latest and not own[name].single()
            )
        varied = {name: one for name, one in distributions.items() if not one.single()}
        self._note_constants(
            {name: trial.params[name] for name in distributions if name not in varied}
        )
        for name, distribution in varied.items():
            self._note_distribution(name, distribution)
        self._note_singles(
            {name: distributions[name] for name in distributions if name not in varied}
        )
        values = {name: internal[name] for name in distributions if name in self.distributions}
        self.conditions.learn(values, distributions)

    def _note_constants(self, constants: dict[str, Any]) -> None:
        """Keep the parameters that all trials so far have with the same single value."""
        former = self.constants
        if former is not None:
            constants = {
                name: value
                for name, value in constants.items()
                if name in former and former[name] == value
            }
        self.constants = constants

    def _note_singles(self, singles: Mapping[str, BaseDistribution]) -> None:
        """Note distributions of one value each; warn once, after some trials, if they differ.

        The model does not have these parameters. A trial takes its own value of one whatever is
        proposed: where that is another value, the outcome says little about the proposal, which
        would be made again and again.
        """
        for name, one in singles.items():
            if self.singles.get(name) != one:
                self.singles[name] = joined(self.singles.get(name), one)
        if len(self.finished) < N_WITHOUT:
            return
        differing = [
            name
            for name in sorted(singles)
            if name not in self._reported
            and name not in self.distributions
            and not self.singles[name].single()
        ]
        if differing:
            self._reported.update(differing)
            warnings.warn(
                f"The parameters {differing} have a single possible value in each trial, but not "
                "the same one in all: the model ignores them. To have them in the model, suggest "
                "each from the range or choices of all its values.",
                UserWarning,
                stacklevel=2,
            )

    def _note_distribution(self, name: str, distribution: BaseDistribution) -> None:
        """Note the latest distribution of a parameter; a range that keeps changing is widened."""
        known = self.distributions.get(name)
        if known is not None:
            # Optuna compares choices one by one in Python, which takes 2 ms for 5,000 of them.
            choices = getattr(known, "choices", None)
            has_same_choices = choices and choices == getattr(distribution, "choices", None)
            if has_same_choices or known == distribution:
                return
            if CategoricalDistribution in (type(known), type(distribution)):
                self._note_conflicts([name])
            self._changes[name] = self._changes.get(name, 0) + 1
            if self._changes[name] > _MANY_CHANGES:
                distribution = union(known, distribution)
        self.distributions[name] = distribution

    def _recode(
        self, trial: FrozenTrial, internal: dict[str, float], proposed: dict[str, float]
    ) -> None:
        """Give choices the numbers of the latest distribution; those that it lacks are missing."""
        for name, latest in self._recoded.items():
            proposed.pop(name, None)
            own = trial.distributions.get(name)
            if own is None or own == latest or name not in internal:
                continue
            del internal[name]
            value = internal_of(latest, trial.params[name])
            if value is not None:
                internal[name] = value

    def _note_conflicts(self, names: Iterable[str]) -> None:
        """Note parameters whose choices have changed, unless the trials are being recoded."""
        if not self._is_recoding:
            self._conflicts.update(names)


def _value(trial: FrozenTrial, n_objectives: int) -> float | None:
    """Return the first value of a trial, or the last one that it reported, if there is any."""
    if n_objectives > 1:
        return None if trial.values is None else trial.values[0]
    if trial.state == TrialState.FAIL:
        return None
    value = trial.value
    if value is None and trial.intermediate_values:
        value = trial.intermediate_values[max(trial.intermediate_values)]
    return None if value is None or math.isnan(value) else value
