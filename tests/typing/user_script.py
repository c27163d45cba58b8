"""A script as users write it: `test_user_script.py` lets mypy check it, without casts."""

from __future__ import annotations

import numpy as np
import optuna

from mondrian_bo import (
    Categorical,
    Condition,
    Float,
    Int,
    MondrianOptimizer,
    MondrianSampler,
    SearchSpace,
)
from mondrian_bo.acquisitions import LogExpectedImprovement
from mondrian_bo.optimizer import Arm, Portfolio
from mondrian_bo.surrogates import (
    AMFClassifier,
    AMFRegressor,
    FastClusterKernel,
    GaussianProcessForestRegressor,
    MondrianForestClassifier,
    MondrianForestDensity,
    MondrianForestRegressor,
    MondrianGridRegressor,
    MondrianKernelClassifier,
    MondrianKernelMixtureRegressor,
    MondrianKernelRegressor,
    MondrianKernelSVR,
    OnlineDummyRegressor,
    PartitionGaussianProcessRegressor,
)


def objective(trial: optuna.Trial) -> float:
    x = trial.suggest_float("x", -5.0, 5.0)
    kind = trial.suggest_categorical("kind", ["a", "b"])
    return x * x + (1.0 if kind == "a" else 0.0)


study = optuna.create_study(sampler=MondrianSampler(seed=0, n_startup_trials=5, surrogate="forest"))
study.optimize(objective, n_trials=8)

space = SearchSpace(
    {"x": Float(-1.0, 2.0), "n": Int(1, 9), "kind": Categorical(["relu", "tanh"])},
)
rate = Float(1e-4, 1.0, log=True, condition=Condition("kind", ["relu"]))
print(rate, space)
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

X = np.random.default_rng(0).random((40, 2))
y = X[:, 0] + X[:, 1] ** 2
forest = MondrianForestRegressor(random_state=0).fit(X[:30], y[:30]).partial_fit(X[30:], y[30:])
lower, upper = forest.predict_quantiles(X, (0.05, 0.95)).T
print((upper - lower).mean(), forest.logpdf(X, y).sum(), forest.sample_y(X, 3).shape)
for model in (
    forest,
    AMFRegressor(random_state=0).fit(X, y),
    GaussianProcessForestRegressor(2, random_state=0).fit(X, y),
    OnlineDummyRegressor().fit(X, y),
):
    means, stds = model.predict(X, return_std=True)
    print(np.abs(model.predict(X) - means).max() + stds.min())
for kernel_model in (
    MondrianKernelRegressor(random_state=0).fit(X, y),
    MondrianKernelMixtureRegressor(random_state=0).fit(X, y),
    MondrianGridRegressor(random_state=0).fit(X, y),
):
    means, stds = kernel_model.predict(X, return_std=True)
    print(kernel_model.predict(X).mean() - means.mean(), stds.min())
process = PartitionGaussianProcessRegressor(FastClusterKernel(20, random_state=0)).fit(X, y)
means, covariance = process.predict(X, return_cov=True)
means, stds = process.predict(X, return_std=True)
print(process.predict(X).shape, np.allclose(np.sqrt(covariance.diagonal()), stds))
print(MondrianKernelSVR(random_state=0).fit(X, y).predict(X).shape)

names = np.where(y > 0.8, "high", "low")
for classifier in (
    MondrianForestClassifier(random_state=0).partial_fit(X, names, classes=["high", "low"]),
    AMFClassifier(random_state=0).fit(X, names),
):
    print(classifier.predict(X).tolist()[:2], classifier.predict_proba(X).sum(axis=1).max())
print(MondrianKernelClassifier(random_state=0).fit(X, names).predict(X).tolist()[:2])
density = MondrianForestDensity(10, random_state=0).fit(X)
print(density.score_samples(X).mean(), density.sample(3, random_state=1).shape)
