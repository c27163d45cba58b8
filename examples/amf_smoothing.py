"""Smoothing and pooling of AMFClassifier: average online log-loss.

Each sample is predicted before it is learnt. Digits have ten classes, breast cancer two; mean ±
standard deviation over seeds of the forest, with the stream in one order.
"""

from __future__ import annotations

import numpy as np
from _figures import arguments, mean_and_deviation, progress, say
from sklearn.datasets import load_breast_cancer, load_digits

from mondrian_bo.surrogates import AMFClassifier

DIRICHLET = (0.5, 0.1, 0.01)
POOLING = ("geometric", "arithmetic")


def online_log_loss(forest, X, y):
    forest.partial_fit(X[:1], y[:1], classes=np.unique(y))
    losses = []
    for i in range(1, len(y)):
        log_probabilities = forest.predict_log_proba(X[i : i + 1])[0]
        losses.append(-log_probabilities[np.searchsorted(forest.classes_, y[i])])
        forest.partial_fit(X[i : i + 1], y[i : i + 1])
    return np.mean(losses)


def main():
    options = arguments(__file__, __doc__, picture=False, quick=False, samples=2000, seeds=5)
    print(f"{'data':14} {'pooling':11} {'dirichlet':>9} {'log-loss':>15}")
    for name, load in (("digits", load_digits), ("breast cancer", load_breast_cancer)):
        X, y = load(return_X_y=True)
        order = np.random.default_rng(42).permutation(len(y))[: options.samples]
        X, y = np.ascontiguousarray(X[order]), y[order]
        for pooling in POOLING:
            for dirichlet in DIRICHLET:
                losses = [
                    online_log_loss(
                        AMFClassifier(dirichlet=dirichlet, pooling=pooling, random_state=seed), X, y
                    )
                    for seed in progress(range(options.seeds))
                ]
                cell = mean_and_deviation(losses)
                say(f"{name:14} {pooling:11} {dirichlet:9} {cell:>15}")


if __name__ == "__main__":
    main()
