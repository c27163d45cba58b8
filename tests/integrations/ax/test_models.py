"""Predictions, analyses, best points, noise, saving and loading, and the strategy's arguments."""

from __future__ import annotations

import json

import numpy as np
import pytest

pytest.importorskip("ax", reason="Ax is not installed (extra `ax`)")

import ax.adapter.base
from ax.adapter.cross_validation import cross_validate
from ax.adapter.torch import TorchAdapter
from ax.analysis.plotly.cross_validation import CrossValidationPlot
from ax.api.client import Client
from ax.api.configs import RangeParameterConfig, StorageConfig
from ax.exceptions.core import DataRequiredError, UnsupportedError
from ax_clients import CONDITIONAL, SQUARE, bowl, conditional, make_client, run

import mondrian_bo.integrations.ax.adapter
from mondrian_bo import Float, MondrianOptimizer, SearchSpace
from mondrian_bo.acquisitions import LogExpectedImprovement
from mondrian_bo.integrations.ax import (
    MondrianGenerationNode,
    MondrianGenerator,
    mondrian_generation_strategy,
)
from mondrian_bo.optimizer import Arm, Portfolio

ROUTES = pytest.mark.parametrize("predictive", [True, False], ids=["predictive", "candidate"])
SPACE = SearchSpace({name: Float(-1.0, 1.0) for name in "xy"})


@pytest.fixture(scope="module")
def client():
    """Return a client with ten trials of two metrics, and one more that is running."""
    client = make_client(outcome_constraints=["cost <= 0.5"])
    run(client, lambda p: {**bowl(p), "cost": p["x"] - p["y"]}, 10)
    client.get_next_trials(1)
    return client


def adapter_of(client):
    return client._generation_strategy._nodes[-1].generator_specs[0].fitted_adapter


def refuse(*_, **__):
    raise AssertionError("a BoTorch model was fitted")


@pytest.fixture
def no_botorch(monkeypatch):
    monkeypatch.setattr("ax.generators.torch.botorch_modular.surrogate.Surrogate.fit", refuse)


# Predictions --------------------------------------------------------------------------------------


def test_predictions_are_those_of_a_bare_optimizer():
    """One model was told trial by trial as the suggestions needed it, so is the other."""
    settings = {"n_startup_trials": 1, "surrogate": "forest", "seed": 0}
    client = make_client(initialization="none", **settings)
    optimizer = MondrianOptimizer(SPACE, **settings)
    for _ in range(9):
        params = optimizer.ask()
        optimizer.tell(params, bowl(params)["loss"])
    run(client, bowl, 9)
    client.get_next_trials(1)
    optimizer.ask()
    points = [{"x": 0.1, "y": 0.2}, {"x": -0.9, "y": 0.4}]
    mean, std = optimizer.predict(points)
    for prediction, m, s in zip(client.predict(points), mean, std, strict=True):
        assert prediction["loss"] == pytest.approx((m, s))


def test_all_metrics_are_predicted(client, no_botorch):
    (prediction,) = client.predict([{"x": 0.0, "y": 0.0}])
    assert set(prediction) == {"loss", "cost"}
    assert all(np.isfinite(prediction[name]).all() for name in prediction)


def test_prediction_without_data():
    client = make_client(initialization="none")
    client.get_next_trials(1)
    with pytest.raises(DataRequiredError, match="no data"):
        adapter_of(client).generator.predict([{"x": 0.0, "y": 0.0}], ["loss"])


def test_the_candidate_route_does_not_predict():
    client = make_client(predictive=False)
    run(client, bowl, 6)
    with pytest.raises(UnsupportedError):
        client.predict([{"x": 0.0, "y": 0.0}])


def test_dependent_spaces_predict():
    client = make_client(CONDITIONAL)
    seen = run(client, conditional, 10)
    client.get_next_trials(1)
    for prediction in client.predict(seen[:4]):
        assert np.isfinite(prediction["loss"]).all()


