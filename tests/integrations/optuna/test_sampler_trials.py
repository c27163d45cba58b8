"""Trials that are not plain: running, pruned, failed, infinite, enqueued, fixed, refused."""

from __future__ import annotations

import json
import math

import numpy as np
import optuna
import pytest
from optuna.pruners import (
    HyperbandPruner,
    MedianPruner,
    PatientPruner,
    SuccessiveHalvingPruner,
    WilcoxonPruner,
)
from optuna.samplers import PartialFixedSampler, RandomSampler
from optuna.trial import TrialState
from studies import bowl, conditional, make_study, mixed, optimize, parameters, states

from mondrian_bo import MondrianPruner, MondrianSampler
from mondrian_bo.integrations.optuna.study.proposals import PUBLISHED_KEY, raw_running_values
from mondrian_bo.optimizer.row_optimizer import RowOptimizer


def sampler(seed=0, **settings):
    return MondrianSampler(seed=seed, **({"n_startup_trials": 3} | settings))


@pytest.fixture
def pending(monkeypatch):
    """The encoded running trials of every suggestion."""
    seen = []
    suggest = RowOptimizer.suggest

    def spy(self, rows, index, within=None):
        seen.append(rows.copy())
        return suggest(self, rows, index, within)

    monkeypatch.setattr(RowOptimizer, "suggest", spy)
    return seen


# First --------------------------------------------------------------------------------------------


def test_the_first_trial_is_the_middle_of_the_numeric_ranges():
    def objective(trial):
        trial.suggest_categorical("kind", ["a", "b", "c"])
        trial.suggest_float("rate", 1e-4, 1.0, log=True)
        trial.suggest_float("step", 0.0, 1.0, step=0.25)
        trial.suggest_int("n", 1, 9)
        return trial.suggest_float("x", -1.0, 3.0)

    kinds = set()
    for seed in range(8):
        study = optimize(make_study(sampler(seed)), objective, 2)
        first, second = (trial.params for trial in study.trials)
        kinds.add(first.pop("kind"))
        assert first == {"rate": pytest.approx(0.01), "step": 0.5, "n": 5, "x": 1.0}
        assert second["x"] != 1.0
    assert len(kinds) > 1


# Running ------------------------------------------------------------------------------------------


def test_running_trials_are_distinct_published_and_known_to_each_other(pending):
    study = optimize(make_study(sampler()), bowl, 8)
    pending.clear()
    trials = [study.ask() for _ in range(5)]
    points = [[trial.suggest_float(name, -1.0, 1.0) for name in "xy"] for trial in trials]
    assert len({tuple(point) for point in points}) == 5
    for frozen, point in zip(study.get_trials(deepcopy=False)[8:], points, strict=True):
        published = json.loads(frozen.system_attrs[f"{PUBLISHED_KEY}:0"])
        assert published == {"x": point[0], "y": point[1]}
    # Each suggestion knew of those before it, in units of the cube.
    assert [len(rows) for rows in pending] == [0, 1, 2, 3, 4]
    assert np.allclose(pending[-1], (np.array(points[:4]) + 1.0) / 2.0)


def test_a_running_trial_is_known_before_it_has_asked_for_everything(pending):
    study = optimize(make_study(sampler()), bowl, 8)
    first, second = study.ask(), study.ask()
    x = first.suggest_float("x", -1.0, 1.0)
    second.suggest_float("x", -1.0, 1.0)
    assert pending[-1].shape == (1, 2)
    y = first.suggest_float("y", -1.0, 1.0)
    assert np.allclose(pending[-1], [[(x + 1.0) / 2.0, (y + 1.0) / 2.0]])


def test_running_trials_change_suggestions():
    def suggestion(n_running):
        study = optimize(make_study(sampler(surrogate="forest", acquisition="ei")), bowl, 15)
        best = study.best_params
        study.sampler = RandomSampler(seed=1)
        for _ in range(n_running):
            study.enqueue_trial(best)
            trial = study.ask()
            bowl(trial)
        study.sampler = sampler(surrogate="forest", acquisition="ei")
        # The number of a trial names its random draws.
        while len(study.trials) < 20:
            study.tell(study.ask(), state=TrialState.FAIL)
        trial = study.ask()
        bowl(trial)
        return trial.params

    assert suggestion(0) == suggestion(0)
    assert suggestion(2) != suggestion(0)


