"""Values that the user sets: the others are chosen beside them, and other workers know them."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
from optuna.exceptions import ExperimentalWarning
from optuna.samplers import PartialFixedSampler
from optuna.storages import RetryHeartbeatStaleTrialCallback
from optuna.trial import TrialState, create_trial
from studies import make_study, optimize, parameters

from mondrian_bo import MondrianSampler
from mondrian_bo.integrations.optuna.study.proposals import PUBLISHED_KEY, proposed_values


def grid(trial):
    return (trial.suggest_int("x", 0, 3) - 1) ** 2 + (trial.suggest_int("y", 0, 9) - 6) ** 2


def fix(study, way, value, n_trials):
    """Enqueue or add trials with one value, or let Optuna's sampler set it from now on."""
    if way == "enqueued":
        for _ in range(n_trials):
            study.enqueue_trial(value)
        return
    if way == "added":
        ranges = {name: study.trials[0].distributions[name] for name in value}
        for _ in range(n_trials):
            state = TrialState.WAITING
            study.add_trial(create_trial(state=state, params=value, distributions=ranges))
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExperimentalWarning)
        study.sampler = PartialFixedSampler(value, study.sampler)


WAYS = pytest.mark.parametrize("way", ["enqueued", "added", "by a sampler"])


@WAYS
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_no_trial_beside_a_fixed_value_is_repeated(way, seed):
    study = optimize(make_study(MondrianSampler(seed=seed)), grid, 6)
    before = {params["y"] for params in parameters(study) if params["x"] == 3}
    fix(study, way, {"x": 3}, 10 - len(before))
    optimize(study, grid, 10 - len(before))
    points = [tuple(params.values()) for params in parameters(study)[6:]]
    assert {x for x, _ in points} == {3}
    assert sorted({y for _, y in points} | before) == list(range(10))


@WAYS
def test_the_model_knows_at_which_value_a_trial_was(way):
    """The best y depends on x, whose fixed value no trial has had."""

    def diagonal(trial):
        x, y = (trial.suggest_float(name, 0.0, 1.0) for name in "xy")
        return 4.0 * (y - x) ** 2 + (x - 0.2) ** 2

    for seed in range(3):
        study = optimize(make_study(MondrianSampler(seed=seed)), diagonal, 30)
        fix(study, way, {"x": 0.8}, 6)
        optimize(study, diagonal, 6)
        assert {params["x"] for params in parameters(study)[30:]} == {0.8}
        distances = [abs(params["y"] - 0.8) for params in parameters(study)[30:]]
        assert np.count_nonzero(np.array(distances) < 0.1) >= 2


@WAYS
def test_parameters_of_a_fixed_branch_are_searched(way):
    def branches(trial):
        if trial.suggest_categorical("model", ["tree", "net"]) == "tree":
            return 0.1 * trial.suggest_float("depth", 0.0, 1.0)
        return 1.0 + (trial.suggest_float("width", 0.0, 1.0) - 0.3) ** 2

    study = optimize(make_study(MondrianSampler(seed=0)), branches, 30)
    before = min(t.value for t in study.trials if t.params["model"] == "net")
    fix(study, way, {"model": "net"}, 6)
    optimize(study, branches, 6)
    for trial in study.trials[30:]:
        # Choices are published as their indices.
        assert proposed_values(trial).keys() == {"model", "width"}
        assert proposed_values(trial)["width"] == trial.params["width"]
    assert min(trial.value for trial in study.trials[30:]) <= min(before, 1.0001)


@pytest.mark.parametrize("n_trials", [0, 6])
def test_workers_know_what_a_running_trial_was_enqueued_with(n_trials):
    """Also before it asks for the value: without and with a model."""

    def line(trial):
        return (trial.suggest_int("x", 0, 9) - 6) ** 2

    for seed in range(5):
        study = make_study(MondrianSampler(seed=seed))
        for x in (0, 9, 3, 2, 8, 1)[:n_trials]:
            study.enqueue_trial({"x": x})
        optimize(study, line, n_trials)
        for x in (6, 5, 7):
            study.enqueue_trial({"x": x})
        waiting = [study.ask() for _ in range(3)]
        others = [study.ask().suggest_int("x", 0, 9) for _ in range(10 - 3 - n_trials)]
        assert len({*others, 5, 6, 7}) == len(others) + 3
        assert [trial.suggest_int("x", 0, 9) for trial in waiting] == [6, 5, 7]


@pytest.mark.parametrize("way", ["enqueued", "by a sampler"])
def test_a_fixed_value_outside_of_the_range_leaves_the_others_to_the_search(way):
    study = optimize(make_study(MondrianSampler(seed=0)), grid, 8)
    fix(study, way, {"x": 20}, 4)
    with pytest.warns(UserWarning, match="out of range"):
        optimize(study, grid, 4)
    assert [params["x"] for params in parameters(study)[8:]] == [20] * 4


@WAYS
@pytest.mark.parametrize("n_before", [1, 12])
def test_a_value_that_is_not_valid_itself_leaves_the_others_free(way, n_before):
    def slow_start(trial):
        values = [trial.suggest_float(name, 0.0, 1.0) for name in "xy"]
        if trial.number >= n_before:
            values.append(trial.suggest_float("new", 0.0, 1.0))
        return sum(values)

    def is_valid(params):
        return params["x"] <= 0.5

    study = optimize(make_study(MondrianSampler(seed=0, is_valid=is_valid)), slow_start, n_before)
    assert all(map(is_valid, parameters(study)))
    fix(study, way, {"x": 0.9}, 2)
    optimize(study, slow_start, 2)
    assert [params["x"] for params in parameters(study)[n_before:]] == [0.9] * 2


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
def test_a_trial_that_runs_again_keeps_its_values_and_is_valid():
    """Its worker died after the first parameter."""

    def is_valid(params):
        return params["x"] + params["y"] <= 1.0

    def to_the_corner(trial):
        return -(trial.suggest_float("x", 0.0, 1.0) + trial.suggest_float("y", 0.0, 1.0))

    study = optimize(make_study(MondrianSampler(seed=0, is_valid=is_valid)), to_the_corner, 12)
    again = RetryHeartbeatStaleTrialCallback()
    for _ in range(20):
        trial = study.ask()
        x = trial.suggest_float("x", 0.0, 1.0)
        study.tell(trial, state=TrialState.FAIL)
        again(study, study.trials[-1])
        optimize(study, to_the_corner, 1)
        params = study.trials[-1].params
        assert params["x"] == x
        assert is_valid(params)


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
def test_the_proposal_for_a_trial_that_runs_again_can_be_read():
    """It is shorter than the former one, of which two attributes have the text."""
    names = [f"parameter{i}" for i in range(70)]

    def bowl(trial):
        return sum(trial.suggest_float(name, 0.0, 1.0) ** 2 for name in names)

    study = optimize(make_study(MondrianSampler(seed=0)), bowl, 6)
    trial = study.ask()
    trial.suggest_float(names[0], 0.0, 1.0)
    number = trial.number
    text = json.dumps(dict.fromkeys(names, 1.0 / 3.0)).ljust(5000)
    for i in range(3):
        key = f"{PUBLISHED_KEY}:{i}"
        study._storage.set_trial_system_attr(trial._trial_id, key, text[2000 * i : 2000 * i + 2000])
    study.tell(trial, state=TrialState.FAIL)
    RetryHeartbeatStaleTrialCallback()(study, study.trials[number])
    trial = study.ask()
    assert trial.number == number + 1
    values = [trial.suggest_float(name, 0.0, 1.0) for name in names]
    assert list(proposed_values(study.trials[-1]).values()) == values
