"""A script for the interpreter that has onelearn: it measures onelearn when told to.

It runs in an environment of its own and imports nothing of this package. Each line of standard
input is a JSON object with ``data`` (an .npz file with X and y) and ``step`` (points per call);
each answer is a line with the CPU and the wall time of learning the data in such steps.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any


def learn(data: str, step: int) -> dict[str, float]:
    """Learn a data set with calls of `step` points each.

    Parameters
    ----------
    data : str
        File with the arrays X and y.
    step : int
        Points per call of ``partial_fit``.
    """
    import numpy as np
    from onelearn import AMFRegressor  # type: ignore[import-not-found,unused-ignore]

    arrays: Any = np.load(data)
    X, y = arrays["X"], arrays["y"]
    forest = AMFRegressor(n_estimators=10, random_state=0)
    wall, cpu = time.perf_counter(), time.process_time()
    for start in range(0, len(y), step):
        forest.partial_fit(X[start : start + step], y[start : start + step])
    return {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}


def main() -> None:
    """Answer until standard input ends."""
    for line in sys.stdin:
        print(json.dumps(learn(**json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
