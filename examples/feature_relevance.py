"""What `feature_relevance=True` gains on data with irrelevant columns, and costs without them.

Prints test errors (mean ± standard deviation over seeds) with and without it: root mean squared
error of the regressors, log-loss of the classifiers. Two columns matter; the others are noise.
"""

from __future__ import annotations

import argparse

import numpy as np
from sklearn.metrics import log_loss, root_mean_squared_error

from mondrian_bo.surrogates import (
    AMFClassifier,
    AMFRegressor,
    MondrianForestClassifier,
    MondrianForestRegressor,
)

PAPER = {"hyperparameters": "paper", "branch_off": "remaining"}

REGRESSORS = {
    "MondrianForestRegressor": lambda **options: MondrianForestRegressor(**PAPER, **options),
    "AMFRegressor": lambda **options: AMFRegressor(step="adaptive", **options),
}
CLASSIFIERS = {
    "MondrianForestClassifier": MondrianForestClassifier,
    "AMFClassifier": AMFClassifier,
}


def data(seed, n_samples, n_features):
    rng = np.random.default_rng(seed)
    X = rng.random((n_samples, n_features))
    y = np.sin(6.0 * X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.standard_normal(n_samples)
    return X, y


def error(make, regression, relevance, seed, n_train, n_features):
    X, y = data(seed, n_train + 1000, n_features)
    if not regression:
        y = (y > 1.0).astype(int)
    model = make(feature_relevance=relevance, random_state=seed).fit(X[:n_train], y[:n_train])
    if regression:
        return root_mean_squared_error(y[n_train:], model.predict(X[n_train:]))
    return log_loss(y[n_train:], model.predict_proba(X[n_train:]))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=2000)
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    print(f"{'columns':>7}  {'estimator':24} {'without':>15} {'with relevance':>15}")
    for n_features in (2, 5, 20):
        for name, make in (REGRESSORS | CLASSIFIERS).items():
            cells = []
            for relevance in (False, True):
                errors = [
                    error(make, name in REGRESSORS, relevance, seed, options.samples, n_features)
                    for seed in range(options.seeds)
                ]
                cells.append(f"{np.mean(errors):.3f} ± {np.std(errors):.3f}")
            print(f"{n_features:7}  {name:24} {cells[0]:>15} {cells[1]:>15}", flush=True)


if __name__ == "__main__":
    main()
