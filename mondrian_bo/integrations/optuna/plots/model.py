"""Plots of the model: slices, maps, the acquisition, pairs, importance and a partition."""

from __future__ import annotations

from typing import Any

import numpy as np
import optuna

from mondrian_bo.array_types import FloatArray
from mondrian_bo.importance.models import MondrianForestAnova
from mondrian_bo.integrations.optuna.importance import MondrianImportanceEvaluator
from mondrian_bo.integrations.optuna.plots.lines import (
    BLUE,
    GREY,
    ORANGE,
    Line,
    StudyView,
    check_single_objective,
    new_axes,
    objective_label,
    view,
)
from mondrian_bo.integrations.optuna.reading import ReadableSampler
from mondrian_bo.search_space import Float, SearchSpace

_TAILS = np.array([0.05, 0.95])
"""Levels of the ends of intervals: 90 % in all."""

_GRID = 40
"""Points of a map along each continuous parameter, our choice: 1600 predictions a map."""

_RING: dict[str, Any] = {"color": ORANGE, "markerfacecolor": "none", "markersize": 9}
"""Style of the marker of the best trial."""


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
    """
    return draw_slice(view(study, sampler), param, objective, new_axes(axes))


def draw_slice(seen: StudyView, param: str, objective: int, axes: Any) -> Any:
    """Draw a slice; see :func:`plot_slice`."""
    line = seen.line(param)
    rows = seen.rows({param: line.units})
    optimizer = seen.model.optimizer
    mean = optimizer.predict_rows(rows)[0][:, objective]
    lower, upper = optimizer.predict_quantiles(rows, _TAILS)[:, objective].T
    if line.labels is None:
        axes.fill_between(line.values, lower, upper, color=BLUE, alpha=0.2, linewidth=0)
        axes.plot(line.values, mean, color=BLUE)
    else:
        spread = np.maximum([mean - lower, upper - mean], 0.0)
        axes.errorbar(line.values, mean, spread, fmt="_", color=BLUE, capsize=4)
    values = np.array([trial.values[objective] for trial in seen.trials])
    axes.plot(seen.positions(line, seen.trials), values, ".", color=GREY, alpha=0.5, zorder=1)
    base = seen.base_with([param])
    at = optimizer.predict_rows(base[None])[0][0, objective]
    axes.plot(_nearest(seen, line, base), at, "o", **_RING)
    _limit(axes, values, mean)
    line.label_axis(axes, "x")
    axes.set_ylabel(objective_label(seen.study, objective))
    return axes


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
    study, objective, sampler, axes
        See :func:`plot_slice`.
    x, y : str
        The parameters.
    uncertainty : bool, default=False
        Whether to show the standard deviation instead of the mean.

    Returns
    -------
    matplotlib.axes.Axes
        The plot. Dots are trials, the ring is the best one.
    """
    return draw_map(view(study, sampler), x, y, objective, uncertainty, new_axes(axes))


def draw_map(seen: StudyView, x: str, y: str, objective: int, uncertainty: bool, axes: Any) -> Any:
    """Draw a map; see :func:`plot_map`."""
    first, second, rows = _mesh(seen, x, y)
    predicted = seen.model.optimizer.predict_rows(rows)[1 if uncertainty else 0][:, objective]
    label = objective_label(seen.study, objective)
    label = f"deviation of {label}" if uncertainty else label
    return _draw_surface(seen, first, second, predicted, label, axes)


