"""Draws computed plots with matplotlib: :func:`draw` by the type of their data."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np

from mondrian_bo.integrations.optuna.plots import history, model
from mondrian_bo.integrations.optuna.plots.colours import BLUE, COLOURS, GREY, ORANGE
from mondrian_bo.integrations.optuna.plots.lines import Line

_RING: dict[str, Any] = {"color": ORANGE, "markerfacecolor": "none", "markersize": 9}
"""Style of the marker of the best trial."""


def new_axes(axes: Any, size: tuple[float, float] = (5.0, 3.4)) -> Any:
    """Return given axes of matplotlib, or those of a new figure."""
    if axes is not None:
        return axes
    # Loaded here: matplotlib is optional.
    from matplotlib import pyplot

    return pyplot.subplots(figsize=size, layout="constrained")[1]


@singledispatch
def draw(data: Any, axes: Any) -> Any:
    """Draw the data of a plot into axes of matplotlib, and return the axes."""
    raise TypeError(f"There is no plot of {type(data).__name__}.")


@draw.register
def _slice(data: model.SliceData, axes: Any) -> Any:
    """Draw a prediction along a parameter."""
    line, mean = data.line, data.mean
    if line.labels is None:
        axes.fill_between(line.values, data.lower, data.upper, color=BLUE, alpha=0.2, linewidth=0)
        axes.plot(line.values, mean, color=BLUE)
    else:
        spread = np.maximum([mean - data.lower, data.upper - mean], 0.0)
        axes.errorbar(line.values, mean, spread, fmt="_", color=BLUE, capsize=4)
    axes.plot(*data.trials.T, ".", color=GREY, alpha=0.5, zorder=1)
    axes.plot(*data.best, "o", **_RING)
    if data.limits is not None:
        axes.set_ylim(*data.limits)
    _label_axis(axes, "x", line)
    axes.set_ylabel(_plain(data.label))
    return axes


@draw.register
def _map(data: model.MapData, axes: Any) -> Any:
    """Draw values over two parameters."""
    mesh = axes.pcolormesh(data.x.edges, data.y.edges, data.surface, cmap="viridis")
    axes.figure.colorbar(mesh, ax=axes, label=_plain(data.label))
    dots: dict[str, Any] = {"color": "white", "markeredgecolor": "black", "markersize": 5}
    axes.plot(*data.trials.T, ".", markeredgewidth=0.4, **dots)
    axes.plot(*data.best, "o", markeredgewidth=2, **_RING)
    for which, line in (("x", data.x), ("y", data.y)):
        _label_axis(axes, which, line)
        if line.limits is not None:
            getattr(axes, f"set_{which}lim")(*line.limits)
    return axes


@draw.register
def _acquisition(data: model.AcquisitionData, axes: Any) -> Any:
    """Draw acquisitions along a parameter."""
    style = "o" if data.line.labels is not None else "-"
    for name, scores in data.scores:
        axes.plot(data.line.values, scores, style, label=_plain(name))
    _label_axis(axes, "x", data.line)
    axes.set_ylabel("acquisition, standardised")
    axes.legend(fontsize="x-small")
    return axes


def draw_pairs(panels: list[list[model.SliceData | model.MapData | None]]) -> Any:
    """Draw slices and maps in one new figure."""
    from matplotlib import pyplot

    n = len(panels)
    figure, grid = pyplot.subplots(
        n, n, figsize=(2.6 * n + 0.6, 2.3 * n + 0.4), layout="constrained", squeeze=False
    )
    for row, row_axes in zip(panels, grid, strict=True):
        for panel, axes in zip(row, row_axes, strict=True):
            if panel is None:
                axes.set_axis_off()
            else:
                draw(panel, axes)
    return figure


@draw.register
def _importance(data: model.ImportanceData, axes: Any) -> Any:
    """Draw shares of the variance as bars, the first on top."""
    n_effects = len(data.names) - data.n_pairs
    colours = [BLUE] * n_effects + [ORANGE] * data.n_pairs
    axes.barh([_plain(name) for name in data.names[::-1]], data.shares[::-1], color=colours[::-1])
    axes.set_xlabel(f"share of the variance of {_plain(data.label)}")
    return axes


@draw.register
def _partition(data: model.PartitionData, axes: Any) -> Any:
    """Draw the cells of a tree."""
    from matplotlib import colormaps
    from matplotlib.patches import Rectangle

    shares = (data.means - data.means.min()) / (np.ptp(data.means) or 1.0)
    for low, high, share in zip(data.lower, data.upper, shares, strict=True):
        colour = colormaps["viridis"](share)
        axes.add_patch(Rectangle(low, *(high - low), facecolor=colour, edgecolor="white"))
    axes.plot(*data.points.T, ".", color="black", markersize=3)
    x, y = (f"{_plain(name)}, unit scale" for name in data.names)
    axes.set(xlim=(0, 1), ylim=(0, 1), xlabel=x, ylabel=y)
    return axes


@draw.register
def _history(data: history.HistoryData, axes: Any) -> Any:
    """Draw values by trial."""
    numbers, feasible = np.array(data.numbers), data.is_feasible
    axes.plot(numbers[feasible], data.values[feasible], ".", color=GREY, label="trials")
    if not feasible.all():
        hidden = numbers[~feasible], data.values[~feasible]
        axes.plot(*hidden, "x", color=COLOURS["failed"], markersize=4, label="infeasible")
    if len(data.values):
        axes.step(data.numbers, data.best, where="post", color=ORANGE, label="best")
    if data.limits is not None:
        axes.set_ylim(*data.limits)
    axes.set_xlabel("trial")
    axes.set_ylabel(_plain(data.label))
    axes.legend(fontsize="small")
    return axes


@draw.register
def _learning_curves(data: history.CurvesData, axes: Any) -> Any:
    """Draw intermediate values by step, and predicted values right of them."""
    kinds: set[str] = set()
    for curve in data.curves:
        width, order = (2.0, 3) if curve.kind == "best" else (0.8, 2)
        style: dict[str, Any] = {"color": COLOURS[curve.kind], "zorder": order, "alpha": 0.8}
        label = None if curve.kind in kinds else curve.kind
        kinds.add(curve.kind)
        # A single report is no line.
        style["marker"] = "." if len(curve.steps) == 1 else None
        axes.plot(curve.steps, curve.values, linewidth=width, label=label, **style)
    for curve in data.curves:
        if curve.end is not None:
            low, median, high = curve.end
            at, spread = data.end_positions[curve.number], [[median - low], [high - median]]
            colour = COLOURS[curve.kind]
            axes.errorbar(at, median, spread, fmt=".", linewidth=1.0, color=colour, alpha=0.8)
    if data.end_positions:
        axes.errorbar([], [], [], fmt=".", color=COLOURS["pruned"], label="predicted value, 90 %")
    axes.set_xlabel("step")
    axes.set_ylabel(_plain(data.label))
    if kinds:
        axes.legend(fontsize="x-small")
    return axes


@draw.register
def _calibration(data: history.CalibrationData, axes: Any) -> Any:
    """Draw nominal and observed shares."""
    if data.n_trials:
        low, high = data.nominal - data.by_chance, data.nominal + data.by_chance
        axes.fill_between(data.nominal, low, high, color=GREY, alpha=0.25, linewidth=0)
        axes.plot(data.nominal, data.observed, color=BLUE, label=f"{data.n_trials} trials")
        axes.legend(fontsize="small")
    axes.plot([0, 1], [0, 1], color=GREY, linewidth=1)
    axes.set(xlim=(0, 1), ylim=(0, 1), xlabel="nominal share", ylabel="observed share")
    axes.set_aspect("equal")
    return axes


def _label_axis(axes: Any, which: str, line: Line) -> None:
    """Set label, scale and ticks of an axis, "x" or "y"."""
    getattr(axes, f"set_{which}label")(_plain(line.name))
    if line.is_log:
        getattr(axes, f"set_{which}scale")("log")
    if line.ticks is not None:
        values, labels = line.ticks
        set_ticks = getattr(axes, f"set_{which}ticks")
        set_ticks(values, [_plain(label) for label in labels])
        set_ticks([], minor=True)


def _plain(text: str) -> str:
    """Return a text that matplotlib shows as it is: it reads a formula between dollars."""
    return text.replace("$", r"\$")
