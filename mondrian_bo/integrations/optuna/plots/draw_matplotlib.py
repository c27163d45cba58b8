"""Draws computed plots with matplotlib: :func:`draw` by the type of their data."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np

from mondrian_bo.integrations.optuna.plots import history, model
from mondrian_bo.integrations.optuna.plots.colours import BLUE, COLOURS, GREY, ORANGE
from mondrian_bo.integrations.optuna.plots.dots import dot_opacity, dot_scale
from mondrian_bo.integrations.optuna.plots.labels import bar_labels, shortened
from mondrian_bo.integrations.optuna.plots.lines import Line
from mondrian_bo.shared.array_types import FloatArray

_RING: dict[str, Any] = {"color": ORANGE, "markerfacecolor": "none", "markersize": 9}
"""Style of the marker of the best trial."""

_CHARACTER = 0.083
"""Mean width of a character in inches, of matplotlib's font at its size of 10 points."""

_FEWEST_CHARACTERS = 12
"""Smallest number of characters that a name is shortened to, our choice: fewer say little."""

_TICK_DISTANCE = 0.3
"""Least distance of the ticks of many choices in inches, our choice: labels take some of it."""

_USUAL_SHARE = 0.75
"""Share of the width of axes that labels and a colour bar beside them leave, our choice."""

_LEAST_SLANTED = 0.2
"""Least distance of slanted labels in inches: a line of text is 0.14 high."""

_SHARE_OF_NAMES = 0.6
"""Width of the names of bars by that of the axes, our choice: half of the figure is for bars."""

_SHARE_OF_AXES = 0.775
"""Width of the axes of a new figure by that of the figure, as matplotlib has it."""

_WIDEST = 7.0
"""Largest width of a figure of importance in inches, our choice: that of a printed page."""


def new_axes(axes: Any, size: tuple[float, float] = (5.0, 3.4)) -> Any:
    """Return given axes of matplotlib, or those of a new figure."""
    if axes is not None:
        return axes
    # Loaded here: matplotlib is optional.
    from matplotlib import pyplot

    return pyplot.subplots(figsize=size, layout="constrained")[1]


def importance_size(n_names: int, n_pairs: int, longest: int = 0) -> tuple[float, float]:
    """Return width and height in inches of a figure of importance.

    Parameters
    ----------
    n_names : int
        Number of parameters.
    n_pairs : int
        Number of pairs, whose labels may have two lines.
    longest : int, default=0
        Number of characters of the longest name.
    """
    width = longest * _CHARACTER / _SHARE_OF_NAMES / _SHARE_OF_AXES
    height = 0.6 + 0.3 * n_names + 0.42 * n_pairs
    return min(max(5.0, width), _WIDEST), max(2.0, height)


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
    axes.plot(*data.trials.T, ".", color=GREY, zorder=1, **_dots(len(data.trials), 6.0, 0.5))
    axes.plot(*data.best, "o", **_RING)
    if data.limits is not None:
        axes.set_ylim(*data.limits)
    _label_axis(axes, "x", line, data.best[0])
    axes.set_ylabel(_name(data.label, axes, "y"))
    return axes


@draw.register
def _map(data: model.MapData, axes: Any) -> Any:
    """Draw values over two parameters."""
    mesh = axes.pcolormesh(data.x.edges, data.y.edges, data.surface, cmap="viridis")
    axes.figure.colorbar(mesh, ax=axes, label=_name(data.label, axes, "y"))
    dots = _dots(len(data.trials), 5.0)
    width = 0.4 * dot_scale(len(data.trials))
    axes.plot(*data.trials.T, ".", color="white", mec="black", mew=width, **dots)
    axes.plot(*data.best, "o", markeredgewidth=2, **_RING)
    for which, line, at in zip("xy", (data.x, data.y), data.best, strict=True):
        _label_axis(axes, which, line, at)
        if line.limits is not None:
            getattr(axes, f"set_{which}lim")(*line.limits)
    return axes


@draw.register
def _acquisition(data: model.AcquisitionData, axes: Any) -> Any:
    """Draw acquisitions along a parameter."""
    style = "o" if data.line.labels is not None else "-"
    for name, scores in data.scores:
        axes.plot(data.line.values, scores, style, label=_plain(name))
    _label_axis(axes, "x", data.line, data.best)
    axes.set_ylabel("acquisition, standardised")
    axes.legend(fontsize="x-small")
    return axes


def draw_pairs(panels: list[list[model.SliceData | model.MapData | None]]) -> Any:
    """Draw slices and maps in one new figure."""
    from matplotlib import pyplot

    n = len(panels)
    lines = [panel.line for row in panels for panel in row if isinstance(panel, model.SliceData)]
    # Labels of choices need room.
    wide = 1.3 if any(line.labels is not None for line in lines) else 1.0
    size = wide * (2.6 * n + 0.6), wide * (2.3 * n + 0.4)
    figure, grid = pyplot.subplots(n, n, figsize=size, layout="constrained", squeeze=False)
    for row, row_axes in zip(panels, grid, strict=True):
        for panel, axes in zip(row, row_axes, strict=True):
            if panel is None:
                axes.set_axis_off()
            else:
                draw(panel, axes)
                axes.tick_params(labelsize="small")
    return figure


