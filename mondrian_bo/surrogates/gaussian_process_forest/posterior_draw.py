"""Functions drawn from the posterior of one tree with Gaussian processes in its leaves."""

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

DrawnFunction = Callable[[FloatArray | None, FloatArray], FloatArray]
"""Maps points as the trees see them and as the processes see them to values, shape (m,)."""


def draw_from_posterior(
    trees: GaussianForest,
    tree: int,
    leaves: dict[int, GaussianProcessLeaf],
    covariance: Covariance,
    gamma_1: float,
    n_choices: IntArray,
    key: int,
    noise: np.random.Generator | None,
) -> DrawnFunction:
    """Draw a function from the joint posterior of a tree's leaf means and processes.

    Parameters
    ----------
    trees : GaussianForest
        The trees with the hierarchical Gaussian of the leaf means.
    tree : int
        Index of the tree.
    leaves : dict of int to GaussianProcessLeaf
        Processes of its leaves by node, which must be up to date.
    covariance : Covariance
        Hyper-parameters of the processes.
    gamma_1 : float
        Scale of the prior variance of the leaf means.
    n_choices : int64 array of shape (d,)
        Numbers of choices of categorical columns.
    key : int
        Seed of the draw: equal keys draw the same function.
    noise : numpy.random.Generator or None
        Source of the noise of targets, which is new at every call; None draws no noise.

    Returns
    -------
    callable
        As in :meth:`GaussianProcessForest.draw`.
    """
    functions: dict[int, Callable[[FloatArray], FloatArray]] = {}

    def function_of(leaf: int) -> Callable[[FloatArray], FloatArray]:
        """Return the draw of a leaf, which is made when it is first needed."""
        if leaf not in functions:
            rng = np.random.default_rng([key, leaf])
            mean = draw_leaf_mean(
                trees.arrays, trees.node_stats, tree, leaf, 0.0, gamma_1, np.uint64(key)
            )
            prior = draw_from_prior(covariance, n_choices, rng)
            functions[leaf] = leaves[leaf].draw(mean, prior, rng)
        return functions[leaf]

    def function(points: FloatArray | None, rows: FloatArray) -> FloatArray:
        if points is None:
            (only,) = leaves
            nodes = np.full(len(rows), only)
        else:
            nodes = trees.leaves(points)[:, tree]
        result = np.empty(len(rows))
        for leaf in np.unique(nodes).tolist():
            inside = nodes == leaf
            with single_threaded_blas():
                result[inside] = function_of(leaf)(rows[inside])
            if noise is not None:
                noise_std = math.sqrt(leaves[leaf].noise)
                result[inside] += noise_std * noise.standard_normal(int(inside.sum()))
        return result

    return function
