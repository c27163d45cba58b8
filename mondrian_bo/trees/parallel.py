"""Trees in parallel, through joblib, so that any joblib backend (threads, Dask, Ray) just works."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TypeVar

import numpy as np

Result = TypeVar("Result")


def split_trees(n_trees: int, n_jobs: int | None) -> list[slice]:
    """Divide trees among workers.

    Parameters
    ----------
    n_trees : int
        Number of trees.
    n_jobs : int or None
        Number of workers as joblib counts: None is 1 unless a ``joblib.parallel_config`` context
        says otherwise, -1 is all cores.
    """
    if n_jobs == 1:
        return [slice(0, n_trees)]
    from joblib import effective_n_jobs

    ends = np.linspace(0, n_trees, min(effective_n_jobs(n_jobs), n_trees) + 1).round().astype(int)
    return [slice(int(a), int(b)) for a, b in pairwise(ends)]


def run_parallel(
    function: Callable[..., Result], arguments: Sequence[tuple[object, ...]]
) -> list[Result]:
    """Call a function with each tuple of arguments, in joblib's workers if there are several."""
    if len(arguments) == 1:
        return [function(*arguments[0])]
    from joblib import Parallel, delayed

    # The compiled functions release the GIL, so threads are best unless the user's backend says
    # otherwise; other processes get copies (max_nbytes) that they may write to.
    parallel = Parallel(n_jobs=len(arguments), prefer="threads", max_nbytes=None)
    return list(parallel(delayed(function)(*a) for a in arguments))
