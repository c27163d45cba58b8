"""Gaussian processes in the leaves of a Mondrian forest, compared with other regressors.

For each data set and number of samples: root mean squared error, negative log predictive density
and coverage of 90 % intervals on held-out samples, in units of the standard deviation of the
targets, and the seconds of fitting. The densities are those of normal distributions with each
model's predictive mean and standard deviation. The standard deviation of random forests and extra
trees is that between their trees. No standard deviation counts as smaller than 0.001.

The sets are those that scikit-learn ships or generates. ``--data`` names a folder with more:
compressed tables with a header, whose target is the column "target" or "EP", or else the first.
"""

from __future__ import annotations

import argparse
import gzip
import time
import warnings
from pathlib import Path

import numpy as np
from _figures import progress, say
from scipy.stats import norm
from sklearn.datasets import load_diabetes, make_friedman1
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mondrian_bo.surrogates import GaussianProcessForestRegressor, MondrianForestRegressor
from mondrian_bo.surrogates.mondrian_forest import hyperparameters

LARGEST_PROCESS = 1000
"""Most training samples of the full Gaussian process, whose cost is cubic."""

N_TEST = 1000
"""Most held-out samples."""

SMALLEST_STD = 1e-3
"""Least predictive standard deviation, in those of the targets."""


class WithMoments:
    """A forest with other predictive moments than its own."""

    def __init__(self, forest, moments):
        self.forest, self.moments = forest, moments

    def fit(self, X, y):
        """Fit the forest."""
        self.forest.fit(X, y)
        return self

    def predict(self, X, return_std):
        """Return mean and standard deviation; `return_std` is true."""
        return self.moments(self.forest, X)


def tree_moments(forest, X):
    trees = [tree.predict(X) for tree in forest.estimators_]
    return np.mean(trees, axis=0), np.std(trees, axis=0)


def uncorrected(forest, X):
    """Return the moments of the processes, without the correction of variances."""
    means, variances = forest.model_.predict_uncorrected(X[None])
    return means.mean(axis=0), np.sqrt(variances.mean(axis=0) + means.var(axis=0))


def full_process(d):
    kernel = ConstantKernel() * Matern(np.ones(d), (1e-2, 1e3), nu=2.5) + WhiteKernel(0.1)
    process = GaussianProcessRegressor(kernel, normalize_y=True, random_state=0)
    return make_pipeline(StandardScaler(), process)


def models(n, d, block_sizes, seed):
    """Yield names and models for n samples of d features."""
    for m in block_sizes:
        options = {"block_size": m, "random_state": seed}
        forest = GaussianProcessForestRegressor(**options)
        yield f"GP leaves, m={m}", GaussianProcessForestRegressor(**options)
        yield f"uncorrected, m={m}", WithMoments(forest, uncorrected)
    yield "constant leaves", MondrianForestRegressor(random_state=seed)
    yield "linear leaves", MondrianForestRegressor(leaf="linear", random_state=seed)
    for label, how in (("relevance", True), ("lengthscales", "lengthscales")):
        yield (
            f"constant, {label}",
            MondrianForestRegressor(feature_relevance=how, random_state=seed),
        )
    for source in ("leave_one_out", "paper"):
        for rule in ("paper", "remaining", "bridge"):
            options = {"branch_off": rule, "hyperparameters": source, "random_state": seed}
            yield f"rule {rule}, {source}", MondrianForestRegressor(**options)
    yield "empirical", MondrianForestRegressor(posterior="empirical", random_state=seed)
    if n <= LARGEST_PROCESS:
        yield "Gaussian process", full_process(d)
    yield (
        "random forest",
        WithMoments(RandomForestRegressor(random_state=seed), tree_moments),
    )
    yield "extra trees", WithMoments(ExtraTreesRegressor(random_state=seed), tree_moments)


def data_sets(folder, n):
    """Yield names, inputs and targets; Friedman's function for at least n samples."""
    yield "diabetes", *load_diabetes(return_X_y=True)
    yield "friedman1", *make_friedman1(max(6000, n + N_TEST), 10, noise=1.0, random_state=0)
    for path in sorted(folder.glob("*.csv.gz")) if folder else ():
        with gzip.open(path, "rt") as file:
            names = [name.strip(' "\n') for name in file.readline().split(",")]
            table = np.loadtxt(file, delimiter=",")
        column = next((names.index(name) for name in ("target", "EP") if name in names), 0)
        yield path.name.split(".")[0], np.delete(table, column, axis=1), table[:, column]


def scores(model, train, test):
    """Return RMSE, NLPD, coverage and seconds."""
    centre, unit = train[1].mean(), train[1].std()
    start = time.perf_counter()
    model.fit(train[0], (train[1] - centre) / unit)
    seconds = time.perf_counter() - start
    mean, std = model.predict(test[0], return_std=True)
    targets, std = (test[1] - centre) / unit, np.maximum(std, SMALLEST_STD)
    density = norm.logpdf(targets, mean, std).mean()
    covered = np.mean(np.abs(targets - mean) < norm.ppf(0.95) * std)
    return np.sqrt(np.mean((targets - mean) ** 2)), -density, covered, seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small data, as a test")
    parser.add_argument("--data", type=Path, help="a folder of further data sets")
    parser.add_argument("--only", nargs="+", help="names of the data sets to use")
    parser.add_argument("--models", nargs="+", default=[""], help="first letters of their names")
    parser.add_argument("--sizes", type=int, nargs="+", default=[200, 1000])
    parser.add_argument("--splits", type=int, default=2)
    parser.add_argument("--block-sizes", type=int, nargs="+", default=[500])
    parser.add_argument(
        "--new-inputs", action="store_true", help="hold out inputs that training has not seen"
    )
    parser.add_argument(
        "--most-targets", type=int, help="targets that hyper-parameters are learnt from"
    )
    options = parser.parse_args()
    if options.most_targets:
        hyperparameters.MOST_TARGETS = options.most_targets
    if options.quick:
        options.sizes, options.splits, options.block_sizes = [60], 1, [40]
    warnings.simplefilter("ignore")  # scikit-learn warns of lengthscales at their bounds
    print(f"{'data':14} {'n':>6}  {'model':30} {'RMSE':>6} {'NLPD':>7} {'cover':>6} {'s':>7}")
    for name, X, y in data_sets(options.data, max(options.sizes)):
        if options.only and name not in options.only:
            continue
        for n in options.sizes:
            if n + 50 > len(y):
                continue
            found = {}
            for split in progress(range(options.splits), desc=f"{name}, n={n}"):
                order = np.random.default_rng(split).permutation(len(y))
                train, test = order[:n], order[n : n + N_TEST]
                if options.new_inputs:
                    known = set(map(tuple, X[train].tolist()))
                    test = [i for i in order[n:] if tuple(X[i].tolist()) not in known][:N_TEST]
                for label, model in models(n, X.shape[1], options.block_sizes, split):
                    if not label.startswith(tuple(options.models)):
                        continue
                    row = scores(model, (X[train], y[train]), (X[test], y[test]))
                    found.setdefault(label, []).append(row)
            for label, rows in found.items():
                rmse, nlpd, covered, seconds = np.mean(rows, axis=0)
                say(
                    f"{name:14} {n:6}  {label:30} {rmse:6.3f} {nlpd:7.3f} {covered:6.1%} "
                    f"{seconds:7.2f}"
                )


if __name__ == "__main__":
    main()
