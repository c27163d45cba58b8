"""A script as users write it: `test_user_script.py` lets mypy check it, without casts."""

from __future__ import annotations

import numpy as np
import optuna

from mondrian_bo import Categorical, Float, Int, MondrianOptimizer, MondrianSampler, SearchSpace
from mondrian_bo.acquisitions import LogExpectedImprovement
from mondrian_bo.optimizer import Arm, Portfolio


def objective(trial: optuna.Trial) -> float:
    x = trial.suggest_float("x", -5.0, 5.0)
    kind = trial.suggest_categorical("kind", ["a", "b"])
    return x * x + (1.0 if kind == "a" else 0.0)


study = optuna.create_study(sampler=MondrianSampler(seed=0, n_startup_trials=5, surrogate="forest"))
study.optimize(objective, n_trials=8)

space = SearchSpace(
    {"x": Float(-1.0, 2.0), "n": Int(1, 9), "kind": Categorical(("relu", "tanh"))},
)
portfolio = Portfolio((Arm((LogExpectedImprovement(0.1),)),))
optimizer = MondrianOptimizer(space, direction="minimize", acquisition=portfolio, seed=0)
for _ in range(12):
    params = optimizer.ask()
    value = (params["x"] - 0.5) ** 2 + 0.1 * params["n"]
    optimizer.tell(params, value + (params["kind"] == "tanh"))
batch = optimizer.ask(3)
optimizer.tell(batch, [(params["x"] - 0.5) ** 2 for params in batch])
best, lowest = optimizer.best
print(best["kind"].upper(), round(lowest, 3))
mean, std = optimizer.predict([{"x": 0.5, "n": 1, "kind": "relu"}])
print(float(mean[0]) + 2.0 * float(std[0]), np.sqrt(mean + std).shape)
