"""Plots show what the model and the study say."""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterator

import matplotlib
import numpy as np
import optuna
import pytest

from mondrian_bo import MondrianSampler, plotting
from mondrian_bo.integrations.optuna.plots.history import (
    curves_data,
    history_data,
    past_predictions,
)
from mondrian_bo.integrations.optuna.plots.lines import view
from mondrian_bo.integrations.optuna.plots.model import acquisition_data, partition_data

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


def _constrained_study() -> optuna.Study:
    """Minimise x where x is at least one half; the first trials are not."""

    def objective(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", 0.0, 1.0)
        trial.set_constraint("right", 0.5 - x)
        return x

    study = optuna.create_study(sampler=MondrianSampler(seed=0))
    study.enqueue_trial({"x": 0.1})
    study.optimize(objective, n_trials=15)
    return study


def test_plots_of_a_study_with_constraints() -> None:
    study = _constrained_study()
    data = history_data(study)
    assert not data.is_feasible.all()
    assert np.isnan(data.best[0])
    assert data.best[-1] == study.best_value >= 0.5
    seen = view(study)
    found = acquisition_data(seen, "x")
    best = [found.line.values[int(np.argmax(scores))] for _, scores in found.scores]
    np.testing.assert_allclose(best, study.best_value, atol=0.05)
    axes = plotting.plot_history(study)
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [
        "trials",
        "infeasible",
        "best",
    ]
    pytest.importorskip("plotly")
    from mondrian_bo.plotting import plotly

    names = [trace.name for trace in plotly.plot_history(study).data]
    assert names == ["trials", "infeasible", "best"]


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
    assert curves.get_ylabel() == "intermediate value"


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
    with pytest.raises(ValueError, match="No finished trial"):
        plotting.plot_slice(optuna.create_study(), "x")
    with pytest.raises(TypeError, match="`params` must be a list of names of parameters, got 'n'"):
        plotting.plot_pairs(study, "n")
    with pytest.raises(ValueError, match="`params` must have at least one name; there are"):
        plotting.plot_pairs(study, [])


@pytest.mark.parametrize("module", ["matplotlib", "plotly"])
@pytest.mark.parametrize(
    ("name", "arguments", "error", "message"),
    [
        ("plot_slice", {"param": ["x"]}, TypeError, r"given by its name, got \['x'\]"),
        ("plot_slice", {"param": "one"}, ValueError, "Parameter 'one' has a single value"),
        ("plot_slice", {"param": "x", "sampler": 3}, TypeError, "`sampler` must be a Mondrian"),
        ("plot_map", {"x": "x", "y": "x"}, ValueError, "two parameters, got 'x' for both"),
        ("plot_map", {"x": "x", "y": "y", "uncertainty": "no"}, TypeError, "`uncertainty` must"),
        ("plot_importance", {"n_pairs": "a"}, TypeError, "`n_pairs` must be an integer"),
        ("plot_importance", {"n_pairs": -1}, ValueError, "`n_pairs` must be at least 0"),
        ("plot_importance", {"evaluator": 3}, TypeError, "`evaluator` must be a Mondrian"),
        ("plot_partition", {"x": "x", "y": "y", "seed": "a"}, TypeError, "`seed` must be an int"),
        ("plot_partition", {"x": "x", "y": "y", "seed": -1}, ValueError, "`seed` must be at"),
        ("plot_learning_curves", {"n_predicted": -1}, ValueError, "`n_predicted` must be at least"),
        ("plot_history", {"study": None}, TypeError, "`study` must be an optuna.Study, got None"),
        ("plot_calibration", {"study": 3}, TypeError, "`study` must be an optuna.Study, got 3"),
    ],
)
def test_wrong_arguments(
    module: str, name: str, arguments: dict[str, object], error: type[Exception], message: str
) -> None:
    pytest.importorskip(module)
    plots = (
        plotting
        if module == "matplotlib"
        else importlib.import_module("mondrian_bo.plotting.plotly")
    )
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))

    def objective(trial: optuna.Trial) -> float:
        return sum(trial.suggest_float(name, 0, 1) for name in "xy") + trial.suggest_int(
            "one", 1, 1
        )

    study.optimize(objective, n_trials=4)
    with pytest.raises(error, match=message):
        getattr(plots, name)(**{"study": study, **arguments})


