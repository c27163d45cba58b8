"""Both routes through Ax's public client: trials of all kinds."""

from __future__ import annotations

import math

import numpy as np
import pytest

pytest.importorskip("ax", reason="Ax is not installed (extra `ax`)")

from ax.api.configs import ChoiceParameterConfig, RangeParameterConfig
from ax.core.data import Data, DataRow
from ax.core.parameter import ParameterType, RangeParameter
from ax.core.search_space import SearchSpace
from ax.core.trial_status import TrialStatus
from ax.utils.testing.core_stubs import get_branin_experiment
from ax_clients import SQUARE, bowl, engine_of, engine_of_strategy, make_client, run

from mondrian_bo.integrations.ax import MondrianGenerators, mondrian_generation_strategy
from mondrian_bo.integrations.ax.space import TranslatedSpace
from mondrian_bo.optimizer.row_optimizer import RowOptimizer

ROUTES = pytest.mark.parametrize("predictive", [True, False], ids=["predictive", "candidate"])


@ROUTES
def test_batches_are_diverse(predictive):
    client = make_client(predictive=predictive)
    run(client, bowl, 8)
    batch = client.get_next_trials(5)
    points = np.array([[p["x"], p["y"]] for p in batch.values()])
    assert len(np.unique(points, axis=0)) == 5
    for index, parameters in batch.items():
        client.complete_trial(index, raw_data=bowl(parameters))
    assert len(client.get_next_trials(2)) == 2


@ROUTES
def test_pending_trials_are_imputed(predictive, monkeypatch):
    seen = []
    suggest = RowOptimizer.suggest

    def record(self, pending, *arguments):
        seen.append(len(pending))
        return suggest(self, pending, *arguments)

    monkeypatch.setattr(RowOptimizer, "suggest", record)
    client = make_client(predictive=predictive)
    run(client, bowl, 5)
    seen.clear()
    first = client.get_next_trials(3)
    assert seen == [0, 1, 2]
    client.mark_trial_abandoned(next(iter(first)))
    client.get_next_trials(1)
    assert seen[-1] == 2


@ROUTES
def test_failed_and_abandoned_trials_are_not_repeated(predictive):
    parameters = [RangeParameterConfig(name, (0, 3), "int") for name in "ij"]
    client = make_client(parameters, predictive=predictive, initialization="none")
    points = []
    for number in range(16):
        ((index, p),) = client.get_next_trials(1).items()
        points.append((p["i"], p["j"]))
        if number % 3 == 0:
            client.mark_trial_failed(index)
        elif number % 3 == 1:
            client.mark_trial_abandoned(index)
        else:
            client.complete_trial(index, raw_data={"loss": p["i"] + p["j"]})
    assert len(set(points)) == 16
    # Nothing new is left: known points are suggested again, without a word of Sobol.
    ((index, _),) = client.get_next_trials(1).items()
    run_of = client._experiment.trials[index].generator_runs[0]
    assert run_of._generator_key == "Mondrian"


@ROUTES
def test_early_stopped_trials_count_as_no_better_than_the_median(predictive, monkeypatch):
    told = []
    tell_rows = RowOptimizer.tell_rows

    def record(self, rows, values, *arguments, **options):
        if options:
            told.extend(values[:, 0].tolist())
        tell_rows(self, rows, values, *arguments, **options)

    monkeypatch.setattr(RowOptimizer, "tell_rows", record)
    client = make_client(predictive=predictive)
    for value in (1.0, 2.0, 4.0, 5.0):
        ((index, _),) = client.get_next_trials(1).items()
        client.complete_trial(index, raw_data={"loss": value})
    for step, value in ((1, 0.5), (2, 0.1)):
        index = 4
        if step == 1:
            index = client.attach_trial({"x": 0.5, "y": 0.5})
        client.attach_data(index, raw_data={"loss": value}, progression=step)
    client.mark_trial_early_stopped(4)
    client.get_next_trials(1)
    assert told == [1.0, 2.0, 4.0, 5.0, 3.0]


@ROUTES
def test_running_trials_with_data_are_not_learnt_yet(predictive, monkeypatch):
    client = make_client(predictive=predictive)
    run(client, bowl, 5)
    index = client.attach_trial({"x": 0.5, "y": 0.5})
    client.attach_data(index, raw_data={"loss": -100.0}, progression=1)
    ((_, p),) = client.get_next_trials(1).items()
    assert p != {"x": 0.5, "y": 0.5}
    assert engine_of(client).n_observations == 5
    client.attach_data(index, raw_data={"loss": 7.0}, progression=2)
    client.complete_trial(index)
    client.get_next_trials(1)
    assert engine_of(client).n_observations == 6


@ROUTES
def test_nan_outcomes_are_ignored(predictive):
    client = make_client(predictive=predictive)

    def outcomes(p):
        return {"loss": math.nan if p["x"] > 0.6 else bowl(p)["loss"]}

    seen = run(client, outcomes, 10)
    assert len({(p["x"], p["y"]) for p in seen}) == 10
    n_numbers = sum(p["x"] <= 0.6 for p in seen[:-1])
    assert engine_of(client)._informed().n_trials >= n_numbers


