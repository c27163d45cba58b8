"""Conformal prediction intervals from the weights of training samples, and their coverage.

Split conformal prediction: a forest learns one half of the samples, and the residuals of the other
half determine the width of the intervals. In "conformal, by weights", residuals are divided by the
weighted deviation of the training targets from the prediction,
``s(x)^2 = sum_i w_i(x) (y_i - m(x))^2``. Coverage is guaranteed on average over samples, for any
model, but not for each part of the inputs. The noise is 0.1 in one half of the inputs ("quiet") and
0.9 in the other ("noisy").
"""

from __future__ import annotations

import numpy as np
from _figures import arguments, progress

from mondrian_bo.surrogates import MondrianForestRegressor


def make_data(n, rng):
    """Return inputs in the unit square and targets whose noise is 0.1 on the left, 0.9 right."""
    X = rng.random((n, 2))
    noise = np.where(X[:, 0] < 0.5, 0.1, 0.9)
    return X, np.sin(6.0 * X[:, 1]) + noise * rng.normal(size=n)


def local_deviation(model, X, y):
    """Return the weighted deviation of training targets from predictions at X."""
    weights = model.weights(X)
    mean = model.predict(X)
    rest = 1.0 - np.asarray(weights.sum(axis=1)).ravel()
    squares = weights @ y**2 - 2.0 * mean * (weights @ y) + (1.0 - rest) * mean**2
    prior = np.square(y - y.mean()).mean() + np.square(y.mean() - mean)
    return np.sqrt(squares + rest * prior)


def half_widths(scores, level):
    """Return the quantile of the scores that covers a new one with probability `level`."""
    rank = int(np.ceil(level * (len(scores) + 1)))
    return np.sort(scores)[min(rank, len(scores)) - 1]


def main():
    options = arguments(
        __file__, __doc__, picture=False, samples=1000, test=2000, level=0.9, repeats=10
    )
    n, n_test, repeats = options.samples, options.test, options.repeats
    if options.quick:
        n, n_test, repeats = 100, 100, 1
    found = {"forest's own": [], "conformal": [], "conformal, by weights": []}
    for seed in progress(range(repeats)):
        rng = np.random.default_rng(seed)
        X, y = make_data(n, rng)
        X_cal, y_cal = make_data(n, rng)
        X_test, y_test = make_data(n_test, rng)
        model = MondrianForestRegressor(min_samples_split=10, random_state=seed).fit(X, y)
        residuals, errors = (
            np.abs(z - model.predict(Z)) for Z, z in ((X_cal, y_cal), (X_test, y_test))
        )
        scales, scale = (local_deviation(model, Z, y) for Z in (X_cal, X_test))
        edges = 0.5 - 0.5 * options.level, 0.5 + 0.5 * options.level
        low, high = model.predict_quantiles(X_test, edges).T
        flat = np.full(n_test, half_widths(residuals, options.level))
        local = scale * half_widths(residuals / scales, options.level)
        quiet = X_test[:, 0] < 0.5
        rows = {
            "forest's own": ((y_test >= low) & (y_test <= high), 0.5 * (high - low)),
            "conformal": (errors <= flat, flat),
            "conformal, by weights": (errors <= local, local),
        }
        for name, (inside, width) in rows.items():
            parts = [inside.mean(), inside[quiet].mean(), inside[~quiet].mean()]
            found[name].append([*parts, 2.0 * width[quiet].mean(), 2.0 * width[~quiet].mean()])
    print(f"{'':22} coverage  quiet  noisy  width, quiet  noisy")
    for name, values in found.items():
        mean = np.mean(values, axis=0)
        print("{:22} {:8.3f} {:6.3f} {:6.3f} {:13.2f} {:6.2f}".format(name, *mean))


if __name__ == "__main__":
    main()
