"""Figure 8 of paper 000: best validation error against time, one path against refitting."""

from __future__ import annotations

import time

import numpy as np
from _common import RIDGE, arguments, cpu, relative_error, save
from sklearn.linear_model import Ridge, SGDRegressor

from mondrian_bo.surrogates import (
    LaplaceFourierFeatures,
    RandomBinningFeatures,
    sgd_lifetime_path,
)

EPOCHS = 20
RATE = 0.2


def path_curve(train, validation, n_estimators, maximum):
    """Return times and best errors so far; the path's work is spread as its cuts are."""
    (X, y), (X_val, y_val) = train, validation
    scale = np.sqrt(np.mean(y_val**2)) / 100.0
    start = time.perf_counter()
    path = sgd_lifetime_path(
        X,
        y,
        X_val,
        y_val,
        loss="squared_error",
        alpha=RIDGE / len(y),
        n_estimators=n_estimators,
        max_lifetime=maximum,
        steps_per_cut=20,
        learning_rate=RATE,
        random_state=0,
    )
    seconds = time.perf_counter() - start
    times = seconds * np.linspace(0.0, 1.0, len(path) + 1)[1:]
    print(f"Mondrian path: {len(path)} lifetimes evaluated, {path.n_cells[-1]} features at the end")
    return times, np.minimum.accumulate(path.validation_error / scale), path.best_lifetime()


def search(error, n_halvings, n_bisections):
    """Halve the lifetime from 1 on, as in section 8.2, then bisect around the best one.

    The paper also tries doubling, if that is more promising. Here the direction is given away.
    """
    tried = {0.5**k: error(0.5**k) for k in range(n_halvings)}
    for _ in range(n_bisections):
        ordered = sorted(tried)
        at = ordered.index(min(tried, key=tried.get))
        sides = [ordered[i] for i in (at - 1, at + 1) if 0 <= i < len(ordered)]
        lifetime = float(np.sqrt(ordered[at] * min(sides, key=tried.get)))
        tried[lifetime] = error(lifetime)


def descent(n_points):
    """Make stochastic gradient descent as the path takes it, for one lifetime."""
    return SGDRegressor(
        alpha=RIDGE / n_points,
        max_iter=EPOCHS,
        tol=None,
        learning_rate="constant",
        eta0=RATE,
        fit_intercept=False,
        random_state=0,
    )


def refit_curve(make, model, train, validation, n_estimators, steps):
    """Return times and best errors so far of features made and fitted for each lifetime."""
    (X, y), (X_val, y_val) = train, validation
    times, errors, lifetimes = [], [], []
    start = time.perf_counter()

    def error(lifetime):
        features = make(n_estimators, lifetime, random_state=0)
        Z = features.fit_transform(np.concatenate([X, X_val]))
        model.fit(Z[: len(y)], y - y.mean())
        errors.append(relative_error(model.predict(Z[len(y) :]) + y.mean(), y_val))
        times.append(time.perf_counter() - start)
        lifetimes.append(lifetime)
        return errors[-1]

    search(error, *steps)
    best = int(np.argmin(errors))
    return np.array(times), np.minimum.accumulate(errors), lifetimes[best]


def main():
    options = arguments(
        __file__, __doc__, data=None, trees=350, maximum=8e-6, halvings=26, bisections=6
    )
    import matplotlib.pyplot as plt

    train, validation, _ = cpu(options)
    n_estimators = 10 if options.quick else options.trees
    steps = (3, 1) if options.quick else (options.halvings, options.bisections)
    small = train[0][:30], train[1][:30]
    path_curve(small, small, 3, 1e-7)  # compile
    curves = {
        "Mondrian kernel, one SGD path": path_curve(
            train, validation, n_estimators, options.maximum
        )
    }
    refits = {
        "random binning, SGD": (RandomBinningFeatures, descent(len(train[1]))),
        "Fourier features, SGD": (LaplaceFourierFeatures, descent(len(train[1]))),
        # The best that can be done with few dense features: the normal equations.
        "Fourier features, exact": (LaplaceFourierFeatures, Ridge(RIDGE, fit_intercept=False)),
    }
    for name, (make, model) in refits.items():
        curves[name] = refit_curve(make, model, train, validation, n_estimators, steps)
    figure, axis = plt.subplots(figsize=(7, 4.5), layout="constrained")
    for name, (times, errors, lifetime) in curves.items():
        axis.step(times, errors, where="post", label=name)
        print(
            f"{name}: {errors[-1]:.2f} % at lifetime {lifetime:.2g} after {times[-1]:.1f} s; "
            + ", ".join(
                f"{level} % after {times[errors <= level][0]:.2f} s"
                for level in (10, 8, 7, 6)
                if errors[-1] <= level
            )
        )
    axis.set(xscale="log", xlabel="seconds", ylabel="best validation error so far, %", ylim=(0, 25))
    axis.legend()
    save(figure, options.output)


if __name__ == "__main__":
    main()
