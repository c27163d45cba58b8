"""Constraints and several objectives in Optuna studies."""

from __future__ import annotations

import math

import numpy as np
import optuna
import pytest
from optuna.distributions import FloatDistribution
from optuna.trial import TrialState, create_trial
from studies import make_study

from mondrian_bo import MondrianSampler


def sampler(**settings):
    return MondrianSampler(**{"seed": 0, "n_startup_trials": 4, "n_candidates": 90, **settings})


def point(trial):
    return trial.suggest_float("x", 0.0, 1.0), trial.suggest_float("y", 0.0, 1.0)


def two_bowls(trial):
    x, y = point(trial)
    return (x - 0.2) ** 2 + (y - 0.2) ** 2, 1e6 * ((x - 0.8) ** 2 + (y - 0.8) ** 2)


def is_feasible(trial):
    return all(value <= 0.0 for value in trial.constraints.values())


def test_the_best_feasible_trial_is_at_the_boundary():
    def objective(trial):
        x, y = point(trial)
        trial.set_constraint("right", 1000.0 * (0.5 - x))
        if trial.number % 3:
            trial.set_constraint("low", y - 0.9)
        return x + (y - 0.5) ** 2

    study = make_study(sampler())
    study.optimize(objective, n_trials=35)
    assert 0.5 <= study.best_params["x"] < 0.53
    assert study.best_value < 0.54


def test_constraints_may_appear_in_mid_study():
    def objective(trial):
        x, y = point(trial)
        if trial.number >= 15:
            trial.set_constraint("late", 0.6 - x)
        return x + y

    shares = []
    for seed in range(4):
        study = make_study(sampler(seed=seed))
        study.optimize(objective, n_trials=45)
        shares.append(np.mean([trial.params["x"] >= 0.55 for trial in study.trials[30:]]))
    assert np.mean(shares) > 0.5


def test_trials_of_other_samplers_count():
    """The front is continued where random search left it."""
    study = make_study(optuna.samplers.RandomSampler(seed=0), directions=["minimize", "minimize"])
    study.optimize(two_bowls, n_trials=20)
    study.sampler = sampler()
    study.optimize(two_bowls, n_trials=20)
    ours = {trial.number for trial in study.best_trials if trial.number >= 20}
    assert len(ours) > 0.7 * len(study.best_trials)
    gaps = [abs(trial.params["x"] - trial.params["y"]) for trial in study.trials[20:]]
    assert np.median(gaps) < 0.05


def test_failed_pruned_and_nan_trials():
    def objective(trial):
        x, y = point(trial)
        if trial.number % 4 == 1:
            raise optuna.TrialPruned
        if trial.number % 4 == 2:
            raise ArithmeticError
        return x, (math.nan if trial.number % 4 == 3 else 1.0 - x + y)

    study = make_study(sampler(), directions=["minimize", "minimize"])
    study.optimize(objective, n_trials=32, catch=ArithmeticError)
    states = [trial.state for trial in study.trials]
    assert states.count(TrialState.COMPLETE) == 8
    points = {(trial.params["x"], trial.params["y"]) for trial in study.trials}
    assert len(points) == 32


def test_running_trials_are_imputed_in_all_outcomes():
    study = make_study(sampler(n_startup_trials=3), directions=["minimize", "maximize"])
    for number in range(12):
        trial = study.ask()
        x, y = point(trial)
        trial.set_constraint("c", x - 0.9)
        study.tell(trial, [x + number * 0.0, x - y])
    batch = [point(study.ask()) for _ in range(6)]
    assert len(set(batch)) == 6
    distances = [math.dist(a, b) for i, a in enumerate(batch) for b in batch[:i]]
    assert min(distances) > 1e-4


def test_conditional_spaces():
    def objective(trial):
        if trial.suggest_categorical("kind", ["a", "b"]) == "a":
            x = trial.suggest_float("x", 0.0, 1.0)
            return x, (1.0 - x) ** 2
        y = trial.suggest_float("y", 0.0, 1.0)
        return 0.5 + y, 1.5 - y

    study = make_study(sampler(), directions=["minimize", "minimize"])
    study.optimize(objective, n_trials=40)
    kinds = [trial.params["kind"] for trial in study.trials[20:]]
    # All of the front is in branch "a".
    assert kinds.count("a") > 14


def test_the_same_seed_gives_the_same_trials():
    def run():
        study = make_study(sampler(seed=3), directions=["minimize", "minimize"])
        study.optimize(two_bowls, n_trials=15)
        return [trial.params for trial in study.trials]

    assert run() == run()


def test_plots_of_optuna():
    def objective(trial):
        x, y = point(trial)
        trial.set_constraint("c", x + y - 1.5)
        return two_bowls(trial)

    pytest.importorskip("matplotlib")
    study = make_study(sampler(), directions=["minimize", "minimize"])
    study.optimize(objective, n_trials=15)
    plots = optuna.visualization.matplotlib
    assert plots.plot_pareto_front(study).collections
    assert plots.plot_hypervolume_history(study, [2.0, 2e6]).has_data()


def test_added_trials_with_constraints():
    study = make_study(sampler())
    unit = {"x": FloatDistribution(0.0, 1.0)}
    for x in np.linspace(0.0, 1.0, 12):
        study.add_trial(
            create_trial(
                value=float(x), params={"x": x}, distributions=unit, constraints={"c": 0.4 - x}
            )
        )
    suggested = [study.ask(unit).params["x"] for _ in range(5)]
    assert np.mean([0.35 < x < 0.6 for x in suggested]) >= 0.6
