"""A report on a study: one HTML page that needs no network."""

from __future__ import annotations

import base64
import html
import io
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import optuna
from optuna.trial import TrialState

from mondrian_bo.integrations.optuna.plots import draw_matplotlib, draw_plotly
from mondrian_bo.integrations.optuna.plots.history import (
    calibration_data,
    curves_data,
    history_data,
)
from mondrian_bo.integrations.optuna.plots.lines import StudyView, objective_label, view
from mondrian_bo.integrations.optuna.plots.model import (
    acquisition_data,
    importance_bars,
    important,
    map_data,
    partition_data,
    read_importance,
    slice_data,
)
from mondrian_bo.integrations.optuna.readable_sampler import fidelity_of
from mondrian_bo.integrations.optuna.robust_best import robust_best
from mondrian_bo.integrations.optuna.study.trial_rows import is_feasible
from mondrian_bo.integrations.optuna.suggestions.study_fidelity import best_at_target
from mondrian_bo.integrations.optuna.terminator import stored_estimate

_MOST_SLICES = 8
"""Number of parameters with a slice, our choice."""

_MOST_MAPS = 3
"""Number of pairs with maps, our choice."""

_MOST_ON_FRONT = 20
"""Number of trials of a Pareto front that the summary shows, our choice. Of a larger front they are
evenly spaced in the order of the first objective."""

_N_PAIRS = 3
"""Number of pairs in the plot of importance, our choice."""

_RESOLUTION = 110
"""Dots per inch of the pictures: sharp on a phone. A page of a study of eight parameters has 0.8 MB
at 100 trials and 2 MB at 3,000."""

_PIXELS_PER_INCH = 92
"""Height of an interactive plot, by that of the picture; our choice: as tall as pictures are."""

_STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 1200px; padding: 1rem;
  color: #222; background: #fff; }
h1 { font-size: 1.5rem; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin-top: 2rem; border-bottom: 1px solid #ddd; }
h2, figcaption, .note { overflow-wrap: anywhere; }
.grid { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 340px), 1fr));
  gap: 1rem; }
