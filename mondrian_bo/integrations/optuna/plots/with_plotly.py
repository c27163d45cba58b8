"""The plots of studies with plotly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import optuna

from mondrian_bo.integrations.optuna.importance import MondrianImportanceEvaluator
from mondrian_bo.integrations.optuna.plots import history, model
from mondrian_bo.integrations.optuna.plots.draw_plotly import check_plotly, draw, draw_pairs
from mondrian_bo.integrations.optuna.plots.lines import view
from mondrian_bo.integrations.optuna.reading import ReadableSampler


def plot_slice(
    study: optuna.Study,
    param: str,
    *,
    objective: int = 0,
    sampler: ReadableSampler | None = None,
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

    Returns
    -------
    plotly.graph_objects.Figure
        The plot of :func:`mondrian_bo.plotting.plot_slice`.

    Raises
    ------
    ImportError
        If plotly is not installed.
    ValueError
        If the study has no complete trial with finite values, or no such parameter.
    """
    check_plotly()
    return draw(model.slice_data(view(study, sampler), param, objective))


def plot_map(
    study: optuna.Study,
    x: str,
    y: str,
    *,
    objective: int = 0,
    uncertainty: bool = False,
    sampler: ReadableSampler | None = None,
) -> Any:
    """Plot the prediction over two parameters through the best trial, or its deviation.

    Parameters
    ----------
    study, objective, sampler
        See :func:`plot_slice`.
    x, y : str
        The parameters.
    uncertainty : bool, default=False
        Whether to show the standard deviation instead of the mean.

    Returns
    -------
    plotly.graph_objects.Figure
        The plot of :func:`mondrian_bo.plotting.plot_map`.

    Raises
    ------
    ImportError, ValueError
        As :func:`plot_slice`.
    """
    check_plotly()
    return draw(model.map_data(view(study, sampler), x, y, objective, uncertainty))


def plot_acquisition(
    study: optuna.Study,
    x: str,
    y: str | None = None,
    *,
    sampler: ReadableSampler | None = None,
) -> Any:
    """Plot the acquisition through the best trial: what the next suggestion would maximise.

    Parameters
    ----------
    study, sampler
        See :func:`plot_slice`; the study has one objective.
    x : str
        The parameter.
    y : str or None, default=None
        A second parameter, for a map; None is a line for each acquisition of the portfolio.

    Returns
    -------
    plotly.graph_objects.Figure
        The plot of :func:`mondrian_bo.plotting.plot_acquisition`.

    Raises
    ------
    ImportError
        If plotly is not installed.
    ValueError
        If the study has several objectives, and as :func:`plot_slice`.
    """
    check_plotly()
    return draw(model.acquisition_data(view(study, sampler), x, y))


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
    study, objective, sampler
        See :func:`plot_slice`.
    params : sequence of str or None, default=None
        The parameters; None is the four most important ones.

    Returns
    -------
    plotly.graph_objects.Figure
        The plot of :func:`mondrian_bo.plotting.plot_pairs`. Maps have no colour bars; the pointer
        shows their values.

    Raises
    ------
    ImportError, ValueError
        As :func:`plot_slice`.
    """
    check_plotly()
    return draw_pairs(model.pairs_data(view(study, sampler), params, objective))


def plot_importance(
    study: optuna.Study,
    *,
    objective: int = 0,
    n_pairs: int = 3,
    evaluator: MondrianImportanceEvaluator | None = None,
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

    Returns
    -------
    plotly.graph_objects.Figure
        The plot of :func:`mondrian_bo.plotting.plot_importance`.

    Raises
    ------
    ImportError
        If plotly is not installed.
    """
    check_plotly()
    return draw(model.importance_data(study, objective, n_pairs, evaluator))


def plot_partition(
    study: optuna.Study,
    x: str,
    y: str,
    *,
    objective: int = 0,
    seed: int = 0,
    sampler: ReadableSampler | None = None,
) -> Any:
    """Plot a Mondrian partition of two parameters: one tree grown from the trials.

    Parameters
    ----------
    study, objective, sampler
        See :func:`plot_slice`.
    x, y : str
        The parameters. Other ones are ignored.
    seed : int, default=0
        Seed of the tree.

    Returns
    -------
    plotly.graph_objects.Figure
        The plot of :func:`mondrian_bo.plotting.plot_partition`.

    Raises
    ------
    ImportError, ValueError
        As :func:`plot_slice`.
    """
    check_plotly()
    data = model.partition_data(view(study, sampler), x, y, objective, seed)
    return draw(data)


def plot_history(study: optuna.Study, *, objective: int = 0) -> Any:
    """Plot the values of complete trials and the best one so far.

    Parameters
    ----------
    study : optuna.Study
        The study.
    objective : int, default=0
        Which objective.

    Returns
    -------
    plotly.graph_objects.Figure
        The plot of :func:`mondrian_bo.plotting.plot_history`.

    Raises
    ------
    ImportError
        If plotly is not installed.
    """
    check_plotly()
    return draw(history.history_data(study, objective))


def plot_learning_curves(study: optuna.Study, *, n_predicted: int = 20) -> Any:
    """Plot the intermediate values of trials, and the predicted values of unfinished ones.

    Parameters
    ----------
    study
        See :func:`plot_history`.
    n_predicted : int, default=20
        Largest number of running and pruned trials whose values are predicted: running ones first,
        then the latest ones. 0 predicts none.

    Returns
    -------
    plotly.graph_objects.Figure
        The plot of :func:`mondrian_bo.plotting.plot_learning_curves`.

    Raises
    ------
    ImportError
        If plotly is not installed.
    """
    check_plotly()
    return draw(history.curves_data(study, n_predicted))


def plot_calibration(study: optuna.Study) -> Any:
    """Plot how often past trials fell into intervals of their predictions.

    Parameters
    ----------
    study
        See :func:`plot_history`; the study has one objective.

    Returns
    -------
    plotly.graph_objects.Figure
        The plot of :func:`mondrian_bo.plotting.plot_calibration`.

    Raises
    ------
    ImportError
        If plotly is not installed.
    ValueError
        If the study has several objectives.
    """
    check_plotly()
    return draw(history.calibration_data(study))
