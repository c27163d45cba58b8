"""Figure 6 of Balog2016, 3.1 of Balog2016thesis: test errors against features."""

from __future__ import annotations

import numpy as np
from _common import MAPS, RIDGE, arguments, cpu, progress, relative_error, save, say, table
from scipy.linalg import cho_factor, cho_solve

from mondrian_bo.surrogates import LaplaceKernel


def solve(matrix, vector, ridge):
    """Solve a regularised system."""
    matrix.flat[:: len(matrix) + 1] += ridge
    return cho_solve(cho_factor(matrix, overwrite_a=True), vector)


def ridge_predictions(Z, y, Z_test, ridge):
    """Predict with ridge regression by the smaller of the two systems of equations."""
    dual = Z.shape[0] < Z.shape[1]
    gram = Z @ Z.T if dual else Z.T @ Z
    gram = gram if isinstance(gram, np.ndarray) else gram.toarray()
    solved = solve(gram, y if dual else Z.T @ y, ridge)
    return Z_test @ (Z.T @ solved if dual else solved)


def houses(rng, n=4000):
    """Make eight synthetic inputs and prices, similar to the California data."""
    X = rng.random((n, 8))
    centres = rng.random((12, 2))
    near = np.abs(X[:, None, :2] - centres).sum(axis=2).min(axis=1)
    return X, np.exp(12.0 - 2.0 * near + X[:, 7] + 0.2 * rng.normal(size=n))


def scaled(train, test):
    """Return the data with the training inputs in the unit cube."""
    low, extent = train[0].min(axis=0), np.maximum(np.ptp(train[0], axis=0), 1e-12)
    return [((X - low) / extent, y) for X, y in (train, test)]


def draw(axis, train, test, lifetime, ridge, sizes, repeats, against_columns):
    """Draw errors against M or C, with the exact kernel as a line."""
    (X, y), (X_test, y_test) = train, test
    between = LaplaceKernel(lifetime)(X_test, X)
    solved = solve(LaplaceKernel(lifetime)(X), y - y.mean(), ridge)
    exact = relative_error(y.mean() + between @ solved, y_test)
    say(f"lifetime {lifetime:g}, ridge {ridge:g}, {len(y)} points: exact {exact:.2f} %")
    for name, make in MAPS.items():
        errors, columns = np.empty((2, len(sizes), repeats))
        for i, n_estimators in enumerate(progress(sizes, desc=name)):
            for seed in range(repeats):
                features = make(n_estimators, lifetime, random_state=seed)
                # As in the papers, the partitions are those of all inputs.
                Z = features.fit_transform(np.concatenate([X, X_test]))
                used = np.asarray(abs(Z[: len(y)]).sum(axis=0)).ravel() > 0.0
                Z = Z[:, used]
                values = ridge_predictions(Z[: len(y)], y - y.mean(), Z[len(y) :], ridge)
                errors[i, seed] = relative_error(y.mean() + values, y_test)
                columns[i, seed] = used.sum()
        mean, std = errors.mean(axis=1), errors.std(axis=1)
        axis.errorbar(
            columns.mean(axis=1) if against_columns else sizes, mean, std, capsize=3, label=name
        )
        for n, error, n_columns in zip(sizes, mean, columns.mean(axis=1), strict=True):
            say(f"  {name}, M = {n}: {error:.2f} % with {n_columns:.0f} features")
    axis.axhline(exact, color="0.5", linestyle="--", label="exact Laplace kernel")
    label = "C, features" if against_columns else "M, non-zero features in a row"
    axis.set(
        xscale="log",
        xlabel=label,
        ylim=(0.0, 25.0),
        title=f"lifetime {lifetime:g}, ridge {ridge:g}",
    )


def main():
    options = arguments(__file__, __doc__, data=None, training=2000, repeats=3)
    import matplotlib.pyplot as plt

    (X, y), _, (X_test, y_test) = cpu(options)
    X, y = X[: options.training], y[: options.training]
    sizes = [2, 10] if options.quick else [2, 5, 10, 20, 50, 100, 200, 500]
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(14, 4.5), layout="constrained")
    settings = sizes, options.repeats
    draw(left, (X, y), (X_test, y_test), 1e-6, RIDGE, *settings, False)
    # Balog2016thesis does not give its setting. Here inputs are in the unit cube, with more
    # regularisation.
    draw(middle, *scaled((X, y), (X_test, y_test)), 0.3, 0.01, *settings, True)
    X, y = table(options.data, "california", "target", houses, options.quick)
    y = np.log(y) - np.log(y).mean()  # so that errors are in per cent of the deviation
    ends = min(options.training, len(y) // 2), options.training + 2000
    train, test = (X[: ends[0]], y[: ends[0]]), (X[ends[0] : ends[1]], y[ends[0] : ends[1]])
    draw(right, *scaled(train, test), 1.0, 0.1, *settings, True)
    right.set(title=f"California, {right.get_title()}", ylim=(30.0, 100.0))
    left.set_ylabel("test error, %")
    # The left panel has no room beside its curves.
    middle.legend(loc="upper right")
    save(figure, options.output)


if __name__ == "__main__":
    main()
