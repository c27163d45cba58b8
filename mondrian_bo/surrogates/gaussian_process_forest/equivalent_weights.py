"""How much each training target counts in a prediction of a Gaussian process forest.

A leaf's predictive mean is ``k' A^-1 y + mean (1 - k' A^-1 1)``. The notation is that of
:class:`mondrian_bo.surrogates.gaussian_process_forest.leaf_posterior.Posterior`; k are the
covariances with the leaf's points. The posterior mean of the leaf's mean is a combination of the
locations of all leaves, ``1' A^-1 y / 1' A^-1 1``. So the whole is linear in the targets, given the
hyper-parameters and the variance of each leaf.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_matrix

from mondrian_bo.shared.array_types import FloatArray
from mondrian_bo.shared.blas_threads import single_threaded_blas
from mondrian_bo.surrogates.gaussian_process_forest.forest import GaussianProcessForest
from mondrian_bo.surrogates.shared.sparse_rows import sparse_rows
from mondrian_bo.trees.equivalent_weights import leaf_mean_weights


def forest_weights(
    forest: GaussianProcessForest, points: FloatArray, rows: FloatArray, tolerance: float
) -> csr_matrix:
    """Return the weights of the targets in the mean of all trees.

    Parameters
    ----------
    forest : GaussianProcessForest
        The forest.
    points : float64 array of shape (S, m, d)
        The points as the trees see them.
    rows : float64 array of shape (m, d)
        The points as the processes see them.
    tolerance : float
        Weights of at most this size are left out.

    Returns
    -------
    csr_matrix of shape (m, n)
        The prior mean 0 has the rest of each row.

    Notes
    -----
    O(T (m^2 + n)) for a row and leaves of m points.
    """
    forest.update()

    def dense_rows(start: int, end: int) -> FloatArray:
        part = slice(start, end)
        dense = np.zeros((end - start, forest.n_points))
        with single_threaded_blas():
            for t in range(forest.n_components):
                _add_tree(forest, t, np.ascontiguousarray(points[:, part]), rows[part], dense)
        return dense / forest.n_components

    return sparse_rows(dense_rows, len(rows), forest.n_points, tolerance)


def _add_tree(
    forest: GaussianProcessForest, t: int, points: FloatArray, rows: FloatArray, dense: FloatArray
) -> None:
    """Add the weights in the means of one tree, shape (m, n)."""
    nodes = forest.leaves(points, len(rows))[:, t]
    own = points[t if len(points) > 1 else 0]
    for leaf in forest.iterate_leaves(t, np.unique(nodes).tolist()):
        inside = np.flatnonzero(nodes == leaf.node)
        own_points, _, (solved_ones, _), _ = leaf.process.posterior
        cross = forest.covariance.between(rows[inside], own_points)
        unexplained = 1.0 - cross @ solved_ones
        dense[inside] += np.outer(unexplained, _weights_of_mean(forest, t, own, int(inside[0])))
        whitening = leaf.process.whitening
        solved = cross @ whitening @ whitening.T
        columns = np.arange(forest.n_points)[leaf.members]
        dense[np.ix_(inside, columns)] += solved


def _weights_of_mean(
    forest: GaussianProcessForest, t: int, points: FloatArray, i: int
) -> FloatArray:
    """Return the weights of the targets in the mean of the leaf of point i, shape (n,)."""
    weights = np.zeros(forest.n_points)
    if forest.has_single_leaf:
        (only,) = forest.iterate_leaves(t)
        precision = 0.5 * only.process.precision * forest.gamma_1
        weights += precision / (1.0 + precision) / forest.n_points
    else:
        trees = forest.trees
        leaf_mean_weights(trees.arrays, trees.node_stats, t, points, i, weights)
    for leaf in forest.iterate_leaves(t):
        solved_ones = leaf.process.posterior.solved[0]
        # Equal parts of the weight of a leaf's location become those of its targets.
        weights[leaf.members] *= len(solved_ones) * solved_ones / solved_ones.sum()
    return weights
