"""Reading an Optuna study: trials and their rows, and the conditions that trials tell.

Optuna's conditional spaces are never declared: an objective asks for a parameter or does not. The
conditions are learnt from the parameters of the trials, and one model covers the whole space. Each
finished trial is read once.
"""

from __future__ import annotations

import bisect
import json
import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from mondrian_bo.array_types import FloatArray
from mondrian_bo.search_space import Categorical, Condition, Float, Int, SearchSpace

PUBLISHED_KEY = "mondrian:relative_params"
"""Prefix of the trial attributes that hold a proposal."""

_LONGEST_ATTRIBUTE = 2045
"""Length of the longest string that an attribute holds in a relational storage."""

_MANY_CHANGES = 5
"""Changes of a range after which it counts as dynamic, and is widened; our choice."""

_MANY_CHOICES = 16
"""Largest number of values of an integer parameter that can be a parent of others; our choice."""

Pattern: TypeAlias = tuple[tuple[str, ...], tuple[tuple[str, int], ...]]
"""The names of a trial's parameters, and the choices of possible parents among them."""


class FinishedTrial(NamedTuple):
    """A finished trial as the sampler uses it.

    Attributes
    ----------
    values : dict
        The parameters that it asked for, in Optuna's internal representation.
    unasked : dict
        The parameters that were proposed and that it did not ask for.
    outcome : float
        Its value, or the one imputed if it was pruned; NaN if it failed.
    """

    values: dict[str, float]
    unasked: dict[str, float]
    outcome: float


class ConditionLearner:
    """Explains the absence of each parameter by the value of one other parameter, its parent.

    A parent is categorical, or an integer with few values such as a number of layers. Parameter q
    is the parent of p if, in all trials so far, p is present exactly where q has one of certain
    values. Of several such q the parent is the one that is present least often, so that nested
    conditions become chains.

    Attributes
    ----------
    conditions : dict
        The conditions by parameter.
    unexplained : bool
        Whether some absences have no explanation.
    """

    def __init__(self) -> None:
        self._n_patterns = 0
        self._present: Counter[str] = Counter()
        self._seen: set[Pattern] = set()
        self._with: defaultdict[tuple[str, str], set[int]] = defaultdict(set)
        self._without: defaultdict[tuple[str, str], set[int]] = defaultdict(set)
        self._orphans: set[tuple[str, str]] = set()
        self._choices: dict[str, int] = {}
        self.conditions: dict[str, Condition] = {}
        self.unexplained = False

    def learn(self, names: tuple[str, ...], choices: Mapping[str, int]) -> None:
        """Learn from one trial; O(1) if one like it has been seen.

        Parameters
        ----------
        names : tuple of str
            The parameters it has.
        choices : mapping of str to int
            Of those that may be parents: the index of the choice, or the integer.
        """
        pattern = (names, tuple(choices.items()))
        if pattern in self._seen:
            return
        self._seen.add(pattern)
        new = [name for name in names if name not in self._present]
        self._n_patterns += 1
        self._present.update(names)
        present = set(names)
        for q in (*self._choices, *(name for name in choices if name not in self._choices)):
            if q not in choices:
                self._orphans.update((p, q) for p in names)
                continue
            for p in self._present:
                side = self._with if p in present else self._without
                side[p, q].add(choices[q])
        self._catch_up(new, choices)
        self._explain()

    def _catch_up(self, new: list[str], choices: Mapping[str, int]) -> None:
        """Count the absence of new names from earlier patterns."""
        for names, earlier in self._seen if new else ():
            known = dict(earlier)
            for p in new:
                if p in names:
                    continue
                for q, choice in known.items():
                    self._without[p, q].add(choice)
            for q in choices:
                if q in new and q not in known:
                    self._orphans.update((p, q) for p in names)
        self._choices.update(choices)

    def _explain(self) -> None:
        self.conditions = {}
        self.unexplained = False
        for p, count in self._present.items():
            if count == self._n_patterns:
                continue
            parents = [
                q
                for q in self._choices
                if self._present[q] > count
                and (p, q) not in self._orphans
                and not self._with[p, q] & self._without[p, q]
            ]
            if parents:
                parent = min(parents, key=lambda q: self._present[q])
                self.conditions[p] = Condition(parent, tuple(sorted(self._with[p, parent])))
            else:
                self.unexplained = True


