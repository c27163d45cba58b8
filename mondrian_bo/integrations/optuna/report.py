"""A report on a study: one HTML page that needs no network."""

from __future__ import annotations

import base64
import html
import io
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import optuna
from optuna.storages import BaseStorage, JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import TrialState

from mondrian_bo.integrations.optuna.importance import MondrianImportanceEvaluator
from mondrian_bo.integrations.optuna.plots.history import (
    plot_calibration,
    plot_history,
    plot_learning_curves,
)
from mondrian_bo.integrations.optuna.plots.lines import StudyView, new_axes, objective_label, view
from mondrian_bo.integrations.optuna.plots.model import (
    draw_map,
    draw_slice,
    important,
    plot_importance,
    plot_partition,
)
from mondrian_bo.integrations.optuna.robust_best import robust_best
from mondrian_bo.integrations.optuna.terminator import TERMINATOR_KEY

_MOST_SLICES = 8
"""Number of parameters with a slice, our choice."""

_MOST_MAPS = 3
"""Number of pairs with maps, our choice."""

_RESOLUTION = 110
"""Dots per inch of the pictures: sharp on a phone, and the page stays below a megabyte."""

_STYLE = """
:root { color-scheme: light; }
body { font: 16px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 1200px; padding: 1rem;
  color: #222; background: #fff; }
h1 { font-size: 1.5rem; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin-top: 2rem; border-bottom: 1px solid #ddd; }
.grid { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 340px), 1fr));
  gap: 1rem; }
figure { margin: 0; max-width: 600px; }
img { width: 100%; height: auto; }
figcaption, .note { color: #555; font-size: 0.9rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; }
th, td { text-align: left; padding: 0.2rem 0.8rem 0.2rem 0; border-bottom: 1px solid #eee;
  overflow-wrap: anywhere; }
th, td.number { white-space: nowrap; }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
"""
"""The page's style: columns on a wide screen, one below the other on a phone."""


def load_study(storage: str, name: str) -> optuna.Study:
    """Load a study.

    Parameters
    ----------
    storage : str
        URL of a storage, such as ``sqlite:///studies.db``, or the path of a journal file.
    name : str
        Name of the study.

    Returns
    -------
    optuna.Study
        The study.

    Raises
    ------
    ValueError
        If there is no such storage or study.
    """
    opened: str | BaseStorage = storage
    if "://" not in storage:
        if not Path(storage).is_file():
            raise ValueError(f"There is no journal file {storage!r}. A database needs its URL.")
        opened = JournalStorage(JournalFileBackend(storage))
    try:
        return optuna.load_study(study_name=name, storage=opened)
    except KeyError:
        names = optuna.get_all_study_names(opened)
        raise ValueError(f"There is no study {name!r}; the storage has {names}.") from None


def html_report(study: optuna.Study) -> str:
    """Return a page with history, model, importance and calibration of a study.

    Parameters
    ----------
    study : optuna.Study
        A study of any sampler. The model is that of the study's own sampler, or the default one.

    Returns
    -------
    str
        HTML with all pictures and styles inside.
    """
    name = html.escape(study.study_name)
    body = "\n".join(_sections(study))
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{name}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        f"<h1>Study {name}</h1>\n{body}\n</body>\n</html>\n"
    )


def _sections(study: optuna.Study) -> Iterator[str]:
    trials = study.get_trials(deepcopy=False)
    yield _summary(study, trials)
    objectives = range(len(study.directions))
    if any(trial.state == TrialState.COMPLETE for trial in trials):
        yield _section(
            "History",
            [
                _picture(
                    partial(_history, study, k),
                    f"Values of complete trials: {objective_label(study, k)}.",
                )
                for k in objectives
            ],
        )
    if any(trial.intermediate_values for trial in trials):
        yield _section(
            "Learning curves",
            [
                _picture(
                    lambda axes: plot_learning_curves(study, axes=axes),
                    "Complete trials (blue), pruned ones (grey), and the best (orange).",
                )
            ],
        )
    try:
        seen = view(study)
    except ValueError as error:
        yield f'<p class="note">There is no model: {html.escape(str(error))}</p>'
        return
    for k in objectives:
        yield from _model_sections(study, seen, k)
    if len(objectives) == 1:
        yield _section(
            "Calibration of past predictions",
            [
                _picture(
                    lambda axes: plot_calibration(study, axes=axes),
                    "How often a trial fell into the central interval that was predicted from the "
                    "trials before it. The band holds 95 % of calibrated predictions.",
                    (4.4, 4.0),
                )
            ],
        )