@draw.register
def _importance(data: model.ImportanceData, axes: Any) -> Any:
    """Draw shares of the variance as bars, the first on top."""
    n_effects = len(data.names) - data.n_pairs
    colours = [BLUE] * n_effects + [ORANGE] * data.n_pairs
    # Names take up to half of the width.
    labels = bar_labels(data.names, _n_characters(axes, "x", _SHARE_OF_NAMES))
    texts = [_plain("\n".join(lines)) for lines in labels]
    places = np.arange(len(texts))
    axes.barh(places, data.shares[::-1], color=colours[::-1])
    axes.set_yticks(places, texts[::-1])
    for label in axes.get_yticklabels()[: data.n_pairs]:
        # Two lines of this size are lower than the distance of bars.
        label.set_fontsize("small")
    name, gap = _name(data.label, axes, "x", 0.35), "\n" if len(data.label) > 10 else " "
    axes.set_xlabel(f"share of the variance{gap}of {name}")
    return axes


@draw.register
def _partition(data: model.PartitionData, axes: Any) -> Any:
    """Draw the cells of a tree."""
    from matplotlib import colormaps
    from matplotlib.patches import Rectangle

    shares = (data.means - data.means.min()) / (np.ptp(data.means) or 1.0)
    width = dot_scale(len(data.points)) ** 2
    for low, high, share in zip(data.lower, data.upper, shares, strict=True):
        colour = colormaps["viridis"](share)
        axes.add_patch(
            Rectangle(low, *(high - low), facecolor=colour, edgecolor="white", linewidth=width)
        )
    axes.plot(*data.points.T, ".", color="black", **_dots(len(data.points), 3.0))
    x, y = (
        f"{_name(name, axes, which, 0.7)}, unit scale"
        for which, name in zip("xy", data.names, strict=True)
    )
    axes.set(xlim=(0, 1), ylim=(0, 1), xlabel=x, ylabel=y)
    return axes


@draw.register
def _history(data: history.HistoryData, axes: Any) -> Any:
    """Draw values by trial."""
    numbers, feasible = np.array(data.numbers), data.is_feasible
    dots, crosses = (_dots(len(numbers), size) for size in (6.0, 4.0))
    axes.plot(numbers[feasible], data.values[feasible], ".", color=GREY, label="trials", **dots)
    if not feasible.all():
        hidden = numbers[~feasible], data.values[~feasible]
        axes.plot(*hidden, "x", color=COLOURS["failed"], label="infeasible", **crosses)
    if len(data.values):
        axes.step(data.numbers, data.best, where="post", color=ORANGE, label="best")
    if data.limits is not None:
        axes.set_ylim(*data.limits)
    axes.set_xlabel("trial")
    axes.set_ylabel(_name(data.label, axes, "y"))
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
    axes.set_ylabel(_name(data.label, axes, "y"))
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


def _dots(n_trials: int, size: float, opacity: float = 1.0) -> dict[str, Any]:
    """Return size and opacity of the markers of so many trials."""
    return {"markersize": size * dot_scale(n_trials), "alpha": opacity * dot_opacity(n_trials)}


def _label_axis(axes: Any, which: str, line: Line, best: float) -> None:
    """Set label, scale and ticks of an axis, "x" or "y", with a tick at the best choice."""
    getattr(axes, f"set_{which}label")(_name(line.name, axes, which))
    if line.is_log:
        getattr(axes, f"set_{which}scale")("log")
    ticks = line.ticks(best, max(2, int(_size(axes, which) / _TICK_DISTANCE)))
    if ticks is not None:
        values, labels = ticks
        set_ticks = getattr(axes, f"set_{which}ticks")
        set_ticks(values, [_plain(label) for label in labels])
        set_ticks([], minor=True)
        if which == "x":
            _turn_labels(axes, line, values, max(map(len, labels)))


def _turn_labels(axes: Any, line: Line, values: FloatArray, longest: int) -> None:
    """Turn labels of the horizontal axis that would overlap."""
    if len(values) < 2:
        return
    edges, at = (np.log(one) if line.is_log else one for one in (line.edges, values))
    distance = _USUAL_SHARE * _size(axes, "x") * float(np.diff(at).min() / np.ptp(edges))
    if (longest + 1) * _CHARACTER <= distance:
        return
    # Text that is close together must stand upright.
    angle = 45 if distance > _LEAST_SLANTED else 90
    for label in axes.get_xticklabels():
        label.set(rotation=angle, rotation_mode="anchor", ha="right", va="center")


def _size(axes: Any, which: str) -> float:
    """Return width ("x") or height ("y") of axes in inches, before labels take their room."""
    # The figure may be a part of another one.
    box = axes.get_position(original=True).transformed(axes.figure.transSubfigure)
    return float((box.width if which == "x" else box.height) / axes.figure.dpi)


def _n_characters(axes: Any, which: str, share: float) -> int:
    """Return the number of characters that a share of the width or height of axes has room for."""
    return max(_FEWEST_CHARACTERS, int(share * _size(axes, which) / _CHARACTER))


def _name(text: str, axes: Any, which: str, share: float = 0.8) -> str:
    """Return a name that is no longer than a share of an axis."""
    return _plain(shortened(text, _n_characters(axes, which, share)))


def _plain(text: str) -> str:
    """Return a text that matplotlib shows as it is: it reads a formula between dollars."""
    return text.replace("$", r"\$")
