"""Aggregated Mondrian forests as a surrogate of the optimizer."""

from __future__ import annotations

from functools import partial

import numpy as np

from mondrian_bo.surrogates.amf.model import AggregationModel
from mondrian_bo.surrogates.base import Columns
from mondrian_bo.surrogates.shared.tree_surrogate import TreeSurrogate, unit_cube
from mondrian_bo.trees.aggregation_nodes import REAL


class AMFSurrogate(TreeSurrogate):
    """An :class:`AggregationModel` over rows of a search space.

    Learning a row takes O(T d log n), and replacing all values O(T n log n). A function drawn is a
    random pruning of a random tree, with random values of its leaves. The learning rate is the
    adaptive one, as outcomes are few and their noise is small.

    Parameters
    ----------
    columns, seed, n_estimators
        See :class:`TreeSurrogate`.
    """

    def __init__(
        self, columns: Columns, seed: np.random.SeedSequence, *, n_estimators: int = 10
    ) -> None:
        bounds = unit_cube(len(columns.n_choices))
        new_model = partial(AggregationModel, n_classes=REAL, step="adaptive", bounds=bounds)
        super().__init__(columns, seed, n_estimators, new_model, np.float32)
