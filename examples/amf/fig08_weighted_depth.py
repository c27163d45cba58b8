"""Figure 8 of Mourtada2021: AMF predicts at larger depths where a signal is rough.

Two signals of Donoho and Johnstone (1994) with Gaussian noise; their reconstruction by a forest of
AMF, with both rules for the learning rate; and, below, the weighted depth of its trees.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from _common import arguments, save

from mondrian_bo.surrogates import AMFRegressor

AT = np.array([0.1, 0.13, 0.15, 0.23, 0.25, 0.4, 0.44, 0.65, 0.76, 0.78, 0.81])
HEIGHT = np.array([4, 5, 3, 4, 5, 4.2, 2.1, 4.3, 3.1, 5.1, 4.2])
WIDTH = np.array([0.005, 0.005, 0.006, 0.01, 0.01, 0.03, 0.01, 0.01, 0.005, 0.008, 0.005])
STEPS = {"adaptive": "C0", "corollary": "C1"}


def bumps(x):
    return (HEIGHT / (1.0 + np.abs((x[:, None] - AT) / WIDTH)) ** 4).sum(axis=1)


def heavisine(x):
    return 4.0 * np.sin(4.0 * np.pi * x) - np.sign(x - 0.3) - np.sign(0.72 - x)


def doppler(x):
    return np.sqrt(x * (1.0 - x)) * np.sin(2.1 * np.pi / (x + 0.05))


SIGNALS = {"bumps": bumps, "heavisine": heavisine, "doppler": doppler}


def main():
    options = arguments(
        __file__,
        __doc__,
        signals=["doppler", "heavisine"],
        samples=3000,
        trees=100,
        noise=0.15,
        seed=0,
    )
    n_samples, n_trees = (200, 5) if options.quick else (options.samples, options.trees)
    rng = np.random.default_rng(options.seed)
    line = np.linspace(0.0, 1.0, 1000)
    n_columns = len(options.signals)
    figure, axes = plt.subplots(
        3,
        n_columns,
        figsize=(5.5 * n_columns, 7.5),
        sharex=True,
        layout="constrained",
        squeeze=False,
    )
    for (top, middle, bottom), name in zip(axes.T, options.signals, strict=True):
        scale = SIGNALS[name](line).std()
        truth = SIGNALS[name](line) / scale
        x = rng.random(n_samples)
        y = SIGNALS[name](x) / scale + rng.normal(0.0, options.noise, n_samples)
        top.plot(x, y, ".", color="0.7", markersize=2, label="samples")
        top.plot(line, truth, "k", linewidth=1, label="signal")
        top.set_title(name)
        middle.plot(line, truth, "k", linewidth=1, label="signal")
        for step, colour in STEPS.items():
            # The paper's prediction, to which the weighted depth belongs.
            forest = AMFRegressor(n_trees, step=step, stacking=False, random_state=options.seed)
            forest.fit(x[:, None], y)
            found = forest.predict(line[:, None])
            depths = forest.weighted_depth(line[:, None])
            middle.plot(line, found, colour, linewidth=1, label=f'step="{step}"')
            if step == "adaptive":
                bottom.plot(line, depths, color=colour, linewidth=0.4, alpha=0.1)
            mean = depths.mean(axis=1)
            bottom.plot(line, mean, colour, linewidth=1.5, label=f'mean, step="{step}"')
            error = np.sqrt(np.mean((found - truth) ** 2))
            ends = f"{mean.min():.1f} to {mean.max():.1f}"
            print(f"{name:10} step={step:10} RMSE {error:.3f}, mean depth {ends}")
        bottom.set_xlabel("x")
    for axis, label in zip(
        axes[:, 0], ("samples", "reconstruction", "weighted depth"), strict=True
    ):
        axis.set_ylabel(label)
        axis.legend(fontsize=8)
    save(figure, options.output)


if __name__ == "__main__":
    main()
