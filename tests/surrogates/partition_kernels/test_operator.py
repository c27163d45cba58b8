"""Matrix-free Gram matrices and their preconditioner, against dense loops."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.linalg import aslinearoperator

from mondrian_bo.surrogates.partition_kernels.linear_system import ShiftedSystem
from mondrian_bo.surrogates.partition_kernels.operator import ALONE, PartitionGram
from mondrian_bo.surrogates.partition_kernels.preconditioner import PartitionPreconditioner


def draw_clusters(seed, n_partitions, n_points, n_clusters, alone=0.1):
    rng = np.random.default_rng(seed)
    n_clusters = rng.integers(1, n_clusters + 1, size=n_partitions)
    clusters = rng.integers(0, n_clusters[:, None], size=(n_partitions, n_points))
    clusters[rng.random(clusters.shape) < alone] = ALONE
    return clusters.astype(np.int32), n_clusters


def dense_gram(clusters):
    """Definition 2, pair by pair."""
    n_partitions, n = clusters.shape
    K = np.zeros((n, n))
    for a in range(n):
        for b in range(n):
            together = [row[a] == row[b] != ALONE or a == b for row in clusters]
            K[a, b] = sum(together) / n_partitions
    return K


SIZES = {
    "seed": st.integers(0, 2**32 - 1),
    "m": st.integers(1, 6),
    "n": st.integers(1, 12),
    "k": st.integers(1, 5),
    "alone": st.sampled_from([0.0, 0.3, 1.0]),
}


@given(**SIZES)
@settings(max_examples=60)
def test_gram_is_the_share_of_partitions(seed, m, n, k, alone):
    clusters, n_clusters = draw_clusters(seed, m, n, k, alone)
    gram = PartitionGram(clusters, None, n_clusters)
    K = dense_gram(clusters)
    assert np.allclose(gram.toarray(), K, rtol=0, atol=1e-15)
    v = np.random.default_rng(seed).normal(size=(n, 3))
    assert np.allclose(gram @ v[:, 0], K @ v[:, 0], rtol=0, atol=1e-13)
    assert np.allclose(gram @ v, K @ v, rtol=0, atol=1e-13)
    assert np.allclose(gram.rmatvec(v[:, 1]), K @ v[:, 1], rtol=0, atol=1e-13)
    assert np.linalg.eigvalsh(K).min() > -1e-12  # lemma 3.1
    some = np.flatnonzero(np.random.default_rng(seed).random(n) < 0.5)
    assert np.allclose(gram.restricted(some).toarray(), K[np.ix_(some, some)], atol=1e-15)


@given(**SIZES, others=st.integers(1, 9))
@settings(max_examples=40)
def test_cross_gram_is_a_block_of_the_gram_matrix(seed, m, n, k, alone, others):
    clusters, n_clusters = draw_clusters(seed, m, n + others, k, alone)
    cross = PartitionGram(clusters[:, :n], clusters[:, n:], n_clusters)
    block = dense_gram(clusters)[:n, n:]
    assert np.allclose(cross.toarray(), block, rtol=0, atol=1e-15)
    rng = np.random.default_rng(seed)
    v, w = rng.normal(size=others), rng.normal(size=n)
    assert np.allclose(cross @ v, block @ v, rtol=0, atol=1e-13)
    assert np.allclose(cross.T @ w, block.T @ w, rtol=0, atol=1e-13)
    assert np.allclose(cross.rmatvec(w), block.T @ w, rtol=0, atol=1e-13)


@given(**SIZES, shift=st.sampled_from([1e-3, 0.1, 2.0]))
@settings(max_examples=60)
def test_preconditioner_is_the_mean_of_inverses(seed, m, n, k, alone, shift):
    clusters, n_clusters = draw_clusters(seed, m, n, k, alone)
    gram = PartitionGram(clusters, None, n_clusters)
    B = np.mean([np.linalg.inv(dense_gram(row[None]) + shift * np.eye(n)) for row in clusters], 0)
    found = PartitionPreconditioner(gram, shift) @ np.eye(n)
    assert np.allclose(found, B, rtol=0, atol=1e-10 / shift)


def test_one_partition_is_solved_in_one_step():
    # Then equation 10 is the inverse itself, which it is not as printed.
    clusters, n_clusters = draw_clusters(0, 1, 300, 20)
    gram = PartitionGram(clusters, None, n_clusters)
    right = np.random.default_rng(1).normal(size=300)
    system = ShiftedSystem(gram, 0.5, dense=False)
    solution = system.solve(right)
    assert system.n_iterations == [1]
    assert np.allclose(gram @ solution + 0.5 * solution, right, rtol=0, atol=1e-12)


@pytest.mark.parametrize("preconditioned", [True, False])
@pytest.mark.parametrize("shift", [0.01, 1.0])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_systems_agree_with_dense_ones(seed, shift, preconditioned):
    clusters, n_clusters = draw_clusters(seed, 50, 200, 30)
    gram = PartitionGram(clusters, None, n_clusters)
    right = np.random.default_rng(seed).normal(size=(200, 2))
    dense = ShiftedSystem(gram, shift, dense=True).solve(right)
    system = ShiftedSystem(gram, shift, dense=False, preconditioned=preconditioned, tol=1e-12)
    assert np.allclose(system.solve(right), dense, rtol=0, atol=1e-8)
    exact = np.linalg.solve(gram.toarray() + shift * np.eye(200), right)
    assert np.allclose(dense, exact, rtol=0, atol=1e-9)
    assert len(system.n_iterations) == 2


def test_it_is_a_linear_operator_of_scipy():
    clusters, n_clusters = draw_clusters(0, 5, 10, 3)
    gram = PartitionGram(clusters, None, n_clusters)
    K = gram.toarray()
    v = np.arange(10.0)
    assert aslinearoperator(gram) is gram
    assert np.allclose((2.0 * gram + aslinearoperator(np.eye(10))) @ v, 2.0 * K @ v + v)
    assert np.allclose(gram @ v.astype(int), K @ v)
    with pytest.raises(ValueError):
        gram @ np.ones(11)


def test_what_only_gram_matrices_can_do():
    clusters, n_clusters = draw_clusters(0, 5, 10, 3)
    cross = PartitionGram(clusters, clusters[:, :4], n_clusters)
    with pytest.raises(ValueError, match="only a Gram matrix"):
        cross.restricted([0, 1])
    with pytest.raises(ValueError, match="must be a Gram matrix"):
        PartitionPreconditioner(cross, 1.0)
    with pytest.raises(ValueError, match="shift must be positive, got 0"):
        PartitionPreconditioner(PartitionGram(clusters, None, n_clusters), 0.0)
