"""Eigenvalues of Gram matrices: likelihoods for every noise from one decomposition.

For a Gram matrix K and targets y, both ``y' (K + r I)^-1 y`` and ``log det(K + r I)`` are sums over
the spectrum of K: one decomposition gives them for all r. The exact one is O(N^3), or
O(C^3) where the partitions have C < N clusters in all: K = Z Z' / m, with the memberships Z, has
the eigenvalues of Z' Z / m, and zeros. Lanczos iterations give a quadrature instead at O(m N) each:
started at y for the quadratic form, and at random signs for the log-determinant, whose trace they
estimate (stochastic Lanczos quadrature). Both rules err upwards. Where the iterations are too few
to resolve a small r, the likelihood is too small rather than too large, so that the error does not
favour such an r.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh, eigh_tridiagonal
from scipy.sparse.linalg import LinearOperator

from mondrian_bo.shared.array_types import FloatArray
from mondrian_bo.surrogates.partition_kernels.operator import PartitionGram

_BREAKDOWN = 1e-10
"""Length of a residual, relative to the largest diagonal entry, at which Lanczos has exhausted the
space that its start reaches."""


class Spectrum(NamedTuple):
    """Eigenvalues of a Gram matrix, as weighted by the targets and by the trace.

    Attributes
    ----------
    target_values, target_weights : float64 arrays
        ``y' f(K) y`` is ``sum(target_weights * f(target_values))``.
    trace_values, trace_weights : float64 arrays
        ``trace f(K)`` is ``sum(trace_weights * f(trace_values))``.
    n_points : int
        Number N of points.
    """

    target_values: FloatArray
    target_weights: FloatArray
    trace_values: FloatArray
    trace_weights: FloatArray
    n_points: int

    def quadratic_form(self, shift: float) -> float:
        """Return ``y' (K + shift I)^-1 y``."""
        return float(np.sum(self.target_weights / (self.target_values + shift)))

    def log_determinant(self, shift: float) -> float:
        """Return ``log det(K + shift I)``."""
        return float(np.sum(self.trace_weights * np.log(self.trace_values + shift)))

    def log_likelihood(self, signal_variance: float, noise_variance: float) -> float:
        """Return the log density of y under ``N(0, signal K + noise I)``."""
        shift = noise_variance / signal_variance
        return -0.5 * (
            self.quadratic_form(shift) / signal_variance
            + self.log_determinant(shift)
            + self.n_points * math.log(2.0 * math.pi * signal_variance)
        )


def exact_spectrum(gram: PartitionGram, y: FloatArray) -> Spectrum:
    """Return all eigenvalues, O(N^3), with the weights of y."""
    values, vectors = eigh(gram.toarray(), overwrite_a=True, check_finite=False)
    values = np.maximum(values, 0.0)
    weights = (vectors.T @ y) ** 2
    return Spectrum(values, weights, values, np.ones(len(values)), len(values))


def cluster_spectrum(gram: PartitionGram, y: FloatArray) -> Spectrum:
    """Return all eigenvalues by way of the clusters, O(C^3 + m^2 N) for C clusters in all."""
    memberships = gram.memberships()
    inner = (memberships.T @ memberships).toarray() / gram.n_partitions
    values, vectors = eigh(inner, overwrite_a=True, check_finite=False)
    kept = values > np.finfo(np.float64).eps * len(values) * values[-1]
    values, vectors = values[kept], vectors[:, kept]
    weights = (vectors.T @ (memberships.T @ y)) ** 2 / (gram.n_partitions * values)
    n_zero = len(y) - len(values)
    rest = max(float(y @ y) - float(weights.sum()), 0.0) if n_zero else 0.0
    return Spectrum(
        np.append(values, 0.0),
        np.append(weights, rest),
        np.append(values, 0.0),
        np.append(np.ones(len(values)), n_zero),
        len(y),
    )


def lanczos_spectrum(
    gram: LinearOperator, y: FloatArray, n_probes: int, n_steps: int, rng: np.random.RandomState
) -> Spectrum:
    """Return a quadrature of the spectrum by Lanczos iterations.

    Parameters
    ----------
    gram : LinearOperator of shape (N, N)
        The Gram matrix.
    y : float64 array of shape (N,)
        Targets.
    n_probes : int
        Number of random sign vectors for the trace, whose error falls with its square root.
    n_steps : int
        Lanczos steps from y and from each of them, N at most.
    rng : numpy.random.RandomState
        Draws them.

    Returns
    -------
    Spectrum
        Nodes and weights of the quadrature.
    """
    n = len(y)
    target_values, target_weights = lanczos_quadrature(gram, y, n_steps, node_at_zero=True)
    probes = [
        lanczos_quadrature(gram, rng.choice([-1.0, 1.0], n), n_steps) for _ in range(n_probes)
    ]
    return Spectrum(
        target_values,
        target_weights,
        np.concatenate([values for values, _ in probes]),
        np.concatenate([weights for _, weights in probes]) / n_probes,
        n,
    )


def lanczos_quadrature(
    gram: LinearOperator, start: FloatArray, n_steps: int, *, node_at_zero: bool = False
) -> tuple[FloatArray, FloatArray]:
    """Return nodes and weights with ``start' f(K) start`` close to ``sum(weights * f(nodes))``.

    Lanczos with full reorthogonalisation: O(n_steps) products with K and O(N n_steps^2) for the
    rest. Exact when n_steps reaches the number of distinct eigenvalues that `start` touches. Before
    that the plain (Gauss) rule is too small for 1 / (x + r) and too large for log(x + r); one with
    a node at 0 (Gauss-Radau; K has no negative eigenvalues) is too large for 1 / (x + r).
    """
    n = len(start)
    energy = float(start @ start)
    if energy == 0.0:
        return np.zeros(1), np.zeros(1)
    basis = np.empty((min(n_steps, n), n))
    diagonal: list[float] = []
    beside: list[float] = []
    basis[0] = start / np.sqrt(energy)
    for k in range(len(basis)):
        vector = gram.matvec(basis[k])
        diagonal.append(float(basis[k] @ vector))
        # Twice is enough to make it orthogonal to rounding error.
        for _ in range(2):
            vector = vector - basis[: k + 1].T @ (basis[: k + 1] @ vector)
        length = float(np.linalg.norm(vector))
        if k + 1 == n or length < _BREAKDOWN * max(diagonal):
            break
        beside.append(length)
        if k + 1 < len(basis):
            basis[k + 1] = vector / length
    if len(beside) == len(diagonal):
        # Not exhausted: there is one more entry beside the diagonal, which the Radau rule uses.
        if node_at_zero:
            diagonal.append(_last_diagonal(diagonal, beside))
        else:
            beside.pop()
    values, vectors = eigh_tridiagonal(np.array(diagonal), np.array(beside))
    return np.maximum(values, 0.0), energy * vectors[0] ** 2


def _last_diagonal(diagonal: list[float], beside: list[float]) -> float:
    """Return the entry that gives the tridiagonal matrix, one row longer, the eigenvalue 0."""
    smallest = np.finfo(np.float64).eps * max(diagonal)
    pivot = max(diagonal[0], smallest)
    for entry, off in zip(diagonal[1:], beside[:-1], strict=True):
        pivot = max(entry - off**2 / pivot, smallest)
    return beside[-1] ** 2 / pivot