def _curve_study(direction: str = "minimize") -> optuna.Study:
    """Ten complete trials whose curves end at their offset, and unfinished ones."""
    study = optuna.create_study(direction=direction, sampler=optuna.samplers.RandomSampler(seed=0))
    sign = 1.0 if direction == "minimize" else -1.0
    offsets = [*np.linspace(0.1, 1.0, 10).tolist(), 0.25, 0.45, 0.65, 0.85, 0.5]
    for number, offset in enumerate(offsets):
        study.enqueue_trial({"x": offset})
        trial = study.ask({"x": optuna.distributions.FloatDistribution(0.0, 1.0)})
        value = trial.params["x"]
        n_steps = 10 if number < 10 else 1 if number == 14 else 4
        for step in range(n_steps):
            trial.report(sign * (value + math.exp(-step)), step)
        if number < 10:
            study.tell(trial, sign * (value + math.exp(-9.0)))
        elif number < 13:
            study.tell(trial, state=optuna.trial.TrialState.PRUNED)
    return study


@pytest.mark.parametrize("module", ["matplotlib", "plotly"])
@pytest.mark.parametrize(
    ("objective", "error"), [(2, ValueError), (-1, ValueError), (1.0, TypeError), (True, TypeError)]
)
def test_wrong_objectives(module: str, objective: object, error: type[Exception]) -> None:
    pytest.importorskip(module)
    plots = (
        plotting
        if module == "matplotlib"
        else importlib.import_module("mondrian_bo.plotting.plotly")
    )
    study = optuna.create_study(directions=["minimize", "maximize"])
    study.optimize(lambda t: (t.suggest_float("x", 0, 1), t.suggest_float("y", 0, 1)), n_trials=3)
    for name, params in (
        ("plot_slice", ["x"]),
        ("plot_map", ["x", "y"]),
        ("plot_pairs", []),
        ("plot_importance", []),
        ("plot_history", []),
        ("plot_partition", ["x", "y"]),
    ):
        with pytest.raises(error, match=r"`objective` must be an integer from 0 to 1, got"):
            getattr(plots, name)(study, *params, objective=objective)


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_predicted_ends_of_curves(direction: str) -> None:
    """Unfinished trials have intervals around the values that they would end with."""
    study = _curve_study(direction)
    data = curves_data(study)
    assert [curve.kind for curve in data.curves[10:]] == ["pruned"] * 3 + ["running"] * 2
    sign = 1.0 if direction == "minimize" else -1.0
    for curve, trial in zip(data.curves, study.trials, strict=True):
        if trial.number < 10:
            assert curve.kind in ("complete", "best") and curve.end is None
            continue
        assert curve.end is not None
        low, median, high = curve.end
        assert low < median < high
        assert low < sign * (trial.params["x"] + math.exp(-9.0)) < high
        # The last report is worse by far.
        assert abs(median - sign * trial.params["x"]) < 0.2 * abs(curve.values[-1] - median) + 0.05
    # After four reports less is unknown than after one.
    widths = [curve.end[2] - curve.end[0] for curve in data.curves[10:] if curve.end is not None]
    assert max(widths[:4]) < widths[4]
    positions = [data.end_positions[number] for number in range(10, 15)]
    assert min(positions) > 9.0
    medians = [curve.end[1] for curve in data.curves[10:] if curve.end is not None]
    assert np.argsort(positions).tolist() == np.argsort(medians).tolist()


