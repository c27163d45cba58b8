"""Figure 9 of Mourtada2021: decision functions of forests of 100 trees on three toy problems.

AMF with and without aggregation (where each tree predicts with its leaves), the Mondrian forest,
extremely randomised trees and a random forest; the area under the test ROC curve in each corner.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
from _common import (
    FORESTS,
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
from sklearn.metrics import log_loss

from mondrian_bo.surrogates import AMFClassifier

N_TEST = 2000
MODELS = {
    "AMF": FORESTS["AMF"],
    "AMF, no aggregation": lambda seed, n_trees: AMFClassifier(
        n_trees, use_aggregation=False, random_state=seed
    ),
    "Mondrian forest": FORESTS["MF"],
    "Extra Trees": FORESTS["ET"],
    "random forest": FORESTS["RF"],
}


def main():
    options = arguments(__file__, __doc__, samples=300, trees=100, seed=0)
    n_samples, n_trees = (30, 3) if options.quick else (options.samples, options.trees)
    figure, axes = plt.subplots(3, 1 + len(MODELS), figsize=(12.5, 6.4), layout="constrained")
    print(f"{'':28} {'test AUC':>8} {'test log-loss':>13}")
    for row, (toy, make) in zip(progress(axes), TOYS.items(), strict=True):
        X, y = make(n_samples, options.seed)
        X_test, y_test = make(N_TEST, options.seed + 1)
        box = box_around(X)
        draw_samples(row[0], X, y)
        row[0].set(xlim=(box[0][0], box[1][0]), ylim=(box[0][1], box[1][1]), ylabel=toy)
        for axis, (name, model) in zip(row[1:], MODELS.items(), strict=True):
            forest = model(options.seed, n_trees).fit(X, y)
            score = auc(forest, X_test, y_test)
            draw_decision_function(axis, forest, box, score)
            loss = log_loss(y_test, forest.predict_proba(X_test))
            say(f"{toy:8}{name:20} {score:8.3f} {loss:13.3f}")
    for axis, name in zip(axes[0], ("samples", *MODELS), strict=True):
        axis.set_title(name, fontsize=10)
    save(figure, options.output)


if __name__ == "__main__":
    main()
