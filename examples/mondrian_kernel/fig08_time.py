"""Figure 8 of Balog2016: best validation error against time, one path against refitting."""

from __future__ import annotations

import time

import numpy as np
from _common import RIDGE, arguments, cpu, progress, relative_error, save, say
from sklearn.linear_model import Ridge, SGDRegressor

from mondrian_bo.surrogates import (
    LaplaceFourierFeatures,
    RandomBinningFeatures,
    sgd_lifetime_path,
)

EPOCHS = 20
"""Passes of stochastic gradient descent over the data, for one lifetime."""

RATE = 0.2
"""Constant learning rate of stochastic gradient descent, the same for all feature maps."""

LEVELS = (8, 7, 6)
"""Validation errors, in per cent, of which the first time is printed."""


def path_curve(train, validation, n_estimators, maximum, seed, n_evaluations=50):
    """Return times and errors along one path.

    The total time is divided among the evaluations evenly, sampling of the cuts included, although
    all cuts are sampled at the start. `doubled_paths` does not need this assumption.
    """
    (X, y), (X_val, y_val) = train, validation
    scale = np.sqrt(np.mean(y_val**2)) / 100.0
    start = time.process_time()
    path = sgd_lifetime_path(
        X,
        y,
        X_val,
        y_val,
        loss="squared_error",
        alpha=RIDGE / len(y),
        n_estimators=n_estimators,
        max_lifetime=maximum,
        steps_per_cut=5,
        n_evaluations=n_evaluations,
        learning_rate=RATE,
        random_state=seed,
    )
    seconds = time.process_time() - start
    times = seconds * np.linspace(0.0, 1.0, len(path) + 1)[1:]
    return times, path.validation_error / scale


def doubled_paths(train, validation, n_estimators, n_paths, seed):
    """Return end times and errors of several paths, each from lifetime 0 and twice as long.

    The first path ends at the lifetime at which a partition of all inputs has one cut on average.
    """
    first = 1.0 / np.ptp(np.concatenate([train[0], validation[0]]), axis=0).sum()
    curves = [
        path_curve(train, validation, n_estimators, first * 2.0**k, seed, n_evaluations=15)
        for k in range(n_paths)
    ]
    return np.cumsum([times[-1] for times, _ in curves]), np.array([e.min() for _, e in curves])


def search(error, n_halvings, n_bisections):
    """Halve the lifetime from 1 on, as in section 8.2, then bisect around the best one.

    The paper also doubles the lifetime where that is better. Here the direction is known.
    """
    tried = {0.5**k: error(0.5**k) for k in range(n_halvings)}
    for _ in range(n_bisections):
        ordered = sorted(tried)
        at = ordered.index(min(tried, key=tried.get))
        sides = [ordered[i] for i in (at - 1, at + 1) if 0 <= i < len(ordered)]
        lifetime = float(np.sqrt(ordered[at] * min(sides, key=tried.get)))
        tried[lifetime] = error(lifetime)


def descent(n_points):
    """Return the stochastic gradient descent of the paths, for one lifetime."""
    return SGDRegressor(
        alpha=RIDGE / n_points,
        max_iter=EPOCHS,
        tol=None,
        learning_rate="constant",
        eta0=RATE,
        fit_intercept=False,
        random_state=0,
    )


def refit_curve(make, model, train, validation, n_estimators, steps, seed):
    """Return times and errors of features sampled and fitted anew for each lifetime."""
    (X, y), (X_val, y_val) = train, validation
    times, errors = [], []
    start = time.process_time()

    def error(lifetime):
        features = make(n_estimators, lifetime, random_state=seed)
        Z = features.fit_transform(np.concatenate([X, X_val]))
        model.fit(Z[: len(y)], y - y.mean())
        errors.append(relative_error(model.predict(Z[len(y) :]) + y.mean(), y_val))
        times.append(time.process_time() - start)
        return errors[-1]

    search(error, *steps)
    return np.array(times), np.array(errors)


def main():
    options = arguments(
        __file__,
        __doc__,
        data=None,
        trees=350,
        maximum=8e-6,
        doublings=6,
        halvings=26,
        bisections=6,
        seeds=5,
    )
    import matplotlib.pyplot as plt

    train, validation, _ = cpu(options)
    n_seeds, n_estimators = (2, 10) if options.quick else (options.seeds, options.trees)
    steps = (3, 1) if options.quick else (options.halvings, options.bisections)
    data = train, validation, n_estimators
    small = train[0][:30], train[1][:30]
    path_curve(small, small, 3, 1e-7, 0)  # compile
    refits = {
        "random binning, SGD": (RandomBinningFeatures, descent(len(train[1]))),
        "Fourier features, SGD": (LaplaceFourierFeatures, descent(len(train[1]))),
        # The fastest way with few dense features: the normal equations.
        "Fourier features, exact": (LaplaceFourierFeatures, Ridge(RIDGE, fit_intercept=False)),
    }
    schemes = {
        "Mondrian kernel, one SGD path": lambda seed: path_curve(*data, options.maximum, seed),
        "Mondrian kernel, SGD paths doubled": lambda seed: doubled_paths(
            *data, options.doublings, seed
        ),
    }
    for name, (make, model) in refits.items():
        schemes[name] = lambda seed, make=make, model=model: refit_curve(
            make, model, *data, steps, seed
        )
    figure, axis = plt.subplots(figsize=(7, 5.2), layout="constrained")
    for number, (name, scheme) in enumerate(schemes.items()):
        ends, bests, reached = [], [], {level: [] for level in LEVELS}
        for seed in progress(range(n_seeds), desc=name):
            times, errors = scheme(seed)
            so_far = np.minimum.accumulate(errors)
            label = None if seed else name
            axis.step(times, so_far, f"C{number}", where="post", alpha=0.6, label=label)
            ends.append(times[-1])
            bests.append(so_far[-1])
            for level, seconds in reached.items():
                seconds.append(times[so_far <= level][0] if so_far[-1] <= level else np.inf)
        say(
            f"{name}: best {np.median(bests):.2f} % ({min(bests):.2f} to {max(bests):.2f}), "
            f"{np.median(ends):.1f} s in all; "
            + ", ".join(
                f"{level} % after {np.median(seconds):.2f} s ({min(seconds):.2f} to "
                f"{max(seconds):.2f})"
                for level, seconds in reached.items()
            )
        )
    axis.set(xscale="log", xlabel="seconds of CPU time", ylabel="best validation error so far, %")
    axis.set_ylim(0, 25)
    figure.legend(loc="outside upper center", ncols=2, fontsize=9)
    save(figure, options.output)


if __name__ == "__main__":
    main()