def test_running_trials_are_predicted_first() -> None:
    study = _curve_study()
    assert set(curves_data(study, n_predicted=3).end_positions) == {13, 14, 12}
    assert curves_data(study, n_predicted=0).end_positions == {}
    axes = plotting.plot_learning_curves(study)
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert sorted(labels) == ["best", "complete", "predicted value, 90 %", "pruned", "running"]


def test_predicted_ends_do_not_depend_on_the_order_of_trials() -> None:
    """One trial whose reports are out of order tells how all trials are compared."""
    ends = []
    for is_first in (True, False):
        study, rng = optuna.create_study(), np.random.default_rng(0)
        for i, level in enumerate(rng.normal(size=12).tolist()):
            # Half of the trials report at every second step.
            reports = {(1 + i % 2) * step: level + 0.8**step for step in range(12)}
            study.add_trial(
                optuna.trial.create_trial(value=level + 0.8**11, intermediate_values=reports)
            )
        pruned = [{3: 1.0, 1: 1.2}, {step: 0.5 + 0.8**step for step in range(6)}]
        for reports in pruned if is_first else pruned[::-1]:
            study.add_trial(
                optuna.trial.create_trial(
                    state=optuna.trial.TrialState.PRUNED, intermediate_values=reports
                )
            )
        found = [curve.end for curve in curves_data(study).curves[12:]]
        ends.append(found if is_first else found[::-1])
    np.testing.assert_array_equal(*ends)


def test_curves_that_cannot_be_compared_have_no_end() -> None:
    study = optuna.create_study()
    for _ in range(2):
        trial = study.ask()
        trial.report(1.0, 0)
        trial.report(0.5, 1)
        study.tell(trial, 0.5)
    running = study.ask()
    running.report(float("nan"), 0)
    data = curves_data(study)
    assert [curve.kind for curve in data.curves] == ["best", "complete", "running"]
    assert data.end_positions == {}
    assert curves_data(optuna.create_study()).curves == []


def test_a_partition_of_large_values() -> None:
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(
        lambda trial: 1e300 * trial.suggest_float("x", -1, 1) + trial.suggest_float("y", -1, 1), 20
    )
    values = partition_data(view(study), "x", "y").means
    assert np.isfinite(values).all() and np.abs(values).max() > 1e299


def _ring(axes) -> tuple[float, float]:
    """The marker of the trial that a plot goes through."""
    ring = axes.lines[-1]
    return float(ring.get_xdata()[0]), float(ring.get_ydata()[0])


def _branches(trial: optuna.Trial) -> float:
    if trial.suggest_categorical("kind", ["a", "b"]) == "a":
        z = trial.suggest_float("z", 0.0, 1.0)
        trial.set_constraint("half", 0.5 - z)
        return 1.0 + z
    trial.set_constraint("half", -1.0)
    return trial.suggest_float("x", 0.0, 1.0)


def test_slices_and_maps_go_through_trials_that_exist() -> None:
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(_branches, n_trials=40)
    feasible = [t.params["z"] for t in study.trials if t.params.get("z", 0.0) >= 0.5]
    # The best trial lacks z, and better trials with it are not feasible.
    assert "z" not in study.best_params
    assert _ring(plotting.plot_slice(study, "z"))[0] in feasible
    for plot in (plotting.plot_map, plotting.plot_acquisition):
        with pytest.raises(ValueError, match="No complete trial has values of 'x' and 'z'"):
            plot(study, "x", "z")
    figure = plotting.plot_pairs(study, ["x", "z"])
    assert [axes.axison for axes in figure.axes[:4]] == [True, False, False, True]
    with pytest.raises(ValueError, match="must be two parameters"):
        plotting.plot_partition(study, "x", "x")


