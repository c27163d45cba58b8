"""One worker's part of what an :class:`AggregatedForest` does with its trees."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mondrian_bo.array_types import AnyArray, FloatArray, IntArray
from mondrian_bo.trees.aggregation import (
    REAL,
    Aggregation,
    extend_aggregation,
    relearn_forest,
)
from mondrian_bo.trees.aggregation_predict import APART, DEPTH, predict_aggregation
from mondrian_bo.trees.numbering import number_in_preorder
from mondrian_bo.trees.tree import Tree


class Progress(NamedTuple):
    """How far each tree has learnt, and what is recorded on the way; leading axis T.

    Attributes
    ----------
    next_point : int64 array of shape (T,)
        The next point to learn.
    best : float64 array of shape (T, capacity)
        Losses of the best prunings below each node; of shape (T, 0) if nothing is recorded.
    trace : float64 array of shape (T, n, 2)
        See :func:`mondrian_bo.trees.aggregation.extend_aggregation`; likewise.
    """

    next_point: IntArray
    best: FloatArray
    trace: FloatArray


class Recorded(NamedTuple):
    """The `best` of :class:`Progress` alone."""

    best: FloatArray


def extend_chunk(
    forest: Tree,
    values: Aggregation,
    progress: Progress,
    points: AnyArray,
    targets: AnyArray,
    importance: FloatArray,
    classes: NDArray[np.int32],
    end: int,
    rates: FloatArray,
    box: FloatArray,
    n_classes: int,
    dirichlet: float,
    step: float,
    learn: bool,
) -> tuple[Tree, Aggregation, Progress]:
    """Learn with some of the trees: one worker's part of `AggregatedForest.extend`."""
    extend_aggregation(
        forest,
        values,
        points,
        targets,
        importance,
        classes,
        progress.next_point,
        end,
        rates,
        box,
        n_classes,
        dirichlet,
        step,
        learn,
        progress.best,
        progress.trace,
    )
    return forest, values, progress


def relearn_chunk(
    forest: Tree,
    values: Aggregation,
    recorded: Recorded,
    points: AnyArray,
    targets: AnyArray,
    importance: FloatArray,
    n_classes: int,
    dirichlet: float,
    step: float,
    renumber: bool,
) -> tuple[Tree, Aggregation, Recorded]:
    """Learn all labels anew with some of the trees, whose nodes may get new numbers for it."""
    if renumber:
        number_in_preorder(forest)
    relearn_forest(
        forest, values, recorded.best, points, targets, importance, n_classes, dirichlet, step
    )
    return forest, values, recorded


def predict_chunk(
    forest: Tree,
    values: Aggregation,
    points: AnyArray,
    rates: FloatArray,
    rule: int,
    step: float,
    kind: int,
    dirichlet: float,
    pooling: int,
) -> FloatArray:
    """Predict with some of the trees: one worker's part of `AggregatedForest`'s predictions."""
    n_columns = {REAL: 2, DEPTH: 1}.get(kind, kind)
    n_results = len(forest.counters) if pooling == APART else 1
    result = np.empty((n_results, points.shape[1], n_columns))
    nothing = np.empty((0, 4))
    predict_aggregation(
        forest, values, points, rates, rule, step, kind, dirichlet, pooling, result, nothing
    )
    return result
