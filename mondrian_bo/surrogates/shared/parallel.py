"""Trees in parallel, through joblib, so that any joblib backend (threads, Dask, Ray) just works."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

from mondrian_bo.array_types import AnyArray, FloatArray
from mondrian_bo.trees.growth import sample_forest
from mondrian_bo.trees.hierarchical_gaussian import Gaussian, Hyperparameters, refresh_forest
from mondrian_bo.trees.predict import predict_forest
from mondrian_bo.trees.tree import Tree

Result = TypeVar("Result")
Arrays = TypeVar("Arrays", bound=tuple[AnyArray, ...])


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


def points_of(points: FloatArray, part: slice) -> FloatArray:
    """Return what some of the trees see of points of shape (1 or T, n, d)."""
    return points[part] if len(points) > 1 else points


def rows_of(arrays: Arrays, part: slice) -> Arrays:
    """Return views of some of the trees; points that all trees share stay whole."""
    n_trees = len(arrays[-1])
    fields: Any = (field[part] if len(field) == n_trees else field for field in arrays)
    return type(arrays)(*fields)


def run_on_trees(
    function: Callable[..., tuple[Any, ...]],
    state: Sequence[Any],
    points: AnyArray,
    settings: Sequence[object],
    n_jobs: int | None,
) -> None:
    """Let workers change the arrays of some trees each.

    Parameters
    ----------
    function : callable
        ``function(*state, points, *settings)``, with the state and points of some of the trees. It
        writes to the arrays of the state and returns it.
    state : sequence of NamedTuples of arrays
        With a leading axis of length T.
    points : array of shape (1 or T, n, d)
        The points, as all trees or as each sees them.
    settings : sequence
        Further arguments, the same for all workers.
    n_jobs : int or None
        Number of workers, as joblib counts.
    """
    parts = split_trees(len(state[0][0]), n_jobs)
    if len(parts) == 1:
        function(*state, points, *settings)
        return
    results = run_parallel(
        function,
        [
            (*(rows_of(arrays, part) for arrays in state), points_of(points, part), *settings)
            for part in parts
        ],
    )
    for part, result in zip(parts, results, strict=True):
        for arrays, changed in zip(state, result, strict=True):
            for own, content in zip(rows_of(arrays, part), changed, strict=True):
                # Only workers that do not share our memory return other arrays than ours.
                if not np.shares_memory(own, content):
                    own[:] = content


def predict_chunk(
    forest: Tree,
    values: Gaussian,
    points: FloatArray,
    weights: FloatArray,
    mean_prior: float,
    gamma_1: float,
    gamma_2: float,
    noise: float,
    floor: float,
    rule: int,
) -> tuple[FloatArray, FloatArray]:
    """Predict with some of the trees: one worker's part of `GaussianForest.predict`."""
    means = np.empty((len(forest.counters), points.shape[1]))
    variances = np.empty_like(means)
    predict_forest(
        forest,
        values,
        points,
        weights,
        mean_prior,
        gamma_1,
        gamma_2,
        noise,
        floor,
        rule,
        means,
        variances,
    )
    return means, variances


def grow_chunk(
    forest: Tree,
    values: Gaussian,
    points: FloatArray,
    targets: FloatArray,
    weights: FloatArray,
    min_samples_split: int,
    lifetime: float,
    hyperparameters: Hyperparameters,
) -> tuple[Tree, Gaussian]:
    """Grow some of the trees: one worker's part of `GaussianForest.build`."""
    no_classes = np.empty(0, dtype=np.int32)
    sample_forest(forest, points, len(targets), weights, min_samples_split, no_classes, lifetime)
    refresh_forest(forest, values, targets, *hyperparameters)
    return forest, values
