"""Lifetime, noise and prior variance by marginal likelihood, for few points (Balog2016, 4.2.1)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from mondrian_bo.shared.array_types import FloatArray
from mondrian_bo.surrogates.mondrian_kernel.cell_matrices import indicator_features
from mondrian_bo.surrogates.mondrian_kernel.forest import PartitionForest
from mondrian_bo.trees.lifetime_partitions import assign_cells

_SMALLEST_VARIANCE = 1e-8
"""Least prior variance, for constant targets. The optimizer's targets have variances of about 1."""

_MOST_POINTS = 500
"""Largest number of points that the choice uses, ours: it bounds the O(n^3) cost of an evidence."""


class Hyperparameters(NamedTuple):
    """Hyper-parameters of the kernel model.

    Attributes
    ----------
    lifetime : float
        Inverse width of the kernel.
    ridge : float
        The regularisation delta^2: the variance of the noise over that of the prior.
    prior_variance : float
        Variance of the function.
    """

    lifetime: float
    ridge: float
    prior_variance: float


def choose_hyperparameters(
    partitions: PartitionForest, lifetimes: FloatArray, ridges: FloatArray
) -> Hyperparameters:
    """Return the hyper-parameters with the largest evidence on a grid.

    The prior variance follows from the others in closed form. All lifetimes share the partitions,
    which are stopped at different times (Balog2016, section 4.1).

    Parameters
    ----------
    partitions : PartitionForest
        The points and their targets.
    lifetimes : float64 array
        Choices of the lifetime, at most that of the partitions.
    ridges : float64 array
        Choices of the ridge.

    Returns
    -------
    Hyperparameters
        The best of the grid.

    Notes
    -----
    O(n^3) for each pair, where n is at most 500: more points are thinned out evenly.
    """
    chosen = np.unique(np.linspace(0, partitions.n_points - 1, _MOST_POINTS).round().astype(int))
    targets = partitions.targets[chosen] - partitions.targets.mean()
    cells = np.empty((partitions.n_points, partitions.n_trees), dtype=np.int32)
    best, best_evidence = Hyperparameters(0.0, 1.0, 1.0), -np.inf
    for lifetime in lifetimes:
        n_cells = assign_cells(partitions.arrays, float(lifetime), cells)
        features = indicator_features(cells[chosen], n_cells)
        kernel = (features @ features.T).toarray()
        for ridge in ridges:
            variance, evidence = _profile(kernel, targets, float(ridge))
            if evidence > best_evidence:
                best_evidence = evidence
                best = Hyperparameters(float(lifetime), float(ridge), variance)
    return best


def profiled_variance(quadratic: float, n_points: int) -> float:
    """Return the prior variance with the largest evidence.

    Parameters
    ----------
    quadratic : float
        ``targets^T (K + ridge I)^-1 targets``.
    n_points : int
        Number of targets.

    Returns
    -------
    float
        The variance, at least 1e-8.
    """
    return max(quadratic / n_points, _SMALLEST_VARIANCE)


def _profile(kernel: FloatArray, targets: FloatArray, ridge: float) -> tuple[float, float]:
    """Return the best prior variance, and its log evidence up to a constant."""
    factor = np.linalg.cholesky(kernel + ridge * np.eye(len(kernel)))
    half = solve_triangular(factor, targets, lower=True, check_finite=False)
    quadratic = float(half @ half)
    variance = profiled_variance(quadratic, len(targets))
    evidence = -float(np.log(factor.diagonal()).sum())
    evidence -= 0.5 * (len(targets) * math.log(variance) + quadratic / variance)
    return variance, evidence