def _summary(study: optuna.Study, trials: list[optuna.trial.FrozenTrial]) -> str:
    states = Counter(trial.state.name.lower() for trial in trials)
    counts = ", ".join(f"{count} {state}" for state, count in states.items()) or "no trials"
    directions = ", ".join(direction.name.lower() for direction in study.directions)
    parts = [f"<p>{html.escape(counts)}; {directions}.</p>"]
    rows: list[tuple[str, optuna.trial.FrozenTrial]] = []
    complete = [trial for trial in trials if trial.state == TrialState.COMPLETE]
    if complete and len(study.directions) == 1:
        try:
            rows.append(("best value", study.best_trial))
            rows.append(("best expected value", robust_best(study)))
        except ValueError:
            # No trial is feasible, or none has a finite value.
            pass
    elif complete:
        rows = [("on the front", trial) for trial in study.best_trials[:10]]
    if rows:
        cells = "".join(
            f'<tr><td>{label}</td><td class="number">{trial.number}</td>'
            f'<td class="number">{html.escape(", ".join(f"{v:.6g}" for v in trial.values))}</td>'
            f"<td>{html.escape(_params(trial.params))}</td></tr>"
            for label, trial in rows
        )
        parts.append(
            '<div class="scroll"><table><tr><th></th><th>trial</th><th>value</th>'
            f"<th>parameters</th></tr>{cells}</table></div>"
        )
    stored = study.user_attrs.get(TERMINATOR_KEY)
    if isinstance(stored, dict) and "expected_gain" in stored:
        parts.append(
            f"<p>Expected gain of further trials after {stored['n_trials']} trials: "
            f"{stored['expected_gain']:.3g}.</p>"
        )
    return "\n".join(parts)


def _params(params: dict[str, Any]) -> str:
    return ", ".join(
        f"{name} = {value:.4g}" if isinstance(value, float) else f"{name} = {value}"
        for name, value in params.items()
    )


def _model_sections(study: optuna.Study, seen: StudyView, objective: int) -> Iterator[str]:
    of = "" if len(study.directions) == 1 else f" of {objective_label(study, objective)}"
    names = important(study, objective)
    if not names:
        return
    evaluator = MondrianImportanceEvaluator()
    yield _section(
        f"Importance{of}",
        [
            _picture(
                lambda axes: plot_importance(
                    study, objective=objective, evaluator=evaluator, axes=axes
                ),
                "Shares of the variance of the model over the whole space: main effects (blue) and "
                "interactions of pairs (orange).",
                (5.0, max(2.0, 0.6 + 0.3 * (len(names) + 3))),
            )
        ],
    )
    yield _section(
        f"Slices{of}",
        [
            _picture(
                partial(draw_slice, seen, name, objective),
                f"{name}: prediction through the best trial (ring), with 90 % intervals.",
            )
            for name in names[:_MOST_SLICES]
        ],
    )
    pairs = list(evaluator.pairs(study, target=lambda trial: trial.values[objective]))
    pairs = [pair for pair in pairs if pair[0] in names and pair[1] in names][:_MOST_MAPS]
    maps = []
    for x, y in pairs:
        for uncertain in (False, True):
            maps.append(
                _picture(
                    partial(draw_map, seen, x, y, objective, uncertain),
                    f"{x} and {y}: {'standard deviation' if uncertain else 'mean'}.",
                )
            )
    if maps:
        yield _section(f"Maps{of}", maps)
        x, y = pairs[0]
        yield _section(
            f"A Mondrian partition{of}",
            [
                _picture(
                    lambda axes: plot_partition(study, x, y, objective=objective, axes=axes),
                    f"One random tree over {x} and {y}, grown from the trials.",
                    (4.6, 4.0),
                )
            ],
        )


def _history(study: optuna.Study, objective: int, axes: Any) -> Any:
    return plot_history(study, objective=objective, axes=axes)


def _section(title: str, figures: list[str]) -> str:
    return f'<h2>{html.escape(title)}</h2>\n<div class="grid">\n' + "\n".join(figures) + "\n</div>"


def _picture(
    draw: Callable[[Any], Any], caption: str, size: tuple[float, float] = (5.0, 3.4)
) -> str:
    """Return a figure with a picture inside the page; a note if it cannot be drawn."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    try:
        draw(new_axes(figure.add_subplot()))
        written = io.BytesIO()
        figure.savefig(written, format="png", dpi=_RESOLUTION)
    except (ValueError, ArithmeticError) as error:
        return f'<p class="note">{html.escape(caption)} Not drawn: {html.escape(str(error))}</p>'
    data = base64.b64encode(written.getvalue()).decode("ascii")
    text = html.escape(caption)
    return (
        f'<figure><img alt="{text}" src="data:image/png;base64,{data}">'
        f"<figcaption>{text}</figcaption></figure>"
    )
