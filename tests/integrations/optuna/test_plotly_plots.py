"""Plots with plotly show the numbers of those with matplotlib, and browsers draw them."""

from __future__ import annotations

import json
import math
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import optuna
import pytest

from mondrian_bo import MondrianSampler, plotting

pytest.importorskip("plotly")
from mondrian_bo.plotting import plotly as plots

matplotlib.use("Agg")
optuna.logging.set_verbosity(optuna.logging.WARNING)
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


def _objective(trial: optuna.Trial) -> float:
    rate = trial.suggest_float("rate", 1e-4, 1e-1, log=True)
    value = (math.log10(rate) + 2.5) ** 2 + 0.1 * trial.suggest_int("n", 1, 4)
    if trial.suggest_categorical("<b>kind", ["<i>a", None]) == "<i>a":
        value += trial.suggest_float("extra", 0.0, 1.0)
    for step in range(6):
        trial.report(value + math.exp(-step), step)
        if trial.should_prune():
            raise optuna.TrialPruned
    return value


@pytest.fixture(scope="module")
def study() -> optuna.Study:
    study = optuna.create_study(
        sampler=optuna.samplers.RandomSampler(seed=0), pruner=optuna.pruners.PercentilePruner(50.0)
    )
    study.optimize(_objective, n_trials=40)
    return study


@pytest.fixture(scope="module")
def figures(study: optuna.Study) -> dict[str, Any]:
    """One figure of each kind."""
    sampler = MondrianSampler(seed=0)
    return {
        "slice": plots.plot_slice(study, "rate", sampler=sampler),
        "choices": plots.plot_slice(study, "<b>kind", sampler=sampler),
        "map": plots.plot_map(study, "rate", "n", sampler=sampler),
        "acquisition": plots.plot_acquisition(study, "rate", sampler=sampler),
        "acquisition_map": plots.plot_acquisition(study, "rate", "n", sampler=sampler),
        "pairs": plots.plot_pairs(study, ["rate", "n"], sampler=sampler),
        "importance": plots.plot_importance(study),
        "partition": plots.plot_partition(study, "rate", "n", sampler=sampler),
        "history": plots.plot_history(study),
        "curves": plots.plot_learning_curves(study),
        "calibration": plots.plot_calibration(study),
    }


@pytest.fixture(autouse=True)
def _close_figures() -> Iterator[None]:
    yield
    from matplotlib import pyplot

    pyplot.close("all")


def _trace(figure: Any, name: str) -> Any:
    (found,) = [trace for trace in figure.data if trace.name == name]
    return found


def test_same_names_and_arguments() -> None:
    import inspect

    assert plots.__all__ == plotting.__all__
    for name in plots.__all__:
        own = inspect.signature(getattr(plots, name)).parameters
        other = dict(inspect.signature(getattr(plotting, name)).parameters)
        other.pop("axes", None)
        assert {k: v.default for k, v in own.items()} == {k: v.default for k, v in other.items()}


def test_slice(study: optuna.Study, figures: dict[str, Any]) -> None:
    axes = plotting.plot_slice(study, "rate", sampler=MondrianSampler(seed=0))
    figure = figures["slice"]
    mean = _trace(figure, "mean")
    np.testing.assert_allclose(mean.x, axes.lines[0].get_xdata())
    np.testing.assert_allclose(mean.y, axes.lines[0].get_ydata())
    trials = _trace(figure, "trials")
    np.testing.assert_allclose(trials.y, axes.lines[1].get_ydata())
    assert (
        trials.text[0]
        == f"trial {study.get_trials(states=(optuna.trial.TrialState.COMPLETE,))[0].number}"
    )
    assert _trace(figure, "best trial").x[0] == axes.lines[2].get_xdata()[0]
    assert figure.layout.xaxis.type == "log"
    assert tuple(figure.layout.yaxis.range) == pytest.approx(axes.get_ylim())


def test_labels_are_shown_as_they_are(figures: dict[str, Any]) -> None:
    """Plotly reads tags in labels, so those of names are escaped."""
    figure = figures["choices"]
    assert figure.layout.xaxis.title.text == "&lt;b&gt;kind"
    assert list(figure.layout.xaxis.ticktext) == ["&lt;i&gt;a", "None"]
    errors = _trace(figure, "mean").error_y
    assert len(errors.array) == len(errors.arrayminus) == 2


def test_map(study: optuna.Study, figures: dict[str, Any]) -> None:
    axes = plotting.plot_map(study, "rate", "n", sampler=MondrianSampler(seed=0))
    heatmap, trials, best = figures["map"].data
    np.testing.assert_allclose(heatmap.z, axes.collections[0].get_array())
    assert len(heatmap.x) == 41 and len(heatmap.y) == 5
    np.testing.assert_allclose(heatmap.y, [0.5, 1.5, 2.5, 3.5, 4.5])
    ratios = np.diff(np.log(heatmap.x))
    np.testing.assert_allclose(ratios, ratios[0])
    np.testing.assert_allclose(trials.x, axes.lines[0].get_xdata())
    assert best.y[0] == axes.lines[1].get_ydata()[0]
    np.testing.assert_allclose(figures["map"].layout.xaxis.range, [-4.0, -1.0])
    assert list(figures["map"].layout.yaxis.ticktext) == ["1", "2", "3", "4"]


