"""What plots share: lines and grids through a point of a study's space."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import optuna
from optuna.distributions import CategoricalDistribution
from optuna.trial import FrozenTrial

from mondrian_bo.array_types import FloatArray
from mondrian_bo.integrations.optuna.reading import ReadableSampler, StudyModel, check_reader
from mondrian_bo.integrations.optuna.robust_best import asked_model, robust_best
from mondrian_bo.integrations.optuna.study_checks import check_study, sign_of
from mondrian_bo.integrations.optuna.trial_rows import finite_trials
from mondrian_bo.number_types import is_integer
from mondrian_bo.search_space import Categorical

_MOST_VALUES = 60
"""Largest grid whose values are all shown, our choice: more points touch each other."""

_MOST_TICKS = 10
"""Largest grid of numbers that all get a tick, our choice: more labels overlap."""

_LONGEST_LABEL = 16
"""Largest number of characters of a choice's label, our choice: longer labels overlap."""


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

    @property
    def ticks(self) -> tuple[FloatArray, list[str]] | None:
        """Positions and labels of the ticks; None if a drawer chooses them."""
        if self.labels is not None:
            return self.values, self.labels
        if self.has_few_values:
            return self.values, [f"{value:g}" for value in self.values]
        return None

    @property
    def limits(self) -> tuple[float, float] | None:
        """Ends of the axis of a map; None if a drawer chooses them."""
        if self.labels is not None or self.has_few_values:
            return None
        return float(self.values.min()), float(self.values.max())


@dataclass(frozen=True)
class StudyView:
    """A study with its model and the point that slices go through.

    Attributes
    ----------
    study : optuna.Study
        The study.
    model : StudyModel
        Its model.
    base : float64 array of shape (d,)
        The row of the best trial; NaN at its inactive parameters.
    trials : list of FrozenTrial
        Complete trials with finite values.
    """

    study: optuna.Study
    model: StudyModel
    base: FloatArray
    trials: list[FrozenTrial]

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
            If the study has no such parameter, or one with a single value.
        """
        space = self.model.optimizer.space
        if not isinstance(name, str):
            raise TypeError(f"A parameter is given by its name, got {name!r}.")
        if name not in space:
            if name in self.model.reader.names():
                raise ValueError(f"Parameter {name!r} has a single value in the study's trials.")
            raise ValueError(f"The study has no parameter {name!r}; it has {list(self.names)}.")
        parameter, size = space[name], space[name].n_values
        distribution = self.model.reader.distributions[name]
        if isinstance(parameter, Categorical):
            assert isinstance(distribution, CategoricalDistribution)
            units = np.arange(size, dtype=np.float64)
            # The sampler's choices are the indices of Optuna's.
            indices = [int(str(k)) for k in parameter.choices]
            labels = [str(distribution.choices[k])[:_LONGEST_LABEL] for k in indices]
            return Line(name, units, units, labels, False, False)
        units = np.linspace(0.0, 1.0, n_points)
        if 0 < size <= _MOST_VALUES:
            units = (np.arange(size) + 0.5) / size
            if parameter.log:
                whole = [parameter.to_unit(int(parameter.low) + k) for k in range(size)]
                units = np.array(whole)
        values = np.array([float(parameter.from_unit(float(unit))) for unit in units])
        return Line(name, units, values, None, parameter.log, 0 < size <= _MOST_TICKS)

    def positions(self, line: Line, trials: list[FrozenTrial]) -> FloatArray:
        """Return where trials are on a line's axis; NaN where one lacks the parameter."""
        distribution = self.model.reader.distributions[line.name]
        return np.array(
            [
                distribution.to_internal_repr(trial.params[line.name])
                if line.name in trial.params and _holds(distribution, trial.params[line.name])
                else np.nan
                for trial in trials
            ]
        )

    def base_with(self, names: Sequence[str]) -> FloatArray:
        """Return the row that slices go through: of the best trial that has some parameters."""
        columns = [self.names.index(name) for name in names]
        if not np.isnan(self.base[columns]).any():
            return self.base
        sign = sign_of(self.study, 0)
        able = [t for t in self.trials if all(name in t.params for name in names)]
        if not able:
            return self.base
        best = max(able, key=lambda trial: sign * trial.values[0])
        known = {name: value for name, value in best.params.items() if name in self.names}
        return np.asarray(self.model.rows([known])[0])

    def rows(self, changes: Mapping[str, FloatArray]) -> FloatArray:
        """Return rows through `base_with` where some parameters vary; inactive ones are NaN."""
        space = self.model.optimizer.space
        m = len(next(iter(changes.values())))
        rows = np.repeat(self.base_with(list(changes))[None], m, axis=0)
        for name, units in changes.items():
            rows[:, space.names.index(name)] = units
        # Parameters that become active have defaults.
        return space.snap(space.filled(rows))


def _holds(distribution: optuna.distributions.BaseDistribution, value: object) -> bool:
    """Return whether a value has a place on an axis: of a choice, whether there still is one."""
    if not isinstance(distribution, CategoricalDistribution):
        return True
    return value in distribution.choices


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
    if len(study.directions) == 1:
        best = robust_best(study, sampler)
    else:
        best = (study.best_trials or trials)[0]
    space = model.optimizer.space
    params = {name: value for name, value in best.params.items() if name in space}
    return StudyView(study, model, model.rows([params])[0], trials)


def objective_label(study: optuna.Study, objective: int) -> str:
    """Return the name of an objective, for axes."""
    names = study.metric_names
    if names is not None:
        return str(names[objective])
    return "value" if len(study.directions) == 1 else f"value {objective}"
