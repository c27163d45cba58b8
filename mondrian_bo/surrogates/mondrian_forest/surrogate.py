"""The Mondrian forest as a surrogate of the optimizer."""

from __future__ import annotations

from functools import partial
from typing import Any, get_args

import numpy as np

from mondrian_bo.shared.array_types import FloatArray
from mondrian_bo.surrogates.base import Columns
from mondrian_bo.surrogates.mondrian_forest.model import (
    BranchOff,
    HierarchicalGaussianModel,
    Learning,
    Posterior,
)
from mondrian_bo.surrogates.shared.tree_surrogate import TreeSurrogate, unit_cube


class ForestSurrogate(TreeSurrogate):
    """A :class:`HierarchicalGaussianModel` over rows of a search space.

    Learning a row takes O(T d log n), replacing all values O(T n). Hyper-parameters are learnt
    whenever the number of rows has doubled, from at most 5000 of them.

    Parameters
    ----------
    columns, seed, n_estimators
        See :class:`TreeSurrogate`.
    posterior, branch_off, hyperparameters
        See :class:`mondrian_bo.surrogates.MondrianForestRegressor`. The optimisation experiment of
        Lakshminarayanan2016 has ``posterior="empirical"``, which learns no hyper-parameters.

    Raises
    ------
    ValueError
        If an option is not one of its words.
    """

    _model: HierarchicalGaussianModel

    def __init__(
        self,
        columns: Columns,
        seed: np.random.SeedSequence,
        *,
        n_estimators: int = 10,
        posterior: Posterior = "exact",
        branch_off: BranchOff = "bridge",
        hyperparameters: Learning = "leave_one_out",
    ) -> None:
        _check_word("posterior", posterior, Posterior)
        _check_word("branch_off", branch_off, BranchOff)
        _check_word("hyperparameters", hyperparameters, Learning)
        new_model = partial(
            HierarchicalGaussianModel,
            posterior=posterior,
            branch_off=branch_off,
            hyperparameters=hyperparameters,
            bounds=unit_cube(len(columns.n_choices)),
        )
        super().__init__(columns, seed, n_estimators, new_model)

    def predict(self, rows: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return means and standard deviations of the function in each tree, both (T, m).

        They have no noise: an acquisition would take it for a chance to improve on a trial by
        repeating it.
        """
        means, variances = self._model.predict(self._points(rows))
        return means, np.sqrt(np.maximum(variances - self._model.noise_std() ** 2, 0.0))


def _check_word(name: str, word: str, words: Any) -> None:
    if word not in get_args(words):
        raise ValueError(f"`{name}` must be one of {list(get_args(words))}, got {word!r}.")
