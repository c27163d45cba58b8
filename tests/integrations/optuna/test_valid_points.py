"""`is_valid` and `constraints_func`: what a user's functions refuse or measure."""

from __future__ import annotations

import pickle
import warnings

import optuna
import pytest
from optuna.samplers import PartialFixedSampler, RandomSampler
from optuna.trial import TrialState
from studies import bowl, make_study, optimize, parameters, states

from mondrian_bo import MondrianSampler


def below(params):
    """An eighth of the square [-1, 1]^2."""
    return params["x"] + params["y"] <= -1.0


def branched(trial):
    """Return a function with two branches, a parameter with one value, and a new one at times."""
    kind = trial.suggest_categorical("kind", ["net", None])
    trial.suggest_categorical("device", ["cpu"])
    if kind is None:
        return trial.suggest_float("c", 1e-3, 10.0, log=True)
    layers = trial.suggest_int("layers", 1, 8)
    value = layers * trial.suggest_int("width", 1, 32)
    if trial.number > 8:
        value += trial.suggest_float("late", 0.0, 1.0)
    return -float(value)


def small(params):
    """Whether a point of `branched` is valid."""
    if params["kind"] is None:
        return params["c"] < 1.0
    late = params.get("late", 0.0) <= 0.25
    return late and params["device"] == "cpu" and params["layers"] * params["width"] <= 20


def test_suggestions_are_valid():
    study = make_study(MondrianSampler(seed=0, n_startup_trials=3, is_valid=below))
    study.enqueue_trial({"x": -0.5, "y": -0.5})
    optimize(study, bowl, 25)
    assert all(below(params) for params in parameters(study))
    # The optimum (-0.25, -0.75) is on the boundary.
    assert study.best_value == pytest.approx(2 * 0.55**2, abs=1e-5)


def test_suggestions_are_valid_in_branches():
    asked = []

    def is_valid(params):
        asked.append(set(params))
        return small(params)

    study = make_study(MondrianSampler(seed=0, n_startup_trials=3, is_valid=is_valid))
    optimize(study, branched, 30)
    assert states(study) == {TrialState.COMPLETE: 30}
    assert all(small({"device": "cpu", **params}) for params in parameters(study))
    assert len({params["kind"] for params in parameters(study)}) == 2
    assert {"kind", "device", "layers", "width", "late"} in asked


def test_several_workers_and_objectives():
    sampler = MondrianSampler(seed=0, n_startup_trials=3, is_valid=below)
    study = make_study(sampler, directions=["minimize", "minimize"])
    study.enqueue_trial({"x": -0.5, "y": -0.5})
    optimize(study, lambda trial: (bowl(trial), trial.params["x"]), 1)
    running = [study.ask() for _ in range(3)]
    for _ in range(12):
        trial = running.pop(0)
        study.tell(trial, (bowl(trial), trial.params["x"]))
        running.append(study.ask())
    assert len(parameters(study)) == 16
    assert all(below(params) for params in parameters(study) if params)


def test_the_first_trial_is_drawn_again_until_valid():
    def is_valid(params):
        return params["x"] <= 0.0 and params["x"] + params["y"] <= -0.8

    for seed in range(5):
        study = make_study(MondrianSampler(seed=seed, is_valid=is_valid))
        optimize(study, bowl, 1)
        assert is_valid(study.trials[0].params)
        free = make_study(MondrianSampler(seed=seed))
        optimize(free, bowl, 1)
        if is_valid(free.trials[0].params):
            assert free.trials[0].params == study.trials[0].params


def test_a_dead_end_is_an_error():
    study = make_study(MondrianSampler(seed=0, is_valid=lambda p: p["x"] + p["y"] < -5.0))
    with pytest.raises(ValueError, match="`is_valid` refused all of 4096 values of 'y' beside"):
        optimize(study, bowl, 1)
    # The study goes on, with trials of another sampler; later ones have a model.
    study.sampler = RandomSampler(seed=0)
    optimize(study, bowl, 3)
    study.sampler = MondrianSampler(seed=0, is_valid=lambda p: p["x"] + p["y"] < -5.0)
    with pytest.raises(ValueError, match=r"`is_valid` refused all of \d{4,} points"):
        optimize(study, bowl, 1)
    study.sampler = MondrianSampler(seed=0, is_valid=below)
    optimize(study, bowl, 3)
    assert all(below(params) for params in parameters(study)[-3:])


