"""Plots of what happened: history, learning curves, and how past predictions turned out."""

from __future__ import annotations

from typing import Any

import numpy as np
import optuna
from optuna.trial import TrialState
from scipy.special import ndtr

from mondrian_bo.array_types import FloatArray
from mondrian_bo.integrations.optuna.plots.lines import (
    BLUE,
    GREY,
    ORANGE,
    check_single_objective,
    new_axes,
    objective_label,
    sign_of,
)
from mondrian_bo.integrations.optuna.trial_rows import trial_rows

_MOST_PREDICTED = 200
"""Number of latest trials whose predictions are made again, our choice: it bounds the time."""

_FIRST_PREDICTED = 10
"""Number of trials before the first prediction: the sampler's default number of startup trials."""


def plot_history(study: optuna.Study, *, objective: int = 0, axes: Any = None) -> Any:
    """Plot the values of complete trials and the best one so far.

    Parameters
    ----------
    study : optuna.Study
        The study.
    objective : int, default=0
        Which objective.
    axes : matplotlib.axes.Axes or None, default=None
        Where to draw; None makes a figure.

    Returns
    -------
    matplotlib.axes.Axes
        The plot.
    """
    axes = new_axes(axes)
    trials = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    numbers = [trial.number for trial in trials]
    values = np.array([trial.values[objective] for trial in trials])
    axes.plot(numbers, values, ".", color=GREY, label="trials")
    best = np.maximum if sign_of(study, objective) > 0.0 else np.minimum
    if len(values):
        axes.step(numbers, best.accumulate(values), where="post", color=ORANGE, label="best")
        finite = values[np.isfinite(values)]
        if len(finite):
            # A few very bad trials must not hide all others.
            low, high = np.quantile(finite, [0.05, 0.95])
            low, high = min(low, finite.min()) if sign_of(study, objective) < 0 else low, high
            high = finite.max() if sign_of(study, objective) > 0 else high
            margin = 0.05 * (high - low) or 1.0
            axes.set_ylim(low - margin, high + margin)
    axes.set_xlabel("trial")
    axes.set_ylabel(objective_label(study, objective))
    axes.legend(fontsize="small")
    return axes


def plot_learning_curves(study: optuna.Study, *, axes: Any = None) -> Any:
    """Plot the intermediate values of trials: complete ones, pruned ones, and the best.

    Parameters
    ----------
    study, axes
        See :func:`plot_history`.

    Returns
    -------
    matplotlib.axes.Axes
        The plot.
    """
    axes = new_axes(axes)
    best = study.best_trial.number if len(study.directions) == 1 and _has_best(study) else None
    for trial in study.get_trials(deepcopy=False):
        if not trial.intermediate_values:
            continue
        steps, values = zip(*sorted(trial.intermediate_values.items()), strict=True)
        is_pruned = trial.state == TrialState.PRUNED
        colour = ORANGE if trial.number == best else GREY if is_pruned else BLUE
        width, order = (2.0, 3) if trial.number == best else (0.8, 2)
        axes.plot(steps, values, color=colour, linewidth=width, zorder=order, alpha=0.8)
    axes.set_xlabel("step")
    axes.set_ylabel("intermediate value")
    return axes


def _has_best(study: optuna.Study) -> bool:
    return any(trial.state == TrialState.COMPLETE for trial in study.get_trials(deepcopy=False))


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

    trials = [
        trial
        for trial in study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        if np.isfinite(trial.values[0])
    ]
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
            (model, _), *_ = optimizer._search.whole.arms
            (one,) = model.models
            means, stds = one.predict_values(row[None])
            score = (one.transform(np.array([value])) - means[:, 0]) / np.maximum(stds[:, 0], 1e-12)
            result.append(float(ndtr(score).mean()))
        optimizer.tell_rows(row[None], np.array([value]))
    return np.array(result)


def plot_calibration(study: optuna.Study, *, axes: Any = None) -> Any:
    """Plot how often past trials fell into intervals of their predictions.

    Each complete trial is predicted from those before it. It takes a second for every hundred
    trials.

    Parameters
    ----------
    study, axes
        See :func:`plot_history`; the study has one objective.

    Returns
    -------
    matplotlib.axes.Axes
        Nominal and observed shares of central intervals. Calibrated predictions are on the
        diagonal, up to the grey band that holds 95 % of the shares by chance.

    Raises
    ------
    ValueError
        If the study has several objectives.
    """
    check_single_objective(study, "plot_calibration")
    axes = new_axes(axes, (4.2, 4.0))
    probabilities = past_predictions(study)
    nominal = np.linspace(0.0, 1.0, 51)
    if len(probabilities):
        central = np.abs(2.0 * probabilities - 1.0)
        observed = (central <= nominal[:, None]).mean(axis=1)
        by_chance = 1.96 * np.sqrt(nominal * (1.0 - nominal) / len(central))
        axes.fill_between(
            nominal, nominal - by_chance, nominal + by_chance, color=GREY, alpha=0.25, linewidth=0
        )
        axes.plot(nominal, observed, color=BLUE, label=f"{len(central)} trials")
        axes.legend(fontsize="small")
    axes.plot([0, 1], [0, 1], color=GREY, linewidth=1)
    axes.set(xlim=(0, 1), ylim=(0, 1), xlabel="nominal share", ylabel="observed share")
    axes.set_aspect("equal")
    return axes
