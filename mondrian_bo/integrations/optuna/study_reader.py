"""Reading an Optuna study: its finished trials, each read once, and its running ones."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.storages import InMemoryStorage
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from mondrian_bo.array_types import FloatArray
from mondrian_bo.integrations.optuna.distributions import internal_of, union
from mondrian_bo.integrations.optuna.learnt_conditions import ConditionLearner, may_be_parent
from mondrian_bo.integrations.optuna.proposals import (
    internal_values,
    proposed_values,
    replaced_values,
)
from mondrian_bo.integrations.optuna.pruned_trials import PrunedTrials

N_WITHOUT = 10
"""Number of finished trials after which a warning names a parameter that none of them has."""

_MANY_CHANGES = 5
"""Changes of a range after which it counts as dynamic, and is widened; our choice."""

_MOST_OPEN = 16
"""Unfinished trials up to which trials in memory are read one by one; each may fail. Our choice."""


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
    """

    values: dict[str, float]
    unasked: dict[str, float]
    outcomes: tuple[float, ...]
    constraints: dict[str, float]
    error: float
    attributes: Mapping[str, Any]
    replaced: dict[str, float]


class StudyReader:
    """The finished trials of one study, with its distributions and conditions.

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
    """

    def __init__(self) -> None:
        self.finished: list[FinishedTrial] = []
        self._has_errors = False
        self.constraints: list[str] = []
        self.distributions: dict[str, BaseDistribution] = {}
        self.conditions = ConditionLearner()
        self.constants: dict[str, Any] | None = None
        self._n_seen = 0
        self._last_read: tuple[int, datetime] | None = None
        self._open: set[int] = set()
        self._changes: dict[str, int] = {}
        self._complete: list[FrozenTrial] = []
        self._pruned: PrunedTrials | None = None
        self._is_reading = False
        # The latest distributions of parameters whose choices have changed, and those that changed
        # since.
        self._recoded: dict[str, BaseDistribution] = {}
        self._conflicts: set[str] = set()
        self._is_recoding = False

    def read(self, study: optuna.Study) -> list[FrozenTrial]:
        """Read new trials and return the running ones; O(new and running trials)."""
        trials: Sequence[FrozenTrial] | dict[int, FrozenTrial]
        # The brackets of Hyperband are studies of another class, with some of the trials.
        in_memory = type(study) is optuna.Study and type(study._storage) is InMemoryStorage
        if in_memory and self._last_read is not None and len(self._open) <= _MOST_OPEN:
            needed = [*self._open, self._last_read[0]]
            trials, n_trials = _read_in_memory(study, self._n_seen, needed)
        else:
            n_trials = len(trials := study.get_trials(deepcopy=False))
        # What was interrupted half-way is read again from the first trial.
        is_new = self._is_reading or self._n_seen > n_trials
        self._is_reading = True
        if not is_new and self._last_read is not None:
            # Storages reuse the ids of deleted studies.
            position, completed = self._last_read
            is_new = local_time(trials[position].datetime_complete) != completed
        if is_new:
            StudyReader.__init__(self)
            self._is_reading = True
            n_trials = len(trials := study.get_trials(deepcopy=False))
        self._open.update(range(self._n_seen, n_trials))
        self._n_seen = n_trials
        finished = []
        for position in self._open:
            if trials[position].state.is_finished():
                finished.append((local_time(trials[position].datetime_complete), position))
        # In the order in which they finished, as another reader has noticed them one by one.
        for completed, position in sorted(finished):
            self._absorb(trials[position], study.directions)
            self._last_read = position, completed
        if finished:
            # A new set: one from which elements are removed stays as large as it was.
            self._open = self._open.difference(position for _, position in finished)
        if self._conflicts:
            return self._read_recoded(study)
        self._is_recoding = self._is_reading = False
        return [
            trials[position]
            for position in sorted(self._open)
            if trials[position].state == TrialState.RUNNING
        ]

    def _read_recoded(self, study: optuna.Study) -> list[FrozenTrial]:
        """Read all trials again, with the numbers of choices in the latest distributions."""
        names = self._conflicts.union(self._recoded)
        states = (TrialState.COMPLETE, TrialState.PRUNED)
        trials = study.get_trials(deepcopy=False, states=states)
        latest: dict[str, BaseDistribution] = {}
        for trial in sorted(trials, key=lambda one: local_time(one.datetime_complete)):
            for name in names.intersection(trial.distributions):
                if not trial.distributions[name].single():
                    latest[name] = trial.distributions[name]
        StudyReader.__init__(self)
        self._recoded, self._is_recoding = latest, True
        return self.read(study)

    def running_values(self, trial: FrozenTrial) -> dict[str, float]:
        """Return the values of a running trial: those proposed, and those it has asked for."""
        internal, proposed = internal_values(trial), proposed_values(trial)
        if self._recoded:
            self._recode(trial, internal, proposed)
        return {**proposed, **internal}

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

    def _absorb(self, trial: FrozenTrial, directions: Sequence[StudyDirection]) -> None:
        error = 0.0
        if len(directions) > 1:
            value = None if trial.values is None else trial.values[0]
            outcomes = tuple(trial.values or [math.nan] * len(directions))
        else:
            value = _value(trial)
            outcome = math.nan if value is None else value
            if trial.state == TrialState.COMPLETE:
                self._complete.append(trial)
            elif trial.state == TrialState.PRUNED:
                if self._pruned is None:
                    maximize = directions[0] == StudyDirection.MAXIMIZE
                    self._pruned = PrunedTrials(self._complete, maximize)
                outcome, error = self._pruned.impute(trial, value)
                self._has_errors |= error > 0.0
            outcomes = (outcome,)
        constraints = trial.constraints
        self.constraints.extend(name for name in constraints if name not in self.constraints)
        internal, proposed = internal_values(trial), proposed_values(trial)
        if self._recoded:
            self._recode(trial, internal, proposed)
        unasked = {name: proposed[name] for name in proposed if name not in internal}
        replaced = replaced_values(trial)
        attributes = trial.user_attrs
        self.finished.append(
            FinishedTrial(internal, unasked, outcomes, constraints, error, attributes, replaced)
        )
        if value is None:
            # It may have ended before it asked for all its parameters.
            return
        own = trial.distributions
        distributions = {name: self._recoded.get(name, own[name]) for name in internal}
        if self._recoded:
            self._note_conflicts(
                name
                for name, latest in self._recoded.items()
                if own.get(name, latest) != latest and not own[name].single()
            )
        varied = {name: one for name, one in distributions.items() if not one.single()}
        constants = {name: trial.params[name] for name in distributions if name not in varied}
        if self.constants is not None:
            former = self.constants
            constants = {
                name: value
                for name, value in constants.items()
                if name in former and former[name] == value
            }
        self.constants = constants
        for name, distribution in varied.items():
            known = self.distributions.get(name)
            # Optuna compares choices one by one in Python, which takes 2 ms for 5,000 of them.
            has_same_choices = getattr(known, "choices", ()) == getattr(
                distribution, "choices", None
            )
            if not has_same_choices and known != distribution:
                if known is not None and CategoricalDistribution in (
                    type(known),
                    type(distribution),
                ):
                    self._note_conflicts([name])
                self._follow(name, distribution)
        names = tuple(name for name in distributions if name in self.distributions)
        choices = {
            name: int(internal[name]) for name in names if may_be_parent(distributions[name])
        }
        self.conditions.learn(names, choices)

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
        if not self._is_recoding:
            self._conflicts.update(names)

    def _follow(self, name: str, distribution: BaseDistribution) -> None:
        """Note another distribution of a parameter."""
        known = self.distributions.get(name)
        if known is not None:
            self._changes[name] = self._changes.get(name, 0) + 1
            if self._changes[name] > _MANY_CHANGES:
                distribution = union(known, distribution)
        self.distributions[name] = distribution


