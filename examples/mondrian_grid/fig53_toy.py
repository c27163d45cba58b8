"""Figures 5.3, 5.4 and 5.6 of Balog2016thesis: greedy searches on two-dimensional toys."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from _common import FREE_STEPS, arguments, progress, save, say, strategies

from mondrian_bo.surrogates import Greedy, MondrianGridRegressor, search_lifetimes


def toy(relevant, n, seed):
    """Return training and validation data; the second dimension may be irrelevant."""
    rng = np.random.default_rng(seed)
    X = rng.random((2 * n, 2))
    y = np.sin(8.0 * X[:, 0]) + (np.cos(6.0 * X[:, 1]) if relevant else 0.0)
    y += 0.2 * rng.normal(size=2 * n)
    return X[:n], y[:n], X[n:], y[n:]


def surface(model, n_cuts):
    """Return validation errors for 0 to n_cuts - 1 cuts in each dimension, and the lifetimes."""
    axes = [np.array([model.cells.cut_time(d, k) or 0.0 for k in range(n_cuts)]) for d in range(2)]
    errors = np.empty((n_cuts, n_cuts))
    for i, first in enumerate(axes[0]):
        model.set_lifetime(0, float(first))
        # There and back again, so that each step is one cut.
        for j in range(n_cuts) if i % 2 == 0 else range(n_cuts - 1, -1, -1):
            model.set_lifetime(1, float(axes[1][j]))
            errors[i, j] = model.validation_error()
    model.set_lifetimes(np.zeros(2))
    return axes, errors


def main():
    options = arguments(__file__, __doc__, trees=5, points=150, cuts=60, seed=0)
    n_cuts = 8 if options.quick else options.cuts
    n_points = 30 if options.quick else options.points
    figure, panels = plt.subplots(1, 3, figsize=(13, 4.3), layout="constrained")
    for axis, (title, relevant, strategy) in zip(
        panels,
        (
            ("both relevant, greedy", True, Greedy()),
            ("second irrelevant, greedy", False, Greedy()),
            ("both relevant, greedy with removals", True, Greedy(removals=True)),
        ),
        strict=True,
    ):
        grid = MondrianGridRegressor(options.trees, random_state=options.seed)
        model = grid.grid_model(*toy(relevant, n_points, options.seed))
        axes, errors = surface(model, n_cuts)
        search = search_lifetimes(model, strategy, 3 * n_cuts // 2)
        steps = [
            np.searchsorted(axes[d], [lifetimes[d] for lifetimes in search.lifetimes])
            for d in range(2)
        ]
        image = axis.imshow(errors.T, origin="lower", cmap="viridis")
        axis.plot(*steps, "w-", linewidth=1.5)
        best = np.unravel_index(np.argmin(errors), errors.shape)
        axis.plot(*best, "r*", markersize=10)
        axis.set(xlim=(-0.5, n_cuts - 0.5), ylim=(-0.5, n_cuts - 0.5))
        axis.set(title=title, xlabel="cuts in dimension 1", ylabel="cuts in dimension 2")
        figure.colorbar(image, ax=axis, shrink=0.8)
        print(
            f"{title}: {errors[0, 0]:.3f} without cuts, least on the surface {errors.min():.3f}; "
            f"the search ends after {len(search.scores) - 1} steps, best {search.best_score:.3f} "
            f"at lifetimes {search.best_lifetimes.round(2)}, relevant at 1: "
            f"{search.relevant_features(1.0)}"
        )
    save(figure, options.output)
    compare(options.trees, n_points, n_cuts, options.seed)


def compare(n_trees, n_points, n_cuts, seed):
    """Print the result of each strategy on both problems."""
    for relevant in (True, False):
        data = toy(relevant, n_points, seed)
        named = strategies(2, 100.0, seed)
        for name, strategy in progress(named.items()):
            model = MondrianGridRegressor(n_trees, random_state=seed).grid_model(*data)
            n_steps = n_cuts if name in FREE_STEPS else 3 * n_cuts // 2
            search = search_lifetimes(model, strategy, n_steps)
            say(
                f"{'both relevant' if relevant else 'second irrelevant'}, {name}: "
                f"{search.best_score:.3f} after {search.n_evaluations} evaluations, at "
                f"lifetimes {search.best_lifetimes.round(2)}"
            )


if __name__ == "__main__":
    main()