def test_frames_of_the_data_are_made_when_somebody_asks_for_them(monkeypatch):
    client = make_client(outcome_constraints=["cost <= 0.5"])
    run(client, lambda p: {**bowl(p), "cost": p["x"] - p["y"]}, 6)
    made = []
    extract = ax.adapter.base.extract_experiment_data

    def record(**arguments):
        made.append(None)
        return extract(**arguments)

    for module in (ax.adapter.base, mondrian_bo.integrations.ax.adapter):
        monkeypatch.setattr(module, "extract_experiment_data", record)
    client.attach_trial({"x": 5.0, "y": 0.0})
    client.mark_trial_failed(client.attach_trial({"x": 0.5, "y": 0.0}))
    client.attach_data(client.attach_trial({"x": 0.6, "y": 0.0}), {"loss": 1.0}, progression=1)
    run(client, lambda p: {**bowl(p), "cost": p["x"] - p["y"]}, 3)
    client.get_next_trials(1)
    client.predict([{"x": 0.0, "y": 0.0}])
    assert not made
    ours = adapter_of(client)
    other = TorchAdapter(
        experiment=client._experiment, generator=MondrianGenerator(0), fit_on_init=False
    )
    made.clear()
    for inside in (True, False):
        theirs = other.get_training_data(filter_in_design=inside)
        assert ours.get_training_data(filter_in_design=inside) == theirs
    assert ours.training_in_design == other.training_in_design
    assert ours.metric_signatures == other.metric_signatures == {"loss", "cost"}
    assert len(made) == 1


def test_frames_are_those_of_the_data_that_were_learnt():
    client = make_client()
    run(client, bowl, 6)
    client.get_next_trials(1)
    adapter = adapter_of(client)
    run(client, bowl, 1)
    client._experiment.search_space.parameters["x"].update_range(lower=-1.0, upper=5.0)
    assert len(adapter.get_training_data().arm_data) == 6
    assert adapter.model_space.parameters["x"].upper == 1.0
    client.get_next_trials(1)
    assert len(adapter.get_training_data().arm_data) == 7
    assert adapter.model_space.parameters["x"].upper == 5.0


def test_cross_validation_leaves_the_tested_out(client, no_botorch):
    """Against models made by hand of all other trials."""
    results = cross_validate(adapter_of(client))
    frame = client._experiment.lookup_data().df
    losses = frame[frame["metric_name"] == "loss"].set_index("trial_index")["mean"]
    assert len(results) == len(losses)
    for result in results[:3]:
        tested = result.observed.features.trial_index
        optimizer = MondrianOptimizer(SPACE, surrogate="forest", n_startup_trials=1, seed=0)
        others = [i for i in losses.index if i != tested]
        for index in others:
            arm = client._experiment.trials[index].arm.parameters
            optimizer.tell(arm, losses[index])
        loss = list(result.predicted.metric_signatures).index("loss")
        params = client._experiment.trials[tested].arm.parameters
        # Other forests by their seeds, so alike in what they say rather than equal.
        mean, std = optimizer.predict(params)
        assert abs(result.predicted.means[loss] - mean[0]) < 3.0 * std[0] + 0.3


def test_analyses_use_our_model(client, no_botorch):
    from ax.analysis.plotly.surface.contour import ContourPlot
    from ax.analysis.plotly.surface.slice import SlicePlot

    cards = client.compute_analyses(
        analyses=[
            SlicePlot("x", "loss"),
            ContourPlot("x", "y", "loss"),
            CrossValidationPlot(["loss"]),
        ],
        display=False,
    )
    flat = [leaf for card in cards for leaf in card.flatten()]
    assert len(flat) >= 3
    assert not [card for card in flat if "Error" in type(card).__name__]


def test_best_point_is_a_feasible_arm_with_the_best_prediction(client, no_botorch):
    arm, predictions = adapter_of(client).model_best_point()
    tried = [t.arm.parameters for t in client._experiment.trials.values() if t.status.is_completed]
    assert arm.parameters in tried
    assert arm.parameters["x"] - arm.parameters["y"] <= 0.5
    feasible = [p for p in tried if p["x"] - p["y"] <= 0.5]
    best = min(prediction["loss"][0] for prediction in client.predict(feasible))
    assert predictions[0]["loss"] == pytest.approx(best)


def test_the_best_point_is_an_arm_though_its_row_rounds(no_botorch):
    """A logarithm and its inverse round: the decoded row differs from most arms."""
    client = make_client([RangeParameterConfig("rate", (1e-3, 1.0), "float", scaling="log")])
    for i in range(13):
        index = client.attach_trial({"rate": 10 ** (-0.1 - 0.13 * i)})
        client.complete_trial(index, raw_data={"loss": -float(i)})
        if i > 4:
            client.get_next_trials(1)
            best, _ = adapter_of(client).model_best_point()
            assert best.parameters == client._experiment.trials[index].arm.parameters
            assert best.name