def check_study(study: object) -> None:
    """Raise a TypeError if an argument `study` is no study of Optuna."""
    if not isinstance(study, optuna.Study):
        raise TypeError(f"`study` must be an optuna.Study, got {study!r}.")


def sign_of(study: optuna.Study, objective: int) -> float:
    """Return 1 if an objective is maximised, else -1."""
    return 1.0 if study.directions[objective] == StudyDirection.MAXIMIZE else -1.0


def local_time(moment: datetime | None) -> datetime:
    """Return a moment in local time without a zone; the first of all moments for None.

    Optuna writes moments so; trials that a user adds may have others.
    """
    if moment is None:
        return datetime.min
    return moment if moment.tzinfo is None else moment.astimezone().replace(tzinfo=None)


def _read_in_memory(
    study: optuna.Study, n_seen: int, positions: Iterable[int]
) -> tuple[dict[int, FrozenTrial], int]:
    """Return trials at some positions and all new ones, by position, and the number of all."""
    # Optuna would copy the list of all trials: 2 ms for 100,000 of them.
    storage, found = study._storage, {}
    id_of = partial(storage.get_trial_id_from_study_id_trial_number, study._study_id)
    try:
        for position in positions:
            found[position] = storage.get_trial(id_of(position))
    except KeyError:
        # A study that was deleted and made again has fewer trials than before.
        n_seen = 0
    try:
        while True:
            found[n_seen] = storage.get_trial(id_of(n_seen))
            n_seen += 1
    except KeyError:
        return found, n_seen


def _value(trial: FrozenTrial) -> float | None:
    """Return the value of a trial, or the last one that it reported, if there is any."""
    if trial.state == TrialState.FAIL:
        return None
    value = trial.value
    if value is None and trial.intermediate_values:
        value = trial.intermediate_values[max(trial.intermediate_values)]
    return None if value is None or math.isnan(value) else value