def plot_acquisition(
    study: optuna.Study,
    x: str,
    y: str | None = None,
    *,
    sampler: ReadableSampler | None = None,
    axes: Any = None,
) -> Any:
    """Plot the acquisition through the best trial: what the next suggestion would maximise.

    Parameters
    ----------
    study, sampler, axes
        See :func:`plot_slice`; the study has one objective.
    x : str
        The parameter.
    y : str or None, default=None
        A second parameter, for a map; None is a line for each acquisition of the portfolio.

    Returns
    -------
    matplotlib.axes.Axes
        The plot. Scores are standardised, as those of different acquisitions have different units.

    Raises
    ------
    ValueError
        If the study has several objectives.
    """
    check_single_objective(study, "plot_acquisition")
    seen, axes = view(study, sampler), new_axes(axes)
    (model, arm), *_ = seen.model.optimizer._search.whole.arms
    (model,) = model.models
    rng = np.random.default_rng(0)
    if y is not None:
        line, second, rows = _mesh(seen, x, y)
        scores = _standardised(model.score(arm.acquisitions[0], rng)[0](rows))
        return _draw_surface(seen, line, second, scores, "acquisition", axes)
    line = seen.line(x)
    rows = seen.rows({x: line.units})
    for acquisition in arm.acquisitions:
        scores = _standardised(model.score(acquisition, rng)[0](rows))
        style = "o" if line.labels is not None else "-"
        axes.plot(line.values, scores, style, label=repr(acquisition))
    line.label_axis(axes, "x")
    axes.set_ylabel("acquisition, standardised")
    axes.legend(fontsize="x-small")
    return axes


def plot_pairs(
    study: optuna.Study,
    params: list[str] | None = None,
    *,
    objective: int = 0,
    sampler: ReadableSampler | None = None,
) -> Any:
    """Plot all slices and maps of some parameters in one figure.

    Parameters
    ----------
    study, objective, sampler
        See :func:`plot_slice`.
    params : list of str or None, default=None
        The parameters; None is the four most important ones.

    Returns
    -------
    matplotlib.figure.Figure
        Slices are on the diagonal, means below it and deviations above it.
    """
    from matplotlib import pyplot

    seen = view(study, sampler)
    chosen = important(study, objective)[:4] if params is None else params
    n = len(chosen)
    figure, grid = pyplot.subplots(
        n, n, figsize=(2.6 * n + 0.6, 2.3 * n + 0.4), layout="constrained", squeeze=False
    )
    for i, y in enumerate(chosen):
        for j, x in enumerate(chosen):
            if i == j:
                draw_slice(seen, x, objective, grid[i, j])
            else:
                draw_map(seen, x, y, objective, j > i, grid[i, j])
    return figure


def important(study: optuna.Study, objective: int = 0) -> list[str]:
    """Return the parameters that vary, the most important first."""
    evaluator = MondrianImportanceEvaluator(interactions=True)
    shares = evaluator.evaluate(study, target=lambda trial: trial.values[objective])
    known = view(study).names
    return [name for name in shares if name in known]


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
    study, objective, axes
        See :func:`plot_slice`.
    n_pairs : int, default=3
        Number of pairs.
    evaluator : MondrianImportanceEvaluator or None, default=None
        What computes the shares; None is the default one.

    Returns
    -------
    matplotlib.axes.Axes
        The plot.
    """
    axes = new_axes(axes)
    evaluator = MondrianImportanceEvaluator() if evaluator is None else evaluator

    def target(trial: optuna.trial.FrozenTrial) -> float:
        return float(trial.values[objective])

    bars = {**evaluator.evaluate(study, target=target)}
    pairs = list(evaluator.pairs(study, target=target).items())[:n_pairs]
    bars.update({f"{a} \N{MULTIPLICATION SIGN} {b}": share for (a, b), share in pairs})
    names = list(bars)[::-1]
    colours = [ORANGE if "\N{MULTIPLICATION SIGN}" in name else BLUE for name in names]
    axes.barh(names, [bars[name] for name in names], color=colours)
    axes.set_xlabel(f"share of the variance of {objective_label(study, objective)}")
    return axes


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
    study, objective, sampler, axes
        See :func:`plot_slice`.
    x, y : str
        The parameters. Other ones are ignored.
    seed : int, default=0
        Seed of the tree.

    Returns
    -------
    matplotlib.axes.Axes
        The plot, on the unit scale of the sampler. Cells have the colour of their mean value.
    """
    from matplotlib import colormaps
    from matplotlib.patches import Rectangle

    seen, axes = view(study, sampler), new_axes(axes)
    # The unit square of the two parameters, with choices at equal distances.
    columns = []
    for name in (x, y):
        line = seen.line(name)
        parameter = seen.model.optimizer.space[name]
        internal = seen.positions(line, seen.trials)
        units = [np.nan if np.isnan(v) else _unit(parameter, v) for v in internal]
        columns.append(np.array(units) / (1 if line.labels is None else len(line.labels)))
    points = np.column_stack(columns)
    known = ((points >= 0.0) & (points <= 1.0)).all(axis=1)
    values = np.array([trial.values[objective] for trial in seen.trials])
    space = SearchSpace({"x": Float(0.0, 1.0), "y": Float(0.0, 1.0)})
    scaled = (values[known] - values[known].mean()) / (values[known].std() or 1.0)
    model = MondrianForestAnova(space, points[known], scaled, 1, seed)
    (cells,) = model._cells
    means = model._means[0, cells.leaves]
    shares = (means - means.min()) / (np.ptp(means) or 1.0)
    lower, upper = np.clip(cells.lower, 0.0, 1.0), np.clip(cells.upper, 0.0, 1.0)
    for low, high, share in zip(lower, upper, shares, strict=True):
        axes.add_patch(
            Rectangle(low, *(high - low), facecolor=colormaps["viridis"](share), edgecolor="white")
        )
    axes.plot(*points[known].T, ".", color="black", markersize=3)
    axes.set(xlim=(0, 1), ylim=(0, 1), xlabel=f"{x}, unit scale", ylabel=f"{y}, unit scale")
    return axes


