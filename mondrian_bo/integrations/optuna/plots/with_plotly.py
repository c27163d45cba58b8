"""The plots of studies with plotly.

The functions have the parameters of those with matplotlib, except ``axes``, and their errors. They
return a :class:`plotly.graph_objects.Figure`, and raise an ImportError if plotly is not installed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import optuna

from mondrian_bo.integrations.optuna.importance import MondrianImportanceEvaluator
from mondrian_bo.integrations.optuna.plots import history, model
from mondrian_bo.integrations.optuna.plots.draw_plotly import draw, draw_pairs, import_plotly
from mondrian_bo.integrations.optuna.plots.lines import StudyView, view
from mondrian_bo.integrations.optuna.readable_sampler import ReadableSampler


def plot_slice(
    study: optuna.Study, param: str, *, objective: int = 0, sampler: ReadableSampler | None = None
) -> Any:
    """Plot the prediction along a parameter through the best trial, with 90 % intervals.

    Parameters
    ----------
    study, param, objective, sampler
        See :func:`mondrian_bo.plotting.plot_slice`.

    Returns
    -------
    plotly.graph_objects.Figure
        The plot.

    Raises
    ------
    ImportError
        If plotly is not installed.
    ValueError
        As :func:`mondrian_bo.plotting.plot_slice`.
    """
    return draw(model.slice_data(_view(study, sampler), param, objective))


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
    study, x, y, objective, uncertainty, sampler
        See :func:`mondrian_bo.plotting.plot_map`.

    Returns
    -------
    plotly.graph_objects.Figure
        The plot.

    Raises
    ------
    ImportError
        If plotly is not installed.
    ValueError
        As :func:`mondrian_bo.plotting.plot_map`.
    """
    return draw(model.map_data(_view(study, sampler), x, y, objective, uncertainty))


def plot_acquisition(
    study: optuna.Study, x: str, y: str | None = None, *, sampler: ReadableSampler | None = None
) -> Any:
    """Plot the acquisition through the best trial: what the next suggestion would maximise.

    Suggestions without an acquisition, and those of a forest for rugged values, are not shown: see
    the notes of :class:`mondrian_bo.MondrianOptimizer`.

    Parameters
    ----------
    study, x, y, sampler
        See :func:`mondrian_bo.plotting.plot_acquisition`.

    Returns
    -------
    plotly.graph_objects.Figure
        The plot.

    Raises
    ------
    ImportError
        If plotly is not installed.
    ValueError
        As :func:`mondrian_bo.plotting.plot_acquisition`.
    """
    return draw(model.acquisition_data(_view(study, sampler), x, y))


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
    study, params, objective, sampler
        See :func:`mondrian_bo.plotting.plot_pairs`.

    Returns
    -------
    plotly.graph_objects.Figure
        The plot. Maps have no colour bars; the pointer shows their values.

    Raises
    ------
    ImportError
        If plotly is not installed.
    ValueError
        As :func:`mondrian_bo.plotting.plot_pairs`.
    """
    return draw_pairs(model.pairs_data(_view(study, sampler), params, objective))


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
    study, objective, n_pairs, evaluator
        See :func:`mondrian_bo.plotting.plot_importance`.

    Returns
    -------
    plotly.graph_objects.Figure
        The plot.

    Raises
    ------
    ImportError
        If plotly is not installed.
    """
    import_plotly()
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
    study, x, y, objective, seed, sampler
        See :func:`mondrian_bo.plotting.plot_partition`.

    Returns
    -------
    plotly.graph_objects.Figure
        The plot.

    Raises
    ------
    ImportError
        If plotly is not installed.
    ValueError
        As :func:`mondrian_bo.plotting.plot_partition`.
    """
    return draw(model.partition_data(_view(study, sampler), x, y, objective, seed))


def plot_history(study: optuna.Study, *, objective: int = 0) -> Any:
    """Plot the values of complete trials and the best one so far.

    Parameters
    ----------
    study, objective
        See :func:`mondrian_bo.plotting.plot_history`.

    Returns
    -------
    plotly.graph_objects.Figure
        The plot.

    Raises
    ------
    ImportError
        If plotly is not installed.
    """
    import_plotly()
    return draw(history.history_data(study, objective))


def plot_learning_curves(study: optuna.Study, *, n_predicted: int = 20) -> Any:
    """Plot the intermediate values of trials, and the predicted values of unfinished ones.

    Parameters
    ----------
    study, n_predicted
        See :func:`mondrian_bo.plotting.plot_learning_curves`.

    Returns
    -------
    plotly.graph_objects.Figure
        The plot.

    Raises
    ------
    ImportError
        If plotly is not installed.
    """
    import_plotly()
    return draw(history.curves_data(study, n_predicted))


def plot_calibration(study: optuna.Study) -> Any:
    """Plot how often past trials fell into intervals of their predictions.

    Parameters
    ----------
    study
        See :func:`mondrian_bo.plotting.plot_calibration`.

    Returns
    -------
    plotly.graph_objects.Figure
        The plot.

    Raises
    ------
    ImportError
        If plotly is not installed.
    ValueError
        As :func:`mondrian_bo.plotting.plot_calibration`.
    """
    import_plotly()
    return draw(history.calibration_data(study))


def _view(study: optuna.Study, sampler: ReadableSampler | None) -> StudyView:
    """Return a study with its model; reading them takes long, so plotly is looked for first."""
    import_plotly()
    return view(study, sampler)
