"""A small stream of a regression, for the tests of aggregated forests."""

import numpy as np


def make_data(n=40, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((n, 2)).round(2)  # some repeat
    y = np.sin(6.0 * X[:, 0]) + rng.normal(size=n) * np.linspace(0.1, 1.0, n)
    return X, y


def probes(X):
    return np.concatenate([X[:10], X[:10] + 0.013, X[:5] - 3.0])
