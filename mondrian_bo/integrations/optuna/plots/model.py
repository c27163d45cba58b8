"""What plots of the model show: slices, maps, the acquisition, pairs, importance, a partition.

Each function computes one plot. ``draw_matplotlib`` and ``draw_plotly`` draw it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import optuna

from mondrian_bo.importance.models import MondrianForestAnova
from mondrian_bo.integrations.optuna.importance import (
    MondrianImportanceEvaluator,
    StudyImportance,
    importance_of,
)
from mondrian_bo.integrations.optuna.plots.lines import (
    Centre,
    Line,
    StudyView,
    check_objective,
    objective_label,
    shown_unit,
)
from mondrian_bo.integrations.optuna.study.study_checks import check_single_objective
from mondrian_bo.search_space import Float, SearchSpace
from mondrian_bo.shared.argument_checks import check_count, check_flag
from mondrian_bo.shared.array_types import FloatArray

_TAILS = np.array([0.05, 0.95])
"""Levels of the ends of intervals: 90 % in all."""

_GRID = 40
"""Points of a map along each continuous parameter, our choice: 1600 predictions a map."""


class SliceData(NamedTuple):
    """A prediction along a parameter through the best trial.

    Attributes
    ----------
    line : Line
        The m values of the parameter.
    mean, lower, upper : float64 arrays of shape (m,)
        The predicted mean, and the ends of 90 % intervals.
    trials : float64 array of shape (n, 2)
        Positions and values of the complete trials; NaN where one lacks the parameter.
    numbers : list of int
        Numbers of these trials.
    best : tuple of two floats
        Position of the best trial that has the parameter, and its predicted mean.
    limits : tuple of two floats or None
        Ends of the vertical axis; None if a drawer chooses them.
    label : str
        Name of the objective.
    """

    line: Line
    mean: FloatArray
    lower: FloatArray
    upper: FloatArray
    trials: FloatArray
    numbers: list[int]
    best: tuple[float, float]
    limits: tuple[float, float] | None
    label: str


class MapData(NamedTuple):
    """Values over two parameters through the best trial.

    Attributes
    ----------
    x, y : Line
        The values of the parameters, m and k of them.
    surface : float64 array of shape (k, m)
        Predicted means, their deviations, or scores.
    trials : float64 array of shape (n, 2)
        Positions of the complete trials; NaN where one lacks a parameter.
    numbers : list of int
        Numbers of these trials.
    best : tuple of two floats
        Position of the best trial that has both parameters.
    label : str
        What the surface is.
    """

    x: Line
    y: Line
    surface: FloatArray
    trials: FloatArray
    numbers: list[int]
    best: tuple[float, float]
    label: str


class AcquisitionData(NamedTuple):
    """Acquisitions along a parameter through the best trial.

    Attributes
    ----------
    line : Line
        The m values of the parameter.
    scores : list of (str, float64 array of shape (m,))
        Each acquisition of the portfolio with its standardised scores.
    best : float
        Position of the best trial that has the parameter.
    """

    line: Line
    scores: list[tuple[str, FloatArray]]
    best: float


class ImportanceData(NamedTuple):
    """Shares of the variance, the largest main effect first, then the pairs.

    Attributes
    ----------
    names : list of tuples of one or two str
        Parameters and pairs of them.
    shares : list of float
        Their shares.
    n_pairs : int
        Number of pairs.
    label : str
        Name of the objective.
    """

    names: list[tuple[str, ...]]
    shares: list[float]
    n_pairs: int
    label: str


class PartitionData(NamedTuple):
    """The cells of one Mondrian tree over two parameters, on the unit scale.

    Attributes
    ----------
    names : tuple of two str
        The parameters.
    lower, upper : float64 arrays of shape (m, 2)
        Corners of the cells.
    means : float64 array of shape (m,)
        Mean values of the cells, in the units of the objective.
    points : float64 array of shape (n, 2)
        The trials.
    numbers : list of int
        Their numbers.
    label : str
        Name of the objective.
    """

    names: tuple[str, str]
    lower: FloatArray
    upper: FloatArray
    means: FloatArray
    points: FloatArray
    numbers: list[int]
    label: str


def slice_data(seen: StudyView, param: str, objective: int = 0) -> SliceData:
    """Predict along a parameter.

    Raises
    ------
    ValueError
        If the study has no such parameter, or no complete trial that has it.
    """
    check_objective(seen.study, objective)
    line = seen.line(param)
    centre = seen.centre([param], objective)
    rows = seen.rows_through(centre, {param: line.units})
    optimizer = seen.model.optimizer
    mean = optimizer.predict_rows(rows)[0][:, objective]
    lower, upper = optimizer.predict_quantiles(rows, _TAILS)[:, objective].T
    values = np.array([trial.values[objective] for trial in seen.trials])
    at = float(optimizer.predict_rows(centre.row[None])[0][0, objective])
    unit, label = shown_unit(objective_label(seen.study, objective), values, mean, lower, upper)
    return SliceData(
        line,
        unit * mean,
        unit * lower,
        unit * upper,
        np.column_stack([seen.positions(line, seen.trials), unit * values]),
        [trial.number for trial in seen.trials],
        (float(seen.positions(line, [centre.trial])[0]), unit * at),
        _limits(unit * values, unit * mean),
        label,
    )


def map_data(
    seen: StudyView, x: str, y: str, objective: int = 0, uncertainty: bool = False
) -> MapData:
    """Predict the mean over two parameters, or its deviation.

    Raises
    ------
    TypeError
        If `uncertainty` is not True or False.
    ValueError
        If the study has no such parameters, no complete trial that has both, or if both are the
        same.
    """
    check_objective(seen.study, objective)
    check_flag("uncertainty", uncertainty)
    mesh = _mesh(seen, x, y, objective)
    predicted = seen.model.optimizer.predict_rows(mesh.rows)[1 if uncertainty else 0][:, objective]
    label = objective_label(seen.study, objective)
    return _surface(seen, mesh, predicted, f"deviation of {label}" if uncertainty else label)


def acquisition_data(seen: StudyView, x: str, y: str | None = None) -> AcquisitionData | MapData:
    """Score what the next suggestion would maximise, along one parameter or over two.

    Under constraints, scores are weighted by the probability that all hold. A map has the first
    acquisition of the portfolio.

    Raises
    ------
    ValueError
        If the study has several objectives, no such parameters, or no complete trial that has them.
    """
    check_single_objective(seen.study, "plot_acquisition")
    scores = seen.model.optimizer.scores()
    if y is not None:
        mesh = _mesh(seen, x, y)
        _, score = scores[0]
        return _surface(seen, mesh, _standardised(score(mesh.rows)), "acquisition")
    line = seen.line(x)
    centre = seen.centre([x])
    rows = seen.rows_through(centre, {x: line.units})
    return AcquisitionData(
        line,
        [(repr(one), _standardised(score(rows))) for one, score in scores],
        float(seen.positions(line, [centre.trial])[0]),
    )


def pairs_data(
    seen: StudyView, params: Sequence[str] | None = None, objective: int = 0
) -> list[list[SliceData | MapData | None]]:
    """Compute slices (diagonal), maps of means (below) and of deviations (above).

    Parameters are the four most important ones if `params` is None. Where no trial has both
    parameters, as in different branches, there is None instead of a map.

    Raises
    ------
    TypeError
        If `params` is not a sequence of names.
    ValueError
        If `params` is empty, or the study has no such parameters.
    """
    if params is not None:
        if isinstance(params, str) or not isinstance(params, Sequence):
            raise TypeError(f"`params` must be a list of names of parameters, got {params!r}.")
        if not params:
            raise ValueError(f"`params` must have at least one name; there are {list(seen.names)}.")
    chosen = params
    if chosen is None:
        names = important(read_importance(seen.study, objective), seen)
        chosen = [name for name in names if seen.has_trial_with([name])][:4]

    def panel(i: int, j: int) -> SliceData | MapData | None:
        x, y = chosen[j], chosen[i]
        if x == y:
            return slice_data(seen, x, objective)
        # A line checks the name.
        names = [seen.line(name).name for name in (x, y)]
        if not seen.has_trial_with(names):
            return None
        return map_data(seen, x, y, objective, uncertainty=j > i)

    return [[panel(i, j) for j in range(len(chosen))] for i in range(len(chosen))]


def read_importance(
    study: optuna.Study, objective: int = 0, evaluator: MondrianImportanceEvaluator | None = None
) -> StudyImportance:
    """Decompose the variance of an objective; None is the default evaluator.

    Raises
    ------
    TypeError, ValueError
        If `objective` is no such number, or `evaluator` another evaluator.
    """
    check_objective(study, objective)
    if evaluator is None:
        evaluator = MondrianImportanceEvaluator()
    elif not isinstance(evaluator, MondrianImportanceEvaluator):
        raise TypeError(
            f"`evaluator` must be a MondrianImportanceEvaluator or None, got {evaluator!r}."
        )
    return importance_of(evaluator, study, target=lambda trial: float(trial.values[objective]))


def important(found: StudyImportance, seen: StudyView) -> list[str]:
    """Return the parameters that vary, the most important first."""
    return [name for name in found.shares(interactions=True) if name in seen.names]


def importance_data(
    study: optuna.Study, objective: int, n_pairs: int, evaluator: MondrianImportanceEvaluator | None
) -> ImportanceData:
    """Compute main effects of all parameters, and the largest pairs.

    Raises
    ------
    TypeError, ValueError
        If `objective` or `n_pairs` is no such number, or `evaluator` another evaluator.
    """
    check_objective(study, objective)
    check_count("n_pairs", n_pairs, 0)
    found = read_importance(study, objective, evaluator)
    interactions = evaluator is not None and evaluator.interactions
    return importance_bars(found, n_pairs, objective_label(study, objective), interactions)


def importance_bars(
    found: StudyImportance, n_pairs: int, label: str, interactions: bool = False
) -> ImportanceData:
    """Return main effects of all parameters, and the largest pairs.

    With `interactions`, half of its interactions are added to the effect of each parameter.
    """
    effects = found.shares(interactions)
    pairs = list(found.pairs().items())[:n_pairs]
    return ImportanceData(
        [*((name,) for name in effects), *(pair for pair, _ in pairs)],
        [*effects.values(), *(share for _, share in pairs)],
        len(pairs),
        label,
    )


def partition_data(
    seen: StudyView, x: str, y: str, objective: int = 0, seed: int = 0
) -> PartitionData:
    """Grow a Mondrian tree from the trials over two parameters.

    Raises
    ------
    TypeError
        If `seed` is no integer.
    ValueError
        If the study has no such parameters, or no trial that has both, as in different branches, or
        if `seed` is negative.
    """
    check_objective(seen.study, objective)
    check_count("seed", seed, 0)
    _check_two(x, y)
    # The unit square of the two parameters. Choices are in the middle of equal parts, as integers
    # are.
    columns = []
    for name in (x, y):
        line = seen.line(name)
        parameter = seen.model.optimizer.space[name]
        at = seen.positions(line, seen.trials)
        if line.labels is None:
            units = [np.nan if np.isnan(value) else _unit(parameter, value) for value in at]
            columns.append(np.array(units))
        else:
            columns.append((at + 0.5) / len(line.labels))
    points = np.column_stack(columns)
    known = np.flatnonzero(((points >= 0.0) & (points <= 1.0)).all(axis=1))
    if not len(known):
        raise ValueError(f"No complete trial has values of both {x!r} and {y!r} in their ranges.")
    values = np.array([trial.values[objective] for trial in seen.trials])[known]
    space = SearchSpace({"x": Float(0.0, 1.0), "y": Float(0.0, 1.0)})
    # Squares of large values overflow.
    scale = np.abs(values).max() or 1.0
    values = values / scale
    centre, size = values.mean(), values.std() or 1.0
    model = MondrianForestAnova(space, points[known], (values - centre) / size, 1, seed)
    (cells,) = model.cells
    unit, label = shown_unit(objective_label(seen.study, objective), np.array([scale]))
    return PartitionData(
        (x, y),
        np.clip(cells.lower, 0.0, 1.0),
        np.clip(cells.upper, 0.0, 1.0),
        unit * scale * (centre + size * model.means[0, cells.leaves]),
        points[known],
        [seen.trials[k].number for k in known.tolist()],
        label,
    )


def _unit(parameter: Any, value: float) -> float:
    """Return the entry of a row for an internal value; NaN out of range."""
    try:
        return float(parameter.to_unit(int(value) if float(value).is_integer() else value))
    except (TypeError, ValueError):
        return float("nan")


def _standardised(scores: FloatArray) -> FloatArray:
    """Return scores with mean 0 and deviation 1; infinitely bad ones are as the worst other one."""
    finite = scores[np.isfinite(scores)]
    if not len(finite) or finite.std() == 0.0:
        return np.zeros(len(scores))
    return np.asarray((np.maximum(scores, finite.min()) - finite.mean()) / finite.std())


class _Mesh(NamedTuple):
    """All pairs of values of two parameters.

    Attributes
    ----------
    first, second : Line
        The values, m and k of them.
    rows : float64 array of shape (k m, d)
        The rows of all pairs; the first parameter varies fast.
    centre : Centre
        The trial that they go through.
    """

    first: Line
    second: Line
    rows: FloatArray
    centre: Centre


def _check_two(x: str, y: str) -> None:
    if x == y:
        raise ValueError(f"`x` and `y` must be two parameters, got {x!r} for both.")


def _mesh(seen: StudyView, x: str, y: str, objective: int = 0) -> _Mesh:
    """Return all pairs of values of two parameters."""
    _check_two(x, y)
    first, second = seen.line(x, _GRID), seen.line(y, _GRID)
    centre = seen.centre([x, y], objective)
    units = {
        x: np.tile(first.units, len(second.units)),
        y: np.repeat(second.units, len(first.units)),
    }
    return _Mesh(first, second, seen.rows_through(centre, units), centre)


def _surface(seen: StudyView, mesh: _Mesh, values: FloatArray, label: str) -> MapData:
    """Return a map with values at the rows of a mesh."""
    lines = mesh.first, mesh.second
    unit, label = shown_unit(label, values)
    values = unit * values
    at, besides = (float(seen.positions(line, [mesh.centre.trial])[0]) for line in lines)
    return MapData(
        *lines,
        values.reshape(len(mesh.second.units), len(mesh.first.units)),
        np.column_stack([seen.positions(line, seen.trials) for line in lines]),
        [trial.number for trial in seen.trials],
        (at, besides),
        label,
    )


def _limits(values: FloatArray, mean: FloatArray) -> tuple[float, float] | None:
    """Return ends of an axis that shows the mean and nine tenths of the trials."""
    low, high = (float(end) for end in np.quantile(values, [0.05, 0.95]))
    low, high = min(low, float(mean.min())), max(high, float(mean.max()))
    margin = 0.15 * (high - low)
    return (low - margin, high + margin) if margin > 0.0 else None
