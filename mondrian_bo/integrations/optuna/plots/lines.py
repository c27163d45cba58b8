"""What plots share: lines and grids through a point of a study's space."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any, NamedTuple

import numpy as np
import optuna
from optuna.distributions import CategoricalDistribution
from optuna.trial import FrozenTrial

from mondrian_bo.integrations.optuna.plots.labels import distinct_labels
from mondrian_bo.integrations.optuna.readable_sampler import ReadableSampler, check_reader
from mondrian_bo.integrations.optuna.robust_best import (
    asked_model,
    best_predicted,
    trials_to_choose,
)
from mondrian_bo.integrations.optuna.study.distributions import values_under
from mondrian_bo.integrations.optuna.study.study_checks import check_study, sign_of
from mondrian_bo.integrations.optuna.study.trial_rows import finite_trials
from mondrian_bo.integrations.optuna.study_model import StudyModel
from mondrian_bo.search_space import Categorical
from mondrian_bo.shared.argument_checks import is_integer
from mondrian_bo.shared.array_types import BoolArray, FloatArray

_MOST_VALUES = 60
"""Largest grid whose values are all shown, our choice: more points touch each other."""

_MOST_TICKS = 10
"""Largest number of values or choices that all get a tick, our choice: more labels overlap."""

_FEWEST_DIGITS = 6
"""Smallest number of significant digits of a tick's label that is no integer, our choice."""

_LARGEST_INTEGER = 1e12
"""Least size of an integer whose label has an exponent, our choice."""

_LONGEST_LABEL = 16
"""Largest number of characters of a choice's label, our choice: longer ones leave no plot."""

_LARGEST_SHOWN = 1e300
"""Largest absolute value that is drawn as it is, our choice: sums and differences stay finite."""

_SHOWN_UNIT = 1e-10
"""Factor of values in a plot that has larger ones, our choice."""


def check_objective(study: optuna.Study, objective: Any) -> None:
    """Raise an error if `study` is no study, or `objective` is no number of an objective."""
    check_study(study)
    last = len(study.directions) - 1
    if not is_integer(objective) or not 0 <= objective <= last:
        error = ValueError if is_integer(objective) else TypeError
        raise error(f"`objective` must be an integer from 0 to {last}, got {objective!r}.")


