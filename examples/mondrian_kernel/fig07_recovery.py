"""Figure 7 of Balog2016: recovering the lifetime 10 of a Laplace kernel from one path."""

from __future__ import annotations

import time

import numpy as np
from _common import arguments, save, smooth_data

from mondrian_bo.surrogates import MondrianKernelRegressor, lifetime_posterior

TRUTH = 10.0


def main():
    options = arguments(__file__, __doc__, trees=50, maximum=100.0, points=1500, noise=0.1)
    import matplotlib.pyplot as plt

    n_points = 150 if options.quick else options.points
    X, y = smooth_data(n_points, 2, TRUTH, options.noise, seed=0)
    train, validation, test = np.array_split(np.arange(n_points), 3)
    model = MondrianKernelRegressor(
        4 if options.quick else options.trees,
        options.maximum,
        noise_variance=options.noise**2,
        normalize_y=False,
        random_state=0,
    )
    model.lifetime_path(X[:20], y[:20])  # compile
    start = time.perf_counter()
    path = model.lifetime_path(X[train], y[train], X[validation], y[validation])
    seconds = time.perf_counter() - start
    both = np.concatenate([train, validation])
    rows = []
    for name in ("validation_error", "log_marginal_likelihood"):
        lifetime = path.best_lifetime(name)
        final = MondrianKernelRegressor(
            model.n_estimators,
            lifetime,
            noise_variance=options.noise**2,
            normalize_y=False,
            random_state=1,
        ).fit(X[both], y[both])
        error = np.sqrt(np.mean((final.predict(X[test]) - y[test]) ** 2))
        rows.append((name, lifetime))
        print(f"best lifetime by {name}: {lifetime:.1f}; test error there {error:.3f}")
    posterior = lifetime_posterior(path)
    print(
        f"posterior: median {posterior.quantile(0.5):.1f}, 90 % between "
        f"{posterior.quantile(0.05):.1f} and {posterior.quantile(0.95):.1f}; "
        f"targets have standard deviation {y.std():.3f}"
    )
    print(f"{len(path)} lifetimes in {seconds:.1f} s")
    figure, axis = plt.subplots(figsize=(7, 4.5), layout="constrained")
    axis.step(path.lifetimes, path.training_error, "r", where="post", label="training")
    axis.step(path.lifetimes, path.validation_error, "g", where="post", label="validation")
    axis.axvline(TRUTH, color="k", linestyle="--", label="truth")
    for (name, lifetime), style in zip(rows, ("-.", ":"), strict=True):
        label = f"best by {name.replace('_', ' ')}"
        axis.axvline(lifetime, color="0.5", linestyle=style, label=label)
    axis.set(xscale="log", xlim=(0.1, options.maximum), xlabel="lifetime", ylabel="error")
    axis.legend()
    save(figure, options.output)


if __name__ == "__main__":
    main()
