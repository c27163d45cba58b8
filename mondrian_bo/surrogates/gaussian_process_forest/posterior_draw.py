"""Functions drawn from the posterior of one tree over blocks."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from mondrian_bo.array_types import FloatArray, IntArray
from mondrian_bo.surrogates.gaussian_process.covariance import Covariance
from mondrian_bo.surrogates.gaussian_process.prior_draw import draw_from_prior
from mondrian_bo.surrogates.gaussian_process_forest.leaf import GaussianProcessLeaf
from mondrian_bo.surrogates.mondrian_forest.forest import GaussianForest
from mondrian_bo.surrogates.shared.threads import single_threaded_blas
from mondrian_bo.trees.leaf_models import draw_leaf_mean

Function = Callable[[Callable[[], FloatArray], FloatArray], FloatArray]
"""Maps points as the trees see them and as the processes see them to values."""


def draw_from_posterior(
    forest: GaussianForest,
    tree: int,
    blocks: dict[int, GaussianProcessLeaf],
    covariance: Covariance,
    gamma_1: float,
    n_choices: IntArray,
    key: int,
    noise: np.random.Generator | None,
) -> Function:
    """Draw a function from the joint posterior of a tree's means and processes.

    Parameters
    ----------
    forest : GaussianForest
        The forest.
    tree : int
        Which of them.
    blocks : dict
        Its blocks by leaf; they must be up to date.
    covariance : Covariance
        The process.
    gamma_1 : float
        Prior variance scale of the means.
    n_choices : int64 array of shape (d,)
        Numbers of choices of categorical columns.
    key : int
        Names the draw: the same key draws the same function.
    noise : numpy.random.Generator or None
        Source of the noise of labels, new at every call; None draws none.
    """
    functions: dict[int, Callable[[FloatArray], FloatArray]] = {}

    def of_leaf(leaf: int) -> Callable[[FloatArray], FloatArray]:
        if leaf not in functions:
            own = np.random.default_rng([key, leaf])
            mean = draw_leaf_mean(
                forest.arrays, forest.node_stats, tree, leaf, 0.0, gamma_1, np.uint64(key)
            )
            prior = draw_from_prior(covariance, n_choices, own)
            functions[leaf] = blocks[leaf].draw(mean, prior, own)
        return functions[leaf]

    def function(points: Callable[[], FloatArray], rows: FloatArray) -> FloatArray:
        leaves = forest.leaves(points())[:, tree]
        result = np.empty(len(rows))
        for leaf in np.unique(leaves):
            inside = leaves == leaf
            with single_threaded_blas():
                result[inside] = of_leaf(int(leaf))(rows[inside])
            if noise is not None:
                scale = math.sqrt(blocks[int(leaf)].noise)
                result[inside] += scale * noise.standard_normal(int(inside.sum()))
        return result

    return function
