"""Plots show what the model and the study say."""

from __future__ import annotations

import math
from collections.abc import Iterator

import matplotlib
import numpy as np
import optuna
import pytest

from mondrian_bo import MondrianSampler, plotting
from mondrian_bo.integrations.optuna.plots.history import past_predictions

matplotlib.use("Agg")
optuna.logging.set_verbosity(optuna.logging.WARNING)


@pytest.fixture(autouse=True)
def _close_figures() -> Iterator[None]:
    yield
    from matplotlib import pyplot

    pyplot.close("all")


def _objective(trial: optuna.Trial) -> float:
    rate = trial.suggest_float("rate", 1e-4, 1e-1, log=True)
    n = trial.suggest_int("n", 1, 4)
    value = (math.log10(rate) + 2.5) ** 2 + 0.1 * n
    if trial.suggest_categorical("kind", ["a", None]) == "a":
        value += trial.suggest_float("extra", 0.0, 1.0)
    for step in range(4):
        trial.report(value + math.exp(-step), step)
    if trial.number % 9 == 8:
        raise optuna.TrialPruned
    return value


@pytest.fixture(scope="module")
def study() -> optuna.Study:
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(_objective, n_trials=40)
    return study


def test_slice_is_the_prediction(study: optuna.Study) -> None:
    sampler = MondrianSampler(seed=0)
    axes = plotting.plot_slice(study, "rate", sampler=sampler)
    line = axes.lines[0]
    rates, means = line.get_xdata(), line.get_ydata()
    assert axes.get_xscale() == "log"
    assert rates[0] == pytest.approx(1e-4) and rates[-1] == pytest.approx(1e-1)
    from mondrian_bo import robust_best

    params = {**robust_best(study, sampler).params, "rate": rates[30]}
    assert sampler.predict(study, params).mean[0] == pytest.approx(means[30])
    # The bowl's minimum is at 10^-2.5.
    assert math.log10(rates[np.argmin(means)]) == pytest.approx(-2.5, abs=0.2)


@pytest.mark.parametrize("name", ["n", "kind", "extra"])
def test_slices_of_all_kinds(study: optuna.Study, name: str) -> None:
    axes = plotting.plot_slice(study, name)
    assert axes.get_xlabel() == name
    if name == "kind":
        assert [label.get_text() for label in axes.get_xticklabels()] == ["a", "None"]
    if name == "n":
        assert list(axes.get_xticks()) == [1, 2, 3, 4]


def test_slice_of_an_inactive_parameter(study: optuna.Study) -> None:
    """It goes through the best trial that has the parameter, whose effect is 1."""
    line = plotting.plot_slice(study, "extra").lines[0].get_ydata()
    assert line[-1] - line[0] == pytest.approx(1.0, abs=0.4)


def test_map(study: optuna.Study) -> None:
    sampler = MondrianSampler(seed=0)
    mean = plotting.plot_map(study, "rate", "n", sampler=sampler)
    std = plotting.plot_map(study, "rate", "kind", uncertainty=True, sampler=sampler)
    assert (mean.get_xlabel(), mean.get_ylabel()) == ("rate", "n")
    assert mean.collections[0].get_array().shape == (4, 40)
    assert (std.collections[0].get_array() > 0.0).all()


def test_acquisition(study: optuna.Study) -> None:
    lines = plotting.plot_acquisition(study, "rate")
    assert len(lines.get_legend().get_texts()) == 3
    assert plotting.plot_acquisition(study, "rate", "n").get_ylabel() == "n"


def test_importance(study: optuna.Study) -> None:
    axes = plotting.plot_importance(study, n_pairs=2)
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert len(names) == 4 + 2
    assert names[-1] == "rate"
    assert "×" in names[0]


def test_pairs(study: optuna.Study) -> None:
    figure = plotting.plot_pairs(study, ["rate", "n"])
    assert len([axes for axes in figure.axes if axes.get_ylabel() in ("n", "rate")]) == 2
    assert len(plotting.plot_pairs(study).axes) >= 16


def test_partition_covers_the_square(study: optuna.Study) -> None:
    axes = plotting.plot_partition(study, "rate", "n", seed=1)
    areas = [patch.get_width() * patch.get_height() for patch in axes.patches]
    assert len(areas) > 10
    assert sum(areas) == pytest.approx(1.0)
    assert min(areas) > 0.0


def test_history_and_curves(study: optuna.Study) -> None:
    history = plotting.plot_history(study)
    best = history.lines[1].get_ydata()
    assert best[-1] == study.best_value
    assert (np.diff(best) <= 0.0).all()
    curves = plotting.plot_learning_curves(study)
    assert len(curves.lines) == 40


def test_past_predictions_do_not_know_the_future() -> None:
    """A prediction changes with earlier trials only."""
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1) ** 2, n_trials=20)
    before = past_predictions(study)
    study.optimize(lambda trial: 1e3 + trial.suggest_float("x", 0, 1), n_trials=5)
    after = past_predictions(study)
    assert len(before) == 10 and len(after) == 15
    np.testing.assert_allclose(after[:10], before)
    assert ((after >= 0.0) & (after <= 1.0)).all()
    assert after[10] > 0.9 or after[10] < 0.1


def test_calibration_of_pure_noise() -> None:
    """Noise is predicted as such: the observed shares are near the nominal ones."""
    rng = np.random.default_rng(0)
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))

    def noise(trial: optuna.Trial) -> float:
        trial.suggest_float("x", 0, 1)
        return float(rng.normal())

    study.optimize(noise, n_trials=80)
    axes = plotting.plot_calibration(study)
    nominal, observed = axes.lines[0].get_data()
    np.testing.assert_allclose(observed, nominal, atol=0.25)


def test_several_objectives_and_wrong_names(study: optuna.Study) -> None:
    many = optuna.create_study(directions=["minimize", "maximize"])
    many.optimize(lambda trial: (trial.suggest_float("x", 0, 1), trial.number), n_trials=5)
    assert plotting.plot_slice(many, "x", objective=1).get_ylabel() == "value 1"
    for plot in (plotting.plot_calibration, lambda one: plotting.plot_acquisition(one, "x")):
        with pytest.raises(ValueError, match="single objective"):
            plot(many)
    with pytest.raises(ValueError, match="no parameter 'z'"):
        plotting.plot_slice(study, "z")
    with pytest.raises(ValueError, match="no finished trial"):
        plotting.plot_slice(optuna.create_study(), "x")