def test_pareto_frontier_uses_our_model(no_botorch):
    client = make_client(objective="-a, -b", initialization_budget=8)

    def outcomes(p):
        return {"a": p["x"], "b": (1.0 - p["x"]) ** 2 + (p["y"] + 1.0)}

    run(client, outcomes, 10)
    frontier = client.get_pareto_frontier()
    assert frontier
    for parameters, prediction, _, _ in frontier:
        (expected,) = client.predict([parameters])
        assert prediction["a"][0] == pytest.approx(expected["a"][0])


def test_inferred_thresholds_lie_below_the_predicted_front(no_botorch):
    """Against dominance of the predictions, pair by pair; one arm is observed twice."""
    client = make_client(objective="-a, b", initialization="none")
    values = np.random.default_rng(0).uniform(-1.0, 1.0, (12, 2)).tolist()
    for x, y in [*values, values[0]]:
        index = client.attach_trial({"x": x, "y": y})
        client.complete_trial(index, raw_data={"a": x, "b": x + y - x * x})
    client.get_next_trials(1)
    predicted = client.predict([{"x": x, "y": y} for x, y in values])
    points = [(-one["a"][0], one["b"][0]) for one in predicted]
    front = [
        point
        for point in points
        if not any(
            other != point and all(theirs >= own for theirs, own in zip(other, point, strict=True))
            for other in points
        )
    ]
    assert 1 < len(front) < len(points)
    (worst_a, worst_b), (best_a, best_b) = (
        [extreme(values) for values in zip(*front, strict=True)] for extreme in (min, max)
    )
    a, b = adapter_of(client).infer_objective_thresholds()
    assert (a.metric_names, b.metric_names) == (["a"], ["b"])
    assert a.bound == pytest.approx(-(worst_a - 0.1 * (best_a - worst_a)))
    assert b.bound == pytest.approx(worst_b - 0.1 * (best_b - worst_b))


# Noise --------------------------------------------------------------------------------------------


def test_standard_errors_enter_the_posterior():
    """A value with a large error moves predictions less than the same value without."""
    point, predicted = {"x": 0.25, "y": 0.25}, {}
    for error in (0.0, 2.0):
        client = make_client(initialization="none")
        for x, y in np.random.default_rng(0).uniform(-1, 1, (30, 2)).tolist():
            index = client.attach_trial({"x": x, "y": y})
            client.complete_trial(index, raw_data={"loss": (bowl({"x": x, "y": y})["loss"], 0.0)})
        client.get_next_trials(1)
        predicted["without"] = client.predict([point])[0]["loss"][0]
        client.complete_trial(client.attach_trial(point), raw_data={"loss": (4.0, error)})
        client.get_next_trials(1)
        predicted[error] = client.predict([point])[0]["loss"][0]
    moved = predicted[0.0] - predicted["without"]
    assert moved > 0.2
    assert abs(predicted[2.0] - predicted["without"]) < 0.3 * moved


# Saving and loading -------------------------------------------------------------------------------


@ROUTES
@pytest.mark.parametrize(
    "acquisition",
    [
        LogExpectedImprovement(0.05),
        Portfolio((Arm((LogExpectedImprovement(optimism=0.3),), quadratic=0.5),), restarts=False),
    ],
    ids=["acquisition", "portfolio"],
)
def test_json_round_trip_goes_on(predictive, tmp_path, acquisition):
    path = str(tmp_path / "client.json")
    client = make_client(predictive=predictive, acquisition=acquisition, initialization="center")
    run(client, bowl, 5)
    ((index, _),) = client.get_next_trials(1).items()
    client.save_to_json_file(path)
    json.loads((tmp_path / "client.json").read_text())
    loaded = Client.load_from_json_file(path)
    node = loaded._generation_strategy._nodes[-1]
    settings = node.settings if not predictive else node.generator_specs[0].generator_kwargs
    settings = settings if not predictive else settings["settings"]
    assert settings == {"surrogate": "forest", "acquisition": acquisition, "n_startup_trials": 1}
    loaded.complete_trial(index, raw_data={"loss": 1.0})
    seen = run(loaded, bowl, 3)
    names = {
        loaded._experiment.trials[i].generator_runs[0]._generation_node_name for i in (6, 7, 8)
    }
    assert names == {"Mondrian"}
    assert len({tuple(p.items()) for p in seen}) == 3
    # Loading twice gives the same suggestions.
    again = Client.load_from_json_file(path)
    again.complete_trial(index, raw_data={"loss": 1.0})
    assert run(again, bowl, 3) == seen