def test_a_slice_of_several_objectives_goes_through_a_good_trial_of_its_own() -> None:
    def objective(trial: optuna.Trial) -> tuple[float, float]:
        if trial.suggest_categorical("kind", ["a", "b"]) == "a":
            x = trial.suggest_float("x", 0.0, 1.0)
            return 2.0 + x, 5.0 + x
        return trial.suggest_float("y", 0.0, 1.0), 9.0

    sampler = optuna.samplers.RandomSampler(seed=0)
    study = optuna.create_study(directions=["minimize", "maximize"], sampler=sampler)
    study.optimize(objective, n_trials=40)
    xs = [trial.params["x"] for trial in study.trials if "x" in trial.params]
    assert _ring(plotting.plot_slice(study, "x", objective=0))[0] == pytest.approx(min(xs), abs=0.1)
    assert _ring(plotting.plot_slice(study, "x", objective=1))[0] == pytest.approx(max(xs), abs=0.1)


def test_the_best_trial_is_where_it_is_outside_of_the_present_range() -> None:
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(lambda trial: (trial.suggest_float("x", 0, 10) - 8.0) ** 2, n_trials=20)
    study.optimize(lambda trial: (trial.suggest_float("x", 0, 5) - 8.0) ** 2, n_trials=5)
    x, value = _ring(plotting.plot_slice(study, "x"))
    assert x == pytest.approx(study.best_params["x"])
    assert value == pytest.approx(study.best_value, abs=0.5)


def test_choices_that_are_gone_do_not_stop_plots() -> None:
    def objective(choices, offset):
        def value(trial: optuna.Trial) -> float:
            return (trial.suggest_categorical("x", choices) == choices[0]) + (
                trial.suggest_float("y", 0.0, 1.0) + offset
            )

        return value

    parts = []
    for seed, (choices, offset) in enumerate(((["a", "b"], -5.0), (["c", "d"], 0.0))):
        part = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=seed + 3))
        part.optimize(objective(choices, offset), n_trials=8)
        parts += part.trials
    study = optuna.create_study()
    study.add_trials(parts)
    ring = _ring(plotting.plot_slice(study, "y"))
    known = [t for t in study.trials if t.params["x"] in ("c", "d")]
    # The best one of those whose choice is still there.
    assert ring[0] == min(known, key=lambda trial: trial.value).params["y"]
    plotting.plot_map(study, "x", "y")


def test_texts_are_shown_as_they_are() -> None:
    """Dollars begin formulas in matplotlib, and few digits of large integers are all the same."""

    def objective(trial: optuna.Trial) -> float:
        regex = trial.suggest_categorical("US$_low_to_$_high", ["^\\d+$|^\\w$", "^a$"])
        return trial.suggest_int("seed", 1234560, 1234563) + len(regex)

    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(objective, n_trials=12)
    axes = plotting.plot_slice(study, "US$_low_to_$_high")
    axes.figure.draw_without_rendering()
    axes = plotting.plot_slice(study, "seed")
    axes.figure.draw_without_rendering()
    labels = [label.get_text() for label in axes.get_xticklabels()]
    assert labels == ["1234560", "1234561", "1234562", "1234563"]


def test_a_single_report_is_a_marker() -> None:
    study = optuna.create_study()
    for k in range(6):
        trial = study.ask()
        trial.report(1.0, 0)
        if k % 2:
            study.tell(trial, state=optuna.trial.TrialState.PRUNED)
        else:
            trial.report(0.5, 1)
            study.tell(trial, 0.5)
    axes = plotting.plot_learning_curves(study)
    for line in axes.lines:
        if len(line.get_xdata()) == 1 and line.get_xdata()[0] == 0:
            assert line.get_marker() == "."


def test_the_acquisition_of_points_that_are_not_valid_is_the_smallest() -> None:
    sampler = MondrianSampler(seed=0, is_valid=lambda params: params["x"] >= 0.0)
    study = optuna.create_study(sampler=sampler)
    study.optimize(lambda trial: trial.suggest_float("x", -5, 5), n_trials=12)
    for line in plotting.plot_acquisition(study, "x").lines:
        x, scores = line.get_xdata(), line.get_ydata()
        assert (scores[x < 0.0] == scores.min()).all()
        assert x[np.argmax(scores)] >= 0.0
