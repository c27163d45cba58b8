"""Aggregated Mondrian forests as a surrogate of the optimizer."""

from __future__ import annotations

import numpy as np

from mondrian_bo.array_types import IntArray
from mondrian_bo.surrogates.amf.model import AggregationModel
from mondrian_bo.surrogates.shared.encoding import TreeEncoding
from mondrian_bo.surrogates.shared.ensemble import Ensemble
from mondrian_bo.surrogates.shared.tree_surrogate import TreeSurrogate
from mondrian_bo.trees.aggregation_nodes import REAL


class AMFSurrogate(TreeSurrogate):
    """An :class:`AggregationModel` over rows of a search space.

    Learning a row takes O(T d log n), and replacing all values O(T n log n). A function drawn is a
    random pruning of a random tree, with random values of its leaves. The learning rate is the
    adaptive one, as outcomes are few and their noise is small.

    Parameters
    ----------
    n_choices, may_be_absent, seed
        See :class:`mondrian_bo.surrogates.base.SurrogateFactory`.
    n_estimators : int, default=10
        Number of trees.
    """

    def __init__(
        self,
        n_choices: IntArray,
        may_be_absent: bool,
        seed: np.random.SeedSequence,
        *,
        n_estimators: int = 10,
    ) -> None:
        tree_seed, place_seed = seed.spawn(2)
        n_dimensions = len(n_choices)
        model = AggregationModel(
            Ensemble(n_estimators, n_dimensions, tree_seed),
            n_classes=REAL,
            step="adaptive",
            bounds=(np.zeros(n_dimensions), np.ones(n_dimensions)),
        )
        super().__init__(
            model,
            TreeEncoding.if_needed(n_choices, may_be_absent, n_estimators, place_seed),
            np.float32,
        )
