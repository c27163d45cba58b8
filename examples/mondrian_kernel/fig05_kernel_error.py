"""Figure 5 of Balog2016: largest error of the kernel on 100 points, against M."""

from __future__ import annotations

import numpy as np
from _common import MAPS, arguments, progress, save, say

from mondrian_bo.surrogates import LaplaceKernel


def main():
    options = arguments(__file__, __doc__, lifetime=10.0, repeats=5)
    import matplotlib.pyplot as plt

    sizes = [1, 4, 16] if options.quick else [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]
    X = np.random.default_rng(0).random((100, 2))
    exact = LaplaceKernel(options.lifetime)(X)
    figure, axis = plt.subplots(figsize=(7, 4.5), layout="constrained")
    for name, make in MAPS.items():
        errors = np.empty((len(sizes), options.repeats))
        for i, n_estimators in enumerate(progress(sizes, desc=name)):
            for seed in range(options.repeats):
                Z = make(n_estimators, options.lifetime, random_state=seed).fit_transform(X)
                errors[i, seed] = np.abs(Z @ Z.T - exact).max()
        axis.errorbar(sizes, errors.mean(axis=1), errors.std(axis=1), capsize=3, label=name)
        say(
            f"{name}: {errors[0].mean():.3f} with {sizes[0]}, "
            f"{errors[-1].mean():.3f} with {sizes[-1]} non-zero features"
        )
    axis.set(xscale="log", xlabel="M, non-zero features in a row", ylabel="largest error")
    axis.set_ylim(0.0, 2.0)
    axis.legend()
    save(figure, options.output)


if __name__ == "__main__":
    main()
