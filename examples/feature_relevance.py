"""Test errors with and without `feature_relevance=True`, on data with irrelevant columns.

Root mean squared error of the regressors, log-loss of the classifiers; mean ± standard deviation
over seeds. The first two columns are relevant; the others are noise.
"""

from __future__ import annotations

import numpy as np
from _figures import arguments, mean_and_deviation, progress, say
from sklearn.metrics import log_loss, root_mean_squared_error

from mondrian_bo.surrogates import (
    AMFClassifier,
    AMFRegressor,
    MondrianForestClassifier,
    MondrianForestRegressor,
)

PAPER = {"hyperparameters": "paper", "branch_off": "paper"}

REGRESSORS = {
    "MondrianForestRegressor": lambda **options: MondrianForestRegressor(**PAPER, **options),
    "AMFRegressor": lambda **options: AMFRegressor(**options),
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
    options = arguments(__file__, __doc__, picture=False, quick=False, samples=2000, seeds=5)
    print(f"{'columns':>7}  {'estimator':24} {'without':>15} {'with relevance':>15}")
    for n_features in (2, 5, 20):
        for name, make in (REGRESSORS | CLASSIFIERS).items():
            cells = []
            for relevance in (False, True):
                errors = [
                    error(make, name in REGRESSORS, relevance, seed, options.samples, n_features)
                    for seed in progress(range(options.seeds), desc=name)
                ]
                cells.append(mean_and_deviation(errors))
            say(f"{n_features:7}  {name:24} {cells[0]:>15} {cells[1]:>15}")


if __name__ == "__main__":
    main()