figure { margin: 0; max-width: 600px; min-width: 0; }
img { width: 100%; height: auto; }
figcaption, .note { color: #555; font-size: 0.9rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; }
th, td { text-align: left; padding: 0.2rem 0.8rem 0.2rem 0; border-bottom: 1px solid #eee; }
th, td.number { white-space: nowrap; }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
td.words { min-width: 6rem; overflow-wrap: anywhere; }
"""
"""The page's style: columns on a wide screen, one below the other on a phone."""


_FIT = 'window.addEventListener("load", () => window.dispatchEvent(new Event("resize")));'
"""Fits plots to their columns, which become narrower while the browser reads the page."""


def html_report(study: optuna.Study, *, interactive: bool = False) -> str:
    """Return a page with history, model, importance and calibration of a study.

    Parameters
    ----------
    study : optuna.Study
        A study of any sampler. The model is that of the study's own sampler, or the default one.
    interactive : bool, default=False
        Whether plotly draws the plots: they can be zoomed, and points say which trials they are.
        The page then has the code of plotly inside, 5 MB, and the numbers of all plots.

    Returns
    -------
    str
        HTML with all pictures, styles and code inside.

    Raises
    ------
    ImportError
        If matplotlib is not installed, or plotly with `interactive=True`.
    """
    name = html.escape(study.study_name)
    head = f"<title>{name}</title>\n<style>{_STYLE}</style>\n"
    show: _Show = _picture
    if interactive:
        show, head = _interactive_plot, head + _plotly_code()
    body = "\n".join(_sections(study, show))
    if interactive:
        body += f"\n<script>{_FIT}</script>"
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"{head}</head>\n<body>\n<h1>Study {name}</h1>\n{body}\n</body>\n</html>\n"
    )


class _Plot(NamedTuple):
    """A plot of the page: the function that computes it, what it shows, and its size in inches."""

    compute: Callable[[], Any]
    caption: str
    size: tuple[float, float] = (5.0, 3.4)


_Show = Callable[[Any, tuple[float, float], str], str]
"""Draws computed data in a size, with a caption as alternative, and returns an element."""


def _sections(study: optuna.Study, show: _Show) -> Iterator[str]:
    """Yield the parts of the page; without a model, only those of the trials."""
    trials = study.get_trials(deepcopy=False)
    yield _summary(study, trials)
    objectives = range(len(study.directions))
    if any(trial.state == TrialState.COMPLETE for trial in trials):
        plots = [
            _Plot(
                partial(history_data, study, k),
                f"Values of complete trials: {objective_label(study, k)}.",
            )
            for k in objectives
        ]
        yield _section("History", plots, show)
    if any(trial.intermediate_values for trial in trials):
        caption = (
            "Intermediate values. Right of the last step: predicted values of running and pruned "
            "trials, with 90 % intervals."
        )
        plot = _Plot(partial(curves_data, study), caption, (5.0, 3.8))
        yield _section("Learning curves", [plot], show)
    try:
        seen = view(study)
    except ValueError as error:
        yield f'<p class="note">There is no model: {html.escape(str(error))}</p>'
        return
    for k in objectives:
        for title, plots in _model_sections(study, seen, k):
            yield _section(title, plots, show)
    if len(objectives) == 1:
        caption = (
            "How often a trial fell into the central interval that was predicted from the trials "
            "before it. The band holds 95 % of calibrated predictions."
        )
        plot = _Plot(partial(calibration_data, study), caption, (4.4, 4.0))
        yield _section("Calibration of past predictions", [plot], show)


def _summary(study: optuna.Study, trials: list[optuna.trial.FrozenTrial]) -> str:
    """Return the counts of trials, the directions, the best trials and the latest estimate."""
    states = Counter(trial.state.name.lower() for trial in trials)
    counts = ", ".join(f"{count} {state}" for state, count in states.items()) or "no trials"
    directions = ", ".join(direction.name.lower() for direction in study.directions)
    parts = [f"<p>{html.escape(counts)}; {directions}.</p>"]
    rows: list[tuple[str, optuna.trial.FrozenTrial]] = []
    complete = [trial for trial in trials if trial.state == TrialState.COMPLETE]
    if any(trial.constraints for trial in complete):
        n_feasible = sum(is_feasible(trial) for trial in complete)
        parts.append(f"<p>{n_feasible} of {len(complete)} complete trials are feasible.</p>")
    if complete and len(study.directions) == 1:
        fidelity = fidelity_of(study)
        finders: list[tuple[str, Callable[[], optuna.trial.FrozenTrial]]] = [
            ("best value", lambda: study.best_trial),
            ("best expected value", lambda: robust_best(study)),
        ]
        if fidelity is not None:
            finders.insert(0, ("best at the target", lambda: best_at_target(study, fidelity)))
        for label, find in finders:
            # There may be no feasible trial, none at the target, or none with a finite value.
            with suppress(ValueError):
                rows.append((label, find()))
    elif complete:
        front = sorted(study.best_trials, key=lambda trial: trial.values)
        if len(front) > _MOST_ON_FRONT:
            parts.append(f"<p>{_MOST_ON_FRONT} of {len(front)} trials on the front:</p>")
            spaced = np.linspace(0, len(front) - 1, _MOST_ON_FRONT).round().astype(int)
            front = [front[i] for i in spaced]
        rows = [("on the front", trial) for trial in front]
    if rows:
        cells = "".join(
            f'<tr><td>{label}</td><td class="number">{trial.number}</td>'
            f'<td class="number">{html.escape(", ".join(f"{v:.6g}" for v in trial.values))}</td>'
            f'<td class="words">{html.escape(_params(trial.params))}</td></tr>'
            for label, trial in rows
        )
        parts.append(
            '<div class="scroll"><table><tr><th></th><th>trial</th><th>value</th>'
            f"<th>parameters</th></tr>{cells}</table></div>"
        )
    estimate = stored_estimate(study)
    if estimate is not None:
        parts.append(
            f"<p>Expected gain of further trials after {estimate.n_trials} trials: "
            f"{estimate.expected_gain:.3g}.</p>"
        )
    return "\n".join(parts)


def _params(params: dict[str, Any]) -> str:
    """Return parameters as text, numbers with four digits."""
    return ", ".join(
        f"{name} = {value:.4g}" if isinstance(value, float) else f"{name} = {value}"
        for name, value in params.items()
    )


def _model_sections(
    study: optuna.Study, seen: StudyView, objective: int
) -> Iterator[tuple[str, list[_Plot]]]:
    """Yield titles and plots of what the model says about an objective."""
    of = "" if len(study.directions) == 1 else f" of {objective_label(study, objective)}"
    found = read_importance(study, objective)
    names = important(found, seen)
    if not names:
        return
    caption = (
        "Shares of the variance of the model over the whole space: main effects (blue) and "
        "interactions of pairs (orange)."
    )
    importance = partial(importance_bars, found, _N_PAIRS, objective_label(study, objective))
    size = draw_matplotlib.importance_size(len(names), _N_PAIRS)
    yield f"Importance{of}", [_Plot(importance, caption, size)]
    names = [name for name in names if seen.has_trial_with([name])]
    slices = [
        _Plot(
            partial(slice_data, seen, name, objective),
            f"{name}: prediction through the best trial (ring), with 90 % intervals.",
        )
        for name in names[:_MOST_SLICES]
    ]
    yield f"Slices{of}", slices
    pairs = [pair for pair in found.pairs() if {*pair} <= {*names} and seen.has_trial_with(pair)]
    maps = [
        _Plot(
            partial(map_data, seen, x, y, objective, uncertain),
            f"{x} and {y}: {'standard deviation' if uncertain else 'mean'}.",
        )
        for x, y in pairs[:_MOST_MAPS]
        for uncertain in (False, True)
    ]
    if maps:
        yield f"Maps{of}", maps
    if len(study.directions) == 1:
        # Standardised scores of few choices say little.
        number = next((name for name in names if seen.line(name).labels is None), names[0])
        caption = f"{number}: what the next suggestion would maximise, standardised."
        plots = [_Plot(partial(acquisition_data, seen, number), caption)]
        for x, y in pairs[:1]:
            caption = f"{x} and {y}: the first of these acquisitions."
            plots.append(_Plot(partial(acquisition_data, seen, x, y), caption))
        yield "Acquisition", plots
    for x, y in pairs[:1]:
        caption = f"One random tree over {x} and {y}, grown from the trials."
        partition = partial(partition_data, seen, x, y, objective)
        yield f"A Mondrian partition{of}", [_Plot(partition, caption, (4.6, 4.0))]


def _section(title: str, plots: list[_Plot], show: _Show) -> str:
    figures = "\n".join(_figure(plot, show) for plot in plots)
    return f'<h2>{html.escape(title)}</h2>\n<div class="grid">\n{figures}\n</div>'


def _figure(plot: _Plot, show: _Show) -> str:
    """Return a plot with its caption; a note if it cannot be drawn."""
    text = html.escape(plot.caption)
    try:
        drawn = show(plot.compute(), plot.size, text)
    except (ValueError, ArithmeticError) as error:
        return f'<p class="note">{text} Not drawn: {html.escape(str(error))}</p>'
    return f"<figure>{drawn}<figcaption>{text}</figcaption></figure>"


def _picture(data: Any, size: tuple[float, float], text: str) -> str:
    """Return a picture that matplotlib draws."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise ImportError(
            "The report needs Matplotlib: `pip install matplotlib`, or the extra `plot` of "
            "mondrian-bo."
        ) from error

    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    draw_matplotlib.draw(data, figure.add_subplot())
    written = io.BytesIO()
    figure.savefig(written, format="png", dpi=_RESOLUTION)
    encoded = base64.b64encode(written.getvalue()).decode("ascii")
    return f'<img alt="{text}" src="data:image/png;base64,{encoded}">'


def _interactive_plot(data: Any, size: tuple[float, float], text: str) -> str:
    """Return a plot that plotly draws in the browser."""
    figure = draw_plotly.draw(data)
    figure.update_layout(height=_PIXELS_PER_INCH * size[1], font_size=11)
    # Dragging scrolls the page on a phone; two fingers zoom the plot.
    figure.update_layout(dragmode=False)
    config = {"responsive": True, "displaylogo": False}
    drawn = figure.to_html(full_html=False, include_plotlyjs=False, config=config)
    return f'<div role="img" aria-label="{text}">{drawn}</div>'


def _plotly_code() -> str:
    """Return the code of plotly as an element of a page."""
    draw_plotly.import_plotly()
    from plotly.offline import get_plotlyjs

    return f"<script>{get_plotlyjs()}</script>\n"
