"""The lifetime path of Mondrian forest regression with independent leaves.

See Balog2016thesis, section 4.1.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from mondrian_bo.surrogates.mondrian_kernel.lifetime_paths.cuts import EMPTY, CutSequence
from mondrian_bo.surrogates.mondrian_kernel.lifetime_paths.lifetime_path import LifetimePath
from mondrian_bo.surrogates.mondrian_kernel.lifetime_paths.path_data import PathData


def forest_path(data: PathData, noise_variance: float, prior_variance: float) -> LifetimePath:
    """Return the path of the forest whose trees are fitted independently (Balog2016, eq. 4).

    Leaf means have normal priors with mean 0, and the forest predicts the mean over trees. The log
    evidence is that of the uniform mixture of the trees. A cut costs as much as there are points in
    its cell, so the path costs about as much as sampling the trees.

    Parameters
    ----------
    data : PathData
        The data.
    noise_variance : float
        Variance of the noise.
    prior_variance : float
        Prior variance of the leaf means.

    Returns
    -------
    LifetimePath
        At lifetime 0 and wherever a prediction may change.
    """
    cuts = CutSequence(data.partitions, len(data.targets))
    targets = np.concatenate([data.targets, data.validation])
    sums = np.empty((len(cuts) + 1, 3))
    n_cells = np.empty(len(cuts) + 1, dtype=np.int64)
    _follow(
        cuts.arrays,
        targets,
        len(data.targets),
        cuts.n_numbers,
        noise_variance,
        prior_variance,
        sums,
        n_cells,
    )
    sizes = np.array([len(data.targets), len(data.validation)])
    with np.errstate(invalid="ignore"):
        errors = np.sqrt(np.maximum(sums[:, :2], 0.0) / sizes)
    return LifetimePath(
        np.append(0.0, cuts.times),
        data.partitions.lifetime,
        errors[:, 0],
        errors[:, 1],
        sums[:, 2],
        n_cells,
        data.partitions,
    )


@njit(cache=True, nogil=True)
def _leaf(order, start, end, targets, n_training, noise, prior):  # type: ignore[no-untyped-def]
    """Return the posterior mean and the log evidence of a leaf (Balog2016thesis, Example 0.7)."""
    size, total, squares = 0, 0.0, 0.0
    for k in range(start, end):
        point = order[k]
        if point < n_training:
            size += 1
            total += targets[point]
            squares += targets[point] * targets[point]
    mean = total / (size + noise / prior)  # Example 0.7
    determinant = size * math.log(2.0 * math.pi * noise) + math.log1p(size * prior / noise)
    return mean, -0.5 * (determinant + (squares - total * mean) / noise)


@njit(cache=True, nogil=True)
def _log_mean_exp(values):  # type: ignore[no-untyped-def]
    largest = values.max()
    return largest + math.log(np.exp(values - largest).mean())


@njit(cache=True, nogil=True)
def _follow(cuts, targets, n_training, n_numbers, noise, prior, sums, n_cells):  # type: ignore[no-untyped-def]
    """Write the sums of squared errors of training and other points, and the evidence, per cut."""
    n_trees = len(cuts.order)
    means, evidences = np.zeros(n_numbers), np.zeros(n_numbers)
    root, evidence = _leaf(cuts.order[0], 0, len(targets), targets, n_training, noise, prior)
    means[1 : n_trees + 1] = root
    evidences[1 : n_trees + 1] = evidence
    of_trees = np.full(n_trees, evidence)
    predictions = np.full(len(targets), root)
    squares = np.zeros(2)
    for i in range(len(targets)):
        squares[0 if i < n_training else 1] += (root - targets[i]) ** 2
    sums[0] = squares[0], squares[1], _log_mean_exp(of_trees)
    n_cells[0] = n_trees
    for c in range(len(cuts.tree)):
        tree = cuts.tree[c]
        order = cuts.order[tree]
        parent = cuts.cells[c, 0]
        divides = cuts.cells[c, 1] != EMPTY and cuts.cells[c, 2] != EMPTY
        for side in range(2):
            cell = cuts.cells[c, 1 + side]
            start = cuts.middle[c] if side else cuts.start[c]
            end = cuts.end[c] if side else cuts.middle[c]
            if divides:
                means[cell], evidences[cell] = _leaf(
                    order, start, end, targets, n_training, noise, prior
                )
                of_trees[tree] += evidences[cell]
            mean = means[cell] if cell != EMPTY else 0.0
            change = (mean - means[parent]) / n_trees
            for k in range(start, end):
                point = order[k]
                error = predictions[point] - targets[point]
                squares[0 if point < n_training else 1] += change * (2.0 * error + change)
                predictions[point] += change
        if divides:
            of_trees[tree] -= evidences[parent]
        sums[c + 1] = squares[0], squares[1], _log_mean_exp(of_trees)
        n_cells[c + 1] = n_cells[c] + (1 if divides else 0)
