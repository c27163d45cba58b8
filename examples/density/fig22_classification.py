"""Figure 2.2 of Balog2016thesis: errors of classification by densities, against dimension."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from _common import arguments, progress, save, say
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.neighbors import KernelDensity

from mondrian_bo.surrogates import MondrianDensityClassifier


def kernel_density_errors(X, y, X_test, y_test):
    """Return the error rate of kernel densities with cross-validated bandwidths."""
    scores = []
    for label in np.unique(y):
        own = X[y == label]
        grid = {"bandwidth": own.std() * np.geomspace(0.05, 2.0, 12)}
        model = GridSearchCV(KernelDensity(), grid, cv=3).fit(own).best_estimator_
        scores.append(model.score_samples(X_test) + np.log(len(own)))
    return np.mean(np.unique(y)[np.argmax(scores, axis=0)] != y_test)


def main():
    options = arguments(__file__, __doc__, digits=[8, 9], trees=30, folds=5)
    X, y = load_digits(return_X_y=True)
    chosen = np.isin(y, options.digits)
    X, y = X[chosen], y[chosen]
    dimensions = [1, 2] if options.quick else [1, 2, 3, 4, 6, 8, 12]
    folds = StratifiedKFold(2 if options.quick else options.folds, shuffle=True, random_state=0)
    errors = np.empty((2, len(dimensions)))
    for i, d in enumerate(dimensions):
        rows = []
        for train, test in progress(list(folds.split(X, y)), desc=f"{d} dimensions"):
            components = PCA(d).fit(X[train])
            Z, Z_test = components.transform(X[train]), components.transform(X[test])
            own = MondrianDensityClassifier(
                10 if options.quick else options.trees, random_state=0
            ).fit(Z, y[train])
            rows.append(
                (
                    np.mean(own.predict(Z_test) != y[test]),
                    kernel_density_errors(Z, y[train], Z_test, y[test]),
                )
            )
        errors[:, i] = np.mean(rows, axis=0)
        say(f"{d} dimensions: Mondrian {errors[0, i]:.4f}, kernel density {errors[1, i]:.4f}")
    figure, axis = plt.subplots(figsize=(6.5, 4), layout="constrained")
    for row, label in zip(errors, ("Mondrian forest density", "kernel density"), strict=True):
        axis.plot(dimensions, 100 * row, "o-", label=label)
    axis.set(xlabel="principal components", ylabel="errors, %")
    axis.legend()
    save(figure, options.output)


if __name__ == "__main__":
    main()
