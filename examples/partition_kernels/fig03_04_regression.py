"""Figures 3 and 4 of Davies2014: test log-likelihood and MSE on six regression problems."""

from __future__ import annotations

import warnings

import matplotlib.pyplot as plt
import numpy as np
from _common import arguments, data_set, names_of, progress, save, split
from scipy.linalg import cho_factor, cho_solve
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, WhiteKernel
from threadpoolctl import threadpool_limits

from mondrian_bo.surrogates import (
    FastClusterKernel,
    MondrianForestRegressor,
    PartitionGaussianProcessRegressor,
    RandomForestKernel,
)


class Analytic:
    """A Gaussian process of scikit-learn with a given kernel."""

    def __init__(self, kernel, restarts, seed):
        self.model = GaussianProcessRegressor(
            kernel + WhiteKernel(0.1, (1e-4, 1e2)), n_restarts_optimizer=restarts, random_state=seed
        )

    def fit(self, X, y):  # noqa: D102
        self.model.fit(X, y)
        return self

    def predict(self, X):  # noqa: D102
        return self.model.predict(X)

    def log_predictive_density(self, X, y):  # noqa: D102
        mean, covariance = self.model.predict(X, return_cov=True)
        factor = cho_factor(covariance, lower=True)
        log_determinant = 2.0 * np.sum(np.log(np.diag(factor[0])))
        error = y - mean
        quadratic = error @ cho_solve(factor, error)
        return -0.5 * (quadratic + log_determinant + len(y) * np.log(2.0 * np.pi))


def models(d, m, restarts, seed):
    scale = ConstantKernel(1.0, (1e-3, 1e3))
    process = PartitionGaussianProcessRegressor
    return {
        "linear": Analytic(scale * DotProduct(), restarts, seed),
        "RBF": Analytic(scale * RBF(2.0, (1e-2, 1e3)), restarts, seed),
        "ARD": Analytic(scale * RBF(np.full(d, 2.0), (1e-2, 1e3)), restarts, seed),
        "Random Forest": process(RandomForestKernel(m, random_state=seed)),
        "Mondrian forest": process(
            RandomForestKernel(m, forest=MondrianForestRegressor(), random_state=seed)
        ),
        "Fast Cluster": process(FastClusterKernel(m, random_state=seed)),
    }


def main():
    options = arguments(
        __file__, __doc__, data=None, largest=300, partitions=200, restarts=2, seeds=2
    )
    names = names_of(options.data)
    if options.quick:
        names, options.largest, options.partitions = names[:2], 60, 20
        options.restarts, options.seeds = 0, 1
    warnings.simplefilter("ignore", ConvergenceWarning)  # variances at their bounds
    with threadpool_limits(1):
        results = compare(names, options)
    report(names, results, options.output)


def compare(names, options):
    """Return joint log-likelihood per target and MSE for each method, problem and seed."""
    results = {}
    for name in (bar := progress(names)):
        X, y = data_set(name, options.data)
        for seed in range(options.seeds):
            X_train, y_train, X_test, y_test = split(X, y, seed, options.largest)
            own = models(X.shape[1], options.partitions, options.restarts, seed)
            for method, model in own.items():
                bar.set_postfix_str(f"{name}, {method}")
                model.fit(X_train, y_train)
                density = model.log_predictive_density(X_test, y_test) / len(y_test)
                error = np.mean((model.predict(X_test) - y_test) ** 2)
                results.setdefault((method, name), []).append((density, error))
    return results


def report(names, results, output):
    """Print and draw the means over seeds."""
    means = {key: np.mean(values, axis=0) for key, values in results.items()}
    methods = list(dict.fromkeys(method for method, _ in means))
    for k, title in enumerate(("joint test log-likelihood per target", "test MSE")):
        print(f"\n| {title} | " + " | ".join(names) + " |")
        print("| --- |" + " ---: |" * len(names))
        for method in methods:
            cells = [f"{means[method, name][k]:.3f}" for name in names]
            print(f"| {method} | " + " | ".join(cells) + " |")
    figure, axes = plt.subplots(2, 1, figsize=(11, 7), sharex=True, layout="constrained")
    width = 0.8 / len(methods)
    for j, method in enumerate(methods):
        places = np.arange(len(names)) + (j - 0.5 * (len(methods) - 1)) * width
        for axis, k in zip(axes, range(2), strict=True):
            axis.bar(places, [means[method, name][k] for name in names], width, label=method)
    axes[0].set_ylabel("test log-likelihood per target")
    axes[1].set_ylabel("test MSE")
    axes[1].set_xticks(range(len(names)), names)
    axes[1].legend(fontsize=8, ncols=2)
    save(figure, output)


if __name__ == "__main__":
    main()