def test_json_before_the_first_trial(tmp_path):
    client = make_client(predictive=False)
    path = str(tmp_path / "client.json")
    client.save_to_json_file(path)
    loaded = Client.load_from_json_file(path)
    assert run(loaded, bowl, 6) == run(client, bowl, 6)


# The strategy -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("initialization", "expected"),
    [
        ("sobol", ["Sobol"] * 4 + ["Mondrian"] * 2),
        ("center", ["CenterOfSearchSpace"] + ["Sobol"] * 3 + ["Mondrian"] * 2),
        ("none", ["Mondrian"] * 6),
    ],
)
def test_initialization(initialization, expected):
    client = make_client(initialization=initialization, predictive=False)
    run(client, bowl, 6)
    trials = client._experiment.trials.values()
    assert [t.generator_runs[0]._generation_node_name for t in trials] == expected


def test_attached_trials_count_as_initialization():
    client = make_client(predictive=False)
    for x in (-0.5, 0.0, 0.5, 0.7):
        client.complete_trial(client.attach_trial({"x": x, "y": 0.0}), raw_data={"loss": x})
    ((index, _),) = client.get_next_trials(1).items()
    run_of = client._experiment.trials[index].generator_runs[0]
    assert run_of._generation_node_name == "Mondrian"


@ROUTES
@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"initialization": "random"}, ValueError, "'sobol', 'center' or 'none'"),
        ({"initialization_budget": 0}, ValueError, "positive integer"),
        ({"predictive": "no"}, TypeError, "`predictive` must be True or False, got 'no'"),
        ({"surrogate": "tree"}, ValueError, "`surrogate`"),
        ({"acquisition": "best"}, ValueError, "best"),
        ({"seed": -1}, ValueError, "`seed` must be .* got -1"),
        (
            {"seed": True},
            TypeError,
            "`seed` must be an integer from 0 to 2.63 - 1 or None, got True",
        ),
        ({"seed": (1, 2)}, TypeError, r"`seed` must be .* got \(1, 2\)"),
        ({"seed": 2**63}, ValueError, "`seed` must be .* got 9223372036854775808"),
        ({"colour": 3}, TypeError, "'colour' .*surrogate"),
        ({"directions": ["minimize"]}, TypeError, "'directions'"),
        ({"fidelity": "x"}, TypeError, "'fidelity'"),
    ],
)
def test_arguments_are_checked_at_once(arguments, error, message, predictive):
    with pytest.raises(error, match=message):
        mondrian_generation_strategy(**{"predictive": predictive, **arguments})


def test_seeds():
    def first(seed):
        client = make_client(SQUARE, predictive=False, initialization="none", seed=seed)
        return run(client, bowl, 3)

    assert first(1) == first(1)
    assert first(1) != first(2)
    assert MondrianGenerationNode()._engine.seed != MondrianGenerationNode()._engine.seed


@ROUTES
def test_numpy_integers_are_settings(predictive, tmp_path):
    def first(seed, budget):
        client = make_client(seed=seed, initialization_budget=budget, predictive=predictive)
        seen = run(client, bowl, 4)
        client.save_to_json_file(str(tmp_path / "client.json"))
        return seen

    assert first(np.int64(3), np.int32(2)) == first(3, 2)


@ROUTES
@pytest.mark.filterwarnings("ignore")
def test_sql_storage_goes_on(predictive, tmp_path):
    pytest.importorskip("tabulate", reason="Ax's SQL storage needs tabulate (extra `ax`)")
    from ax.storage.sqa_store.db import (
        create_all_tables,
        get_engine,
        init_engine_and_session_factory,
    )

    url = f"sqlite:///{tmp_path / 'ax.db'}"
    init_engine_and_session_factory(url=url, force_init=True)
    create_all_tables(get_engine())
    client = Client(random_seed=0, storage_config=StorageConfig(url=url))
    client.configure_experiment(parameters=SQUARE, name="stored")
    client.configure_optimization(objective="-loss")
    strategy = mondrian_generation_strategy(
        seed=0, initialization_budget=2, predictive=predictive, surrogate="forest"
    )
    client.set_generation_strategy(strategy)
    run(client, bowl, 3)
    loaded = Client.load_from_database("stored", storage_config=StorageConfig(url=url))
    seen = run(loaded, bowl, 2)
    assert len(loaded._experiment.trials) == 5
    assert loaded._experiment.trials[4].generator_runs[0]._generation_node_name == "Mondrian"
    assert len({tuple(p.items()) for p in seen}) == 2
