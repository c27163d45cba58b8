"""The cost of saving and loading an optimizer: the table of docs/saved-files.md.

python examples/saved_files.py [--trials 200 1000 3000]
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from _figures import arguments

from mondrian_bo import Float, MondrianOptimizer, SearchSpace

SPACE = SearchSpace({f"x{j}": Float(0.0, 1.0) for j in range(5)})


def timed(function, *arguments):
    start = time.perf_counter()
    result = function(*arguments)
    return result, time.perf_counter() - start


def search(n_trials):
    optimizer = MondrianOptimizer(SPACE, seed=0)
    for _ in range(n_trials):
        params = optimizer.ask()
        optimizer.tell(params, sum((value - 0.3) ** 2 for value in params.values()))
    return optimizer


def main():
    options = arguments(__file__, __doc__, picture=False, quick=False, trials=[200, 1000, 3000])
    print("trials    bytes  save    load    first ask  search")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "optimizer.npz"
        for n_trials in options.trials:
            optimizer, in_all = timed(search, n_trials)
            _, saving = timed(optimizer.save, path)
            loaded, loading = timed(MondrianOptimizer.load, path)
            suggestion, asking = timed(loaded.ask)
            assert suggestion == optimizer.ask()
            print(
                f"{n_trials:6d} {path.stat().st_size:8d}  {saving:.3f} s {loading:.3f} s "
                f"{asking:6.2f} s  {in_all:7.1f} s"
            )


if __name__ == "__main__":
    main()
