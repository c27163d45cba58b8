"""Streams of real targets: errors, one sample after the other, of our AMF and of river's AMF.

Every sample is predicted and then learnt. The error is the mean absolute error. Features are
unscaled, and dates are days; with ``--standardised`` they pass through river's StandardScaler,
which learns along the stream. The first five streams are river's track. The others are further
streams of river, the diabetes data, and with ``--data`` the tables of a folder (gzipped, target
first or named EP), in the order of their rows.

The example needs river in the same environment (``pip install river``). Without river, it uses
Friedman's stream and the diabetes data only, and leaves river's forest out.
"""

from __future__ import annotations

import argparse
import csv
import gzip
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from _figures import progress, say
from sklearn.datasets import load_diabetes, make_friedman1

from mondrian_bo.surrogates import AMFRegressor

MODELS = {
    "AMFRegressor()": {},
    "feature_relevance=True": {"feature_relevance": True},
    "stacking=False": {"stacking": False},
    'step="corollary"': {"step": "corollary"},
    "use_aggregation=False": {"use_aggregation": False},
}
SHARES = {"a fifth of the nodes": 0.2, "a tenth of the nodes": 0.1}
"""Models whose trees have a limit: this share of the nodes of AMFRegressor()."""

GROWTH = {"weights 1.001 ** t": 1.001, "weights 1.002 ** t": 1.002}
"""Models that forget: the weight of each sample is this factor times that of the sample before."""


def as_number(value):
    return value.timestamp() / 86400.0 if hasattr(value, "timestamp") else float(value)


def streams(n_samples, folder=None):
    """Yield names, inputs and targets."""
    if find_spec("river") is None:
        yield "Friedman", *make_friedman1(n_samples, 10, noise=1.0, random_state=42)
    else:
        for name, stream in river_streams(n_samples).items():
            rows = list(stream.take(n_samples))
            inputs = [[as_number(value) for value in row.values()] for row, _ in rows]
            yield name, np.array(inputs), np.array([target for _, target in rows], dtype=float)
    X, y = load_diabetes(return_X_y=True)
    yield "diabetes", X[:n_samples], y[:n_samples]
    for path in sorted(folder.glob("*.csv.gz")) if folder else []:
        with gzip.open(path, "rt") as lines:
            names, *rows = csv.reader(lines)
        column = names.index("EP") if "EP" in names else 0
        table = np.array(rows[:n_samples], dtype=float)
        yield path.name.split(".")[0], np.delete(table, column, axis=1), table[:, column]


def river_streams(n_samples):
    """Return river's track and further streams of river, by name."""
    from river import datasets
    from river.datasets import synth

    # The function changes in parts of the space after 40, 70 and 90 %, or in two gradual steps.
    local = [int(share * n_samples) for share in (0.4, 0.7, 0.9)]
    return {
        "ChickWeights": datasets.ChickWeights(),
        "TrumpApproval": datasets.TrumpApproval(),
        "Friedman": synth.Friedman(seed=42),
        "Friedman, local drift": synth.FriedmanDrift("lea", tuple(local), seed=42),
        "Friedman, gradual drift": synth.FriedmanDrift("gra", tuple(local[:2]), seed=42),
        "Planes2D": synth.Planes2D(seed=42),
        "SP500Stocks": datasets.SP500Stocks(),
        "AirlinePassengers": datasets.AirlinePassengers(),
        "WaterFlow": datasets.WaterFlow(),
    }


def standardised(X):
    """Return the rows of X as river's StandardScaler gives them to a model that follows it.

    These are two arrays: the rows at prediction, by the moments of the rows before, and the rows
    at learning, by moments that include the row.
    """
    from river.preprocessing import StandardScaler

    scaler, asked, learnt = StandardScaler(), np.empty_like(X), np.empty_like(X)
    for i, row in enumerate(X.tolist()):
        features = dict(enumerate(row))
        asked[i] = list(scaler.transform_one(features).values())
        scaler.learn_one(features)
        learnt[i] = list(scaler.transform_one(features).values())
    return asked, learnt


def ours(model, asked, learnt, y, seed):
    """Return the prequential mean absolute error of a regressor of this library."""
    options, factor = {}, 1.0
    for part in model.split(", "):
        if part in SHARES:
            # A tree of n different points has 2 n - 1 nodes.
            options["max_nodes"] = int(SHARES[part] * (2 * len(y) - 1))
        elif part in GROWTH:
            factor = GROWTH[part]
        else:
            options.update(MODELS[part])
    weights = factor ** np.arange(len(y))
    forest, total = AMFRegressor(random_state=seed, **options), abs(y[0])
    for i in range(len(y)):
        if i > 0:
            total += abs(forest.predict(asked[i : i + 1])[0] - y[i])
        one = slice(i, i + 1)
        forest.partial_fit(learnt[one], y[one], sample_weight=weights[one])
    return total / len(y)


def rivers(asked, learnt, y, seed):
    """Return the prequential mean absolute error of river's AMFRegressor."""
    from river import forest as river_forest

    forest, total = river_forest.AMFRegressor(seed=seed), 0.0
    for query, row, target in zip(asked.tolist(), learnt.tolist(), y.tolist(), strict=True):
        total += abs((forest.predict_one(dict(enumerate(query))) or 0.0) - target)
        forest.learn_one(dict(enumerate(row)), target)
    return total / len(y)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small data, as a test")
    parser.add_argument("--samples", type=int, default=5000, help="most samples of a stream")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--streams", nargs="+", help="names of streams; all of them by default")
    parser.add_argument(
        "--models",
        nargs="+",
        default=list(MODELS),
        help="names of our models, or some joined by ', '",
    )
    parser.add_argument("--no-river", action="store_true", help="only our models")
    parser.add_argument("--data", type=Path, help="a folder with tables")
    parser.add_argument("--standardised", action="store_true", help="by river's StandardScaler")
    options = parser.parse_args()
    n_samples, n_seeds = (60, 1) if options.quick else (options.samples, options.seeds)
    seeds = range(options.first_seed, options.first_seed + n_seeds)
    print(f"{'stream':24} {'model':24} {'mean absolute error':>20}")
    for name, X, y in streams(n_samples, options.data):
        if name not in (options.streams or [name]):
            continue
        asked, learnt = standardised(X) if options.standardised else (X, X)
        errors = {model: [] for model in options.models}
        for seed in progress(seeds, desc=name):
            for model in options.models:
                errors[model].append(ours(model, asked, learnt, y, seed))
            if find_spec("river") is not None and not options.no_river:
                errors.setdefault("river", []).append(rivers(asked, learnt, y, seed))
        for model, found in errors.items():
            say(f"{name:24} {model:24} {np.mean(found):11.3f} ± {np.std(found):.3f}")


if __name__ == "__main__":
    main()
