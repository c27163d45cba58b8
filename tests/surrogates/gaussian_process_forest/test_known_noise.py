"""Targets with known noise: Gaussian processes agree with a dense solve, and nothing is rounded."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from mondrian_bo.surrogates.base import Columns, WeighingSurrogate
from mondrian_bo.surrogates.gaussian_process.covariance import Covariance
from mondrian_bo.surrogates.gaussian_process.fit import (
    Prior,
    _covariance_at,
    _leaf_of,
    _log_marginal_likelihood,
    initial_estimates,
)
from mondrian_bo.surrogates.gaussian_process_forest import leaf as leaf_module
from mondrian_bo.surrogates.gaussian_process_forest.leaf import GaussianProcessLeaf
from mondrian_bo.surrogates.gaussian_process_forest.posterior_draw import draw_of_leaf
from mondrian_bo.surrogates.gaussian_process_forest.surrogate import GaussianProcessForestSurrogate

COVARIANCE = Covariance(np.array([3.0, 0.4]), 1.7, 0.01, np.zeros(2, dtype=bool))


def data(n=30, seed=0):
    rng = np.random.default_rng(seed)
    points = rng.random((n, 2))
    noise = 10.0 ** rng.uniform(-4.0, 1.0, n)
    targets = np.sin(5.0 * points[:, 0]) + np.sqrt(noise) * rng.standard_normal(n)
    return points, targets, noise, rng.random((9, 2))


def dense(points, noise):
    return COVARIANCE.between(points, points) + np.diag(0.01 + noise)


def make(**options):
    columns = Columns(np.zeros(2, dtype=np.int64), False)
    return GaussianProcessForestSurrogate(columns, np.random.SeedSequence(0), **options)


def test_a_leaf_is_a_dense_solve():
    """Also its message, and its predictions of left-out targets."""
    points, targets, noise, probes = data()
    leaf = GaussianProcessLeaf(points, targets, COVARIANCE, 1.0, None, noise)
    assert leaf.scale == 1.0
    matrix, cross = dense(points, noise), COVARIANCE.between(probes, points)
    mean, covariance = leaf.joint(probes, 0.5, 0.0)
    np.testing.assert_allclose(mean, 0.5 + cross @ np.linalg.solve(matrix, targets - 0.5))
    expected = COVARIANCE.between(probes, probes) - cross @ np.linalg.solve(matrix, cross.T)
    np.testing.assert_allclose(covariance, expected, atol=1e-10)
    square = leaf.residual + leaf.precision * (0.5 - leaf.location) ** 2
    likelihood = -0.5 * (square + leaf.log_determinant + 30 * math.log(2.0 * math.pi))
    assert likelihood == pytest.approx(
        multivariate_normal(np.full(30, 0.5), matrix).logpdf(targets)
    )
    residuals, variances = leaf.leave_one_out(0.5, 0.0)
    others = np.arange(30) != 4
    gain = np.linalg.solve(matrix[np.ix_(others, others)], matrix[others, 4])
    assert residuals[4] == pytest.approx(targets[4] - 0.5 - gain @ (targets[others] - 0.5))
    assert variances[4] == pytest.approx(matrix[4, 4] - gain @ matrix[others, 4])


def test_a_leaf_that_is_extended_is_the_leaf_of_all_points(monkeypatch):
    monkeypatch.setattr(leaf_module, "_FEWEST_EXTENDED", 1)
    points, targets, noise, probes = data(70)
    whole = GaussianProcessLeaf(points, targets, COVARIANCE, 1.0, None, noise)
    part = GaussianProcessLeaf(points[:40], targets[:40], COVARIANCE, 1.0, None, noise[:40])
    grown = GaussianProcessLeaf(points, targets, COVARIANCE, 1.0, part, noise)
    for one, other in zip(
        grown.joint(probes, 0.1, 0.2), whole.joint(probes, 0.1, 0.2), strict=True
    ):
        np.testing.assert_allclose(one, other, atol=1e-9)
    assert grown.log_determinant == pytest.approx(whole.log_determinant)
    # A leaf with other noise is not extended.
    for other in (None, noise[:40] + 1.0):
        part = GaussianProcessLeaf(points[:40], targets[:40], COVARIANCE, 1.0, None, other)
        anew = GaussianProcessLeaf(points, targets, COVARIANCE, 1.0, part, noise)
        np.testing.assert_array_equal(anew.posterior.solved, whole.posterior.solved)


def test_draws_have_the_moments_of_the_posterior():
    points, targets, noise, probes = data()
    leaf = GaussianProcessLeaf(points, targets, COVARIANCE, 1.0, None, noise)
    rng = np.random.default_rng(0)
    every = np.vstack([points, probes])
    factor = np.linalg.cholesky(COVARIANCE.between(every, every) / 1.7 + 1e-10 * np.eye(39))
    draws = []
    for _ in range(4000):
        values = factor @ rng.standard_normal(39)

        def prior(rows, values=values):
            return values[:30] if len(rows) == 30 else values[30:]

        draws.append(draw_of_leaf(leaf, COVARIANCE, 0.5, prior, rng)(probes))
    mean, covariance = leaf.joint(probes, 0.5, 0.0)
    std = np.sqrt(np.diag(covariance))
    np.testing.assert_allclose(np.mean(draws, axis=0), mean, atol=4.0 * std.max() / 60.0)
    np.testing.assert_allclose(np.std(draws, axis=0), std, rtol=0.06)


def test_likelihood_is_the_normal_density_and_its_gradient_a_difference():
    points, targets, noise, _ = data()
    (like, *_) = (one for one, *_ in initial_estimates(COVARIANCE.categorical, Prior()))
    leaf, theta = _leaf_of(points, targets, Prior(), noise), np.array([0.4, -0.7, 0.2, -3.0])

    def likelihood(theta):
        return _log_marginal_likelihood(leaf, _covariance_at(theta, like), 0.3)

    value, gradient = likelihood(theta)
    covariance = _covariance_at(theta, like)
    matrix = covariance.between(points, points) + np.diag(covariance.noise + noise) + 0.3
    assert value == pytest.approx(multivariate_normal(np.zeros(30), matrix).logpdf(targets))
    for j, step in enumerate(1e-5 * np.eye(4)):
        change = likelihood(theta + step)[0] - likelihood(theta - step)[0]
        assert gradient[j] == pytest.approx(change / 2e-5, abs=1e-5)


@pytest.mark.parametrize("block_size", [200, 25])
def test_noise_of_zero_changes_no_bit_but_for_the_scale_of_leaves(block_size):
    points, targets, noise, probes = data(60)
    options = {"block_size": block_size, "scale_strength": math.inf}
    plain, zero, noisy = (make(**options) for _ in range(3))
    for start in range(0, 60, 6):
        here = slice(start, start + 6)
        plain.learn(points[here], targets[here])
        zero.learn(points[here], targets[here], np.zeros(6))
        noisy.learn(points[here], targets[here], noise[here])
        found = [one.predict(probes) for one in (plain, zero, noisy)]
    np.testing.assert_array_equal(found[1], found[0])
    assert not np.allclose(found[2], found[0], rtol=0.01)


@pytest.mark.parametrize("block_size", [200, 25])
def test_a_surrogate_is_the_same_after_imputed_points(block_size):
    points, targets, noise, probes = data(60)
    surrogate = make(block_size=block_size)
    assert isinstance(surrogate, WeighingSurrogate)
    surrogate.learn(points, targets, noise)
    before = surrogate.predict(probes)
    with surrogate.extended(probes[:4], np.ones(4)):
        # They have no known noise.
        inside = surrogate.predict(probes[:4])
        assert np.abs(inside[0] - 1.0).max() < np.abs(before[0][:, :4] - 1.0).max()
    np.testing.assert_array_equal(surrogate.predict(probes), before)
    surrogate.learn(probes, np.zeros(9), np.full(9, 0.5))
    surrogate.set_targets(np.append(targets, np.zeros(9)), np.append(noise, np.full(9, 1e4)))
    rows, _, known = surrogate.forest.samples
    assert len(rows) == len(known) == 69
    assert known[-1] == 1e4


def test_decorrelated_targets_have_the_noise():
    points, targets, noise, _ = data()
    surrogate = make()
    surrogate.learn(points, targets, noise)
    surrogate.predict(points)
    covariance = surrogate.forest.covariance
    matrix = covariance.between(points, points) + np.diag(covariance.noise + noise)
    white = surrogate.decorrelate(targets[:, None])
    assert float((white**2).sum()) == pytest.approx(
        float(targets @ np.linalg.solve(matrix, targets))
    )
