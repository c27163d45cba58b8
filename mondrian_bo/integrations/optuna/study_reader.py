"""Reading an Optuna study trial by trial: each finished trial is read once."""

from __future__ import annotations

import bisect
import json
import math
from datetime import datetime
from typing import Any, NamedTuple

import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.trial import FrozenTrial, TrialState

from mondrian_bo.integrations.optuna.conditions import ConditionLearner

PUBLISHED_KEY = "mondrian:relative_params"
_LONGEST_ATTRIBUTE = 2045
"""Relational storages hold no longer strings in an attribute."""

_MANY_CHANGES = 5
"""A range that has changed more often than this is dynamic, and widened rather than followed."""

_MANY_CHOICES = 16
"""Integer parameters with more values than this are not taken for the parents of others."""


class FinishedTrial(NamedTuple):
    """What is kept of a finished trial.

    Attributes
    ----------
    values : dict
        What it asked for, in Optuna's internal representation.
    unasked : dict
        What else was proposed for it, and it did not ask for.
    outcome : float
        Its value, or what stands for one; NaN if it failed.
    """

    values: dict[str, float]
    unasked: dict[str, float]
    outcome: float


class StudyReader:
    """What the sampler knows of one study.

    Attributes
    ----------
    finished : list of FinishedTrial
        In the order they were noticed. Another list after the study was deleted and its place in
        the storage taken by another.
    distributions : dict
        The latest distribution of each parameter that has more than one value.
    conditions : ConditionLearner
        Which choices activate which parameters.
    """

    def __init__(self) -> None:
        self.finished: list[FinishedTrial] = []
        self.distributions: dict[str, BaseDistribution] = {}
        self.conditions = ConditionLearner()
        self._n_seen = 0
        self._last_read: tuple[int, datetime | None] | None = None
        self._open: set[int] = set()
        self._changes: dict[str, int] = {}
        self._outcomes: list[float] = []

    def read(self, study: optuna.Study) -> list[FrozenTrial]:
        """Read what is new and return the trials that are running, O(new and running trials)."""
        trials = study.get_trials(deepcopy=False)
        if self._is_another(trials):
            StudyReader.__init__(self)
        self._open.update(range(self._n_seen, len(trials)))
        self._n_seen = len(trials)
        for position in sorted(self._open):
            if trials[position].state.is_finished():
                self._absorb(trials[position], maximize=_maximizes(study))
                self._open.remove(position)
                self._last_read = position, trials[position].datetime_complete
        return [
            trials[position]
            for position in sorted(self._open)
            if trials[position].state == TrialState.RUNNING
        ]

    def _is_another(self, trials: list[FrozenTrial]) -> bool:
        """Whether this is not the study read so far: storages use the ids of deleted ones again."""
        if self._last_read is None or self._n_seen > len(trials):
            return self._n_seen > len(trials)
        position, completed = self._last_read
        return trials[position].datetime_complete != completed

    def _absorb(self, trial: FrozenTrial, maximize: bool) -> None:
        if trial.constraints:
            raise ValueError(
                "MondrianSampler does not support constraints yet: "
                f"trial {trial.number} has {trial.constraints!r}."
            )
        value = _value(trial)
        outcome = self._outcome(trial, value, maximize)
        internal = _internal(trial)
        proposed = running_values(trial)
        unasked = {name: proposed[name] for name in proposed if name not in internal}
        self.finished.append(FinishedTrial(internal, unasked, outcome))
        if value is None:
            # It may have ended before it asked for all its parameters.
            return
        for name, distribution in trial.distributions.items():
            if not distribution.single():
                self._follow(name, distribution)
        names = tuple(name for name in trial.distributions if name in self.distributions)
        choices = {
            name: int(internal[name]) for name in names if _may_be_parent(trial.distributions[name])
        }
        self.conditions.learn(names, choices)

    def _outcome(self, trial: FrozenTrial, value: float | None, maximize: bool) -> float:
        if trial.state == TrialState.COMPLETE:
            assert value is not None
            bisect.insort(self._outcomes, value)
            return value
        if trial.state == TrialState.FAIL:
            return math.nan
        if not self._outcomes:
            return math.nan if value is None else value
        # The pruner judged the trial to be worse than most, whatever its value so early.
        median = self._outcomes[len(self._outcomes) // 2]
        if value is None:
            return median
        return min(value, median) if maximize else max(value, median)

    def _follow(self, name: str, distribution: BaseDistribution) -> None:
        known = self.distributions.get(name)
        if known is None:
            self.distributions[name] = distribution
        elif known != distribution:
            self._changes[name] = self._changes.get(name, 0) + 1
            if self._changes[name] > _MANY_CHANGES:
                distribution = _union(known, distribution)
            self.distributions[name] = distribution


def _value(trial: FrozenTrial) -> float | None:
    """Return the value of a trial, or the last one that it reported, if there is any."""
    if trial.state == TrialState.FAIL:
        return None
    value = trial.value
    if value is None and trial.intermediate_values:
        value = trial.intermediate_values[max(trial.intermediate_values)]
    return None if value is None or math.isnan(value) else value


def _maximizes(study: optuna.Study) -> bool:
    return study.direction == optuna.study.StudyDirection.MAXIMIZE


def _may_be_parent(distribution: BaseDistribution) -> bool:
    """Whether a parameter chooses among few things, as a number of layers does."""
    if isinstance(distribution, IntDistribution):
        size = (distribution.high - distribution.low) // distribution.step + 1
        return size <= _MANY_CHOICES
    return isinstance(distribution, CategoricalDistribution)


def _internal(trial: FrozenTrial) -> dict[str, float]:
    return {
        name: distribution.to_internal_repr(trial.params[name])
        for name, distribution in trial.distributions.items()
    }


def _union(known: Any, latest: Any) -> Any:
    """Return the range that covers both, if their scales and grids allow for it."""
    is_range = isinstance(latest, FloatDistribution | IntDistribution)
    if type(known) is not type(latest) or not is_range or known.log != latest.log:
        return latest
    step = known.step
    if isinstance(latest, IntDistribution):
        # Grids that do not meet are parts of a finer one.
        step = math.gcd(known.step, latest.step, known.low - latest.low)
    elif step != latest.step or (step is not None and known.low != latest.low):
        return latest
    ends = {"low": min(known.low, latest.low), "high": max(known.high, latest.high)}
    return type(known)(**ends, log=known.log, step=step)


def publish(study: optuna.Study, trial: FrozenTrial, internal: dict[str, float]) -> None:
    """Store what a trial will ask for, so that other workers know before it does."""
    text = json.dumps(internal)
    for i in range(0, len(text), _LONGEST_ATTRIBUTE):
        study._storage.set_trial_system_attr(
            trial._trial_id,
            f"{PUBLISHED_KEY}:{i // _LONGEST_ATTRIBUTE}",
            text[i : i + _LONGEST_ATTRIBUTE],
        )


def running_values(trial: FrozenTrial) -> dict[str, float]:
    """Return what is known of a running trial: what was published, and what it has asked for."""
    parts: list[str] = []
    while (part := trial.system_attrs.get(f"{PUBLISHED_KEY}:{len(parts)}")) is not None:
        parts.append(part)
    try:
        published: dict[str, float] = json.loads("".join(parts)) if parts else {}
    except json.JSONDecodeError:
        # Another worker is writing it right now.
        published = {}
    return {**published, **_internal(trial)}
