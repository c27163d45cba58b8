"""Joint moments of, and draws from, the posterior of a Gaussian process forest at given rows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mondrian_bo.shared.array_types import FloatArray, IntArray
from mondrian_bo.shared.blas_threads import single_threaded_blas
from mondrian_bo.surrogates.gaussian_process.covariance import factorise
from mondrian_bo.surrogates.gaussian_process_forest.forest import GaussianProcessForest


def joint_draws(
    forest: GaussianProcessForest,
    points: FloatArray | None,
    rows: FloatArray,
    n_draws: int,
    rng: np.random.Generator,
) -> FloatArray:
    """Draw functions from the posterior and evaluate them; O(m^3) for m rows in one leaf.

    Rows in different leaves of a tree are taken as independent, given all targets.

    Parameters
    ----------
    forest : GaussianProcessForest
        The forest.
    points : float64 array of shape (S, m, d) or None
        The points as the trees see them; not needed while there is a single leaf.
    rows : float64 array of shape (m, d)
        The points as the processes see them.
    n_draws : int
        Number of draws. Those of different trees take turns.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    float64 array of shape (n_draws, m)
        Values of the function, without noise.
    """
    forest.update()
    draws = np.empty((n_draws, len(rows)))
    with single_threaded_blas():
        for t, inside, means, covariances in _by_leaf(forest, points, rows):
            turn = slice(t, None, forest.n_components)
            factor = factorise(covariances)
            noise = rng.standard_normal((len(draws[turn]), len(inside)))
            draws[turn, inside] = means + noise @ factor.T
    return draws


def joint_moments(
    forest: GaussianProcessForest, points: FloatArray | None, rows: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the means, shape (m,), and covariances, (m, m), of the function at rows.

    They are those of the mixture of all trees. The parameters are those of :func:`joint_draws`.
    """
    forest.update()
    means = np.empty((forest.n_components, len(rows)))
    covariance = np.zeros((len(rows), len(rows)))
    with single_threaded_blas():
        for t, inside, leaf_means, leaf_covariances in _by_leaf(forest, points, rows):
            means[t, inside] = leaf_means
            covariance[np.ix_(inside, inside)] += leaf_covariances / forest.n_components
    deviations = means - means.mean(axis=0)
    return means.mean(axis=0), covariance + deviations.T @ deviations / forest.n_components


def _by_leaf(
    forest: GaussianProcessForest, points: FloatArray | None, rows: FloatArray
) -> Iterator[tuple[int, IntArray, FloatArray, FloatArray]]:
    """Yield trees, the rows in one of their leaves, and the moments of the function at these."""
    for t, nodes in enumerate(forest.leaves(points, len(rows)).T):
        for leaf in forest.iterate_leaves(t, np.unique(nodes).tolist()):
            inside = np.flatnonzero(nodes == leaf.node)
            yield t, inside, *leaf.process.joint(rows[inside], leaf.mean, leaf.variance)
