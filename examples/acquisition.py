"""A search on Branin's function: trials, the model's mean and deviation, and the acquisition.

The objective is log(1 + Branin), to be minimised. One row of panels is after 13 trials, the other
after 25. The last column has the logarithm of the expected improvement, and the next suggestion
(star). The search computes the score for transformed values of the objective, so the maximum of the
panel may be a little apart from the suggestion.

The example prints, for each row, the best value and the distance from the suggestion to the nearest
minimum.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from _figures import arguments, save, say

from mondrian_bo import Float, MondrianOptimizer, SearchSpace
from mondrian_bo.acquisitions import LogExpectedImprovement, Prediction

SPACE = SearchSpace({"x": Float(-5.0, 10.0), "y": Float(0.0, 15.0)})
MINIMA = np.array([[-np.pi, 12.275], [np.pi, 2.275], [3 * np.pi, 2.475]])
TITLES = ("objective and trials", "mean", "standard deviation", "log expected improvement")
LOWEST = -12.0
"""Scores are drawn down to this much below the largest."""


def log_branin(x, y):
    bowl = y - 5.1 / (4 * np.pi**2) * x**2 + 5 / np.pi * x - 6
    return np.log1p(bowl**2 + 10 * (1 - 1 / (8 * np.pi)) * np.cos(x) + 10)


def main():
    options = arguments(__file__, __doc__, trials=[13, 25], seed=0)
    side = 30 if options.quick else 80
    grid = np.meshgrid(np.linspace(-5, 10, side), np.linspace(0, 15, side))
    points = [{"x": x, "y": y} for x, y in zip(grid[0].ravel(), grid[1].ravel(), strict=True)]
    optimizer = MondrianOptimizer(SPACE, seed=options.seed, acquisition=LogExpectedImprovement())
    told, suggestion = [], optimizer.ask()
    size = (13.5, 3.1 * len(options.trials))
    figure, rows = plt.subplots(
        len(options.trials), 4, figsize=size, layout="constrained", sharex=True, sharey=True
    )
    for row, n_trials in zip(rows, options.trials, strict=True):
        while len(told) < n_trials:
            value = log_branin(**suggestion)
            optimizer.tell(suggestion, value)
            told.append([suggestion["x"], suggestion["y"], value])
            if len(told) < n_trials:
                suggestion = optimizer.ask()
        best = min(value for _, _, value in told)
        mean, std = optimizer.predict(points)
        score = LogExpectedImprovement()(Prediction(-mean[None], std[None]), -best)
        suggestion = optimizer.ask()
        where = np.array([suggestion["x"], suggestion["y"]])
        distance = np.linalg.norm(MINIMA - where, axis=1).min()
        say(f"{n_trials} trials: best {best:.3f}, suggestion {distance:.2f} from a minimum")
        draw(row, grid, (log_branin(*grid), mean, std, score))
        x, y, _ = np.array(told).T
        row[0].scatter(
            x, y, c=np.arange(len(x)), cmap="Reds", edgecolors="k", s=28, clip_on=False, zorder=3
        )
        for axis in row[1:]:
            axis.scatter(x, y, color="w", edgecolors="k", s=12, clip_on=False, zorder=3)
        row[3].plot(*where, "*", color="red", markeredgecolor="k", markersize=15, clip_on=False)
        row[0].set_ylabel(f"after {n_trials} trials")
    for axis, title in zip(rows[0], TITLES, strict=True):
        axis.set_title(title)
    save(figure, options.output)


def draw(axes, grid, surfaces):
    """Draw a row of surfaces; the score down to `LOWEST` below its maximum."""
    *others, score = surfaces
    surfaces = (*others, np.maximum(score, score.max() + LOWEST))
    for axis, surface in zip(axes, surfaces, strict=True):
        axis.contourf(*grid, surface.reshape(grid[0].shape), levels=20, cmap="viridis")
        axis.set_xticks([-5, 0, 5, 10])


if __name__ == "__main__":
    main()
