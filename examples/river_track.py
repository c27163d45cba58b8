"""Streams of real targets from river: prequential errors of this library's AMF and of river's AMF.

Every sample is predicted and then learnt. Features are unscaled, and dates are days. The error is
the mean absolute error. The example needs river in the same environment (``pip install river``).
Without river, it uses Friedman's stream only, and leaves river's forest out.
"""

from __future__ import annotations

import argparse
from importlib.util import find_spec

import numpy as np
from _figures import progress, say
from sklearn.datasets import make_friedman1

from mondrian_bo.surrogates import AMFRegressor

MODELS = {
    "AMFRegressor()": {},
    "stacking=True": {"stacking": True},
    'step="corollary"': {"step": "corollary"},
    "use_aggregation=False": {"use_aggregation": False},
    "feature_relevance=True": {"feature_relevance": True},
    "both": {"use_aggregation": False, "feature_relevance": True},
}


def as_number(value):
    return float(value.toordinal() if hasattr(value, "toordinal") else value)


def streams(n_samples):
    """Yield names, inputs and targets."""
    if find_spec("river") is None:
        yield "Friedman", *make_friedman1(n_samples, 10, noise=1.0, random_state=42)
        return
    from river import datasets
    from river.datasets import synth

    # The function changes in parts of the space after 40, 70 and 90 %, or in two gradual steps.
    local = [int(share * n_samples) for share in (0.4, 0.7, 0.9)]
    named = {
        "ChickWeights": datasets.ChickWeights(),
        "TrumpApproval": datasets.TrumpApproval(),
        "Friedman": synth.Friedman(seed=42),
        "Friedman, local drift": synth.FriedmanDrift("lea", tuple(local), seed=42),
        "Friedman, gradual drift": synth.FriedmanDrift("gra", tuple(local[:2]), seed=42),
    }
    for name, stream in named.items():
        rows = list(stream.take(n_samples))
        inputs = [[as_number(value) for value in row.values()] for row, _ in rows]
        yield name, np.array(inputs), np.array([target for _, target in rows], dtype=float)


def ours(options, X, y, seed):
    """Return the prequential mean absolute error of a regressor of this library."""
    forest, total = AMFRegressor(random_state=seed, **options), abs(y[0])
    forest.partial_fit(X[:1], y[:1])
    for i in range(1, len(y)):
        total += abs(forest.predict(X[i : i + 1])[0] - y[i])
        forest.partial_fit(X[i : i + 1], y[i : i + 1])
    return total / len(y)


def rivers(X, y, seed):
    """Return the prequential mean absolute error of river's AMFRegressor."""
    from river import forest as river_forest

    forest, total = river_forest.AMFRegressor(seed=seed), 0.0
    for row, target in zip(X.tolist(), y.tolist(), strict=True):
        features = dict(enumerate(row))
        total += abs((forest.predict_one(features) or 0.0) - target)
        forest.learn_one(features, target)
    return total / len(y)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small data, as a test")
    parser.add_argument("--samples", type=int, default=5000, help="most samples of a stream")
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    n_samples, seeds = (60, range(1)) if options.quick else (options.samples, range(options.seeds))
    print(f"{'stream':24} {'model':24} {'mean absolute error':>20}")
    for name, X, y in streams(n_samples):
        errors = {model: [] for model in MODELS}
        for seed in progress(seeds, desc=name):
            for model, settings in MODELS.items():
                errors[model].append(ours(settings, X, y, seed))
            if find_spec("river") is not None:
                errors.setdefault("river", []).append(rivers(X, y, seed))
        for model, found in errors.items():
            say(f"{name:24} {model:24} {np.mean(found):11.3f} ± {np.std(found):.3f}")


if __name__ == "__main__":
    main()
