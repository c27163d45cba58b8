"""Work on slices of a forest's trees in parallel, with any joblib backend (threads, Dask, Ray)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

from mondrian_bo.shared.array_types import AnyArray, FloatArray
from mondrian_bo.surrogates.shared.writable_arrays import with_writable_arrays

FEW_POINTS = 256
"""Number of points up to which one worker is faster than starting several; our choice."""

Result = TypeVar("Result")
"""What a task returns."""

Arrays = TypeVar("Arrays", bound=tuple[AnyArray, ...])
"""A NamedTuple of arrays."""


def split_trees(n_trees: int, n_jobs: int | None) -> list[slice]:
    """Return a slice of the trees for each worker.

    Parameters
    ----------
    n_trees : int
        Number of trees.
    n_jobs : int or None
        Number of workers, as in joblib: None is 1 unless a ``joblib.parallel_config`` context
        sets another number, -1 is all cores.

    Returns
    -------
    list of slice
        As many as there are workers, and at most one for each tree.

    Raises
    ------
    ValueError
        If `n_jobs` is 0.
    """
    if n_jobs == 0:
        raise ValueError("n_jobs must be an integer other than 0, or None; got 0")
    if n_jobs == 1:
        return [slice(0, n_trees)]
    from joblib import effective_n_jobs

    ends = np.linspace(0, n_trees, min(effective_n_jobs(n_jobs), n_trees) + 1).round().astype(int)
    return [slice(int(a), int(b)) for a, b in pairwise(ends)]


def run_parallel(
    function: Callable[..., Result],
    arguments: Sequence[tuple[object, ...]],
    *,
    shares_memory: bool = False,
) -> list[Result]:
    """Call a function with each tuple of arguments, in joblib's workers if there are several.

    Returns the results in the order of `arguments`. With `shares_memory` workers are threads,
    whatever the backend of a ``joblib.parallel_config`` context.
    """
    if len(arguments) == 1:
        return [function(*arguments[0])]
    from joblib import Parallel, delayed

    # Compiled functions release the GIL, so threads are the default backend. Worker processes of
    # joblib receive copies (max_nbytes=None), because memory-mapped arrays would be read-only.
    require = "sharedmem" if shares_memory else None
    parallel = Parallel(len(arguments), prefer="threads", require=require, max_nbytes=None)
    return list(parallel(delayed(_call)(function, each) for each in arguments))


def _call(function: Callable[..., Result], arguments: tuple[object, ...]) -> Result:
    """Call the function in a worker, with arrays that it can write to."""
    return function(*with_writable_arrays(arguments))


def points_of(points: FloatArray, part: slice) -> FloatArray:
    """Return the points of a slice of the trees, from points of shape (1 or T, n, d)."""
    return points[part] if len(points) > 1 else points


def trees_of(arrays: Arrays, part: slice) -> Arrays:
    """Return views of a slice of the trees; arrays that all trees share are returned whole."""
    n_trees = len(arrays[-1])
    fields: Any = (field[part] if len(field) == n_trees else field for field in arrays)
    return type(arrays)(*fields)


def run_on_trees(
    function: Callable[..., tuple[Any, ...]],
    state: Sequence[Any],
    settings: Sequence[object],
    n_jobs: int | None,
) -> None:
    """Change the arrays of a forest in place, each worker those of a slice of the trees.

    Parameters
    ----------
    function : callable
        ``function(*state, *settings)``, called with the state of a slice. It writes to the arrays
        of the state and returns the state.
    state : sequence of NamedTuples of arrays
        With a leading axis of length T.
    settings : sequence
        Further arguments, equal for all workers.
    n_jobs : int or None
        Number of workers, as in :func:`split_trees`.
    """
    parts = split_trees(len(state[0][0]), n_jobs)
    if len(parts) == 1:
        function(*state, *settings)
        return
    results = run_parallel(
        function,
        [(*(trees_of(arrays, part) for arrays in state), *settings) for part in parts],
    )
    for part, result in zip(parts, results, strict=True):
        for arrays, changed in zip(state, result, strict=True):
            for target, content in zip(trees_of(arrays, part), changed, strict=True):
                # Worker processes return copies, threads return the arrays themselves.
                if not np.shares_memory(target, content):
                    target[:] = content
