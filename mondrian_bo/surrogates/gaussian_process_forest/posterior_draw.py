"""Functions drawn from the posterior of one tree with Gaussian processes in its leaves."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from mondrian_bo.shared.array_types import FloatArray, IntArray
from mondrian_bo.shared.blas_threads import single_threaded_blas
from mondrian_bo.surrogates.gaussian_process.covariance import Covariance
from mondrian_bo.surrogates.gaussian_process.prior_draw import draw_from_prior
from mondrian_bo.surrogates.gaussian_process_forest.forest import GaussianProcessForest
from mondrian_bo.surrogates.gaussian_process_forest.leaf import GaussianProcessLeaf
from mondrian_bo.surrogates.mondrian_forest.forest import GaussianForest
from mondrian_bo.trees.leaf_models import draw_leaf_mean

DrawnFunction = Callable[[FloatArray | None, FloatArray], FloatArray]
"""Maps points as the trees see them and as the processes see them to values, shape (m,)."""


class LeafMeans(NamedTuple):
    """One joint draw of the leaf means of a tree, and its leaves.

    Attributes
    ----------
    mean : callable
        Returns the mean of a leaf, the same at every call.
    leaves_of : callable
        Returns the leaves of points as the trees see them, shape (m,).
    """

    mean: Callable[[int], float]
    leaves_of: Callable[[FloatArray], IntArray]


def draw_from_forest(
    forest: GaussianProcessForest,
    n_choices: IntArray,
    rng: np.random.Generator,
    with_noise: bool = False,
) -> DrawnFunction:
    """Draw a function from the posterior of a random tree.

    Parameters
    ----------
    forest : GaussianProcessForest
        The forest.
    n_choices : int64 array of shape (d,)
        Numbers of choices of categorical columns.
    rng : numpy.random.Generator
        Source of randomness.
    with_noise : bool, default=False
        Whether to add noise, which is new at every call.

    Returns
    -------
    callable
        Maps points and rows, as in `GaussianProcessForest.predict`, to values of shape (m,). Until
        the forest learns again, all calls evaluate the same function.
    """
    trees = None if forest.has_single_leaf else forest.trees
    forest.update()
    tree = int(rng.integers(forest.n_components))
    key = int(rng.integers(2**63))
    leaves = list(forest.iterate_leaves(tree))
    if trees is None:
        (only,) = leaves
        means = mean_of_only_leaf(only.node, only.mean, only.variance, key)
    else:
        means = means_of_tree(trees, tree, forest.gamma_1, key)
    processes = {leaf.node: leaf.process for leaf in leaves}
    noise = rng if with_noise else None
    return draw_from_posterior(means, processes, forest.covariance, n_choices, key, noise)


def means_of_tree(trees: GaussianForest, tree: int, gamma_1: float, key: int) -> LeafMeans:
    """Draw leaf means from the hierarchical Gaussian of a tree.

    Parameters
    ----------
    trees : GaussianForest
        The trees, with messages from all leaves.
    tree : int
        Index of the tree.
    gamma_1 : float
        Scale of the prior variance of the leaf means.
    key : int
        Seed of the draw: equal keys draw the same means.
    """

    def mean(leaf: int) -> float:
        arrays, node_stats = trees.arrays, trees.node_stats
        return float(draw_leaf_mean(arrays, node_stats, tree, leaf, 0.0, gamma_1, np.uint64(key)))

    return LeafMeans(mean, lambda points: np.asarray(trees.leaves(points)[:, tree]))


def mean_of_only_leaf(leaf: int, expected: float, variance: float, key: int) -> LeafMeans:
    """Draw the mean of a leaf that holds all points from its posterior; no tree is needed."""

    def mean(_: int) -> float:
        return float(np.random.default_rng(key).normal(expected, math.sqrt(variance)))

    return LeafMeans(mean, lambda points: np.full(points.shape[1], leaf))


def draw_from_posterior(
    means: LeafMeans,
    leaves: dict[int, GaussianProcessLeaf],
    covariance: Covariance,
    n_choices: IntArray,
    key: int,
    noise: np.random.Generator | None,
) -> DrawnFunction:
    """Draw a function from the joint posterior of a tree's leaf means and processes.

    Parameters
    ----------
    means : LeafMeans
        The draw of the leaf means.
    leaves : dict of int to GaussianProcessLeaf
        Processes of the tree's leaves by node, which must be up to date.
    covariance : Covariance
        Hyper-parameters of the processes.
    n_choices : int64 array of shape (d,)
        Numbers of choices of categorical columns.
    key : int
        Seed of the draw: equal keys draw the same function.
    noise : numpy.random.Generator or None
        Source of the noise of targets, which is new at every call; None draws no noise.

    Returns
    -------
    callable
        As in :func:`draw_from_forest`.
    """
    functions: dict[int, Callable[[FloatArray], FloatArray]] = {}

    def function_of(leaf: int) -> Callable[[FloatArray], FloatArray]:
        """Return the draw of a leaf, which is made when it is first needed."""
        if leaf not in functions:
            rng = np.random.default_rng([key, leaf])
            prior = draw_from_prior(covariance, n_choices, rng)
            functions[leaf] = draw_of_leaf(leaves[leaf], covariance, means.mean(leaf), prior, rng)
        return functions[leaf]

    def function(points: FloatArray | None, rows: FloatArray) -> FloatArray:
        if points is None:
            (only,) = leaves
            nodes = np.full(len(rows), only)
        else:
            nodes = means.leaves_of(points)
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


def draw_of_leaf(
    leaf: GaussianProcessLeaf,
    covariance: Covariance,
    mean: float,
    prior: Callable[[FloatArray], FloatArray],
    rng: np.random.Generator,
) -> Callable[[FloatArray], FloatArray]:
    """Draw a function from a leaf's posterior, given its mean and a draw from the prior.

    Matheron's rule adds a correction by the targets to the draw from the prior (J. T. Wilson et
    al., Efficiently sampling functions from Gaussian process posteriors, ICML 2020).

    Parameters
    ----------
    leaf : GaussianProcessLeaf
        The leaf.
    covariance : Covariance
        Hyper-parameters of its process.
    mean : float
        The leaf's mean.
    prior : callable
        A function drawn from the prior of a process of amplitude 1.
    rng : numpy.random.Generator
        Source of the noise of the targets.

    Returns
    -------
    callable
        Maps points of shape (m, d) to values of shape (m,).
    """
    points, _, (solved_ones, solved_targets), _ = leaf.posterior
    whitening = leaf.whitening
    prior_std = math.sqrt(leaf.scale * covariance.amplitude)
    noise_std: float | FloatArray = math.sqrt(leaf.noise)
    if leaf.known_noise is not None:
        noise_std = np.sqrt(leaf.noise + leaf.known_noise)
    at_points = prior_std * prior(points) + noise_std * rng.standard_normal(len(points))
    weights = solved_targets - mean * solved_ones - whitening @ (at_points @ whitening)

    def function(rows: FloatArray) -> FloatArray:
        cross = covariance.between(rows, points)
        return np.asarray(mean + prior_std * prior(rows) + cross @ weights)

    return function
