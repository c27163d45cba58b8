"""Draws computed plots with plotly: :func:`draw` by the type of their data."""

from __future__ import annotations

import html
from collections.abc import Iterable
from functools import singledispatch
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from mondrian_bo.integrations.optuna.plots import history, model
from mondrian_bo.integrations.optuna.plots.colours import BLUE, COLOURS, GREY, ORANGE
from mondrian_bo.integrations.optuna.plots.dots import dot_opacity, dot_scale
from mondrian_bo.integrations.optuna.plots.labels import bar_labels, shortened
from mondrian_bo.integrations.optuna.plots.lines import Line
from mondrian_bo.shared.array_types import FloatArray

_BAND = "rgba(31, 119, 180, 0.2)"
"""Colour of intervals: the blue of predictions, transparent."""

_CHANCE = "rgba(136, 136, 136, 0.25)"
"""Colour of the band of calibrated shares: the grey of trials, transparent."""

_GAP = 0.32
"""Gap between panels of pairs, by their distance, our choice: labels of axes do not overlap."""

_PANEL_SIZE = 250
"""Width and height of a panel of pairs in pixels, our choice: labels remain readable."""


_LONGEST_NAME = 28
"""Largest number of characters of a name, our choice: longer ones leave no room on a phone."""


def import_plotly() -> ModuleType:
    """Return plotly's graph objects.

    Raises
    ------
    ImportError
        If plotly is not installed, with the command that installs it.
    """
    try:
        from plotly import graph_objects
    except ImportError as error:
        raise ImportError(
            "These plots need plotly: `pip install plotly`, or the extra `plot` of mondrian-bo. "
            "`mondrian_bo.plotting` draws the same plots with matplotlib."
        ) from error
    return graph_objects  # type: ignore[no-any-return, unused-ignore]


class _Panel(NamedTuple):
    """A figure, or one of its subplots.

    Attributes
    ----------
    figure : plotly.graph_objects.Figure
        The figure.
    row, column : int or None
        Position of the subplot, from 1; None without subplots.
    """

    figure: Any
    row: int | None = None
    column: int | None = None

    def add(self, kind: str, **settings: Any) -> None:
        """Add a trace, such as "Scatter"."""
        trace = getattr(import_plotly(), kind)(**settings)
        self.figure.add_trace(trace, row=self.row, col=self.column)

    def set_axis(self, which: str, **settings: Any) -> None:
        """Set properties of an axis, "x" or "y"."""
        update = self.figure.update_xaxes if which == "x" else self.figure.update_yaxes
        update(row=self.row, col=self.column, **settings)

    def show_line(self, which: str, line: Line, best: float, is_limited: bool) -> None:
        """Give an axis the name, scale, ticks and, in a map, the ends of a parameter."""
        self.set_axis(which, title_text=_name(line.name), automargin=True)
        if line.is_log:
            self.set_axis(which, type="log", exponentformat="power", dtick=1)
        ticks = line.ticks(best)
        if ticks is not None:
            values, labels = ticks
            texts = [_plain(label) for label in labels]
            self.set_axis(which, tickmode="array", tickvals=values.tolist(), ticktext=texts)
        if is_limited and line.limits is not None:
            ends = np.log10(line.limits) if line.is_log else np.array(line.limits)
            self.set_axis(which, range=ends.tolist())


def _new_panel(**layout: Any) -> _Panel:
    figure = import_plotly().Figure()
    figure.update_layout(
        template="plotly_white",
        margin={"l": 60, "r": 20, "t": 40, "b": 50},
        # Below the plot: on a phone a legend on the right leaves no room.
        legend={"orientation": "h", "x": 0.0, "y": -0.25, "yanchor": "top", "entrywidth": 0},
        **layout,
    )
    return _Panel(figure)


@singledispatch
def draw(data: Any) -> Any:
    """Draw the data of a plot as a figure of plotly.

    Raises
    ------
    ImportError
        If plotly is not installed.
    """
    raise TypeError(f"There is no plot of {type(data).__name__}.")


@draw.register
def _slice(data: model.SliceData) -> Any:
    panel = _new_panel(showlegend=False)
    _fill_slice(data, panel)
    return panel.figure


@draw.register
def _map(data: model.MapData) -> Any:
    panel = _new_panel(showlegend=False)
    _fill_map(data, panel, has_scale=True)
    return panel.figure


def _fill_slice(data: model.SliceData, panel: _Panel) -> None:
    """Draw a prediction along a parameter."""
    line = data.line
    dots = _dots(len(data.trials), 5.0, 0.5)
    _add_trials(panel, data.trials, data.numbers, {"color": GREY, **dots})
    if line.labels is None:
        _add_band(panel, line.values, data.lower, data.upper, _BAND)
        panel.add("Scatter", x=line.values, y=data.mean, line_color=BLUE, name="mean")
    else:
        panel.add(
            "Scatter",
            x=line.values,
            y=data.mean,
            error_y=_errors(data.mean, data.lower, data.upper),
            mode="markers",
            marker={"color": BLUE, "symbol": "line-ew-open", "size": 12},
            name="mean",
        )
    _add_best(panel, data.best)
    panel.show_line("x", line, data.best[0], is_limited=False)
    panel.set_axis("y", title_text=_name(data.label), range=data.limits)