@pytest.mark.parametrize("missing", ["absent", "nan"])
@pytest.mark.parametrize("has_baseline", [True, False])
def test_metrics_that_some_trials_lack(missing, has_baseline):
    """Each metric is learnt where it is known, at once and in the same way on both routes."""
    bound = "cost <= 0.9*baseline" if has_baseline else "cost <= 3"
    both = []
    for predictive in (True, False):
        client = make_client(outcome_constraints=[bound], predictive=predictive)
        if has_baseline:
            index = client.attach_baseline({"x": 1.0, "y": 0.0})
            client.complete_trial(index, raw_data={**bowl({"x": 1.0, "y": 0.0}), "cost": 4.0})
        both.append([])
        for number in range(7):
            ((index, p),) = client.get_next_trials(1).items()
            outcomes = {**bowl(p), "cost": 3.0 - 2.0 * p["y"]}
            if number % 3 == 2:
                outcomes = bowl(p) if missing == "absent" else {**outcomes, "cost": math.nan}
            client.attach_data(index, raw_data=outcomes)
            client.complete_trial(index)
            both[-1].append(p)
        client.get_next_trials(1)
        optimizer = engine_of(client)._informed()
        (cost,) = optimizer._constraints._margins.informed
        assert optimizer.n_trials == 7 + has_baseline
        assert len(cost.trials) == 5 + has_baseline
    assert both[0] == both[1]


def test_a_metric_without_any_numbers_leaves_the_others_alone():
    client = make_client(outcome_constraints=["cost <= 3"])
    run(client, lambda p: {**bowl(p), "cost": math.nan}, 5)
    client.get_next_trials(1)
    (prediction,) = client.predict([{"x": 0.0, "y": 0.0}])
    assert set(prediction) == {"loss"}


@ROUTES
def test_no_data_yet(predictive):
    client = make_client(predictive=predictive, initialization="none")
    batch = client.get_next_trials(4)
    assert len({tuple(p.values()) for p in batch.values()}) == 4
    for index in batch:
        client.mark_trial_failed(index)
    assert len(client.get_next_trials(2)) == 2


@ROUTES
def test_revised_outcomes_are_learnt_anew(predictive):
    client = make_client(predictive=predictive)
    run(client, bowl, 6)
    client.attach_data(0, raw_data={"loss": 77.0})
    client.get_next_trials(1)
    told = engine_of(client)._told.values()
    assert max(one.seen.outcomes["loss"][0] for one in told) == 77.0
    assert engine_of(client)._informed().n_trials == 6


@ROUTES
def test_trials_from_outside_the_space_are_learnt(predictive):
    client = make_client(predictive=predictive)
    client.complete_trial(client.attach_trial({"x": 0.2, "y": 0.1}), raw_data={"loss": 0.1})
    run(client, bowl, 5)
    client._experiment.search_space.parameters["x"].update_range(lower=-0.5, upper=0.1)
    for seen in run(client, bowl, 5):
        assert -0.5 <= seen["x"] <= 0.1
    # The last trial is read with the next suggestion.
    assert engine_of(client).n_observations == 10


def test_values_that_a_logit_scale_has_no_place_for():
    rate = RangeParameter("x", ParameterType.FLOAT, 0.01, 0.99, logit_scale=True)
    space = TranslatedSpace(SearchSpace([rate]))
    assert space.encode({"x": 0.5}) == pytest.approx(0.5)
    assert space.encode({"x": 0.005}) < 0.0
    # Ax takes them as arms from outside of its space.
    assert all(np.isnan(space.encode({"x": x})).all() for x in (0.0, 1.0))


@ROUTES
@pytest.mark.filterwarnings("error:overflow")
def test_standard_errors_of_any_size(predictive):
    client = make_client(predictive=predictive)
    errors = iter([0.0, 1e-300, 1e300, math.inf] * 4)
    run(client, lambda p: {"loss": (bowl(p)["loss"], next(errors))}, 8)
    assert engine_of(client).n_observations >= 7


@ROUTES
def test_a_choice_that_fails_is_left_alone(predictive):
    kind = ChoiceParameterConfig("kind", ["a", "b", "c"], "str", is_ordered=False)
    client = make_client([kind, *SQUARE], predictive=predictive, surrogate="gaussian_process")
    n_failed = 0
    for _ in range(20):
        ((index, p),) = client.get_next_trials(1).items()
        if p["kind"] == "a":
            client.mark_trial_failed(index)
            n_failed += 1
        else:
            client.complete_trial(index, raw_data=bowl(p))
    assert n_failed < 5


def batch_experiment():
    """Return an experiment with a completed batch, from Ax's own tests, and the values of it."""
    experiment = get_branin_experiment(with_batch=True)
    (trial,) = experiment.trials.values()
    trial.mark_running(no_runner_required=True)
    rows = [
        DataRow(0, name, "branin", "branin", mean=float(i), se=0.1)
        for i, name in enumerate(trial.arms_by_name)
    ]
    experiment.attach_data(Data(data_rows=rows))
    trial.mark_completed()
    return experiment, trial, rows


def test_batch_trials():
    experiment, _, rows = batch_experiment()
    adapter = MondrianGenerators.MONDRIAN(
        experiment=experiment, seed=0, settings={"surrogate": "forest", "n_startup_trials": 1}
    )
    assert adapter.generator.n_observations == len(rows)
    assert len(adapter.gen(n=3).arms) == 3


@ROUTES
def test_abandoned_arms_of_batch_trials_are_not_learnt(predictive):
    experiment, trial, rows = batch_experiment()
    strategy = mondrian_generation_strategy(
        0, initialization="none", predictive=predictive, surrogate="forest"
    )
    strategy.gen(experiment, n=2)
    assert engine_of_strategy(strategy).n_observations == len(rows)
    trial.mark_arm_abandoned(rows[0].arm_name)
    strategy.gen(experiment, n=2)
    assert engine_of_strategy(strategy).n_observations == len(rows) - 1


def test_states_are_what_the_tests_above_mean():
    client = make_client()
    batch = client.get_next_trials(2)
    client.mark_trial_failed(0)
    client.mark_trial_abandoned(1)
    states = [client._experiment.trials[i].status for i in batch]
    assert states == [TrialStatus.FAILED, TrialStatus.ABANDONED]