def test_running_trials_of_other_samplers(pending):
    study = optimize(make_study(sampler()), bowl, 8)
    ours = study.sampler
    study.sampler = RandomSampler(seed=0)
    complete, partial, _empty = study.ask(), study.ask(), study.ask()
    bowl(complete)
    partial.suggest_float("x", -1.0, 1.0)
    study.sampler = ours
    bowl(study.ask())
    # Only the first says where it is.
    expected = [[(complete.params[name] + 1.0) / 2.0 for name in "xy"]]
    assert np.allclose(pending[-1], expected)
    # What they ask for without any warning is no reason to fail either.
    partial.suggest_categorical("new", ["a", "b"])
    study.tell(partial, 0.5)
    optimize(study, bowl, 3)
    assert states(study)[TrialState.COMPLETE] == 12


def test_a_trial_is_not_pending_for_itself(pending):
    """Neither when it knows a part of its parameters and the model allows for gaps."""

    def objective(trial):
        x = trial.suggest_float("x", -1.0, 1.0)
        return x + (trial.suggest_float("y", -1.0, 1.0) if x > 0.0 else 0.0)

    study = optimize(make_study(sampler()), objective, 10)
    pending.clear()
    study.enqueue_trial({"x": 0.5})
    optimize(study, objective, 1)
    assert [len(rows) for rows in pending] == [0]


def test_two_hundred_parameters_are_published_in_a_relational_storage(tmp_path):
    def objective(trial):
        return sum(trial.suggest_float(f"parameter {i}", 0.0, 1.0) for i in range(200))

    study = make_study(sampler(n_startup_trials=1), storage=f"sqlite:///{tmp_path}/study.db")
    source = optimize(make_study(RandomSampler(seed=0)), objective, 3)
    study.add_trials(source.trials)
    trial = study.ask()
    trial.suggest_float("parameter 7", 0.0, 1.0)
    frozen = study.get_trials(deepcopy=False)[-1]
    published = raw_running_values(frozen)
    assert len(published) == 200
    assert published["parameter 7"] == trial.params["parameter 7"]
    assert f"{PUBLISHED_KEY}:1" in frozen.system_attrs
    assert all(len(str(text)) <= 2045 for text in frozen.system_attrs.values())


# Pruned -------------------------------------------------------------------------------------------


def staged(trial):
    """Report a curve that falls towards the value of `bowl`, and obey the pruner."""
    value = bowl(trial)
    for step in range(1, 10):
        trial.report(value + 1.0 / step, step)
        if trial.should_prune():
            raise optuna.TrialPruned
    return value


