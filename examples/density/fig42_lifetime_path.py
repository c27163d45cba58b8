"""Figure 4.2 of Balog2016thesis: likelihoods of a density at all lifetimes, on Setosa of Iris."""

from __future__ import annotations

import time

import matplotlib.pyplot as plt
import numpy as np
from _common import arguments, save
from sklearn.datasets import load_iris

from mondrian_bo.surrogates import MondrianForestDensity


def main():
    options = arguments(
        __file__, __doc__, trees=200, lifetime=100.0, concentrations=[0.001, 0.01], validation=15
    )
    X = load_iris().data[:50]
    order = np.random.default_rng(0).permutation(50)
    train, validation = X[order[options.validation :]], X[order[: options.validation]]
    # The resolution of the measurements is 0.1: the box reaches half of it beyond the data.
    bounds = np.stack([X.min(axis=0) - 0.05, X.max(axis=0) + 0.05], axis=1)
    MondrianForestDensity(1).lifetime_path(train)  # compile
    figure, axes = plt.subplots(
        1, len(options.concentrations), figsize=(11, 4), sharey=True, layout="constrained"
    )
    for axis, concentration in zip(np.ravel(axes), options.concentrations, strict=True):
        model = MondrianForestDensity(
            10 if options.quick else options.trees,
            lifetime=options.lifetime,
            concentration=concentration,
            bounds=bounds,
            random_state=0,
        )
        start = time.perf_counter()
        model.fit(train)
        fitted = time.perf_counter()
        path = model.lifetime_path(train, X_val=validation)
        end = time.perf_counter()
        curves = {
            "training": path.training,
            "validation": path.validation,
            "leave-one-out": path.leave_one_out,
        }
        for (name, curve), colour in zip(curves.items(), ("r", "g", "b"), strict=True):
            axis.step(path.lifetimes, curve, colour, where="post", label=name)
            best = np.argmax(curve)
            print(
                f"gamma={concentration:g}, {name}: {curve[0]:.3f} at lifetime 0, at most "
                f"{curve[best]:.3f} at {path.lifetimes[best]:.2f}, {curve[-1]:.3f} at the end"
            )
        print(
            f"gamma={concentration:g}: {len(path)} lifetimes; fit at the last one "
            f"{fitted - start:.2f} s, path {end - fitted:.2f} s"
        )
        axis.set(
            xscale="symlog",
            xlim=(0, None),
            ylim=(-1, 3),
            xlabel="lifetime",
            title=f"gamma = {concentration:g}",
        )
    np.ravel(axes)[0].set_ylabel("mean log-likelihood")
    np.ravel(axes)[0].legend()
    save(figure, options.output)


if __name__ == "__main__":
    main()
