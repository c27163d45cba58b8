"""The predictive mean of a Gaussian process forest as a sum of kernels in each cell."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mondrian_bo.shared.array_types import FloatArray
from mondrian_bo.surrogates.gaussian_process_forest.forest import GaussianProcessForest
from mondrian_bo.surrogates.shared.leaf_cells import leaf_cells


class KernelSum(NamedTuple):
    """The mean in the cell of a leaf: ``constant + sum_i weights_i kernel(x, points_i)``.

    Attributes
    ----------
    tree : int
        The tree.
    lower, upper : float64 arrays of shape (d,)
        The cell, of points as this tree sees them.
    constant : float
        The leaf mean.
    points : float64 array of shape (n, d)
        The points of the leaf, as the processes see them.
    weights : float64 array of shape (n,)
        Factors of the kernel of amplitude 1.
    """

    tree: int
    lower: FloatArray
    upper: FloatArray
    constant: float
    points: FloatArray
    weights: FloatArray


def kernel_sums(forest: GaussianProcessForest) -> list[KernelSum]:
    """Return the means of all leaves of all trees; of one tree while it is a single leaf.

    The forest's prediction is the average over the `n_components` trees.
    """
    forest.update()
    d, amplitude = forest.covariance.precisions.shape[0], forest.covariance.amplitude
    sums = []
    for t in range(forest.n_components):
        nodes: list[int] | None = None
        if forest.has_single_leaf:
            lower, upper = np.full((1, d), -np.inf), np.full((1, d), np.inf)
        else:
            found, lower, upper = leaf_cells(forest.trees.arrays, t)
            nodes = found.tolist()
        for k, leaf in enumerate(forest.iterate_leaves(t, nodes)):
            points, _, (solved_ones, solved_targets), _ = leaf.process.posterior
            weights = amplitude * (solved_targets - leaf.mean * solved_ones)
            sums.append(KernelSum(t, lower[k], upper[k], leaf.mean, points, weights))
    return sums