def test_other_plots(study: optuna.Study, figures: dict[str, Any]) -> None:
    lines = plotting.plot_acquisition(study, "rate", sampler=MondrianSampler(seed=0)).lines
    for trace, line in zip(figures["acquisition"].data, lines, strict=True):
        np.testing.assert_allclose(trace.y, line.get_ydata())
    assert [trace.type for trace in figures["pairs"].data].count("heatmap") == 2
    bars = plotting.plot_importance(study).patches
    shares = [bar.get_width() for bar in bars][::-1]
    np.testing.assert_allclose(figures["importance"].data[0].x, shares)
    patches = plotting.plot_partition(study, "rate", "n", sampler=MondrianSampler(seed=0)).patches
    assert len(figures["partition"].data) == len(patches) + 1
    best = plotting.plot_history(study).lines[1].get_ydata()
    np.testing.assert_allclose(_trace(figures["history"], "best").y, best)
    observed = plotting.plot_calibration(study).lines[0].get_ydata()
    np.testing.assert_allclose(figures["calibration"].data[1].y, observed)


def test_learning_curves(study: optuna.Study, figures: dict[str, Any]) -> None:
    pruned = _trace(figures["curves"], "pruned")
    n_pruned = len(study.get_trials(states=(optuna.trial.TrialState.PRUNED,)))
    assert n_pruned > 3
    # Curves end with a gap.
    assert np.isnan(pruned.y).sum() == n_pruned
    ends = _trace(figures["curves"], "predicted value, 90 %")
    axes = plotting.plot_learning_curves(study)
    medians = [c.lines[0].get_ydata()[0] for c in axes.containers if len(c.lines[0].get_ydata())]
    assert len(ends.y) > 3
    np.testing.assert_allclose(ends.y, medians)


def test_wrong_arguments(study: optuna.Study) -> None:
    many = optuna.create_study(directions=["minimize", "maximize"])
    many.optimize(lambda trial: (trial.suggest_float("x", 0, 1), trial.number), n_trials=5)
    calls: list[Callable[[], Any]] = [
        lambda: plots.plot_calibration(many),
        lambda: plots.plot_acquisition(many, "x"),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="single objective"):
            call()
    with pytest.raises(ValueError, match="no parameter 'z'"):
        plots.plot_slice(study, "z")


def test_without_plotly(study: optuna.Study, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "plotly", None)
    with pytest.raises(ImportError, match="pip install plotly"):
        plots.plot_history(study)


def test_optuna_dashboard_takes_figures(figures: dict[str, Any]) -> None:
    dashboard = pytest.importorskip("optuna_dashboard")
    if not hasattr(dashboard, "save_plotly_graph_object"):
        pytest.skip("This version cannot save figures.")
    study = optuna.create_study()
    for name, figure in figures.items():
        dashboard.save_plotly_graph_object(study, figure, graph_object_id=name)
    stored = dashboard._custom_plot_data.get_plotly_graph_objects(
        study._storage.get_study_system_attrs(study._study_id)
    )
    assert set(stored) == set(figures)
    assert json.loads(stored["map"])["data"][0]["type"] == "heatmap"


@pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")
def test_browser_draws_them(figures: dict[str, Any], tmp_path: Path) -> None:
    from plotly.offline import get_plotlyjs

    parts = [one.to_html(full_html=False, include_plotlyjs=False) for one in figures.values()]
    page = tmp_path / "page.html"
    check = (
        "window.onload = () => { const root = document.documentElement;"
        "root.setAttribute('data-drawn', document.querySelectorAll('.main-svg .xtitle').length);"
        "root.setAttribute('data-kind', document.body.textContent.includes('<b>kind')); };"
    )
    start = "window.onerror = e => document.documentElement.setAttribute('data-error', e);"
    page.write_text(
        f"<html><head><meta charset='utf-8'><script>{start}</script>"
        f"<script>{get_plotlyjs()}</script></head><body>{''.join(parts)}"
        f"<script>{check}</script></body></html>",
        encoding="utf-8",
    )
    assert CHROMIUM is not None
    command = [
        CHROMIUM,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--virtual-time-budget=9000",
    ]
    done = subprocess.run(
        [*command, f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", page.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
    )
    (root,) = re.findall("<html[^>]*>", done.stdout)[:1]
    assert "data-error" not in root
    assert f'data-drawn="{len(figures)}"' in root
    assert 'data-kind="true"' in root
