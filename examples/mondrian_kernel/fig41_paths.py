"""Figures 4.1 and 4.3 of Balog2016thesis: regularisation paths."""

from __future__ import annotations

import time

import numpy as np
from _common import RIDGE, arguments, cpu, save, table

from mondrian_bo.surrogates import MondrianFeatures, MondrianKernelRegressor


def power_plant(rng, n=9568):
    """Make synthetic data, similar to those of the Combined Cycle Power Plant."""
    X = rng.random((n, 4))
    X[:, 1] = 0.5 * X[:, 0] + 0.5 * X[:, 1]
    y = 500.0 - 60.0 * X[:, 0] ** 0.7 - 20.0 * X[:, 1] + 5.0 * np.sin(9.0 * X[:, 2])
    return X, y + 3.0 * rng.normal(size=n)


def draw(axis, path, title):
    axis.step(path.lifetimes, path.training_error, "r", where="post", label="training")
    axis.step(path.lifetimes, path.validation_error, "g", where="post", label="validation")
    axis.set(xscale="symlog", xlabel="lifetime", ylabel="RMSE", title=title)
    best = int(np.argmin(path.validation_error))
    print(
        f"{title}: {len(path)} lifetimes; validation RMSE {path.validation_error[0]:.2f} at 0, "
        f"least {path.validation_error[best]:.2f} at {path.lifetimes[best]:.3g}, "
        f"{path.validation_error[-1]:.2f} at the end"
    )


def main():
    options = arguments(__file__, __doc__, data=None, trees=50, maximum=100.0, cpumaximum=1e-5)
    import matplotlib.pyplot as plt

    n_trees = 5 if options.quick else options.trees
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.5), layout="constrained")
    X, y = table(options.data, "ccpp", "EP", power_plant, options.quick)
    X = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    half = len(y) // 2
    model = MondrianKernelRegressor(n_trees, options.maximum, noise_variance=0.1, random_state=0)
    model.forest_lifetime_path(X[:30], y[:30])  # compile
    start = time.process_time()
    path = model.forest_lifetime_path(X[:half], y[:half], X[half:], y[half:])
    end = time.process_time()
    MondrianFeatures(n_trees, options.maximum, random_state=0).fit(X)
    print(
        f"path {end - start:.2f} s, its trees alone {time.process_time() - end:.2f} s of CPU time"
    )
    draw(left, path, "Mondrian forest, CCPP")
    (X, y), (X_val, y_val), _ = cpu(options)
    model = MondrianKernelRegressor(
        n_trees, options.cpumaximum, noise_variance=RIDGE, normalize_y=False, random_state=0
    )
    start = time.process_time()
    path = model.lifetime_path(X[:1000], y[:1000], X_val, y_val)
    print(f"kernel path {time.process_time() - start:.2f} s of CPU time")
    draw(right, path, "Mondrian kernel, CPU")
    right.set(xscale="linear", ylim=(0.0, None))
    left.legend()
    save(figure, options.output)


if __name__ == "__main__":
    main()
