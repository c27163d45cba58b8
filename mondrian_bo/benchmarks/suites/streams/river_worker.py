"""A script that measures river's AMFRegressor, for the interpreter that has river.

It may run in another environment and imports nothing of this package. Its argument is a file with
the arrays X and y; it prints a JSON object with the CPU and wall time.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any


def learn(X: Any, y: Any) -> dict[str, float]:
    """Learn samples one by one, from dictionaries, with a new forest of 10 trees."""
    from river.forest import AMFRegressor  # type: ignore[import-not-found,unused-ignore]

    rows = [dict(enumerate(row)) for row in X.tolist()]
    targets = y.tolist()
    forest = AMFRegressor(n_estimators=10, seed=0)
    wall, cpu = time.perf_counter(), time.process_time()
    for row, target in zip(rows, targets, strict=True):
        forest.learn_one(row, target)
    return {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}


def main() -> None:
    """Learn the file that the argument names."""
    import numpy as np

    data: Any = np.load(sys.argv[1])
    print(json.dumps(learn(data["X"], data["y"])))


if __name__ == "__main__":
    main()