class StudyReader:
    """The finished trials of one study, with its distributions and conditions.

    Attributes
    ----------
    finished : list of FinishedTrial
        In the order they were noticed. It is a new list once the study was deleted and another has
        taken its place in the storage.
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
        """Read new trials and return the running ones; O(new and running trials)."""
        trials = study.get_trials(deepcopy=False)
        if self._is_another(trials):
            StudyReader.__init__(self)
        self._open.update(range(self._n_seen, len(trials)))
        self._n_seen = len(trials)
        for position in sorted(self._open):
            if trials[position].state.is_finished():
                self._absorb(trials[position], study.direction == StudyDirection.MAXIMIZE)
                self._open.remove(position)
                self._last_read = position, trials[position].datetime_complete
        return [
            trials[position]
            for position in sorted(self._open)
            if trials[position].state == TrialState.RUNNING
        ]

    def _is_another(self, trials: list[FrozenTrial]) -> bool:
        """Whether this is not the study read so far: storages reuse the ids of deleted studies."""
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
            if not distribution.single() and self.distributions.get(name) != distribution:
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
        # The pruner judged the trial to be worse than most, whatever its early value.
        median = self._outcomes[len(self._outcomes) // 2]
        if value is None:
            return median
        return min(value, median) if maximize else max(value, median)

    def _follow(self, name: str, distribution: BaseDistribution) -> None:
        """Note another distribution of a parameter."""
        known = self.distributions.get(name)
        if known is not None:
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


def _may_be_parent(distribution: BaseDistribution) -> bool:
    """Whether a parameter has few values, as a number of layers has."""
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
    """Store the proposal for a trial, so that other workers know it before the trial asks."""
    text = json.dumps(internal)
    for i in range(0, len(text), _LONGEST_ATTRIBUTE):
        study._storage.set_trial_system_attr(
            trial._trial_id,
            f"{PUBLISHED_KEY}:{i // _LONGEST_ATTRIBUTE}",
            text[i : i + _LONGEST_ATTRIBUTE],
        )


def running_values(trial: FrozenTrial) -> dict[str, float]:
    """Return the values of a running trial: those proposed, and those it has asked for."""
    parts: list[str] = []
    while (part := trial.system_attrs.get(f"{PUBLISHED_KEY}:{len(parts)}")) is not None:
        parts.append(part)
    try:
        published: dict[str, float] = json.loads("".join(parts)) if parts else {}
    except json.JSONDecodeError:
        # Another worker is writing it right now.
        published = {}
    return {**published, **_internal(trial)}


# Rows: trials as points of the search space -------------------------------------------------------


def encode(space: SearchSpace, trials: Sequence[Mapping[str, float]]) -> FloatArray:
    """Encode trials as rows of the unit cube, or beyond it where ranges have changed.

    Parameters
    ----------
    space : SearchSpace
        The present space.
    trials : sequence of m mappings of str to float
        Their values in Optuna's internal representation, which is the index for categorical
        parameters. Names that the space does not have are ignored.

    Returns
    -------
    float64 array of shape (m, d)
        NaN where a trial has no value, or none that has a place in the space: a number that is not
        positive where the space is logarithmic now.
    """
    rows = np.full((len(trials), space.n_dimensions), np.nan)
    for i, internal in enumerate(trials):
        for j, name in enumerate(space.names):
            if name not in internal:
                continue
            parameter, value = space.parameters[j], internal[name]
            try:
                rows[i, j] = parameter.to_unit(value)
            except (TypeError, ValueError):
                if not isinstance(parameter, Categorical):
                    rows[i, j] = _unit_outside(parameter, value)
    return rows


def complete(
    space: SearchSpace, rows: FloatArray, unasked: Sequence[Mapping[str, float]]
) -> FloatArray:
    """Fill the gaps of encoded trials with values that were proposed and not asked for.

    The outcome of a trial is then known where its proposal was. Otherwise an objective that leaves
    parameters out for reasons that no condition explains would be asked for the same again and
    again.

    Parameters
    ----------
    space : SearchSpace
        The present space.
    rows : float64 array of shape (m, d)
        The trials, as `encode` returns them.
    unasked : sequence of m mappings of str to float
        Values in Optuna's internal representation.

    Returns
    -------
    float64 array of shape (m, d)
        The filled rows. Parameters that conditions make inactive stay NaN.
    """
    if not any(name in space for one in unasked for name in one):
        return rows
    filled = np.where(np.isnan(rows), encode(space, unasked), rows)
    inactive = np.isnan(space.snap(np.nan_to_num(filled)))
    filled[inactive & np.isnan(rows)] = np.nan
    return filled


def _unit_outside(parameter: Float | Int, value: float) -> float:
    """Continue the scale of a numeric parameter beyond its range and between its grid's values."""
    low, high = float(parameter.low), float(parameter.high)
    if parameter.step is not None:
        # Each value of a grid sits in the middle of its cell.
        low, high = low - 0.5 * parameter.step, high + 0.5 * parameter.step
    if high <= low:
        return 0.5
    if not parameter.log:
        return (value - low) / (high - low)
    if value <= 0.0:
        return math.nan
    return (math.log(value) - math.log(low)) / (math.log(high) - math.log(low))


def to_external(
    distributions: Mapping[str, BaseDistribution], params: Mapping[str, Any]
) -> dict[str, Any]:
    """Replace the indices of categorical choices by the choices."""
    external = dict(params)
    for name, index in params.items():
        distribution = distributions[name]
        if isinstance(distribution, CategoricalDistribution):
            external[name] = distribution.choices[index]
    return external
