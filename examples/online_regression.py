"""Online regression: predict each block of samples, then learn it.

The target jumps along one input, and the noise grows along another. The example prints, for each
block, the root mean squared error, the negative log predictive density and the coverage of 90 %
intervals.
"""

from __future__ import annotations

import numpy as np
from _figures import arguments

from mondrian_bo.surrogates import MondrianForestRegressor

BLOCK = 500
"""Samples that are predicted and then learnt at a time."""


def stream(rng, n_samples):
    X = rng.uniform(-1.0, 1.0, size=(n_samples, 4))
    signal = np.sin(3.0 * X[:, 0]) + np.where(X[:, 1] > 0.2, 1.0, 0.0) * X[:, 2]
    return X, signal + rng.normal(0.0, 0.1 + 0.1 * np.abs(X[:, 3]))


def main():
    options = arguments(__file__, __doc__, picture=False, quick=False, samples=4000)
    X, y = stream(np.random.default_rng(0), options.samples)
    forest = MondrianForestRegressor(20, bounds=[(-1.0, 1.0)] * 4, random_state=0)
    forest.partial_fit(X[:BLOCK], y[:BLOCK])
    print(f"{'samples':>8} {'RMSE':>6} {'NLPD':>6} {'coverage':>9}")
    for start in range(BLOCK, len(X), BLOCK):
        new, targets = X[start : start + BLOCK], y[start : start + BLOCK]
        error = np.sqrt(np.mean((forest.predict(new) - targets) ** 2))
        density = -forest.logpdf(new, targets).mean()
        low, high = forest.predict_quantiles(new, (0.05, 0.95)).T
        covered = np.mean((low <= targets) & (targets <= high))
        print(f"{start:8} {error:6.3f} {density:6.3f} {covered:9.1%}")
        forest.partial_fit(new, targets)


if __name__ == "__main__":
    main()
