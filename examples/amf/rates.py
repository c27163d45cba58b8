"""Rates of Theorems 1 and 2 of Mourtada2021: errors of AMF against the number of samples.

The targets are a beta-Hoelder function plus bounded noise. "theory" is the forest of the theorems:
partitions of the whole box, the step of Corollary 2, online to batch conversion (the forest at a
random time, Lemma 2), ten trees. Its "last forest" is that after all samples.
"adaptive" is `AMFRegressor(stacking=False)`. Theorem 2 says that the squared error falls as
``(log n / n)^(2 beta / (d + 2 beta))``. Theorem 1 bounds it, for every lifetime, by the error of
the best constants in the cells of a Mondrian partition plus ``8 B^2 (1 + lifetime)^d log n / n``.
"""

from __future__ import annotations

from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
from _common import arguments, progress, save, say

from mondrian_bo.surrogates import AMFRegressor, MondrianPartition

NOISE = 0.5
"""Half the range of the uniform noise."""

PROBLEMS = ((1, 0.5), (1, 1.0), (2, 0.5), (2, 1.0))
"""Dimension and Hoelder exponent."""


def hoelder(X, beta):
    """Return a function that is rough everywhere: a mean over dimensions of Weierstrass series.

    With beta = 1 the terms are triangle waves with decaying slopes, so it is Lipschitz.
    """
    total = np.zeros(len(X))
    for k in range(12):
        if beta < 1.0:
            wave = 2.0 ** (-beta * k) * np.cos(2.0**k * 2.0 * np.pi * X)
        else:
            wave = 2.0**-k / (k + 1.0) ** 2 * np.abs((2.0 ** (k + 1) * X) % 2.0 - 1.0)
        total += wave.mean(axis=1)
    return total


def range_of(beta):
    """Return the mean and the half range of the function, on a fine grid."""
    values = hoelder(np.linspace(0.0, 1.0, 100_001)[:, None], beta)
    return 0.5 * (values.max() + values.min()), 0.5 * (values.max() - values.min())


def oracle_bound(points, values, n_samples, half_range):
    """Return the bound of Theorem 1 at the best lifetime, for each number of samples."""
    d = points.shape[1]
    bounds = []
    for lifetime in np.geomspace(0.25, 128.0 if d == 1 else 32.0, 12):
        errors = []
        for seed in range(5):
            cells = MondrianPartition.sample([[0.0, 1.0]] * d, lifetime, random_state=seed).apply(
                points
            )
            means = np.bincount(cells, values) / np.maximum(np.bincount(cells), 1)
            errors.append(np.mean((values - means[cells]) ** 2))
        estimation = 8.0 * half_range**2 * (1.0 + lifetime) ** d * np.log(n_samples) / n_samples
        bounds.append(np.mean(errors) + estimation)
    return np.min(bounds, axis=0)


def main():
    options = arguments(__file__, __doc__, repeats=5, largest=64000)
    n_samples, repeats = (
        np.unique(np.geomspace(1, options.largest, 40).astype(int)),
        options.repeats,
    )
    if options.quick:
        n_samples, repeats = np.unique(np.geomspace(1, 200, 20).astype(int)), 1
    late = n_samples >= n_samples[-1] // 64
    figure, axes = plt.subplots(1, len(PROBLEMS), figsize=(13, 3.6), layout="constrained")
    names = ("d", "beta", "theorem 2", "theory", "its last forest", "adaptive")
    say(f"| {' | '.join(names)} | error / bound of theorem 1 |")
    say("| ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for axis, (d, beta) in zip(axes, PROBLEMS, strict=True):
        middle, half = range_of(beta)
        test = np.random.default_rng(10**6).random((4000, d))
        truth = (hoelder(test, beta) - middle) / half
        last, adaptive = np.zeros((2, len(n_samples)))
        for seed in progress(range(repeats), desc=f"d={d}, beta={beta}"):
            rng = np.random.default_rng(seed)
            X = rng.random((n_samples[-1], d))
            y = (hoelder(X, beta) - middle) / half + rng.uniform(-NOISE, NOISE, len(X))
            settings = {"bounds": [[0.0, 1.0]] * d, "step": "corollary"}
            for errors, options_of in ((last, settings), (adaptive, {"stacking": False})):
                forest = AMFRegressor(random_state=seed, **options_of)
                for i, (start, end) in enumerate(pairwise([0, *n_samples])):
                    forest.partial_fit(X[start:end], y[start:end])
                    errors[i] += np.mean((forest.predict(test) - truth) ** 2) / repeats
        # The forest at a random time: the mean of the errors at all times, by the trapezoid rule.
        areas = np.diff(n_samples) * 0.5 * (last[1:] + last[:-1])
        theory = np.append(last[0], last[0] + np.cumsum(areas)) / n_samples
        scale = np.log(n_samples[late] / np.log(n_samples[late]))
        curves = {"theory": theory, "last forest": last, "adaptive": adaptive}
        exponents = []
        for name, errors in curves.items():
            exponents.append(-np.polyfit(scale, np.log(errors[late]), 1)[0])
            axis.loglog(n_samples[late], errors[late], "o-", markersize=3, label=name)
        rate = 2.0 * beta / (d + 2.0 * beta)
        line = theory[-1] * np.exp(rate * (scale[-1] - scale))
        axis.loglog(n_samples[late], line, "k--", label="theorem 2")
        bound = oracle_bound(test, truth, n_samples[late], 1.0 + NOISE)
        axis.loglog(n_samples[late], bound, "0.6", label="theorem 1")
        axis.set(title=f"d = {d}, beta = {beta:g}: {rate:.2f}", xlabel="samples")
        shares = theory[late] / bound
        found = " | ".join(f"{exponent:.2f}" for exponent in exponents)
        say(f"| {d} | {beta:g} | {rate:.2f} | {found} | {shares.min():.2f} to {shares.max():.2f} |")
    axes[0].set_ylabel("squared error")
    handles = axes[0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside right center", fontsize=8)
    save(figure, options.output)


if __name__ == "__main__":
    main()
