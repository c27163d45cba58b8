"""Lifetime, noise and prior variance by marginal likelihood, for few points (Balog2016, 4.2.1)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from mondrian_bo.array_types import FloatArray
from mondrian_bo.surrogates.mondrian_kernel.feature_map import indicator_features
from mondrian_bo.surrogates.mondrian_kernel.forest import PartitionForest
from mondrian_bo.trees.partition import label_points

_SMALLEST_VARIANCE = 1e-8
"""Of constant labels, in units of labels that vary by about 1."""

_MOST_POINTS = 500
"""From how many points to learn at most."""


class Hyperparameters(NamedTuple):
    """Parameters of the kernel model.

    Attributes
    ----------
    lifetime : float
        Inverse width of the kernel.
    ridge : float
        Variance of the noise over that of the prior.
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

    The prior variance follows from the others in closed form. All lifetimes use the same
    partitions, cut off at different times.

    Parameters
    ----------
    partitions : PartitionForest
        The points and their labels.
    lifetimes : float64 array
        What to choose from, at most the lifetime of the partitions.
    ridges : float64 array
        What to choose from.

    Notes
    -----
    O(n^3) for each pair, of 500 points spread over all at most.
    """
    chosen = np.unique(np.linspace(0, partitions.n_points - 1, _MOST_POINTS).round().astype(int))
    targets = partitions.targets[chosen] - partitions.targets.mean()
    labels = np.empty((partitions.n_points, partitions.n_trees), dtype=np.int32)
    best, best_evidence = Hyperparameters(0.0, 1.0, 1.0), -np.inf
    for lifetime in lifetimes:
        n_labels = label_points(partitions.arrays, float(lifetime), labels)
        features = indicator_features(labels[chosen], n_labels)
        kernel = (features @ features.T).toarray()
        for ridge in ridges:
            variance, evidence = _profile(kernel, targets, float(ridge))
            if evidence > best_evidence:
                best_evidence = evidence
                best = Hyperparameters(float(lifetime), float(ridge), variance)
    return best


def profiled_variance(quadratic: float, n_points: int) -> float:
    """Return the prior variance of the largest evidence.

    Parameters
    ----------
    quadratic : float
        ``targets^T (K + ridge I)^-1 targets``.
    n_points : int
        Number of targets.
    """
    return max(quadratic / n_points, _SMALLEST_VARIANCE)


def _profile(kernel: FloatArray, targets: FloatArray, ridge: float) -> tuple[float, float]:
    """Return the best prior variance, and the log evidence with it but for a constant."""
    factor = np.linalg.cholesky(kernel + ridge * np.eye(len(kernel)))
    half = solve_triangular(factor, targets, lower=True, check_finite=False)
    quadratic = float(half @ half)
    variance = profiled_variance(quadratic, len(targets))
    evidence = -float(np.log(factor.diagonal()).sum())
    evidence -= 0.5 * (len(targets) * math.log(variance) + quadratic / variance)
    return variance, evidence
