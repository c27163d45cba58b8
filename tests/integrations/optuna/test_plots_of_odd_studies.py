"""Plots of studies without parameters or trials, and of the largest values, in both libraries."""

from __future__ import annotations

from collections.abc import Iterator

import matplotlib
import numpy as np
import optuna
import pytest
from matplotlib import pyplot
from studies import make_study, optimize

from mondrian_bo import MondrianTerminator, plotting
from mondrian_bo.integrations.optuna.plots.history import history_data
from mondrian_bo.optimizer.stopping.remaining_gain import RemainingGain
from mondrian_bo.plotting import plotly

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def _close_figures() -> Iterator[None]:
    yield
    pyplot.close("all")


@pytest.mark.parametrize("n_trials", [0, 3])
def test_importance_without_parameters_is_empty(n_trials: int) -> None:
    study = optimize(make_study(), lambda trial: 1.0, n_trials)
    axes = plotting.plot_importance(study)
    axes.figure.canvas.draw()
    assert not axes.patches
    (bars,) = plotly.plot_importance(study).data
    assert not bars.x


_CALLS = {
    "plot_slice": ("x",),
    "plot_map": ("x", "y"),
    "plot_acquisition": ("x",),
    "plot_pairs": (),
    "plot_importance": (),
    "plot_partition": ("x", "y"),
    "plot_history": (),
    "plot_learning_curves": (),
    "plot_calibration": (),
}


def _study_of_values(values) -> optuna.Study:
    """Return a study whose values are a function of a number from -1 to 1, with pruned trials."""

    def objective(trial: optuna.Trial) -> float:
        x, _ = (trial.suggest_float(name, -1.0, 1.0) for name in "xy")
        for step in range(4):
            trial.report(values(x) * (1.0 - 0.1 * step), step)
            if step == 1 and trial.number > 10 and trial.number % 4 == 0:
                raise optuna.TrialPruned
        return values(x)

    return optimize(make_study(optuna.samplers.RandomSampler(seed=0)), objective, 24)


@pytest.mark.parametrize(
    "values",
    [lambda x: 1.7e308 * x, lambda x: 1.7e308 * abs(x), lambda x: 1.7e308],
    ids=["all", "positive", "equal"],
)
def test_the_largest_values(values) -> None:
    study = _study_of_values(values)
    for name, arguments in _CALLS.items():
        drawn = getattr(plotting, name)(study, *arguments)
        (drawn if name == "plot_pairs" else drawn.figure).canvas.draw()
        getattr(plotly, name)(study, *arguments).to_json()
    data = history_data(study)
    assert data.label == "value * 1e-10"
    complete = [trial for trial in study.trials if trial.number in data.numbers]
    np.testing.assert_allclose(data.values, [1e-10 * trial.value for trial in complete])
    assert data.limits[0] < data.values.min() and np.isfinite(np.diff(data.limits)).all()
    terminator = MondrianTerminator(0.1)
    terminator.should_terminate(study)
    latest = terminator.latest(study)
    assert latest is not None and np.isfinite(latest.expected_gain)


def test_usual_values_are_drawn_as_they_are() -> None:
    data = history_data(_study_of_values(lambda x: 1e299 * x))
    assert data.label == "value"
    assert np.abs(data.values).max() > 1e298


@pytest.mark.parametrize("size", [5e-324, 1e-310, 1.0, np.finfo(np.float64).max])
def test_the_mean_of_regrets_of_any_size(size: float) -> None:
    assert RemainingGain(np.zeros(1), np.full(512, size)).mean == size
    assert RemainingGain(np.zeros(1), np.array([0.0, 0.0])).mean == 0.0
    mixed = RemainingGain(np.zeros(1), np.array([0.0, 1.0]) * size).mean
    assert mixed == pytest.approx(0.5 * size, abs=5e-324)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_few_bad_feasible_trials_are_in_the_limits(sign) -> None:
    """Of a tight limit that costs value; all infeasible trials have better values."""

    def objective(trial):
        x = trial.suggest_float("x", 0.0, 1.0)
        trial.set_constraint("c", 0.95 - x)
        return sign * 10.0 * x**8

    study = optuna.create_study(
        direction="minimize" if sign > 0.0 else "maximize",
        sampler=optuna.samplers.RandomSampler(seed=0),
    )
    study.optimize(objective, n_trials=60)
    data = history_data(study)
    assert 0 < data.is_feasible.sum() <= 3
    assert data.limits[0] < data.best[-1] < data.limits[1]
