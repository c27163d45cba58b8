"""Plots of a parameter with equal choices, such as 1 and True: an axis has each of them once."""

from __future__ import annotations

from typing import Any

import matplotlib
import numpy as np
import optuna
import pytest

from mondrian_bo import MondrianSampler, plotting
from mondrian_bo.integrations.optuna.plots.lines import view
from mondrian_bo.integrations.optuna.plots.model import (
    acquisition_data,
    map_data,
    partition_data,
    slice_data,
)

matplotlib.use("Agg")
optuna.logging.set_verbosity(optuna.logging.WARNING)
CHOICES = [1, True, 0, False, 2]
PLACES = {1: 0.0, 0: 1.0, 2: 2.0}
LABELS = ["1", "0", "2"]


@pytest.fixture(scope="module")
def study() -> optuna.Study:
    """Return a study in which 2 is the best choice, and 1 the worst one."""
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))

    def objective(trial: optuna.Trial) -> float:
        c = trial.suggest_categorical("c", CHOICES)
        return {2: 0.0, 0: 5.0, 1: 9.0}[c] + trial.suggest_float("y", 0.0, 1.0)

    study.optimize(objective, n_trials=30)
    return study


def test_slice(study: optuna.Study) -> None:
    data = slice_data(view(study), "c")
    assert data.line.labels == LABELS
    assert data.trials[:, 0].tolist() == [PLACES[trial.params["c"]] for trial in study.trials]
    assert data.best[0] == PLACES[2]
    # The best trial's prediction is on the line.
    assert data.best[1] == pytest.approx(data.mean[2])
    points = [{"c": one, "y": study.best_params["y"]} for one in (1, 0, 2)]
    np.testing.assert_allclose(data.mean, MondrianSampler(seed=0).predict(study, points).mean)


@pytest.mark.parametrize("names", [("c", "y"), ("y", "c")])
def test_maps(study: optuna.Study, names: tuple[str, str]) -> None:
    seen, column = view(study), names.index("c")
    expected = [PLACES[trial.params["c"]] for trial in study.trials]
    for data in (map_data(seen, *names), acquisition_data(seen, *names)):
        assert data.trials[:, column].tolist() == expected
        assert data.best[column] == PLACES[2]
    partition = partition_data(seen, *names)
    np.testing.assert_allclose(partition.points[:, column], (np.array(expected) + 0.5) / 3.0)
    other = [trial.params["y"] for trial in study.trials]
    np.testing.assert_allclose(partition.points[:, 1 - column], other)


def test_matplotlib(study: optuna.Study) -> None:
    axes = plotting.plot_slice(study, "c")
    texts = [label.get_text() for label in axes.get_xticklabels()]
    ticks = dict(zip(axes.get_xticks(), texts, strict=True))
    assert ticks == {0.0: "1", 1.0: "0", 2.0: "2"}
    dots = next(line for line in axes.lines if len(line.get_xdata()) == len(study.trials))
    shown = [ticks[float(at)] for at in dots.get_xdata()]
    assert shown == [str(int(trial.params["c"])) for trial in study.trials]


def test_plotly(study: optuna.Study) -> None:
    pytest.importorskip("plotly")
    from mondrian_bo.plotting import plotly

    figure: Any = plotly.plot_slice(study, "c")
    ticks = dict(zip(figure.layout.xaxis.tickvals, figure.layout.xaxis.ticktext, strict=True))
    (dots,) = [one for one in figure.data if len(one.x) == len(study.trials)]
    shown = [ticks[float(at)] for at in dots.x]
    assert shown == [str(int(trial.params["c"])) for trial in study.trials]
