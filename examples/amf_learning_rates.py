"""Learning rates of AMFRegressor: errors and negative log predictive densities.

"corollary" is the rate of the regret bounds. "adaptive" is the rate of a Gaussian likelihood with
the noise that the best pruning leaves. Without aggregation each tree predicts with its leaves.
Targets are standardised; mean ± standard deviation over seeds.
"""

from __future__ import annotations

import numpy as np
from _figures import arguments, mean_and_deviation, progress
from sklearn.datasets import load_diabetes, make_friedman1
from sklearn.metrics import root_mean_squared_error

from mondrian_bo.surrogates import AMFRegressor, MondrianForestRegressor

MODELS = {
    "AMF, default": lambda seed: AMFRegressor(random_state=seed),
    'AMF, step="corollary"': lambda seed: AMFRegressor(step="corollary", random_state=seed),
    "AMF, step=1": lambda seed: AMFRegressor(step=1.0, random_state=seed),
    "AMF, stacking=False": lambda seed: AMFRegressor(stacking=False, random_state=seed),
    "AMF, no aggregation": lambda seed: AMFRegressor(use_aggregation=False, random_state=seed),
    "Mondrian forest": lambda seed: MondrianForestRegressor(
        hyperparameters="paper", branch_off="paper", random_state=seed
    ),
}


def data_sets(seed, n_samples):
    yield "diabetes", *load_diabetes(return_X_y=True)
    for noise in (0.1, 1.0, 5.0):
        X, y = make_friedman1(n_samples, 5, noise=noise, random_state=seed)
        yield f"friedman, noise {noise}", X, y


def scores(model, X, y, seed):
    order = np.random.default_rng(seed).permutation(len(y))
    train, test = np.split(order, [2 * len(y) // 3])
    targets = (y - y[train].mean()) / y[train].std()
    model.fit(X[train], targets[train])
    error = root_mean_squared_error(targets[test], model.predict(X[test]))
    return error, -model.logpdf(X[test], targets[test]).mean()


def main():
    options = arguments(__file__, __doc__, picture=False, quick=False, samples=3000, seeds=5)
    found = {}
    for seed in progress(range(options.seeds)):
        for data, X, y in data_sets(seed, options.samples):
            for name, make in MODELS.items():
                found.setdefault((data, name), []).append(scores(make(seed), X, y, seed))
    print(f"{'data':20} {'model':24} {'RMSE':>15} {'NLPD':>15}")
    for (data, name), rows in found.items():
        cells = [mean_and_deviation(column) for column in zip(*rows, strict=True)]
        print(f"{data:20} {name:24} {cells[0]:>15} {cells[1]:>15}")


if __name__ == "__main__":
    main()
