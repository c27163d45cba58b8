"""Memory of a forest: the size of its arrays, Python's allocations, and the process's growth."""

from __future__ import annotations

import gc
import multiprocessing
import os
import tracemalloc
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

from mondrian_bo.benchmarks.suites.speed.data import regression_data
from mondrian_bo.benchmarks.suites.speed.rows import Limit, Row
from mondrian_bo.shared.array_types import AnyArray
from mondrian_bo.surrogates import MondrianForestRegressor

__all__ = [
    "Memory",
    "array_bytes",
    "limit_per_point",
    "measure_memory",
    "memory_row",
    "resident_bytes",
]


class Memory(NamedTuple):
    """Bytes of a forest, by three accounts.

    Attributes
    ----------
    arrays : int
        Sum over its arrays, with their unused capacity.
    traced, traced_peak : int
        Growth of Python's allocations during learning, at the end and at most. Arrays that are
        allocated by the system directly are added, because Python does not see them.
    resident : int or None
        Growth of the process's resident memory; None if the system does not report it.
    """

    arrays: int
    traced: int
    traced_peak: int
    resident: int | None


def limit_per_point(d: int) -> int:
    """Return our target in bytes per point for a forest of 10 trees."""
    return 200 * (2 * d + 16)


def memory_row(n: int, d: int, step: int) -> Row:
    """Measure the memory of a forest of 10 trees in a new process, against the target.

    Parameters
    ----------
    n, d : int
        Numbers of points and features.
    step : int
        Points per call of ``partial_fit``.

    Returns
    -------
    Row
        The row, in bytes per point.
    """
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        memory = pool.submit(measure_memory, n, d, step).result()
    how = "one batch" if step >= n else f"{step} at a time"
    details: dict[str, object] = {
        f"{name}_per_point": None if value is None else value / n
        for name, value in memory._asdict().items()
    }
    return Row(
        f"memory, {n:,} x {d}, {how}",
        "B/point",
        memory.arrays / n,
        limit=Limit("ours", limit_per_point(d)),
        details=details,
    )


def measure_memory(n: int, d: int, step: int) -> Memory:
    """Learn `n` points in steps, twice, and return the forest's memory.

    Call it in a new process: a process that has freed memory can reuse it without growing.
    """
    X, y = regression_data(n, d)

    def learn() -> MondrianForestRegressor:
        forest = MondrianForestRegressor(random_state=0)
        for start in range(0, n, step):
            forest.partial_fit(X[start : start + step], y[start : start + step])
        return forest

    # Load compiled code first: it is not part of the forest.
    MondrianForestRegressor(random_state=0).fit(X[:20], y[:20]).partial_fit(X[:20], y[:20])
    gc.collect()
    before = resident_bytes()
    forest = learn()
    gc.collect()
    after = resident_bytes()
    arrays = array_bytes(forest)
    del forest
    gc.collect()
    tracemalloc.start()
    forest = learn()
    gc.collect()
    traced, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    mapped = _mapped_bytes(forest)
    del forest
    resident = None if before is None or after is None else after - before
    return Memory(arrays, traced + mapped, peak + mapped, resident)


def array_bytes(forest: MondrianForestRegressor) -> int:
    """Return the bytes of a forest's arrays, with their unused capacity."""
    return sum(int(owner.nbytes) for owner in _owners(forest))


def _mapped_bytes(forest: MondrianForestRegressor) -> int:
    return sum(int(owner.nbytes) for owner in _owners(forest) if owner.base is not None)


def _owners(forest: MondrianForestRegressor) -> list[AnyArray]:
    """Return the arrays that a forest's arrays are views of, each once."""
    inner = forest.model_.forest
    fields = (*inner.arrays, *inner.node_stats, inner.points, inner.targets)
    owners = (f if f.base is None else f.base for f in fields)
    return list({id(owner): owner for owner in owners}.values())


def resident_bytes() -> int | None:
    """Return the resident memory of this process; None if the system does not report it."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")
