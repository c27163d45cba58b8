"""Figure 1 of Davies2014: Gaussian-process posteriors of two kernels on a toy problem."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from _common import arguments, save

from mondrian_bo.surrogates import (
    FastClusterKernel,
    PartitionGaussianProcessRegressor,
    RandomForestKernel,
)


def main():
    options = arguments(__file__, __doc__, samples=60, partitions=500, seed=0)
    n_partitions = 50 if options.quick else options.partitions
    rng = np.random.default_rng(options.seed)
    x = np.sort(
        np.concatenate(
            [
                rng.uniform(0.0, 4.0, options.samples // 2),
                rng.uniform(6.0, 10.0, options.samples // 2),
            ]
        )
    )
    y = np.sin(1.5 * x) + (x > 7.5) + 0.15 * rng.normal(size=len(x))
    line = np.linspace(-1.0, 11.0, 600)
    kernels = {
        "Random Forest": RandomForestKernel(n_partitions, random_state=options.seed),
        "Fast Cluster": FastClusterKernel(n_partitions, max_height=5, random_state=options.seed),
    }
    figure, axes = plt.subplots(1, 2, figsize=(11, 3.6), sharey=True, layout="constrained")
    for axis, (name, kernel) in zip(axes, kernels.items(), strict=True):
        model = PartitionGaussianProcessRegressor(kernel).fit(x[:, None], y)
        mean, std = model.predict(line[:, None], return_std=True)
        axis.fill_between(line, mean - 2 * std, mean + 2 * std, alpha=0.25, linewidth=0)
        axis.plot(line, mean, linewidth=1)
        axis.plot(x, y, "k.", markersize=4)
        axis.set(title=name, xlabel="x")
        print(
            f"{name}: signal variance {model.signal_variance_:.3f}, noise variance "
            f"{model.noise_variance_:.4f}, log marginal likelihood "
            f"{model.log_marginal_likelihood_:.1f}"
        )
    save(figure, options.output)


if __name__ == "__main__":
    main()
