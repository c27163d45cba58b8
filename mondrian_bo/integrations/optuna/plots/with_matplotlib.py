"""The plots of studies with matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import optuna

from mondrian_bo.integrations.optuna.importance import MondrianImportanceEvaluator
from mondrian_bo.integrations.optuna.plots import history, model
from mondrian_bo.integrations.optuna.plots.draw_matplotlib import (
    draw,
    draw_pairs,
    importance_size,
    new_axes,
)
from mondrian_bo.integrations.optuna.plots.lines import view
from mondrian_bo.integrations.optuna.readable_sampler import ReadableSampler


def plot_slice(
    study: optuna.Study,
    param: str,
    *,
    objective: int = 0,
    sampler: ReadableSampler | None = None,
    axes: Any = None,
) -> Any:
    """Plot the prediction along a parameter through the best trial, with 90 % intervals.

    Parameters
    ----------
    study : optuna.Study
        A study of any sampler.
    param : str
        The parameter.
    objective : int, default=0
        Which objective.
    sampler : MondrianSampler or None, default=None
        The sampler whose model is asked; None is the study's own, or the default one.
    axes : matplotlib.axes.Axes or None, default=None
        Where to draw; None makes a figure.

    Returns
    -------
    matplotlib.axes.Axes
        The plot. Dots are all complete trials; the ring is the best one that has the parameter, and
        the slice goes through it.

    Raises
    ------
    ValueError
        If the study has no complete trial with finite values, or no such parameter.
    """
    data = model.slice_data(view(study, sampler), param, objective)
    return draw(data, new_axes(axes))


def plot_map(
    study: optuna.Study,
    x: str,
    y: str,
    *,
    objective: int = 0,
    uncertainty: bool = False,
    sampler: ReadableSampler | None = None,
    axes: Any = None,
) -> Any:
    """Plot the prediction over two parameters through the best trial, or its deviation.

    Parameters
    ----------
    study : optuna.Study
        A study of any sampler.
    x, y : str
        The parameters.
    objective : int, default=0
        Which objective.
    uncertainty : bool, default=False
        Whether to show the standard deviation instead of the mean.
    sampler, axes
        See :func:`plot_slice`.

    Returns
    -------
    matplotlib.axes.Axes
        The plot. Dots are trials, the ring is the best one.

    Raises
    ------
    ValueError
        As :func:`plot_slice`.
    """
    data = model.map_data(view(study, sampler), x, y, objective, uncertainty)
    return draw(data, new_axes(axes))


def plot_acquisition(
    study: optuna.Study,
    x: str,
    y: str | None = None,
    *,
    sampler: ReadableSampler | None = None,
    axes: Any = None,
) -> Any:
    """Plot the acquisition through the best trial: what the next suggestion would maximise.

    Suggestions without an acquisition, and those of a forest for rugged values, are not shown: see
    the notes of :class:`mondrian_bo.MondrianOptimizer`.

    Parameters
    ----------
    study : optuna.Study
        A study of any sampler, with one objective.
    x : str
        The parameter.
    y : str or None, default=None
        A second parameter, for a map; None is a line for each acquisition of the portfolio.
    sampler, axes
        See :func:`plot_slice`.

    Returns
    -------
    matplotlib.axes.Axes
        The plot. Scores are standardised, as those of different acquisitions have different units.

    Raises
    ------
    ValueError
        If the study has several objectives, and as :func:`plot_slice`.
    """
    data = model.acquisition_data(view(study, sampler), x, y)
    return draw(data, new_axes(axes))


def plot_pairs(
    study: optuna.Study,
    params: Sequence[str] | None = None,
    *,
    objective: int = 0,
    sampler: ReadableSampler | None = None,
) -> Any:
    """Plot all slices and maps of some parameters in one figure.

    Parameters
    ----------
    study : optuna.Study
        A study of any sampler.
    params : sequence of str or None, default=None
        The parameters; None is the four most important ones.
    objective, sampler
        See :func:`plot_slice`.

    Returns
    -------
    matplotlib.figure.Figure
        Slices are on the diagonal, means below it and deviations above it.

    Raises
    ------
    ValueError
        As :func:`plot_slice`.
    """
    return draw_pairs(model.pairs_data(view(study, sampler), params, objective))


def plot_importance(
    study: optuna.Study,
    *,
    objective: int = 0,
    n_pairs: int = 3,
    evaluator: MondrianImportanceEvaluator | None = None,
    axes: Any = None,
) -> Any:
    """Plot shares of the variance: main effects of all parameters, and the largest pairs.

    Parameters
    ----------
    study, objective
        See :func:`plot_slice`.
    n_pairs : int, default=3
        Number of pairs.
    evaluator : MondrianImportanceEvaluator or None, default=None
        What computes the shares; None is the default one.
    axes
        See :func:`plot_slice`.

    Returns
    -------
    matplotlib.axes.Axes
        The plot. It is empty if no complete trial has a parameter.
    """
    data = model.importance_data(study, objective, n_pairs, evaluator)
    longest = max((len(one) for name in data.names for one in name), default=0)
    size = importance_size(len(data.names) - data.n_pairs, data.n_pairs, longest)
    return draw(data, new_axes(axes, size))


def plot_partition(
    study: optuna.Study,
    x: str,
    y: str,
    *,
    objective: int = 0,
    seed: int = 0,
    sampler: ReadableSampler | None = None,
    axes: Any = None,
) -> Any:
    """Plot a Mondrian partition of two parameters: one tree grown from the trials.

    Parameters
    ----------
    study : optuna.Study
        A study of any sampler.
    x, y : str
        The parameters. Other ones are ignored.
    objective : int, default=0
        Which objective.
    seed : int, default=0
        Seed of the tree.
    sampler, axes
        See :func:`plot_slice`.

    Returns
    -------
    matplotlib.axes.Axes
        The plot, on the unit scale of the sampler. Cells have the colour of their mean value.

    Raises
    ------
    ValueError
        As :func:`plot_slice`.
    """
    data = model.partition_data(view(study, sampler), x, y, objective, seed)
    return draw(data, new_axes(axes))


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
    return draw(history.history_data(study, objective), new_axes(axes))


def plot_learning_curves(study: optuna.Study, *, n_predicted: int = 20, axes: Any = None) -> Any:
    """Plot the intermediate values of trials, and the predicted values of unfinished ones.

    Parameters
    ----------
    study : optuna.Study
        A study of any sampler.
    n_predicted : int, default=20
        Largest number of running and pruned trials whose values are predicted: running ones first,
        then the latest ones. 0 predicts none.
    axes
        See :func:`plot_history`.

    Returns
    -------
    matplotlib.axes.Axes
        The plot. Dots right of the last step are medians of the predicted values, with 90 %
        intervals, the smallest first. They come from the model of learning curves that
        ``MondrianPruner`` decides with, which has learnt all complete trials. A trial has no
        prediction if fewer than three complete trials went on beyond its last report, or if the
        study has several objectives.
    """
    return draw(history.curves_data(study, n_predicted), new_axes(axes))


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
    return draw(history.calibration_data(study), new_axes(axes, (4.2, 4.0)))
