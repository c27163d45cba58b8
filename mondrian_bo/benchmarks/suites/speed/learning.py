"""What the forest regressor needs to learn and to predict, beside onelearn and scikit-learn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from sklearn.ensemble import ExtraTreesRegressor

from mondrian_bo.benchmarks.suites.speed.clock import Cost, best, in_turns, timed, typical
from mondrian_bo.benchmarks.suites.speed.data import regression_data
from mondrian_bo.benchmarks.suites.speed.onelearn_process import OnelearnProcess
from mondrian_bo.benchmarks.suites.speed.rows import Limit, Row, time_row
from mondrian_bo.shared.array_types import FloatArray
from mondrian_bo.surrogates import GaussianProcessForestRegressor, MondrianForestRegressor

__all__ = ["against_extra_trees", "partial_fit", "process_updates", "warm_up"]


SCIKIT_GARDEN = {5: 49_000.0, 20: 27_000.0}
"""Published speed of scikit-garden: points per second of CPU time, learnt in a batch, by number of
features."""

ONELEARN = {5: 12_300.0, 20: 7_600.0}
"""Speed of onelearn in the same unit, measured on the machine of that figure."""

FORESTS: dict[str, dict[str, Any]] = {
    "hyperparameters=paper, branch_off=remaining": {
        "hyperparameters": "paper",
        "branch_off": "remaining",
    },
    "defaults": {},
}
"""Options of our forest by their names in the rows. Our targets are for the first."""


def warm_up() -> None:
    """Compile or load all measured code."""
    X, y = regression_data(50, 3)
    for options in FORESTS.values():
        for min_samples_split in (2, 10):
            forest = _forest(options, min_samples_split)
            forest.fit(X, y).partial_fit(X, y).predict(X, return_std=True)
    process_updates(40, 3, 20, updates=2)
    _extra_trees().fit(X, y).predict(X)


def partial_fit(
    n: int,
    d: int,
    step: int,
    onelearn: OnelearnProcess | None,
    *,
    at_least: float,
    repeats: int = 5,
) -> list[Row]:
    """Measure ``partial_fit`` of a new forest of 10 trees.

    Parameters
    ----------
    n, d : int
        Numbers of points and features.
    step : int
        Points per call: `n` for one batch, 1 for one point after the other.
    onelearn : OnelearnProcess or None
        The process that measures onelearn, if there is one.
    at_least : float
        Our target for the ratio to onelearn.
    repeats : int, default=5
        Runs of each, the best of which counts.

    Returns
    -------
    list of Row
        Rows compared with onelearn and, for a batch whose figure is known, with scikit-garden. The
        last row is that of the default options.
    """
    X, y = regression_data(n, d)
    programs: list[Callable[[], Cost]] = [
        partial(_learn, X, y, step, options) for options in FORESTS.values()
    ]
    if onelearn is not None:
        programs.append(partial(onelearn.learn, onelearn.store(X, y), step))
    costs = in_turns(programs, repeats)
    how = "one batch" if step >= n else "one by one" if step == 1 else f"{step} at a time"
    theirs = costs[2] if onelearn else None
    row, default = (
        _best_row(f"partial_fit {n:,} x {d}, {how}, {label}", ours, "onelearn", theirs, limit)
        for label, ours, limit in zip(FORESTS, costs[:2], (at_least, None), strict=True)
    )
    published = SCIKIT_GARDEN.get(d) if step >= n else None
    if published is None:
        return [row, default]
    rates = {f"{row.name}, published": published}
    if row.baseline is not None:
        # onelearn ran on both machines: the ratio of its speeds converts the published figure.
        scale = (n / row.baseline) / ONELEARN[d]
        rates[f"{row.name}, published, scaled by onelearn"] = published * scale
    references = [
        replace(
            row,
            name=reference,
            baseline_name="scikit-garden",
            baseline=n / rate,
            baseline_wall=None,
            limit=Limit("ratio", 1.0),
            details={"points_per_second": rate},
        )
        for reference, rate in rates.items()
    ]
    return [row, *references, default]


def against_extra_trees(n: int, d: int, repeats: int = 5) -> list[Row]:
    """Measure `fit` and `predict` with standard deviations, compared with those of ExtraTrees.

    Parameters
    ----------
    n, d : int
        Number of points, to learn and to predict, and of features.
    repeats : int, default=5
        Runs of each, the best of which counts.

    Returns
    -------
    list of Row
        Rows of fitting and of predicting, for each set of options.
    """
    X, y = regression_data(n, d)
    tests, _ = regression_data(n, d, seed=1)
    size = f"{n:,} x {d}"
    rows = []
    for label, options in FORESTS.items():
        ours, theirs = _forest(options, min_samples_split=10), _extra_trees()
        programs = [
            partial(timed, partial(ours.fit, X, y)),
            partial(timed, partial(theirs.fit, X, y)),
        ]
        fits = in_turns(programs, repeats)
        programs = [
            partial(timed, partial(ours.predict, tests, return_std=True)),
            partial(timed, partial(theirs.predict, tests)),
            partial(timed, partial(ours.predict, tests)),
        ]
        both, trees, mean = in_turns(programs, repeats)
        faster, half = (None, None) if label == "defaults" else (1.0, 0.5)
        name = f"fit {size}, min_samples_split=10, {label}"
        rows.append(_best_row(name, fits[0], "ExtraTrees", fits[1], faster))
        name = f"predict {size}, mean and std, {label}"
        rows.append(_best_row(name, both, "ExtraTrees", trees, half))
        rows.append(_best_row(f"predict {size}, mean, {label}", mean, "ExtraTrees", trees, None))
    return rows


def process_updates(n: int, d: int, block_size: int, updates: int = 50) -> list[Row]:
    """Measure what Gaussian processes in the leaves need to learn one sample and to predict one.

    Parameters
    ----------
    n, d : int
        Number of samples learnt before, and of features.
    block_size : int
        Largest number of samples of a block.
    updates : int, default=50
        Samples learnt one after the other; the median is reported.

    Returns
    -------
    list of Row
        One row, in milliseconds.
    """
    X, y = regression_data(n + updates, d)
    forest = GaussianProcessForestRegressor(block_size=block_size, random_state=0)
    forest.fit(X[:n], y[:n])
    forest.predict(X[:1])

    def update(i: int) -> None:
        forest.partial_fit(X[i : i + 1], y[i : i + 1]).predict(X[i : i + 1], return_std=True)

    costs = [timed(partial(update, i)).in_milliseconds() for i in range(n, n + updates)]
    name = f"partial_fit + predict of one sample, {n:,} x {d} learnt"
    options = f"GaussianProcessForestRegressor, block_size={block_size}"
    return [time_row(f"{name}, {options}", typical(costs), unit="ms")]


def _best_row(
    name: str,
    ours: Sequence[Cost],
    baseline_name: str,
    baseline: Sequence[Cost] | None,
    at_least: float | None,
) -> Row:
    """Return the row of the best times, with the medians among the details."""
    details: dict[str, object] = {"ours_median": typical(ours)._asdict(), "repeats": len(ours)}
    if baseline is not None:
        details["peer_median"] = typical(baseline)._asdict()
    limit = None if at_least is None else Limit("ratio", at_least)
    fastest = None if baseline is None else best(baseline)
    return time_row(name, best(ours), baseline_name, fastest, limit=limit, details=details)


def _learn(X: FloatArray, y: FloatArray, step: int, options: dict[str, Any]) -> Cost:
    forest = _forest(options)

    def learn() -> None:
        for start in range(0, len(y), step):
            forest.partial_fit(X[start : start + step], y[start : start + step])

    return timed(learn)


def _forest(options: dict[str, Any], min_samples_split: int = 2) -> MondrianForestRegressor:
    return MondrianForestRegressor(min_samples_split=min_samples_split, random_state=0, **options)


def _extra_trees() -> ExtraTreesRegressor:
    return ExtraTreesRegressor(10, min_samples_leaf=5, n_jobs=1, random_state=0)