def _fill_map(data: model.MapData, panel: _Panel, has_scale: bool) -> None:
    """Draw values over two parameters."""
    label = _name(data.label)
    panel.add(
        "Heatmap",
        x=data.x.edges,
        y=data.y.edges,
        z=data.surface,
        colorscale="Viridis",
        showscale=has_scale,
        colorbar={"title": {"text": label, "side": "right"}},
        name=label,
        hovertemplate="%{z:.4g}<extra>" + label + "</extra>",
    )
    edge = {"color": "black", "width": 0.5 * dot_scale(len(data.trials))}
    dots = {"color": "white", "line": edge, **_dots(len(data.trials), 5.0)}
    _add_trials(panel, data.trials, data.numbers, dots)
    _add_best(panel, data.best)
    panel.show_line("x", data.x, data.best[0], is_limited=True)
    panel.show_line("y", data.y, data.best[1], is_limited=True)


@draw.register
def _acquisition(data: model.AcquisitionData) -> Any:
    """Draw acquisitions along a parameter."""
    panel = _new_panel()
    mode = "markers" if data.line.labels is not None else "lines"
    for name, scores in data.scores:
        panel.add("Scatter", x=data.line.values, y=scores, mode=mode, name=_plain(name))
    panel.show_line("x", data.line, data.best, is_limited=False)
    panel.set_axis("y", title_text="acquisition, standardised")
    return panel.figure


def draw_pairs(panels: list[list[model.SliceData | model.MapData | None]]) -> Any:
    """Draw slices and maps in one figure."""
    import_plotly()
    from plotly.subplots import make_subplots

    n = len(panels)
    figure = make_subplots(rows=n, cols=n, horizontal_spacing=_GAP / n, vertical_spacing=_GAP / n)
    for i, row in enumerate(panels):
        for j, data in enumerate(row):
            panel = _Panel(figure, i + 1, j + 1)
            if isinstance(data, model.SliceData):
                _fill_slice(data, panel)
            elif data is not None:
                _fill_map(data, panel, has_scale=False)
    size = _PANEL_SIZE * n + 80
    figure.update_layout(template="plotly_white", showlegend=False, width=size, height=size)
    return figure


@draw.register
def _importance(data: model.ImportanceData) -> Any:
    """Draw shares of the variance as bars, the first on top."""
    panel = _new_panel(showlegend=False)
    n_effects = len(data.names) - data.n_pairs
    colours = [BLUE] * n_effects + [ORANGE] * data.n_pairs
    labels = bar_labels(data.names, _LONGEST_NAME)
    panel.add(
        "Bar",
        x=data.shares,
        y=["<br>".join(map(_plain, lines)) for lines in labels],
        hovertext=[_plain(" \N{MULTIPLICATION SIGN} ".join(name)) for name in data.names],
        hovertemplate="%{hovertext}: %{x:.3f}<extra></extra>",
        orientation="h",
        marker_color=colours,
    )
    panel.set_axis("x", title_text=f"share of the variance of {_name(data.label)}")
    # Names such as "2020-01-01" or "1" are no dates or numbers.
    panel.set_axis("y", type="category", autorange="reversed", automargin=True)
    return panel.figure


@draw.register
def _partition(data: model.PartitionData) -> Any:
    """Draw the cells of a tree."""
    from plotly.colors import sample_colorscale

    panel = _new_panel(showlegend=False)
    shares = (data.means - data.means.min()) / (np.ptp(data.means) or 1.0)
    colours = sample_colorscale("Viridis", shares.tolist())
    width = dot_scale(len(data.points)) ** 2
    for (x0, y0), (x1, y1), mean, colour in zip(
        data.lower.tolist(), data.upper.tolist(), data.means.tolist(), colours, strict=True
    ):
        panel.add(
            "Scatter",
            x=[x0, x1, x1, x0, x0],
            y=[y0, y0, y1, y1, y0],
            mode="lines",
            fill="toself",
            fillcolor=colour,
            line={"color": "white", "width": width},
            hoveron="fills",
            hoverinfo="text",
            text=f"mean {_name(data.label)}: {mean:.4g}",
        )
    dots = {"color": "black", **_dots(len(data.points), 4.0)}
    _add_trials(panel, data.points, data.numbers, dots)
    for which, name in zip("xy", data.names, strict=True):
        panel.set_axis(which, title_text=f"{_name(name)}, unit scale", range=[0.0, 1.0])
    return panel.figure


@draw.register
def _history(data: history.HistoryData) -> Any:
    """Draw values by trial."""
    panel = _new_panel()
    dots = _dots(len(data.numbers), 5.0)
    kinds = [("trials", data.is_feasible, {"color": GREY, **dots})]
    if not data.is_feasible.all():
        cross = {"color": COLOURS["failed"], "symbol": "x", **dots}
        kinds.append(("infeasible", ~data.is_feasible, cross))
    for name, shown, marker in kinds:
        x, y = np.array(data.numbers)[shown], data.values[shown]
        panel.add("Scatter", x=x, y=y, mode="markers", marker=marker, name=name)
    line = {"color": ORANGE, "shape": "hv"}
    panel.add("Scatter", x=data.numbers, y=data.best, mode="lines", line=line, name="best")
    panel.set_axis("x", title_text="trial")
    panel.set_axis("y", title_text=_name(data.label), range=data.limits)
    return panel.figure