def test_enqueued_values_are_completed():
    study = make_study(MondrianSampler(seed=0, n_startup_trials=2, is_valid=below))
    fixed = [{"x": -0.9, "y": -0.9}, {"y": -0.5}, {"x": -0.3}, {"x": -0.8}, {"y": -0.1}]
    for values in fixed:
        study.enqueue_trial(values)
    # Values of the user's own are not refused, neither before nor after another is drawn.
    study.enqueue_trial({"x": 1.0, "y": 1.0})
    optimize(study, bowl, 5)
    optimize(study, lambda trial: bowl(trial) + trial.suggest_float("z", 0.0, 1.0), 1)
    for values, params in zip(fixed, parameters(study), strict=False):
        assert values.items() <= params.items() and below(params)
    assert {"x": 1.0, "y": 1.0}.items() < parameters(study)[5].items()
    study.enqueue_trial({"x": 0.5})
    with pytest.raises(ValueError, match="refused all of"):
        optimize(study, bowl, 1)


def test_exceptions_and_wrong_answers_pass():
    answers = iter([True, "no", ZeroDivisionError("mine")])

    def is_valid(params):
        answer = next(answers, True)
        if isinstance(answer, Exception):
            raise answer
        return answer

    study = make_study(MondrianSampler(seed=0, n_startup_trials=2, is_valid=is_valid))
    with pytest.raises(TypeError, match="`is_valid` must return True or False, got 'no'"):
        optimize(study, bowl, 1)
    with pytest.raises(ZeroDivisionError, match="mine"):
        optimize(study, bowl, 1)
    optimize(study, bowl, 4)
    assert states(study)[TrialState.COMPLETE] == 4


@pytest.mark.parametrize("name", ["is_valid", "constraints_func"])
def test_arguments_are_functions(name):
    with pytest.raises(TypeError, match=f"`{name}` must be a function or None, got 'x > 0'"):
        MondrianSampler(**{name: "x > 0"})


def margins(trial):
    return [trial.params["x"] - 0.1, -0.5 - trial.params["y"]]


