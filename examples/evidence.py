"""Hyper-parameters by leave-one-out density or by evidence, and trees weighed by their evidence.

Columns are RMSE / negative log predictive density on held-out samples, as in
gaussian_process_leaves.py. "Own" fits hyper-parameters for each tree, as ten forests of one tree;
"weighed" gives trees weights in proportion to their evidence.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from _figures import progress, say
from gaussian_process_leaves import data_sets, scores
from scipy.special import softmax

from mondrian_bo.surrogates import MondrianForestRegressor


class OwnTrees:
    """Ten forests of one tree, each with hyper-parameters of its own."""

    def __init__(self, weigh, seed):
        self.weigh = weigh
        self.trees = [
            MondrianForestRegressor(
                1, hyperparameters="marginal_likelihood", random_state=100 * seed + t
            )
            for t in range(10)
        ]

    def fit(self, X, y):
        """Fit all trees, and weigh them."""
        for tree in self.trees:
            tree.fit(X, y)
        evidence = np.array([tree.log_marginal_likelihood() for tree in self.trees])
        self.weights = softmax(evidence) if self.weigh else np.full(10, 0.1)
        return self

    def predict(self, X, return_std):
        """Return mean and standard deviation of the mixture; `return_std` is true."""
        moments = np.array([tree.predict(X, return_std=return_std) for tree in self.trees])
        means, variances = moments[:, 0], moments[:, 1] ** 2
        mean = self.weights @ means
        return mean, np.sqrt(self.weights @ (variances + (means - mean) ** 2))


def models(seed):
    """Return the models by name."""
    options = {"hyperparameters": "marginal_likelihood", "random_state": seed}
    return {
        "leave-one-out": MondrianForestRegressor(random_state=seed),
        "evidence": MondrianForestRegressor(**options),
        "evidence, weighed": MondrianForestRegressor(**options, weigh_trees=True),
        "own evidence": OwnTrees(False, seed),
        "own evidence, weighed": OwnTrees(True, seed),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small data, as a test")
    parser.add_argument("--data", type=Path, help="a folder of further data sets")
    parser.add_argument("--sizes", type=int, nargs="+", default=[200, 1000])
    parser.add_argument("--splits", type=int, default=3)
    options = parser.parse_args()
    if options.quick:
        options.sizes, options.splits = [60], 1
    say(f"| data | n | {' | '.join(models(0))} |")
    say(f"| --- | ---: |{' ---: |' * len(models(0))}")
    shorter, start = [], time.perf_counter()
    for name, X, y in data_sets(options.data, max(options.sizes)):
        for n in options.sizes:
            if n + 50 > len(y):
                continue
            rows = []
            for split in progress(range(options.splits), desc=f"{name}, n={n}"):
                order = np.random.default_rng(split).permutation(len(y))
                train, test = order[:n], order[n : n + 1000]
                row = []
                for model in models(split).values():
                    row.append(scores(model, (X[train], y[train]), (X[test], y[test]))[:2])
                    if hasattr(model, "model_"):
                        shorter.append(model.model_.forest.lifetime < np.inf)
                rows.append(row)
            cells = [f"{rmse:.3f} / {nlpd:.3f}" for rmse, nlpd in np.mean(rows, axis=0)]
            say(f"| {name} | {n} | {' | '.join(cells)} |")
    say(f"{sum(shorter)} of {len(shorter)} forests have a shorter lifetime than infinity")
    say(f"{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