@dataclass(frozen=True)
class Line:
    """Values of one parameter, with all others fixed.

    Attributes
    ----------
    name : str
        The parameter.
    units : float64 array of shape (m,)
        Entries of rows.
    values : float64 array of shape (m,)
        Positions on the axis: the parameter's values, or the numbers of the choices.
    labels : list of str or None
        The choices.
    is_log : bool
        Whether the axis is logarithmic.
    has_few_values : bool
        Whether all values of a number get a tick.
    """

    name: str
    units: FloatArray
    values: FloatArray
    labels: list[str] | None
    is_log: bool
    has_few_values: bool

    @property
    def edges(self) -> FloatArray:
        """Boundaries of cells around the values, shape (m + 1,): halfway between neighbours."""
        at = np.log(self.values) if self.is_log else self.values
        middles = 0.5 * (at[1:] + at[:-1])
        edges = np.concatenate([[2.0 * at[0] - middles[0]], middles, [2.0 * at[-1] - middles[-1]]])
        return np.asarray(np.exp(edges) if self.is_log else edges)

    def ticks(self, best: float, most: int = _MOST_TICKS) -> tuple[FloatArray, list[str]] | None:
        """Return positions and labels of the ticks; None if a drawer chooses them.

        Of more than `most` choices, some have ticks: that at the position `best`, and others at
        equal distances.
        """
        if self.labels is not None:
            step = -(-len(self.labels) // min(most, _MOST_TICKS))
            shown = [k for k in range(0, len(self.labels), step) if not 0 < abs(k - best) < step]
            if best in self.values and best not in shown:
                shown = sorted([*shown, int(best)])
            return self.values[shown], [self.labels[k] for k in shown]
        if self.has_few_values:
            return self.values, _tick_labels(self.values)
        return None

    @property
    def limits(self) -> tuple[float, float] | None:
        """Ends of the axis of a map; None if a drawer chooses them."""
        if self.labels is not None or self.has_few_values:
            return None
        return float(self.values.min()), float(self.values.max())


class Centre(NamedTuple):
    """The trial that slices go through.

    Attributes
    ----------
    trial : FrozenTrial
        The trial.
    row : float64 array of shape (d,)
        Its row; NaN at its inactive parameters.
    """

    trial: FrozenTrial
    row: FloatArray


@dataclass(frozen=True)
class StudyView:
    """A study with its model and the point that slices go through.

    Attributes
    ----------
    study : optuna.Study
        The study.
    model : StudyModel
        Its model.
    trials : list of FrozenTrial
        Complete trials with finite values.
    usable : list of FrozenTrial
        Those that slices may go through: feasible ones, if there are any, whose active parameters
        have a place in the model's space.
    rows : float64 array of shape (m, d)
        The rows of these.
    best : int
        The best of these.
    """

    study: optuna.Study
    model: StudyModel
    trials: list[FrozenTrial]
    usable: list[FrozenTrial]
    rows: FloatArray
    best: int

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters that have more than one value."""
        return self.model.optimizer.space.names

    def line(self, name: str, n_points: int = 100) -> Line:
        """Return values along a parameter.

        Raises
        ------
        TypeError
            If `name` is not a string.
        ValueError
            If the study has no such parameter, or the model does not have it.
        """
        space = self.model.optimizer.space
        if not isinstance(name, str):
            raise TypeError(f"A parameter is given by its name, got {name!r}.")
        if name not in space:
            raise ValueError(self._absence_of(name))
        parameter, size = space[name], space[name].n_values
        distribution = self.model.reader.distributions[name]
        if isinstance(parameter, Categorical):
            assert isinstance(distribution, CategoricalDistribution)
            units = np.arange(size, dtype=np.float64)
            # The sampler's choices are the indices of Optuna's.
            indices = [int(str(k)) for k in parameter.choices]
            labels = distinct_labels([distribution.choices[k] for k in indices], _LONGEST_LABEL)
            return Line(name, units, units, labels, False, False)
        units = np.linspace(0.0, 1.0, n_points)
        if 0 < size <= _MOST_VALUES:
            units = (np.arange(size) + 0.5) / size
            if parameter.log:
                whole = [parameter.to_unit(int(parameter.low) + k) for k in range(size)]
                units = np.array(whole)
        values = np.array([float(parameter.from_unit(float(unit))) for unit in units])
        return Line(name, units, values, None, parameter.log, 0 < size <= _MOST_TICKS)

    def _absence_of(self, name: str) -> str:
        """Return why the model does not have a parameter."""
        reader = self.model.reader
        if name in reader.distributions:
            return f"Parameter {name!r} is not in the model: its range is too wide for arithmetic."
        if name in reader.singles:
            return f"Parameter {name!r} has a single value in each of the study's trials."
        if name in reader.names():
            return f"No trial with a value has the parameter {name!r}."
        return f"The study has no parameter {name!r}; it has {list(self.names)}."

    def positions(self, line: Line, trials: list[FrozenTrial]) -> FloatArray:
        """Return where trials are on a line's axis; NaN where one lacks the parameter."""
        known = {line.name: self.model.reader.distributions[line.name]}
        values = [values_under(known, trial.params).get(line.name, np.nan) for trial in trials]
        parameter = self.model.optimizer.space[line.name]
        if isinstance(parameter, Categorical):
            # Of equal choices, such as 1 and True, the axis has one.
            values = [np.nan if np.isnan(one) else parameter.to_unit(one) for one in values]
        return np.array(values)

    def centre(self, names: Sequence[str], objective: int = 0) -> Centre:
        """Return the trial that slices along some parameters go through.

        It is the best trial or, if that lacks one of the parameters, the one with the best
        predicted mean of those that have them.

        Raises
        ------
        ValueError
            If no trial has the parameters.
        """
        able = np.flatnonzero(self._has(names))
        if not len(able):
            raise ValueError(
                f"No complete trial has values of {' and '.join(map(repr, names))} in the present "
                "space."
            )
        chosen = self.best
        if chosen not in able:
            means = self.model.optimizer.predict_rows(self.rows[able])[0][:, objective]
            chosen = int(able[np.argmax(sign_of(self.study, objective) * means)])
        return Centre(self.usable[chosen], self.rows[chosen])

    def has_trial_with(self, names: Sequence[str]) -> bool:
        """Return whether slices along some parameters have a trial to go through."""
        return bool(self._has(names).any())

    def _has(self, names: Sequence[str]) -> BoolArray:
        """Return which usable trials have some parameters, shape (m,)."""
        columns = [self.names.index(name) for name in names]
        return np.asarray(~np.isnan(self.rows[:, columns]).any(axis=1))

    def rows_through(self, centre: Centre, changes: Mapping[str, FloatArray]) -> FloatArray:
        """Return rows through a trial where some parameters vary; inactive ones are NaN."""
        space = self.model.optimizer.space
        m = len(next(iter(changes.values())))
        rows = np.repeat(centre.row[None], m, axis=0)
        for name, units in changes.items():
            rows[:, space.names.index(name)] = units
        # Parameters that become active have defaults.
        return space.snap(space.filled(rows))


def _tick_labels(values: FloatArray) -> list[str]:
    """Return numbers with as many digits as tell them apart, integers with all of theirs."""
    if (values == np.floor(values)).all() and np.abs(values).max() < _LARGEST_INTEGER:
        return [f"{value:.0f}" for value in values]
    for digits in range(_FEWEST_DIGITS, 17):
        labels = [f"{value:.{digits}g}" for value in values]
        if len(set(labels)) == len(labels):
            return labels
    return labels


def view(study: optuna.Study, sampler: ReadableSampler | None = None) -> StudyView:
    """Return a study with its model.

    Parameters
    ----------
    study : optuna.Study
        The study.
    sampler : MondrianSampler or None, default=None
        The sampler whose model is asked; None is the study's own, or the default one.

    Returns
    -------
    StudyView
        The study, its model and its best point.

    Raises
    ------
    TypeError
        If `study` is no study, or `sampler` another sampler.
    ValueError
        If the study has no finished trial with a finite value and a parameter that varies.
    """
    check_study(study)
    check_reader(sampler)
    model = asked_model(study, sampler)
    trials = finite_trials(study)
    if not trials:
        raise ValueError("The study has no complete trial with finite values.")
    usable, rows = model.accepted(trials_to_choose(study))
    columns = {name: j for j, name in enumerate(model.optimizer.space.names)}
    is_whole = [
        not np.isnan(row[[columns[name] for name in trial.params if name in columns]]).any()
        for trial, row in zip(usable, rows, strict=True)
    ]
    if any(is_whole):
        # Others have a choice that is gone.
        usable, rows = list(compress(usable, is_whole)), rows[is_whole]
    if not usable:
        raise ValueError("No complete trial has values of all parameters in the present space.")
    if len(study.directions) == 1:
        best = best_predicted(model, usable, rows, sign_of(study, 0))
    else:
        front = {trial.number for trial in study.best_trials}
        best = next((i for i, trial in enumerate(usable) if trial.number in front), 0)
    return StudyView(study, model, trials, usable, rows, best)


def objective_label(study: optuna.Study, objective: int) -> str:
    """Return the name of an objective, for axes."""
    names = study.metric_names
    if names is not None:
        return str(names[objective])
    return "value" if len(study.directions) == 1 else f"value {objective}"


def shown_unit(label: str, *shown: FloatArray) -> tuple[float, str]:
    """Return a factor of values, a power of ten, and the label of what is drawn.

    The factor is 1 unless values are near the largest float: matplotlib cannot draw these.
    """
    if any(np.abs(one[np.isfinite(one)]).max(initial=0.0) > _LARGEST_SHOWN for one in shown):
        return _SHOWN_UNIT, f"{label} * {_SHOWN_UNIT:g}"
    return 1.0, label
