"""A script that measures onelearn, for the interpreter that has it.

It runs in another environment and imports nothing of this package. Each line of standard input is a
JSON object with ``task``, the name of a function in `TASKS`, and its arguments. The script answers
with one line of JSON: the function's result.
"""

from __future__ import annotations

import ctypes
import gc
import json
import sys
import time
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any


def learn(data: str, step: int, estimator: str = "regressor") -> dict[str, float]:
    """Learn a data set with `step` points per call, and return the CPU and wall time.

    Parameters
    ----------
    data : str
        File with the arrays X and y.
    step : int
        Points per call of ``partial_fit``.
    estimator : {"regressor", "classifier"}, default="regressor"
        Which estimator learns.

    Returns
    -------
    dict
        ``cpu`` and ``wall`` in seconds.
    """
    X, y = _load(data, "X", "y")
    forest = _make(estimator, y)
    wall, cpu = time.perf_counter(), time.process_time()
    for start in range(0, len(y), step):
        forest.partial_fit(X[start : start + step], y[start : start + step])
    return {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}


def predict(data: str, estimator: str = "regressor") -> dict[str, float]:
    """Return the CPU and wall time of predicting `tests` after learning X and y.

    The fitted forest is cached for the next call.

    Parameters
    ----------
    data : str
        File with the arrays X, y and tests.
    estimator : {"regressor", "classifier"}, default="regressor"
        Which estimator predicts: targets or class probabilities.

    Returns
    -------
    dict
        ``cpu`` and ``wall`` in seconds.
    """
    forest = _learnt(data, estimator)
    (tests,) = _load(data, "tests")
    function = forest.predict if estimator == "regressor" else forest.predict_proba
    function(tests[:10])  # compiles
    wall, cpu = time.perf_counter(), time.process_time()
    function(tests)
    return {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}


def remember(data: str, estimator: str = "regressor") -> dict[str, int] | None:
    """Return the memory that learning takes; see `resident_growth`.

    Parameters
    ----------
    data : str
        File with the arrays X and y.
    estimator : {"regressor", "classifier"}, default="regressor"
        Which estimator learns.

    Returns
    -------
    dict or None
        As `resident_growth` returns it.
    """
    X, y = _load(data, "X", "y")
    _learn(estimator, X[:20], y[:20])  # compiles
    return resident_growth(lambda: _learn(estimator, X, y))


def forecast(data: str, n_classes: int, seed: int) -> list[float]:
    """Learn classes online and return the predicted probability of each sample's class.

    Parameters
    ----------
    data : str
        File with the arrays X and y.
    n_classes : int
        Number of classes.
    seed : int
        Seed of the forest.

    Returns
    -------
    list of float
        n - 1 probabilities, of all samples but the first.
    """
    X, y = _load(data, "X", "y")
    forest = _make("classifier", y, n_classes, seed)
    forest.partial_fit(X[:1], y[:1])
    probabilities = []
    for i in range(1, len(y)):
        probabilities.append(float(forest.predict_proba(X[i : i + 1])[0, int(y[i])]))
        forest.partial_fit(X[i : i + 1], y[i : i + 1])
    return probabilities


def resident_growth(function: Callable[[], object]) -> dict[str, int] | None:
    """Return the bytes by which the process grew during a call, at its end and at most.

    Parameters
    ----------
    function : callable
        Called once; its result is kept until the memory has been measured.

    Returns
    -------
    dict or None
        ``resident`` after the call, ``peak`` during it; None if the system does not report them.
    """
    gc.collect()
    try:
        # Return free memory to the system: reusing it would hide growth.
        ctypes.CDLL(None).malloc_trim(0)
        Path("/proc/self/clear_refs").write_text("5")  # resets the peak
        before = _status("VmRSS")
    except (OSError, AttributeError, TypeError):
        return None
    result = function()
    gc.collect()
    after, peak = _status("VmRSS"), _status("VmHWM")
    del result
    return {"resident": after - before, "peak": peak - before}


def _status(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    (line,) = (line for line in lines if line.startswith(f"{name}:"))
    return 1024 * int(line.split()[1])


def _load(data: str, *names: str) -> list[Any]:
    import numpy as np

    arrays: Any = np.load(data)
    return [arrays[name] for name in names]


def _make(estimator: str, y: Any, n_classes: int | None = None, seed: int = 0) -> Any:
    import onelearn  # type: ignore[import-not-found,unused-ignore]

    if estimator == "regressor":
        return onelearn.AMFRegressor(n_estimators=10, random_state=seed)
    if n_classes is None:
        n_classes = int(y.max()) + 1
    return onelearn.AMFClassifier(n_classes=n_classes, n_estimators=10, random_state=seed)


def _learn(estimator: str, X: Any, y: Any) -> Any:
    forest = _make(estimator, y)
    forest.partial_fit(X, y)
    return forest


@lru_cache(maxsize=1)
def _learnt(data: str, estimator: str) -> Any:
    return _learn(estimator, *_load(data, "X", "y"))


TASKS: dict[str, Callable[..., Any]] = {
    function.__name__: function for function in (learn, predict, remember, forecast)
}
"""Functions of the worker by the name that a request gives."""


def main() -> None:
    """Answer requests until standard input ends."""
    for line in sys.stdin:
        arguments = json.loads(line)
        print(json.dumps(TASKS[arguments.pop("task")](**arguments)), flush=True)


if __name__ == "__main__":
    main()
