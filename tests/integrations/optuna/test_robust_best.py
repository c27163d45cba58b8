"""The recommended trial: noise, constraints, other samplers, and studies without a model."""

from __future__ import annotations

import math

import numpy as np
import optuna
import pytest

from mondrian_bo import MondrianSampler, robust_best

optuna.logging.set_verbosity(optuna.logging.WARNING)


def _noisy_bowl(trial: optuna.Trial) -> float:
    x = trial.suggest_float("x", -1.0, 1.0)
    noise = np.random.default_rng(trial.number).normal()
    return float(x**2 + 0.4 * noise)


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_beats_the_luckiest_trial(direction: str) -> None:
    sign = 1.0 if direction == "minimize" else -1.0
    sampler = optuna.samplers.RandomSampler(seed=1)
    study = optuna.create_study(direction=direction, sampler=sampler)
    study.optimize(lambda trial: sign * _noisy_bowl(trial), n_trials=80)
    found = robust_best(study)
    assert found in study.trials
    assert abs(found.params["x"]) < 0.2
    assert abs(found.params["x"]) < abs(study.best_trial.params["x"])
    assert robust_best(study, MondrianSampler(seed=3)).params["x"] == pytest.approx(0, abs=0.2)


def test_without_noise_it_is_the_best_trial() -> None:
    study = optuna.create_study(sampler=MondrianSampler(seed=0))
    study.optimize(lambda trial: trial.suggest_float("x", -1, 1) ** 2, n_trials=20)
    assert robust_best(study).value == pytest.approx(study.best_value, abs=1e-4)


def test_constraints() -> None:
    def objective(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", 0.0, 1.0)
        trial.set_constraint("c", 0.5 - x)
        return x

    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(objective, n_trials=20)
    feasible = [trial.params["x"] for trial in study.trials if trial.params["x"] >= 0.5]
    assert robust_best(study).params["x"] == min(feasible)


def test_conditions_failures_and_infinite_values() -> None:
    def objective(trial: optuna.Trial) -> float:
        if trial.number == 3:
            return math.nan
        if trial.number == 4:
            return -math.inf
        if trial.suggest_categorical("kind", ["a", "b"]) == "a":
            return 1.0
        return trial.suggest_float("y", 0.0, 1.0)

    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(objective, n_trials=30)
    found = robust_best(study)
    assert found.params["kind"] == "b"
    assert found.params["y"] < 0.2


def test_equal_points_and_no_parameters() -> None:
    """Of equal predictions the best value counts, and of equal values the first."""
    study = optuna.create_study()
    values = iter([3.0, 1.0, 1.0, 2.0])
    study.optimize(lambda trial: next(values), n_trials=4)
    assert robust_best(study).number == 1
    values = iter([3.0, 1.0, 1.0, 2.0])

    def constant(trial: optuna.Trial) -> float:
        trial.suggest_categorical("kind", ["only"])
        return next(values)

    study = optuna.create_study()
    study.optimize(constant, n_trials=4)
    assert robust_best(study).number == 1


def test_where_no_trial_is_feasible_all_of_them_count() -> None:
    def objective(trial: optuna.Trial) -> float:
        trial.set_constraint("c", 1.0)
        return trial.suggest_float("x", 0.0, 1.0)

    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(objective, n_trials=12)
    assert robust_best(study).value == min(trial.value for trial in study.trials)


def test_of_trials_at_one_point_the_best_value_counts() -> None:
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    places = [0.0, 0.2, 0.5, 0.5, 0.5, 0.8, 1.0]
    for x in places:
        study.enqueue_trial({"x": x})
    noise = iter([0.0, 0.0, 0.02, -0.02, 0.0, 0.0, 0.0])
    study.optimize(
        lambda trial: 4.0 * (trial.suggest_float("x", 0.0, 1.0) - 0.5) ** 2 + next(noise),
        n_trials=len(places),
    )
    assert robust_best(study).number == 3


def test_refused_studies() -> None:
    with pytest.raises(ValueError, match="single objective"):
        robust_best(optuna.create_study(directions=["minimize", "minimize"]))
    with pytest.raises(ValueError, match="no complete trial"):
        robust_best(optuna.create_study())
    with pytest.raises(TypeError, match="`sampler` must be a MondrianSampler or None"):
        robust_best(optuna.create_study(), optuna.samplers.TPESampler())
