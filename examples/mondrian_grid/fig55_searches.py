"""Figure 5.5 of Balog2016thesis: lifetime searches on house prices."""

from __future__ import annotations

import time

import matplotlib.pyplot as plt
import numpy as np
from _common import FREE_STEPS, arguments, progress, save, say, strategies

from mondrian_bo.surrogates import MondrianGridRegressor, search_lifetimes


def houses(folder, n, rng):
    """Return coordinates and log prices, of the California set or synthetic."""
    if folder is None:
        say("Synthetic data; --data DIR names the folder of the real data")
        X = rng.random((n, 2))
        centres = rng.random((12, 2))
        near = np.abs(X[:, None] - centres).sum(axis=2).min(axis=1)
        return X, -3.0 * near + 0.1 * rng.normal(size=n)
    # Price, longitude, latitude and others.
    rows = np.genfromtxt(folder / "california.csv.gz", delimiter=",", skip_header=1)
    chosen = rows[rng.permutation(len(rows))[:n]]
    X = chosen[:, 1:3]
    return (X - X.min(axis=0)) / np.ptp(X, axis=0), np.log(chosen[:, 0])


def main():
    options = arguments(__file__, __doc__, data=None, trees=10, points=3000, steps=400)
    n_points, n_steps = (80, 5) if options.quick else (options.points, options.steps)
    X, y = houses(options.data, n_points, np.random.default_rng(0))
    half = n_points // 2
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.5), layout="constrained")
    for name, strategy in progress(strategies(2, 300.0, seed=0).items()):
        grid = MondrianGridRegressor(options.trees, noise_variance=0.1, random_state=0)
        model = grid.grid_model(X[:half], y[:half], X[half:], y[half:])
        own_steps = n_steps // 10 if name in FREE_STEPS else n_steps
        start = time.perf_counter()
        search = search_lifetimes(model, strategy, own_steps)
        seconds = time.perf_counter() - start
        left.plot(np.minimum.accumulate(search.scores), label=name)
        if name == "greedy":
            right.plot(np.array(search.lifetimes), label=["lifetime 1", "lifetime 2"])
        say(
            f"{name}: {search.best_score:.4f} after {search.n_evaluations} evaluations and "
            f"{seconds:.1f} s, from {search.scores[0]:.4f}; lifetimes "
            f"{search.best_lifetimes.round(2)}"
        )
    left.set(xscale="symlog", xlabel="step", ylabel="best validation RMSE so far")
    right.set(xlabel="step of the greedy search", ylabel="lifetime")
    left.legend()
    right.legend()
    save(figure, options.output)


if __name__ == "__main__":
    main()
