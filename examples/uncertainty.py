"""Predictive standard deviations of forests away from the data: Lakshminarayanan2016, Figure 2.

Training inputs lie in two clouds in the plane. Test inputs lie on a line through both clouds and
far beyond. All models predict the total standard deviation of a new target, noise included. The
standard deviation of a Mondrian forest grows smoothly with the distance from the data, up to that
of the prior. The figure shows the paper's hyper-parameters and rule for points that branch off, and
the library's defaults. The total standard deviations of a random forest and of extremely randomised
trees (variance between trees plus variance within leaves) are constant outside the data. So are the
quantiles of a quantile regression forest (Meinshausen, 2006).

The example prints the mean standard deviations inside and outside the range of the data. For the
quantile forest it prints a quarter of the distance between the quantiles that are two standard
deviations from the mean in a normal distribution.
"""

from __future__ import annotations

import numpy as np
from _figures import arguments, save
from scipy.stats import norm
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor

from mondrian_bo.surrogates import MondrianForestRegressor

NEAR, FAR = 5.0, 15.0
"""Half-widths in x_1: of the data, and of the line of test inputs."""


def training_data(rng, n_samples):
    x1 = rng.uniform(-NEAR, NEAR, size=n_samples)
    X = np.stack([x1, rng.normal(np.where(x1 < 0.0, -1.0, 1.0), 0.7)], axis=1)
    return X, np.sin(X[:, 0]) + 0.5 * X[:, 1] + rng.normal(0.0, 0.1, size=n_samples)


def mondrian_moments(forest, X):
    return forest.predict(X, return_std=True)


def total_moments(forest, X):
    """Return means and total standard deviations of a scikit-learn forest.

    The variance is that between trees plus the mean variance of the targets within a leaf.
    """
    trees = [estimator.tree_ for estimator in forest.estimators_]
    leaves = forest.apply(X).T
    means = np.array([tree.value[leaf, 0, 0] for tree, leaf in zip(trees, leaves, strict=True)])
    within = np.array([tree.impurity[leaf] for tree, leaf in zip(trees, leaves, strict=True)])
    return means.mean(axis=0), np.sqrt(within.mean(axis=0) + means.var(axis=0))


def forest_quantiles(forest, X_train, y_train, X, levels):
    """Return quantiles of a quantile regression forest (Meinshausen, 2006), a row for each level.

    A training target has the mean, over trees, of one over the size of the leaf that it shares with
    the test input as its weight.
    """
    weights = np.zeros((len(X), len(X_train)))
    for own, others in zip(forest.apply(X).T, forest.apply(X_train).T, strict=True):
        together = own[:, None] == others
        weights += together / together.sum(axis=1, keepdims=True) / len(forest.estimators_)
    order = np.argsort(y_train)
    cumulative = weights[:, order].cumsum(axis=1)
    at = [np.minimum((cumulative < level).sum(axis=1), len(order) - 1) for level in levels]
    return y_train[order][np.array(at)]


def main():
    options = arguments(__file__, __doc__, samples=1000, trees=25)
    n_samples, n_trees = (100, 5) if options.quick else (options.samples, options.trees)
    X, y = training_data(np.random.default_rng(0), n_samples)
    x1 = np.linspace(-FAR, FAR, 600)
    line = np.stack([x1, np.tanh(x1)], axis=1)
    # As in the paper: 5 samples per leaf; a Mondrian forest stops splitting below 10.
    mondrian = {"min_samples_split": 10, "random_state": 0}
    others = {"min_samples_leaf": 5, "random_state": 0}
    paper = {"branch_off": "paper", "hyperparameters": "paper"}
    random_forest = RandomForestRegressor(n_trees, **others)
    models = {
        "Mondrian forest, defaults": (
            MondrianForestRegressor(n_trees, **mondrian),
            mondrian_moments,
        ),
        "Mondrian forest, paper": (
            MondrianForestRegressor(n_trees, **mondrian, **paper),
            mondrian_moments,
        ),
        "random forest": (random_forest, total_moments),
        "extremely randomised trees": (ExtraTreesRegressor(n_trees, **others), total_moments),
    }
    bands = {}
    for name, (model, moments) in models.items():
        mean, std = moments(model.fit(X, y), line)
        bands[name] = mean - 2.0 * std, mean, mean + 2.0 * std
    levels = norm.cdf([-2.0, 0.0, 2.0])
    bands["quantile regression forest"] = forest_quantiles(random_forest, X, y, line, levels)

    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(bands), figsize=(17, 3.8), sharey=True, layout="constrained")
    inside = np.abs(x1) <= NEAR
    for axis, (name, (low, middle, high)) in zip(axes, bands.items(), strict=True):
        axis.axvspan(-NEAR, NEAR, color="0.93", label="range of the data")
        axis.plot(X[:, 0], y, ".", color="0.6", markersize=2, label="data")
        quantiles = name == "quantile regression forest"
        label = "quantiles at 2.3 % and 97.7 %" if quantiles else "mean ± 2 total std"
        axis.fill_between(x1, low, high, alpha=0.35, label=label)
        axis.plot(x1, middle, linewidth=1, label="median" if quantiles else "mean")
        axis.set(title=name, xlabel="$x_1$")
        std = (high - low) / 4.0
        print(f"{name:<28} std inside {std[inside].mean():.3f}, outside {std[~inside].mean():.3f}")
    axes[0].set(ylabel="y", ylim=(-3.2, 4.8))
    for axis in (axes[0], axes[-1]):
        axis.legend(loc="upper left", fontsize=7)
    save(figure, options.output)


if __name__ == "__main__":
    main()