@pytest.mark.parametrize(
    ("pruner", "direction"),
    [
        (MedianPruner(n_startup_trials=3), "minimize"),
        (HyperbandPruner(min_resource=1, max_resource=9, reduction_factor=3), "minimize"),
        (HyperbandPruner(min_resource=1, max_resource=9, reduction_factor=3), "maximize"),
        (SuccessiveHalvingPruner(), "maximize"),
        (WilcoxonPruner(), "minimize"),
        (PatientPruner(MedianPruner(n_startup_trials=3), patience=1, min_delta=0.0), "maximize"),
        (MondrianPruner(), "minimize"),
        (MondrianPruner(), "maximize"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_pruners(pruner, direction):
    # The name decides the brackets of Hyperband.
    study = make_study(sampler(), pruner=pruner, direction=direction, study_name="fixed")
    sign = 1.0 if direction == "minimize" else -1.0

    def objective(trial):
        value = bowl(trial)
        for step in range(1, 10):
            # It falls until step 5 and then rises, which a patient pruner waits for.
            trial.report(sign * (value + abs(step - 5) / 9.0), step)
            if trial.should_prune():
                raise optuna.TrialPruned
        return sign * value

    optimize(study, objective, 30)
    counts = states(study)
    assert counts[TrialState.PRUNED] > 0
    assert counts[TrialState.PRUNED] + counts[TrialState.COMPLETE] == 30
    assert abs(study.best_value) < 0.15


def test_hyperband_brackets_are_models_of_their_own(monkeypatch):
    told = {}
    tell_rows = RowOptimizer.tell_rows

    def spy(self, rows, *outcomes, **more):
        told[id(self)] = told.get(id(self), 0) + len(rows)
        return tell_rows(self, rows, *outcomes, **more)

    monkeypatch.setattr(RowOptimizer, "tell_rows", spy)
    pruner = HyperbandPruner(min_resource=1, max_resource=9, reduction_factor=3)
    study = optimize(make_study(sampler(), pruner=pruner, study_name="fixed"), staged, 30)
    assert len(told) == pruner._n_brackets > 1
    # Every trial but the last of each bracket.
    assert sum(told.values()) == 30 - len(told)
    assert len(study.trials) == 30


def test_pruned_trials_inform_the_model():
    """Pruned in the bad half throughout, it must go and stay elsewhere."""

    def objective(trial):
        x = trial.suggest_float("x", -1.0, 1.0)
        if x < 0.0:
            trial.report(10.0, 0)
            raise optuna.TrialPruned
        return (x - 0.5) ** 2

    study = optimize(make_study(sampler()), objective, 30)
    assert np.mean([params["x"] < 0.0 for params in parameters(study)[15:]]) < 0.3


@pytest.mark.parametrize("value", [None, math.nan])
def test_all_trials_pruned(value):
    def objective(trial):
        bowl(trial)
        if value is not None:
            trial.report(value, 0)
        raise optuna.TrialPruned

    study = optimize(make_study(sampler()), objective, 10)
    assert states(study) == {TrialState.PRUNED: 10}
    assert len({tuple(params.values()) for params in parameters(study)}) == 10


def test_trials_pruned_for_what_they_are_do_not_recur():
    """As objectives do that refuse some combinations, before they report anything."""

    def objective(trial):
        n = trial.suggest_int("n", 0, 30)
        if n == 7:
            raise optuna.TrialPruned
        return (n - 7) ** 2

    study = optimize(make_study(sampler()), objective, 25)
    assert len({params["n"] for params in parameters(study)[1:]}) == 24


# Failed -------------------------------------------------------------------------------------------


def test_errors_of_the_objective():
    def objective(trial):
        value = mixed(trial)
        if trial.number % 3 == 0:
            raise ZeroDivisionError
        if trial.number % 3 == 1:
            return math.nan
        return value

    study = optimize(make_study(sampler()), objective, 30, catch=ZeroDivisionError)
    assert states(study) == {TrialState.COMPLETE: 10, TrialState.FAIL: 20}
    # Uncaught, they reach the user, and the study goes on afterwards.
    with pytest.raises(ZeroDivisionError):
        optimize(study, objective, 1)
    optimize(study, mixed, 4)
    assert states(study) == {TrialState.COMPLETE: 14, TrialState.FAIL: 21}


@pytest.mark.parametrize("value", [math.nan, None, "text"])
def test_all_trials_failed(value):
    def objective(trial):
        mixed(trial)
        return value

    study = optimize(make_study(sampler()), objective, 8)
    assert states(study) == {TrialState.FAIL: 8}
    optimize(study, mixed, 6)
    assert states(study) == {TrialState.FAIL: 8, TrialState.COMPLETE: 6}


def test_failed_points_are_avoided():
    def objective(trial):
        n, kind = trial.suggest_int("n", 0, 5), trial.suggest_categorical("kind", "ab")
        return math.nan if trial.number and kind == "a" else float(n)

    study = optimize(make_study(sampler()), objective, 12)
    assert states(study)[TrialState.FAIL] >= 5
    # After the first, which tells what the parameters are, none of the twelve points repeats.
    assert len({tuple(params.values()) for params in parameters(study)}) == 12


def test_regions_that_fail_are_left_alone():
    """One choice, and half of what is next to the best of the others."""

    def objective(trial):
        kind = trial.suggest_categorical("kind", ["a", "b", "c"])
        x, y = (trial.suggest_float(name, 0.0, 1.0) for name in "xy")
        return math.nan if kind == "a" or x > 0.5 else (x - 0.6) ** 2 + y

    for seed in range(2):
        study = optimize(make_study(sampler(seed)), objective, 60)
        assert states(study)[TrialState.FAIL] < 40


def test_trials_that_fail_at_random_are_retried():
    """An attempt that failed says nothing about a point that has a value."""

    def flaky(trial):
        params = {name: trial.suggest_float(name, -1.0, 1.0) for name in "wxyz"}
        if rng.random() < 0.5:
            trial.study.enqueue_trial(params)
            raise ZeroDivisionError
        return sum((x - 0.3) ** 2 for x in params.values())

    def complete(study):
        return states(study).get(TrialState.COMPLETE, 0)

    for seed in range(2):
        rng, study = np.random.default_rng(seed), make_study(sampler(seed))
        while complete(study) < 30:
            optimize(study, flaky, 1, catch=ZeroDivisionError)
        assert study.best_value < 1e-8
    rng, study = np.random.default_rng(0), make_study(RandomSampler(seed=0))
    while complete(study) < 40:
        optimize(study, flaky, 1, catch=ZeroDivisionError)
    points = np.random.default_rng(1).uniform(-0.9, 0.9, (50, 4))
    guessed = sampler().predict(study, [dict(zip("wxyz", x, strict=True)) for x in points])
    assert np.abs(guessed.mean - ((points - 0.3) ** 2).sum(axis=1)).mean() < 0.05


def test_one_failure_is_an_accident():
    """What depends on `x` cannot be stated as a condition, and trials lack it."""

    failed = []

    def objective(trial):
        kind = trial.suggest_categorical("kind", ["a", "b"])
        if kind == "a" and trial.number >= 14 and not failed:
            failed.append(trial.number)
            raise ZeroDivisionError
        x = trial.suggest_float("x", 0.0, 1.0)
        y = trial.suggest_float("y", 0.0, 1.0) if x > 0.5 else 0.4
        return (kind == "b") + (x - 0.8) ** 2 + (y - 0.3) ** 2

    study = optimize(make_study(sampler()), objective, 40, catch=ZeroDivisionError)
    assert failed[0] < 20
    assert np.mean([params["kind"] == "a" for params in parameters(study)[20:]]) > 0.5


def test_trials_that_fail_early_do_not_confuse_the_conditions():
    def objective(trial):
        x = trial.suggest_float("x", -1.0, 1.0)
        if trial.number % 4 == 3:
            raise ZeroDivisionError
        return x**2 + trial.suggest_float("y", -1.0, 1.0) ** 2

    study = optimize(make_study(sampler()), objective, 30, catch=ZeroDivisionError)
    assert study.best_value < 0.1
    reader = next(iter(next(iter(study.sampler._memory.values())).values())).reader
    assert not reader.conditions.unexplained


# Infinite -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
@pytest.mark.parametrize("value", [math.inf, -math.inf, 1e300, -1e300])
def test_extreme_values(direction, value):
    sign = 1.0 if direction == "minimize" else -1.0
    study = make_study(sampler(), direction=direction)
    optimize(study, lambda t: value if bowl(t) > 0.5 else sign * bowl(t), 30)
    assert states(study) == {TrialState.COMPLETE: 30}
    if sign * value > 0.0:
        assert sign * study.best_value < 0.2
    else:
        assert study.best_value == value


# Enqueued, fixed ----------------------------------------------------------------------------------


def test_enqueued_trials():
    study = make_study(sampler())
    study.enqueue_trial({"x": 0.5, "y": 0.25})
    optimize(study, bowl, 6)
    study.enqueue_trial({"x": 0.75})
    study.enqueue_trial({"x": -0.5, "y": 0.125, "z": 7.0})
    optimize(study, bowl, 6)
    found = parameters(study)
    assert found[0] == {"x": 0.5, "y": 0.25}
    assert found[6]["x"] == 0.75
    assert found[7] == {"x": -0.5, "y": 0.125}
    assert len({tuple(params.values()) for params in found}) == 12


def test_enqueued_branch_of_a_conditional_space():
    study = optimize(make_study(sampler()), conditional, 15)
    for _ in range(3):
        study.enqueue_trial({"model": "net", "layers": 3, "second": "relu"})
    study.enqueue_trial({"model": "tree"})
    optimize(study, conditional, 8)
    assert [params.get("second") for params in parameters(study)[15:18]] == ["relu"] * 3
    assert parameters(study)[18]["model"] == "tree"
    assert states(study) == {TrialState.COMPLETE: 23}


def test_waiting_trials_do_not_hold_up_others():
    study = make_study(sampler())
    for _ in range(5):
        study.enqueue_trial({"x": 0.5, "y": 0.5})
    study.add_trials(optimize(make_study(RandomSampler(seed=0)), bowl, 10).trials)
    optimize(study, bowl, 8)
    assert states(study) == {TrialState.COMPLETE: 18}
    assert len({tuple(params.values()) for params in parameters(study)}) == 14


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
def test_partial_fixed_sampler(pending):
    study = optimize(make_study(sampler()), mixed, 6)
    study.sampler = PartialFixedSampler({"kind": "b", "n": 13}, study.sampler)
    optimize(study, mixed, 14)
    later = parameters(study)[6:]
    assert all(params["kind"] == "b" and params["n"] == 13 for params in later)
    # Ends of ranges may be met more than once.
    assert len({(params["x"], params["rate"]) for params in later}) == 14
    # The model knows the values of the fixed parameters in former trials.
    assert pending[-1].shape == (0, 4)
    assert study.best_value < 0.5