def _unit(parameter: Any, value: float) -> float:
    """Return the entry of a row for an internal value; NaN out of range."""
    try:
        return float(parameter.to_unit(int(value) if float(value).is_integer() else value))
    except (TypeError, ValueError):
        return float("nan")


def _nearest(seen: StudyView, line: Line, row: FloatArray) -> float:
    """Return the value of a line that is nearest to a row."""
    distances = np.abs(line.units - row[seen.names.index(line.name)])
    return float(line.values[np.argmin(distances)])


def _standardised(scores: FloatArray) -> FloatArray:
    finite = scores[np.isfinite(scores)]
    if not len(finite) or finite.std() == 0.0:
        return np.zeros(len(scores))
    return np.asarray((np.maximum(scores, finite.min()) - finite.mean()) / finite.std())


def _mesh(seen: StudyView, x: str, y: str) -> tuple[Line, Line, FloatArray]:
    """Return the values along two parameters, and the rows of all pairs; the first varies fast."""
    first, second = seen.line(x, _GRID), seen.line(y, _GRID)
    units = {
        x: np.tile(first.units, len(second.units)),
        y: np.repeat(second.units, len(first.units)),
    }
    return first, second, seen.rows(units)


def _draw_surface(
    seen: StudyView, first: Line, second: Line, values: FloatArray, label: str, axes: Any
) -> Any:
    """Draw values over two parameters, with the trials."""
    surface = values.reshape(len(second.units), len(first.units))
    mesh = axes.pcolormesh(first.values, second.values, surface, shading="nearest", cmap="viridis")
    axes.figure.colorbar(mesh, ax=axes, label=label)
    axes.plot(
        seen.positions(first, seen.trials),
        seen.positions(second, seen.trials),
        ".",
        color="white",
        markeredgecolor="black",
        markeredgewidth=0.4,
        markersize=5,
    )
    base = seen.base_with([first.name, second.name])
    at = [_nearest(seen, line, base) for line in (first, second)]
    axes.plot(*at, "o", markeredgewidth=2, **_RING)
    first.label_axis(axes, "x")
    second.label_axis(axes, "y")
    if first.labels is None and not first.has_few_values:
        axes.set_xlim(first.values.min(), first.values.max())
    if second.labels is None and not second.has_few_values:
        axes.set_ylim(second.values.min(), second.values.max())
    return axes


def _limit(axes: Any, values: FloatArray, mean: FloatArray) -> None:
    """Limit the vertical axis to the mean and to nine tenths of the trials."""
    low, high = np.quantile(values, [0.05, 0.95])
    low, high = min(low, mean.min()), max(high, mean.max())
    margin = 0.15 * (high - low)
    if margin > 0.0:
        axes.set_ylim(low - margin, high + margin)
