"""Figure 5 of Davies2014: log-likelihood against the number of partitions m."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from _common import arguments, data_set, progress, save, say, split

from mondrian_bo.surrogates import (
    FastClusterKernel,
    MondrianForestRegressor,
    PartitionGaussianProcessRegressor,
    RandomForestKernel,
)


def main():
    options = arguments(__file__, __doc__, name="friedman1", data=None, largest=350, seeds=5)
    numbers = [5, 20] if options.quick else [5, 10, 20, 50, 100, 200, 500]
    n_seeds = 1 if options.quick else options.seeds
    X, y = data_set(options.name, options.data)
    kernels = {
        "Random Forest": RandomForestKernel(),
        "Mondrian forest": RandomForestKernel(forest=MondrianForestRegressor()),
        "Fast Cluster": FastClusterKernel(),
    }
    figure, axes = plt.subplots(1, 2, figsize=(11, 3.8), layout="constrained")
    for name, kernel in kernels.items():
        rows = np.empty((len(numbers), n_seeds, 2))
        for i, m in enumerate(progress(numbers, desc=name)):
            for seed in range(n_seeds):
                X_train, y_train, X_test, y_test = split(X, y, seed, options.largest)
                kernel.set_params(n_partitions=m, random_state=seed)
                model = PartitionGaussianProcessRegressor(kernel).fit(X_train, y_train)
                density = model.log_predictive_density(X_test, y_test) / len(y_test)
                rows[i, seed] = density, np.mean((model.predict(X_test) - y_test) ** 2)
        for axis, values in zip(axes, np.moveaxis(rows, 2, 0), strict=True):
            axis.errorbar(numbers, values.mean(1), values.std(1), capsize=3, label=name)
        cells = [
            f"m={m}: {d:.3f} / {e:.3f}" for m, (d, e) in zip(numbers, rows.mean(1), strict=True)
        ]
        say(f"{name}, log-likelihood per target / MSE: " + ", ".join(cells))
    for axis, label in zip(axes, ("test log-likelihood per target", "test MSE"), strict=True):
        axis.set(xscale="log", xlabel="m", ylabel=label)
    axes[0].set_ylim(-1.5, 0.0)
    axes[0].legend()
    save(figure, options.output)


if __name__ == "__main__":
    main()