def deprecated(**settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return MondrianSampler(**settings)


def test_constraints_func_is_deprecated():
    with pytest.warns(FutureWarning, match="`constraints_func` has been deprecated in v5.0.0"):
        MondrianSampler(constraints_func=margins)


def test_constraints_func_gives_the_trials_of_set_constraint():
    def constrained(trial):
        value = bowl(trial)
        for name, margin in zip("01", margins(trial), strict=True):
            trial.set_constraint(name, margin)
        return value

    study = make_study(MondrianSampler(seed=0, n_startup_trials=3))
    expected = parameters(optimize(study, constrained, 12))
    sampler = deprecated(seed=0, n_startup_trials=3, constraints_func=margins)
    study = make_study(pickle.loads(pickle.dumps(sampler)))
    assert parameters(optimize(study, bowl, 12)) == expected
    assert study.trials[0].constraints == dict(zip("01", margins(study.trials[0]), strict=True))


def test_a_constraints_func_that_raises_loses_nothing():
    def fails_at_times(trial):
        if trial.number == 5:
            raise ZeroDivisionError("mine")
        return margins(trial)

    study = make_study(deprecated(seed=0, n_startup_trials=3, constraints_func=fails_at_times))
    with pytest.raises(ZeroDivisionError, match="mine"):
        optimize(study, bowl, 10)
    optimize(study, bowl, 4)
    # The trial has its value, and no constraints.
    assert states(study) == {TrialState.COMPLETE: 10}

    def constrained(trial):
        value = bowl(trial)
        for name, margin in zip("01", margins(trial), strict=True):
            if trial.number != 5:
                trial.set_constraint(name, margin)
        return value

    assert parameters(study) == parameters(optimize(make_study(), constrained, 10))


def test_samplers_with_functions_are_pickled():
    sampler = MondrianSampler(seed=0, n_startup_trials=3, is_valid=below)
    studies = [make_study(one) for one in (sampler, pickle.loads(pickle.dumps(sampler)))]
    for study in studies:
        study.enqueue_trial({"x": -0.5, "y": -0.6})
        optimize(study, bowl, 6)
    assert parameters(studies[0]) == parameters(studies[1])
    assert isinstance(studies[0].sampler, optuna.samplers.BaseSampler)


def test_a_misspelt_parameter_is_reported_once():
    study = make_study(MondrianSampler(seed=0, is_valid=lambda params: params["z"] < 0.0))
    optimize(study, bowl, 10)
    with pytest.warns(UserWarning) as caught:
        optimize(study, bowl, 3)
    (message,) = [str(one.message) for one in caught if one.category is UserWarning]
    assert "asks for the parameter 'z'" in message and "the trials have ['x', 'y']" in message


@pytest.mark.filterwarnings("error:`is_valid`")
def test_parameters_of_other_branches_and_constants_are_not_reported():
    def is_valid(params):
        return params["c"] < 1.0 if params["kind"] is None else params["width"] <= 20

    study = make_study(MondrianSampler(seed=0, is_valid=lambda params: params["c"] < 1.0))
    optimize(study, branched, 20)
    study = make_study(MondrianSampler(seed=0, is_valid=is_valid))
    optimize(study, branched, 20)


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
def test_values_of_a_partial_fixed_sampler_are_known():
    def objective(trial):
        x, y = trial.suggest_float("x", -1.0, 1.0), trial.suggest_float("y", -1.0, 1.0)
        # The range changes, and new ones are drawn one by one.
        return trial.suggest_float("z", 0.0, 1.0 + trial.number % 3) - x - y

    base = MondrianSampler(seed=0, n_startup_trials=3, is_valid=below)
    study = optimize(make_study(PartialFixedSampler({"x": -0.5}, base)), objective, 15)
    assert all(one["x"] == -0.5 and below(one) for one in parameters(study))
    # They may change. Those that are not valid themselves are evaluated all the same.
    study.sampler = PartialFixedSampler({"x": -0.9}, PartialFixedSampler({"x": 0.0}, base))
    optimize(study, objective, 5)
    assert all(one["x"] == -0.9 and below(one) for one in parameters(study)[15:])
    study.sampler = PartialFixedSampler({"x": 0.5, "y": 0.5}, base)
    optimize(study, objective, 5)
    assert all(one["x"] == one["y"] == 0.5 for one in parameters(study)[20:])


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
def test_enqueued_values_replace_those_of_a_partial_fixed_sampler():
    """Beside the value of the fixed sampler nothing is valid."""

    def objective(trial):
        return sum(trial.suggest_float(name, -1.0, 1.0) for name in "yx")

    base = MondrianSampler(seed=0, n_startup_trials=3, is_valid=below)
    study = make_study(PartialFixedSampler({"x": 0.9}, base))
    for _ in range(8):
        study.enqueue_trial({"x": -0.9})
    optimize(study, objective, 8)
    assert all(one["x"] == -0.9 and below(one) for one in parameters(study))


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
def test_values_of_nested_partial_fixed_samplers_are_known():
    """They are known before the objective asks for them."""

    def objective(trial):
        return sum(trial.suggest_float(name, -1.0, 1.0) for name in "zxy")

    base = MondrianSampler(
        seed=0, n_startup_trials=3, is_valid=lambda params: sum(params[name] for name in "xyz") <= 0
    )
    sampler = PartialFixedSampler({"x": 0.4}, PartialFixedSampler({"y": 0.5}, base))
    study = optimize(make_study(sampler), objective, 8)
    assert all(one["x"] == 0.4 and one["y"] == 0.5 for one in parameters(study))
    assert all(one["z"] <= -0.9 for one in parameters(study))


@pytest.mark.parametrize("seed", range(6))
def test_first_trials_start_from_valid_ones_where_few_points_are_valid(seed):
    width = 1e-4

    def objective(trial):
        x, y = trial.suggest_float("x", 0.0, 1.0), trial.suggest_float("y", 0.0, 1.0)
        return (x - 0.3) ** 2 + y

    sampler = MondrianSampler(seed=seed, is_valid=lambda one: abs(one["x"] - one["y"]) < width)
    study = make_study(sampler)
    study.enqueue_trial({"x": 0.7, "y": 0.7})
    optimize(study, objective, 8)
    assert all(abs(one["x"] - one["y"]) < width for one in parameters(study))
    assert len({(one["x"], one["y"]) for one in parameters(study)}) == 8
