"""Figure 1 of Mourtada2021: decision functions of 10 trees and of their forest."""

from __future__ import annotations

from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
from _common import (
    TOYS,
    arguments,
    auc,
    box_around,
    draw_decision_function,
    draw_samples,
    progress,
    save,
    say,
)

from mondrian_bo.surrogates import AMFClassifier


def main():
    options = arguments(__file__, __doc__, samples=200, trees=10, toy="moons")
    X, y = TOYS[options.toy](40 if options.quick else options.samples, 0)
    X_test, y_test = TOYS[options.toy](2000, 1)
    box = box_around(X)
    trees = [AMFClassifier(1, random_state=seed).fit(X, y) for seed in range(options.trees)]
    forest = SimpleNamespace(
        predict_proba=lambda X: np.mean([tree.predict_proba(X) for tree in trees], axis=0)
    )
    columns = -(-options.trees // 2)
    size = (2.1 * (columns + 2), 4.2)
    figure = plt.figure(figsize=size, layout="constrained")
    grid = figure.add_gridspec(2, columns + 2)
    scores = [auc(tree, X_test, y_test) for tree in progress(trees)]
    for i, (tree, score) in enumerate(zip(trees, scores, strict=True)):
        axis = figure.add_subplot(grid[i // columns, i % columns])
        draw_decision_function(axis, tree, box, score)
        draw_samples(axis, X, y)
    axis = figure.add_subplot(grid[:, columns:])
    score = auc(forest, X_test, y_test)
    draw_decision_function(axis, forest, box, score)
    draw_samples(axis, X, y)
    axis.set_title(f"forest of {options.trees} trees")
    say(f"test AUC: trees {np.mean(scores):.3f} on average, forest {score:.3f}")
    save(figure, options.output)


if __name__ == "__main__":
    main()
