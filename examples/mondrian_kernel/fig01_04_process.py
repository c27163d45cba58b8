"""Figures 1 to 4 of Balog2016: the Mondrian process, its restriction, its features over time."""

from __future__ import annotations

import numpy as np
from _common import arguments, save, say

from mondrian_bo.surrogates import MondrianPartition

UNIT = [[0.0, 1.0], [0.0, 1.0]]
"""The box of the figures."""

INNER = [[0.25, 0.7], [0.3, 0.8]]
"""The smaller box of Figure 2."""

POINTS = np.array([[0.2, 0.75], [0.35, 0.6], [0.85, 0.55], [0.6, 0.15]])
"""Four points, as in Figures 3 and 4."""


def draw_features(axis, partition, title, fresh=None):
    """Draw points in a partition; list the column of each point's feature, from 1."""
    partition.draw(axis, color="0.3")
    if fresh is not None:
        other = 1 - fresh.dimension[-1]
        along, across = np.full(2, fresh.threshold[-1]), fresh.box[-1, other]
        line = (across, along) if other == 0 else (along, across)
        axis.plot(*line, color="C0", linewidth=4)
    cells = partition.apply(POINTS)
    columns = np.unique(cells, return_inverse=True)[1] + 1
    for i, (point, column) in enumerate(zip(POINTS, columns, strict=True)):
        axis.plot(*point, "ko", markersize=4)
        axis.annotate(
            f"x{i + 1}: feature {column}", point, (0, 6), textcoords="offset points", ha="center"
        )
    axis.set_title(title)


def two_times(seed):
    """Return partitions before and after the cut by which the points are first in three cells."""
    partition = MondrianPartition.sample(UNIT, 8.0, random_state=seed)
    times = partition.cuts().time
    numbers = [len(np.unique(partition.at(time).apply(POINTS))) for time in times]
    first = next(i for i, number in enumerate(numbers) if number >= 3)
    return partition.at(times[first - 1]), partition.at(times[first])


def main():
    options = arguments(__file__, __doc__, seed=4)
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 3, figsize=(11, 7.4), layout="constrained")
    partition = MondrianPartition.sample(UNIT, 1.5, random_state=options.seed)
    partition.draw(axes[0, 0], times=True, color="C2")
    axes[0, 0].set_title("1a: cuts of the unit box, with their times")
    partition.draw_tree(axes[0, 1], color="C2")
    axes[0, 1].set_title("1b: the same cuts as a tree")
    larger = partition.evolve(3.0, random_state=options.seed)
    larger.draw(axes[0, 2], color="0.5", linestyle="--")
    larger.restrict(INNER).draw(axes[0, 2], color="C2", linewidth=2.5)
    (left, right), (low, high) = INNER
    axes[0, 2].add_patch(plt.Rectangle((left, low), right - left, high - low, fill=False))
    axes[0, 2].set(xlim=(0, 1), ylim=(0, 1), title="2: what it is on a smaller box")
    early, late = two_times(options.seed)
    draw_features(axes[1, 0], early, f"3: features at lifetime {early.lifetime:.2f}")
    draw_features(axes[1, 1], late, f"4: a new cut at {late.lifetime:.2f}", late.cuts())
    partition = MondrianPartition.sample([[0.0, 1.0]], 12.0, random_state=options.seed)
    partition.draw(axes[1, 2])
    axes[1, 2].set(title="one dimension: cuts over time", ylabel="lifetime")
    for axis in (axes[0, 0], axes[0, 2], axes[1, 0], axes[1, 1]):
        axis.set(xticks=[], yticks=[], aspect="equal")
    say(f"{late.n_cells} cells at lifetime {late.lifetime:.2f}")
    save(figure, options.output)


if __name__ == "__main__":
    main()
