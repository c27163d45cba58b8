"""Concentration of the Beta priors: test log-likelihoods of known densities."""

from __future__ import annotations

import numpy as np
from _common import arguments, progress, say

from mondrian_bo.surrogates import MondrianForestDensity


def normal(d):
    return lambda rng, n: rng.normal(size=(n, d))


def two_bumps(rng, n):
    narrow = rng.random((n, 1)) < 0.5
    return np.where(narrow, rng.normal(-2.0, 0.3, (n, 1)), rng.normal(2.0, 1.0, (n, 1)))


DENSITIES = {
    "two bumps, 1-D": two_bumps,
    "normal, 2-D": normal(2),
    "normal, 5-D": normal(5),
    "uniform, 2-D": lambda rng, n: rng.uniform(-7.0, 7.0, (n, 2)),
}


def main():
    options = arguments(__file__, __doc__, picture=False, samples=[100, 1000], trees=50, tests=3000)
    values = [0.001, 0.003, 0.01, 0.03, 0.1, 1.0]
    if options.quick:
        options.samples, options.trees, options.tests = [30], 5, 100
    print("| density | n | " + " | ".join(f"{value:g}" for value in values) + " |")
    print("| --- |" + " ---: |" * (1 + len(values)))
    for name, draw in DENSITIES.items():
        for n in options.samples:
            rng = np.random.default_rng(0)
            X_test, X = draw(rng, options.tests), draw(rng, n)
            cells = []
            for value in progress(values, desc=f"{name}, n={n}"):
                model = MondrianForestDensity(
                    options.trees,
                    concentration=value,
                    bounds=[[-7.0, 7.0]] * X.shape[1],
                    random_state=0,
                )
                cells.append(f"{model.fit(X).score(X_test):.3f}")
            say(f"| {name} | {n} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
