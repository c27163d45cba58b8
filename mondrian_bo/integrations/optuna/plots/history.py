"""What plots of the trials show: history, learning curves, and how past predictions turned out.

Each function computes one plot. ``draw_matplotlib`` and ``draw_plotly`` draw it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
import optuna
from optuna.trial import FrozenTrial, TrialState
from scipy.special import ndtr

from mondrian_bo.integrations.optuna.plots.lines import (
    check_objective,
    objective_label,
    shown_unit,
)
from mondrian_bo.integrations.optuna.readable_sampler import fidelity_name_of
from mondrian_bo.integrations.optuna.study.comparable_trials import ComparableTrials
from mondrian_bo.integrations.optuna.study.study_checks import (
    check_single_objective,
    check_study,
    sign_of,
)
from mondrian_bo.integrations.optuna.study.study_curves import StudyCurves, is_noted_as_unordered
from mondrian_bo.integrations.optuna.study.trial_rows import finite_trials, is_feasible, trial_rows
from mondrian_bo.shared.argument_checks import check_count
from mondrian_bo.shared.array_types import BoolArray, FloatArray

_MOST_PREDICTED = 200
"""Number of latest trials whose predictions are made again, our choice: it bounds the time."""

_FIRST_PREDICTED = 10
"""Number of trials before the first prediction, our choice: with fewer, intervals are very wide."""

_END_LEVELS = np.array([0.05, 0.5, 0.95])
"""Levels of predicted ends of curves: the median, and the ends of 90 % intervals."""


class HistoryData(NamedTuple):
    """Values of complete trials.

    Attributes
    ----------
    numbers : list of int
        Numbers of the n trials.
    values : float64 array of shape (n,)
        Their values.
    is_feasible : bool array of shape (n,)
        Which of them violate no constraint.
    best : float64 array of shape (n,)
        The best value of a feasible trial so far; NaN before the first of them.
    limits : tuple of two floats or None
        Ends of the vertical axis; None if a drawer chooses them.
    label : str
        Name of the objective.
    """

    numbers: list[int]
    values: FloatArray
    is_feasible: BoolArray
    best: FloatArray
    limits: tuple[float, float] | None
    label: str


CurveKind = Literal["complete", "pruned", "running", "failed", "best"]
"""What became of a trial; "best" is the best complete one."""


class CurveData(NamedTuple):
    """The learning curve of a trial.

    Attributes
    ----------
    number : int
        Number of the trial.
    kind : {"complete", "pruned", "running", "failed", "best"}
        What became of it.
    steps, values : float64 arrays of shape (m,)
        Its reports, in ascending order of steps.
    end : float64 array of shape (3,) or None
        The predicted value of a trial without one: the median between the ends of a 90 % interval,
        lower end first. None if it is not predicted.
    """

    number: int
    kind: CurveKind
    steps: FloatArray
    values: FloatArray
    end: FloatArray | None


class CurvesData(NamedTuple):
    """The learning curves of a study.

    Attributes
    ----------
    curves : list of CurveData
        The curves of all trials with reports.
    end_positions : dict of int to float
        Where predicted values are drawn, by number of the trial: right of all steps, the smallest
        median first.
    label : str
        Name of the vertical axis.
    """

    curves: list[CurveData]
    end_positions: dict[int, float]
    label: str


class CalibrationData(NamedTuple):
    """Nominal and observed shares of central intervals, float64 arrays of shape (m,).

    Attributes
    ----------
    nominal : array
        Probabilities of the intervals.
    observed : array
        Shares of the trials inside; empty without predictions.
    by_chance : array
        Half the width of the band around `nominal` that holds 95 % of the shares of calibrated
        predictions; empty without predictions.
    n_trials : int
        Number of predicted trials.
    """

    nominal: FloatArray
    observed: FloatArray
    by_chance: FloatArray
    n_trials: int


def history_data(study: optuna.Study, objective: int = 0) -> HistoryData:
    """Return the values of complete trials and the best feasible one so far."""
    check_objective(study, objective)
    trials = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    values = np.array([trial.values[objective] for trial in trials], dtype=np.float64)
    unit, label = shown_unit(objective_label(study, objective), values)
    values = unit * values
    is_maximised = sign_of(study, objective) > 0.0
    feasible = np.array([is_feasible(trial) for trial in trials], dtype=np.bool_)
    worst = -np.inf if is_maximised else np.inf
    best = (np.maximum if is_maximised else np.minimum).accumulate(
        np.where(feasible, values, worst)
    )
    best[np.cumsum(feasible) == 0] = np.nan
    limits, finite = None, values[np.isfinite(values)]
    if len(finite):
        # A few very bad trials must not hide all others, nor infeasible ones the feasible ones.
        inner = values[np.isfinite(values) & feasible]
        groups = [finite, inner] if len(inner) else [finite]
        low, high = float(finite.min()), float(finite.max())
        if is_maximised:
            low = min(float(np.quantile(one, 0.05)) for one in groups)
        else:
            high = max(float(np.quantile(one, 0.95)) for one in groups)
        margin = 0.05 * (high - low) or max(1.0, 1e-3 * abs(high))
        limits = low - margin, high + margin
    return HistoryData([trial.number for trial in trials], values, feasible, best, limits, label)


def curves_data(study: optuna.Study, n_predicted: int = 20) -> CurvesData:
    """Return the learning curves of all trials, and predict the values of unfinished ones.

    Parameters
    ----------
    study : optuna.Study
        The study.
    n_predicted : int, default=20
        Largest number of running and pruned trials whose values are predicted: running ones first,
        then the latest ones.

    Raises
    ------
    TypeError, ValueError
        If `study` is no study, or `n_predicted` no such number.
    """
    check_study(study)
    check_count("n_predicted", n_predicted, 0)
    trials = [one for one in study.get_trials(deepcopy=False) if one.intermediate_values]
    ends = predicted_ends(study, trials, n_predicted) if len(study.directions) == 1 else {}
    best = _best_number(study)
    reports = [np.array([*trial.intermediate_values.values()], np.float64) for trial in trials]
    unit, label = shown_unit("intermediate value", *reports, *ends.values())
    ends = {number: unit * end for number, end in ends.items()}
    curves = []
    for trial in trials:
        steps, values = np.array(sorted(trial.intermediate_values.items()), dtype=np.float64).T
        kind: CurveKind = "best" if trial.number == best else _KINDS[trial.state]
        end = ends.get(trial.number)
        curves.append(CurveData(trial.number, kind, steps, unit * values, end))
    last = max((float(curve.steps[-1]) for curve in curves), default=0.0)
    first = min((float(curve.steps[0]) for curve in curves), default=0.0)
    # The predicted values take a strip of a fifth of the plot.
    gap = max(last - first, 1.0) / (4.0 * max(len(ends), 1))
    order = sorted(ends, key=lambda number: float(ends[number][1]))
    positions = {number: last + (k + 1.0) * gap for k, number in enumerate(order)}
    return CurvesData(curves, positions, label)


_KINDS: dict[TrialState, CurveKind] = {
    TrialState.COMPLETE: "complete",
    TrialState.PRUNED: "pruned",
    TrialState.RUNNING: "running",
    TrialState.WAITING: "running",
    TrialState.FAIL: "failed",
}
"""Kinds of curves by the states of their trials."""


def predicted_ends(
    study: optuna.Study, trials: Sequence[FrozenTrial], n_predicted: int
) -> dict[int, FloatArray]:
    """Predict the values of running and pruned trials from their reports.

    The prediction is that of the model of learning curves, which `MondrianPruner` decides with, of
    the complete trials of the same fidelity, or of all where fewer than three have it.

    Parameters
    ----------
    study : optuna.Study
        A study with one objective.
    trials : sequence of FrozenTrial
        Trials with reports.
    n_predicted : int
        Largest number of predictions: running trials first, then the latest ones.

    Returns
    -------
    dict of int to float64 array of shape (3,)
        By number of the trial: quantiles at 5, 50 and 95 %. Trials that fewer than three complete
        trials can be compared with are left out.
    """
    unfinished = [one for one in trials if _KINDS[one.state] in ("running", "pruned")]
    unfinished.sort(key=lambda one: (_KINDS[one.state] != "running", -one.number))
    result: dict[int, FloatArray] = {}
    if not unfinished or n_predicted < 1:
        return result
    known = [trial for trial in trials if trial.state == TrialState.COMPLETE]
    complete = ComparableTrials(known, fidelity_name_of(study))
    models: dict[str | None, StudyCurves] = {}
    for trial in unfinished:
        key, group = complete.group_of(trial)
        if key not in models:
            # As the sampler learns pruned trials: from the first report on.
            models[key] = StudyCurves({"n_warmup_steps": 0}, sign_of(study, 0) > 0.0)
            for one in group:
                models[key].learn(one)
    # One trial may tell how all are compared, so all are seen before the first is predicted.
    for model in models.values():
        model.look_for_disorder(unfinished)
    if is_noted_as_unordered(study) or any(model.counts_reports for model in models.values()):
        for model in models.values():
            model.note_disorder()
    for trial in unfinished:
        model = models[complete.group_of(trial)[0]]
        found = model.predict_quantiles(trial, _END_LEVELS)
        if found is not None:
            result[trial.number] = found
        if len(result) == n_predicted:
            break
    return result


def _best_number(study: optuna.Study) -> int | None:
    """Return the number of the best trial; None if there is no single one."""
    if len(study.directions) > 1:
        return None
    try:
        return study.best_trial.number
    except ValueError:
        # No trial is complete, or none is feasible.
        return None


def past_predictions(study: optuna.Study) -> FloatArray:
    """Predict each complete trial from those before it.

    Parameters
    ----------
    study : optuna.Study
        A study with one objective.

    Returns
    -------
    float64 array of shape (m,)
        The probability that the prediction gave to values below the trial's own. Uniform if
        predictions are calibrated. At most the latest 200 trials, none of the first ten.
    """
    from mondrian_bo.optimizer.row_optimizer import RowOptimizer

    trials = finite_trials(study)
    known = trial_rows(trials)
    if known is None:
        return np.empty(0)
    values = sign_of(study, 0) * np.array([trial.values[0] for trial in trials])
    optimizer = RowOptimizer(known.space, directions=("maximize",), seed=0, allow_missing=True)
    start = max(_FIRST_PREDICTED, len(trials) - _MOST_PREDICTED)
    accepted = optimizer.accepts(known.rows)
    result = []
    optimizer.tell_rows(known.rows[:start][accepted[:start]], values[:start][accepted[:start]])
    for row, value, is_row in zip(
        known.rows[start:], values[start:], accepted[start:], strict=True
    ):
        if not is_row:
            continue
        if optimizer.n_trials:
            (model, _), *_ = optimizer.arms
            (one,) = model.models
            means, stds = one.predict_targets(row[None])
            score = (one.transform(np.array([value])) - means[:, 0]) / np.maximum(stds[:, 0], 1e-12)
            result.append(float(ndtr(score).mean()))
        optimizer.tell_rows(row[None], np.array([value]))
    return np.array(result)


def calibration_data(study: optuna.Study) -> CalibrationData:
    """Return how often past trials fell into intervals of their predictions.

    Raises
    ------
    ValueError
        If the study has several objectives.
    """
    check_single_objective(study, "plot_calibration")
    probabilities = past_predictions(study)
    nominal = np.linspace(0.0, 1.0, 51)
    n = len(probabilities)
    if n == 0:
        return CalibrationData(nominal, np.empty(0), np.empty(0), 0)
    central = np.abs(2.0 * probabilities - 1.0)
    observed = (central <= nominal[:, None]).mean(axis=1)
    by_chance = 1.96 * np.sqrt(nominal * (1.0 - nominal) / n)
    return CalibrationData(nominal, observed, by_chance, n)
