"""Figure 2.1 of Balog2016thesis: likelihoods of Setosa of Iris, a new model for each lifetime."""

from __future__ import annotations

import numpy as np
from _common import arguments, progress, save, say
from sklearn.datasets import load_iris

from mondrian_bo.surrogates import MondrianForestDensity


def main():
    options = arguments(__file__, __doc__, trees=200, concentration=0.001, test=15, lifetimes=25)
    import matplotlib.pyplot as plt

    X = load_iris().data[:50]
    order = np.random.default_rng(0).permutation(50)
    train, test = X[order[options.test :]], X[order[: options.test]]
    # The resolution of the measurements is 0.1: the box reaches half of it beyond the data.
    bounds = np.stack([X.min(axis=0) - 0.05, X.max(axis=0) + 0.05], axis=1)
    n_lifetimes, n_trees = (3, 5) if options.quick else (options.lifetimes, options.trees)
    lifetimes = np.geomspace(0.1, 100.0, n_lifetimes)
    scores = np.empty((n_lifetimes, 2))
    for i, lifetime in enumerate(progress(lifetimes)):
        model = MondrianForestDensity(
            n_trees,
            lifetime=lifetime,
            concentration=options.concentration,
            bounds=bounds,
            random_state=i,
        ).fit(train)
        scores[i] = model.score_samples(train).mean(), model.score_samples(test).mean()
    figure, axis = plt.subplots(figsize=(7, 4.5), layout="constrained")
    for curve, name, colour in zip(scores.T, ("training", "test"), "rg", strict=True):
        axis.plot(lifetimes, curve, f"{colour}o-", markersize=3, label=name)
        best = np.argmax(curve)
        say(
            f"{name}: {curve[0]:.3f} at lifetime {lifetimes[0]:g}, at most {curve[best]:.3f} at "
            f"{lifetimes[best]:.1f}, {curve[-1]:.3f} at {lifetimes[-1]:g}"
        )
    axis.set(xscale="log", xlabel="lifetime", ylabel="mean log-likelihood")
    axis.legend()
    save(figure, options.output)


if __name__ == "__main__":
    main()
