"""What online learning and predicting cost in time and memory, beside onelearn and river."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mondrian_bo.array_types import AnyArray
from mondrian_bo.benchmarks.speed.clock import Cost, best, in_turns, timed, typical
from mondrian_bo.benchmarks.speed.onelearn_process import Estimator, OnelearnProcess
from mondrian_bo.benchmarks.speed.onelearn_worker import resident_growth
from mondrian_bo.benchmarks.speed.rows import Limit, Row, time_row
from mondrian_bo.benchmarks.streams import river_process
from mondrian_bo.surrogates import AMFClassifier, AMFRegressor

__all__ = ["Sizes", "learning", "measurements", "memory", "predicting", "samples"]


class Sizes(NamedTuple):
    """How much is measured.

    Attributes
    ----------
    batch : int, default=50000
        Samples of a batch, and of predictions.
    one_by_one : int, default=10000
        Samples that are learnt one by one.
    features : tuple of int, default=(5, 20)
        Numbers of features.
    repeats : int, default=3
        Runs of each, the best of which counts.
    """

    batch: int = 50_000
    one_by_one: int = 10_000
    features: tuple[int, ...] = (5, 20)
    repeats: int = 3


_ESTIMATORS: tuple[Estimator, ...] = ("regressor", "classifier")
_TITLES: dict[Estimator, str] = {"regressor": "AMFRegressor", "classifier": "AMFClassifier"}


def samples(n: int, d: int, estimator: Estimator, seed: int = 0) -> tuple[AnyArray, AnyArray]:
    """Draw inputs in the unit cube, and labels or classes that depend on two of them.

    Parameters
    ----------
    n, d : int
        Numbers of samples and, at least 2, of features.
    estimator : {"regressor", "classifier"}
        Whether labels are real, or whether they are above the median.
    seed : int, default=0
        Seed.
    """
    rng = np.random.default_rng(seed)
    X = rng.random((n, d)).astype(np.float32)
    y = np.sin(5.0 * X[:, 0]) + X[:, 1] + 0.1 * rng.standard_normal(n)
    if estimator == "classifier":
        return X, (y > np.median(y)).astype(np.int64)
    return X, y


def measurements(
    onelearn: OnelearnProcess | None, river: Path | None, sizes: Sizes
) -> list[tuple[str, Callable[[], list[Row]]]]:
    """Return everything to measure, with names for the progress bar.

    Parameters
    ----------
    onelearn : OnelearnProcess or None
        onelearn, if it is there.
    river : Path or None
        An interpreter that has river, if there is one.
    sizes : Sizes
        How much.
    """
    batch, one_by_one, features, repeats = sizes
    kinds = [(estimator, d) for d in features for estimator in _ESTIMATORS]
    programs: list[tuple[str, Callable[[], list[Row]]]] = [("warm-up", _warm_up)]
    # Memory first: what was freed later would hide growth.
    programs += [
        (f"memory, {kind}, d={d}", partial(memory, kind, batch, d, onelearn)) for kind, d in kinds
    ]
    programs += [
        (
            f"batch, {kind}, d={d}",
            partial(learning, kind, batch, d, batch, onelearn, None, 4.0, repeats),
        )
        for kind, d in kinds
    ]
    programs += [
        (
            f"one by one, {kind}, d={d}",
            partial(learning, kind, one_by_one, d, 1, onelearn, river, 3.0, repeats),
        )
        for kind, d in kinds
    ]
    programs += [
        (f"predict, {kind}, d={d}", partial(predicting, kind, batch, d, onelearn, 4.0, repeats))
        for kind, d in kinds
    ]
    return programs


def learning(
    estimator: Estimator,
    n: int,
    d: int,
    step: int,
    onelearn: OnelearnProcess | None,
    river: Path | None,
    at_least: float,
    repeats: int,
) -> list[Row]:
    """Measure ``partial_fit`` of a new forest of 10 trees.

    Parameters
    ----------
    estimator : {"regressor", "classifier"}
        What learns.
    n, d : int
        Numbers of samples and features.
    step : int
        Samples per call: `n` for one batch, 1 for one after the other.
    onelearn : OnelearnProcess or None
        onelearn, if it is there.
    river : Path or None
        An interpreter that has river, if there is one.
    at_least : float
        How many times as fast as onelearn we want to be.
    repeats : int
        Runs of each, the best of which counts.

    Returns
    -------
    list of Row
        Beside onelearn and, where the regressor learns one by one, beside river.
    """
    X, y = samples(n, d, estimator)
    programs: list[Callable[[], Cost]] = [partial(_learn, estimator, X, y, step)]
    if onelearn is not None:
        programs.append(partial(onelearn.learn, onelearn.store(X, y), step, estimator))
    beside_river = estimator == "regressor" and step == 1
    if beside_river and river is not None:
        programs.append(partial(river_process.learn, river, X, y))
    costs = in_turns(programs, repeats)
    how = "one batch" if step >= n else "one by one"
    name = f"{_TITLES[estimator]}, {n:,} x {d}, {how}"
    row = _row(name, costs[: 1 if onelearn is None else 2], at_least)
    if not beside_river:
        return [row]
    return [row, *_beside_river(row, n, d, None if river is None else best(costs[-1]))]


def predicting(
    estimator: Estimator,
    n: int,
    d: int,
    onelearn: OnelearnProcess | None,
    at_least: float,
    repeats: int,
) -> list[Row]:
    """Measure predictions, of means or of probabilities; parameters are those of `learning`."""
    X, y = samples(n, d, estimator)
    tests, _ = samples(n, d, estimator, seed=1)
    forest = _new(estimator).partial_fit(X, y)
    function = forest.predict if estimator == "regressor" else forest.predict_proba
    programs: list[Callable[[], Cost]] = [lambda: timed(lambda: function(tests))]
    if onelearn is not None:
        programs.append(partial(onelearn.predict, onelearn.store(X, y, tests), estimator))
    what = "predict" if estimator == "regressor" else "predict_proba"
    name = f"{_TITLES[estimator]}, {n:,} x {d}, {what}"
    return [_row(name, in_turns(programs, repeats), at_least)]


def memory(estimator: Estimator, n: int, d: int, onelearn: OnelearnProcess | None) -> list[Row]:
    """Measure by how much the process grows that learns a batch, in the end and at most.

    Parameters
    ----------
    estimator : {"regressor", "classifier"}
        What learns.
    n, d : int
        Numbers of samples and features.
    onelearn : OnelearnProcess or None
        onelearn, if it is there.

    Returns
    -------
    list of Row
        None where the system does not tell.
    """
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        ours = pool.submit(_remember, estimator, n, d).result()
    theirs = None
    if onelearn is not None:
        theirs = onelearn.remember(onelearn.store(*samples(n, d, estimator)), estimator)
    if ours is None:
        return []
    return [
        Row(
            f"{_TITLES[estimator]}, {n:,} x {d}, {what}",
            "B/point",
            ours[key] / n,
            baseline_name="onelearn",
            baseline=None if theirs is None else theirs[key] / n,
            limit=limit,
        )
        for key, what, limit in (
            ("resident", "resident memory", Limit("ratio", 1.0)),
            ("peak", "largest resident memory", None),
        )
    ]


def _beside_river(row: Row, n: int, d: int, measured: Cost | None) -> list[Row]:
    """Return the rows of the same learning by river: as measured, and as published."""
    rows = []
    limit = Limit("ratio", 20.0)
    if measured is not None:
        rows.append(
            replace(
                row,
                baseline_name="river",
                baseline=measured.cpu,
                baseline_wall=measured.wall,
                limit=limit,
                details={},
            )
        )
    published = river_process.PUBLISHED.get(d)
    if published is not None:
        rows.append(
            replace(
                row,
                baseline_name="river (published)",
                baseline=n / published,
                baseline_wall=None,
                # What was measured side by side counts, if there is any.
                limit=limit if measured is None else None,
                details={},
            )
        )
    return rows


def _row(name: str, costs: Sequence[Sequence[Cost]], at_least: float) -> Row:
    """Return the row of the best times, with the medians among the details."""
    ours, *theirs = costs
    details: dict[str, object] = {"ours_median": typical(ours)._asdict(), "repeats": len(ours)}
    if theirs:
        details["peer_median"] = typical(theirs[0])._asdict()
    fastest = best(theirs[0]) if theirs else None
    limit = Limit("ratio", at_least)
    return time_row(name, best(ours), "onelearn", fastest, limit=limit, details=details)


def _new(estimator: Estimator) -> Any:
    kind = AMFRegressor if estimator == "regressor" else AMFClassifier
    return kind(random_state=0)


def _learn(estimator: Estimator, X: AnyArray, y: AnyArray, step: int) -> Cost:
    forest = _new(estimator)
    # As in online learning, classes are known before the first sample.
    known = {} if estimator == "regressor" else {"classes": np.unique(y)}

    def learn() -> None:
        forest.partial_fit(X[:step], y[:step], **known)
        for start in range(step, len(y), step):
            forest.partial_fit(X[start : start + step], y[start : start + step])

    return timed(learn)


def _remember(estimator: Estimator, n: int, d: int) -> dict[str, int] | None:
    X, y = samples(n, d, estimator)
    # Code that is compiled or loaded is no part of the forest. It takes some hundred samples until
    # nodes are numbered anew.
    _new(estimator).partial_fit(X[:600], y[:600]).partial_fit(X[:2], y[:2])
    return resident_growth(lambda: _new(estimator).partial_fit(X, y))


def _warm_up() -> list[Row]:
    """Compile, or load, everything that is measured here."""
    for estimator in _ESTIMATORS:
        X, y = samples(200, 3, estimator)
        forest = _new(estimator).partial_fit(X, y)
        forest.partial_fit(X[:1], y[:1]).predict(X)
        forest.predict(X[:1])
    return []
