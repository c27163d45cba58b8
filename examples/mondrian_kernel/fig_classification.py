"""Errors of a support vector machine and a logistic regression at all lifetimes, on the digits."""

from __future__ import annotations

import time

import numpy as np
from _common import arguments, progress, save, say
from sklearn.datasets import load_digits
from sklearn.svm import SVC

from mondrian_bo.surrogates import LaplaceKernel, MondrianKernelClassifier

LOSSES = {"hinge": "support vector machine", "log_loss": "logistic regression"}


def digits(options):
    """Return training and test parts of the digits, with pixels in [0, 1]."""
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))[: 300 if options.quick else None]
    X, y = X[order] / 16.0, y[order]
    middle = 2 * len(y) // 3
    return X[:middle], y[:middle], X[middle:], y[middle:]


def main():
    options = arguments(__file__, __doc__, trees=200, maximum=0.5, variance=10.0, lifetimes=5)
    import matplotlib.pyplot as plt

    X, y, X_test, y_test = digits(options)
    settings = {
        "n_estimators": 10 if options.quick else options.trees,
        "lifetime": options.maximum,
        "prior_variance": options.variance,
        "max_iter": 10_000,
        "random_state": 0,
    }
    figure, axis = plt.subplots(figsize=(7, 4.5), layout="constrained")
    lifetimes = options.maximum * 0.5 ** np.arange(options.lifetimes)[::-1]
    for loss, name in LOSSES.items():
        model = MondrianKernelClassifier(loss, **settings)
        model.lifetime_path(X[:50], y[:50])  # compile
        start = time.process_time()
        path = model.lifetime_path(X, y, X_test, y_test, n_evaluations=500)
        seconds = time.process_time() - start
        (line,) = axis.plot(path.lifetimes, 100.0 * path.validation_error, label=f"{name}, path")
        start = time.process_time()
        fits = [
            100.0 - 100.0 * model.set_params(lifetime=at).fit(X, y).score(X_test, y_test)
            for at in progress(lifetimes, desc=name)
        ]
        refits = time.process_time() - start
        axis.plot(lifetimes, fits, "o", color=line.get_color(), label=f"{name}, fits")
        best = path.best_lifetime()
        say(
            f"{name}: {100.0 * path.validation_error.min():.1f} % at lifetime {best:.2g}; the path "
            f"took {seconds:.1f} s of CPU time, fits at {len(lifetimes)} lifetimes {refits:.1f} s "
            f"({min(fits):.1f} % at the best)"
        )
    exact = [
        100.0
        - 100.0 * SVC(kernel=LaplaceKernel(at), C=options.variance).fit(X, y).score(X_test, y_test)
        for at in lifetimes
    ]
    print(f"exact Laplace kernel, SVC: {min(exact):.1f} % at {lifetimes[np.argmin(exact)]:.2g}")
    axis.plot(lifetimes, exact, "k--", label="support vector machine, exact Laplace kernel")
    axis.set(xlabel="lifetime", ylabel="test error, %", ylim=(0, 10))
    axis.legend()
    save(figure, options.output)


if __name__ == "__main__":
    main()
