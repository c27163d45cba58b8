"""Figures 9 and 10 of Balog2016: kernel and forest on the same Mondrian samples."""

from __future__ import annotations

import time

import numpy as np
from _common import RIDGE, arguments, cpu, save

from mondrian_bo.surrogates import MondrianKernelRegressor


def main():
    options = arguments(
        __file__, __doc__, data=None, trees=50, maximum=2e-6, training=6554, evaluations=150
    )
    import matplotlib.pyplot as plt

    train, _, (X_test, y_test) = cpu(options)
    X, y = (part[: options.training] for part in train)
    model = MondrianKernelRegressor(
        5 if options.quick else options.trees,
        options.maximum,
        noise_variance=RIDGE,
        normalize_y=False,
        random_state=0,
    )
    model.lifetime_paths(X[:20], y[:20])  # compile
    start = time.perf_counter()
    paths = model.lifetime_paths(X, y, X_test, y_test, n_evaluations=options.evaluations)
    print(f"both paths, {paths.kernel.n_cells[-1]} cells: {time.perf_counter() - start:.1f} s")
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.5), layout="constrained")
    scale = np.sqrt(np.mean(y_test**2)) / 100.0
    for (name, path), colour in zip(paths._asdict().items(), ("C0", "C1"), strict=True):
        for part, style in (("training_error", ":"), ("validation_error", "-")):
            label = f"{name}, {'test' if part == 'validation_error' else 'training'}"
            errors = getattr(path, part) / scale
            left.step(path.lifetimes, errors, colour, linestyle=style, where="post", label=label)
        best = int(np.argmin(path.validation_error))
        print(
            f"{name}: least test error {path.validation_error[best] / scale:.2f} % "
            f"at lifetime {path.lifetimes[best]:.2g} with {path.n_cells[best]} cells"
        )
    left.set(xlabel="lifetime", ylabel="error, %", ylim=(0.0, 25.0))
    left.legend()
    model.fit(X, y)
    for name, weights in (
        ("kernel", model.model_.weights),
        ("forest", model.model_.forest_weights),
    ):
        scaled = weights * model.n_estimators**0.5
        right.hist(scaled, bins=np.linspace(-150, 250, 81), alpha=0.6, density=True, label=name)
        print(f"weights of the {name}: standard deviation {scaled.std():.1f}")
    right.set(xlabel=f"weights at lifetime {options.maximum:g}", ylabel="density")
    right.legend()
    save(figure, options.output)


if __name__ == "__main__":
    main()