@draw.register
def _learning_curves(data: history.CurvesData) -> Any:
    """Draw intermediate values by step, and predicted values right of them."""
    panel = _new_panel()
    for kind, colour in COLOURS.items():
        curves = [curve for curve in data.curves if curve.kind == kind]
        if not curves:
            continue
        # One trace for all curves of a kind: a browser draws few long traces faster.
        panel.add(
            "Scatter",
            x=_joined(curve.steps for curve in curves),
            y=_joined(curve.values for curve in curves),
            text=[f"trial {one.number}" for one in curves for _ in range(len(one.steps) + 1)],
            mode="lines+markers",
            marker_size=3,
            line={"color": colour, "width": 2.5 if kind == "best" else 1},
            name=kind,
        )
    predicted = [curve for curve in data.curves if curve.end is not None]
    if predicted:
        _add_ends(panel, data, predicted)
    panel.set_axis("x", title_text="step")
    panel.set_axis("y", title_text=_name(data.label))
    return panel.figure


@draw.register
def _calibration(data: history.CalibrationData) -> Any:
    """Draw nominal and observed shares."""
    panel = _new_panel()
    if data.n_trials:
        low, high = data.nominal - data.by_chance, data.nominal + data.by_chance
        _add_band(panel, data.nominal, low, high, _CHANCE)
        name = f"{data.n_trials} trials"
        panel.add("Scatter", x=data.nominal, y=data.observed, line_color=BLUE, name=name)
    panel.add("Scatter", x=[0, 1], y=[0, 1], mode="lines", line_color=GREY, showlegend=False)
    panel.set_axis("x", title_text="nominal share", range=[0, 1])
    panel.set_axis("y", title_text="observed share", range=[0, 1])
    return panel.figure


def _add_ends(panel: _Panel, data: history.CurvesData, curves: list[history.CurveData]) -> None:
    """Add the predicted values of curves."""
    low, median, high = np.array([curve.end for curve in curves]).T
    panel.add(
        "Scatter",
        x=[data.end_positions[curve.number] for curve in curves],
        y=median,
        error_y={**_errors(median, low, high), "color": GREY},
        text=[f"trial {curve.number}" for curve in curves],
        mode="markers",
        marker={"color": [COLOURS[curve.kind] for curve in curves], "size": 6},
        name="predicted value, 90 %",
    )


def _add_trials(
    panel: _Panel, points: FloatArray, numbers: list[int], marker: dict[str, Any]
) -> None:
    """Add trials as dots, those without a position left out."""
    known = np.flatnonzero(~np.isnan(points).any(axis=1))
    panel.add(
        "Scatter",
        x=points[known, 0],
        y=points[known, 1],
        text=[f"trial {numbers[k]}" for k in known.tolist()],
        mode="markers",
        marker=marker,
        name="trials",
    )


def _dots(n_trials: int, size: float, opacity: float = 1.0) -> dict[str, float]:
    """Return size and opacity of the markers of so many trials."""
    return {"size": size * dot_scale(n_trials), "opacity": opacity * dot_opacity(n_trials)}


def _add_best(panel: _Panel, best: tuple[float, float]) -> None:
    """Add a ring at the best trial."""
    ring = {"symbol": "circle-open", "color": ORANGE, "size": 11, "line": {"width": 2.5}}
    panel.add("Scatter", x=best[:1], y=best[1:], mode="markers", marker=ring, name="best trial")


def _add_band(
    panel: _Panel, x: FloatArray, lower: FloatArray, upper: FloatArray, colour: str
) -> None:
    """Add an area between two lines."""
    panel.add(
        "Scatter",
        x=np.concatenate([x, x[::-1]]),
        y=np.concatenate([upper, lower[::-1]]),
        fill="toself",
        fillcolor=colour,
        line={"width": 0},
        mode="lines",
        hoverinfo="skip",
        showlegend=False,
    )


def _errors(middle: FloatArray, lower: FloatArray, upper: FloatArray) -> dict[str, Any]:
    """Return error bars with two different ends."""
    return {
        "type": "data",
        "symmetric": False,
        "array": np.maximum(upper - middle, 0.0),
        "arrayminus": np.maximum(middle - lower, 0.0),
        "thickness": 1,
    }


def _name(text: str) -> str:
    """Return a name that leaves room for the plot."""
    return _plain(shortened(text, _LONGEST_NAME))


def _plain(text: str) -> str:
    """Return a text that plotly shows as it is: it reads tags such as ``<b>`` in labels."""
    return html.escape(text, quote=False)


def _joined(parts: Iterable[FloatArray]) -> FloatArray:
    """Return arrays one after the other, with a gap (NaN) after each."""
    return np.concatenate([one for part in parts for one in (part, [np.nan])])
