"""Uncertainty away from the data: the behaviour of Figure 2 of Lakshminarayanan2016.

Training inputs lie in two clouds in the plane; test inputs run along a line through them and far
beyond. With the paper's hyper-parameters and rule for points that branch off, a Mondrian forest
becomes less certain smoothly as it leaves the data, up to its prior; so it does with the library's
defaults, a bridge and learnt hyper-parameters. The spread between the trees of extremely randomised
trees and of a random forest does not grow.

Writes ``docs/images/uncertainty.png`` (or the path given as the only argument) and prints the mean
standard deviations inside and outside the data.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor

from mondrian_bo.surrogates import MondrianForestRegressor

OUTPUT = Path(__file__).parent.parent / "docs" / "images" / "uncertainty.png"
NEAR, FAR = 5.0, 15.0


def training_data(rng):
    x1 = rng.uniform(-NEAR, NEAR, size=1000)
    X = np.stack([x1, rng.normal(np.where(x1 < 0.0, -1.0, 1.0), 0.7)], axis=1)
    return X, np.sin(X[:, 0]) + 0.5 * X[:, 1] + rng.normal(0.0, 0.1, size=len(X))


def spread_of_trees(forest, X):
    return np.std([tree.predict(X) for tree in forest.estimators_], axis=0)


def main(path):
    rng = np.random.default_rng(0)
    X, y = training_data(rng)
    x1 = np.linspace(-FAR, FAR, 600)
    line = np.stack([x1, np.tanh(x1)], axis=1)
    # The paper's settings: 25 trees, and 5 samples per leaf where a Mondrian forest stops at 10.
    means = {}
    for name, options in {
        "Mondrian forest, as in the paper": {"branch_off": "paper", "hyperparameters": "paper"},
        "Mondrian forest, our defaults": {},
    }.items():
        mondrian = MondrianForestRegressor(25, min_samples_split=10, random_state=0, **options)
        mondrian.fit(X, y)
        means[name] = mondrian.predict(line, return_std=True)
    peers = {
        "extremely randomised trees": ExtraTreesRegressor(25, min_samples_leaf=5, random_state=0),
        "random forest": RandomForestRegressor(25, min_samples_leaf=5, random_state=0),
    }
    for name, forest in peers.items():
        forest.fit(X, y)
        means[name] = forest.predict(line), spread_of_trees(forest, line)

    figure, axes = plt.subplots(1, 4, figsize=(15, 3.4), sharey=True, constrained_layout=True)
    inside = np.abs(x1) <= NEAR
    for axis, (name, (mean, std)) in zip(axes, means.items(), strict=True):
        axis.axvspan(-NEAR, NEAR, color="0.93", label="range of the data")
        axis.plot(X[:, 0], y, ".", color="0.6", markersize=2)
        axis.fill_between(x1, mean - 2 * std, mean + 2 * std, alpha=0.35, label="mean ± 2 std")
        axis.plot(x1, mean, linewidth=1)
        axis.set(title=name, xlabel="$x_1$")
        print(f"{name:<32} std inside {std[inside].mean():.3f}, outside {std[~inside].mean():.3f}")
    axes[0].set_ylabel("y")
    axes[0].legend(loc="upper left", fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    print(f"Picture in {path}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else OUTPUT)
