"""Figure 7 of Mourtada2021: the decision function of AMF along a stream, with its test AUC.

Two simulated binary problems, two moons and two circles. One forest per row learns the samples one
by one; each panel shows the forest after t samples.
"""

from __future__ import annotations

import matplotlib.pyplot as plt
from _common import (
    TOYS,
    arguments,
    auc_along,
    box_around,
    draw_decision_function,
    draw_samples,
    save,
)

from mondrian_bo.surrogates import AMFClassifier

STEPS = (5, 20, 50, 150, 500, 1500)
N_TEST = 2000


def main():
    options = arguments(__file__, __doc__, trees=10, seed=0)
    steps = STEPS[:3] if options.quick else STEPS
    toys = {name: TOYS[name] for name in ("moons", "circles")}
    figure, axes = plt.subplots(
        2, len(steps), figsize=(2.2 * len(steps), 4.6), layout="constrained", squeeze=False
    )
    for row, (name, make) in zip(axes, toys.items(), strict=True):
        X, y = make(steps[-1], options.seed)
        test = make(N_TEST, options.seed + 1)
        forest = AMFClassifier(options.trees, random_state=options.seed)
        scores = auc_along(forest, X, y, *test, steps)
        for axis, step, score in zip(row, steps, scores, strict=True):
            draw_decision_function(axis, forest, box_around(X), score)
            draw_samples(axis, X[:step], y[:step])
            axis.set_title(f"{name}, t = {step}", fontsize=10)
            print(f"{name:8} {step:5} samples: test AUC {score:.3f}")
    save(figure, options.output)


if __name__ == "__main__":
    main()
