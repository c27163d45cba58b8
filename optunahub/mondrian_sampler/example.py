"""Minimise a conditional function with the sampler, loaded from OptunaHub."""

from __future__ import annotations

import optuna
import optunahub


def objective(trial: optuna.Trial) -> float:
    """Return a value in a space where the second parameter depends on the first."""
    if trial.suggest_categorical("shape", ["bowl", "slope"]) == "bowl":
        return (trial.suggest_float("x", -5, 5) - 2) ** 2
    return 3 - trial.suggest_float("y", 0, 1)


if __name__ == "__main__":
    module = optunahub.load_module("samplers/mondrian_sampler")
    study = optuna.create_study(sampler=module.MondrianSampler(seed=0))
    study.optimize(objective, n_trials=40)
    print(study.best_params, study.best_value)
