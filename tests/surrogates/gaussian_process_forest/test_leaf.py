"""A block against dense references."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern

from mondrian_bo.surrogates.gaussian_process_forest.leaf import (
    Covariance,
    GaussianProcessLeaf,
    factorise,
)
from mondrian_bo.surrogates.gaussian_process_forest.predict import Moments

COVARIANCE = Covariance(np.array([3.0, 0.4, 20.0]), 1.7, 0.01, np.zeros(3, dtype=bool))


SHARING = COVARIANCE._replace(noise=0.7, shared=0.6)
BOTH = pytest.mark.parametrize("covariance", [COVARIANCE, SHARING])


def data(n=25, seed=0):
    rng = np.random.default_rng(seed)
    points = rng.random((n, 3))
    return points, np.sin(5.0 * points[:, 0]) + points[:, 2] + 3.0, rng.random((11, 3))


def predict(block, rows, mean, variance, **options):
    moments = Moments(*(np.empty((len(rows), *shape)) for shape in [(), (), (3,), (3,)]))
    block.predict(rows, np.arange(len(rows)), mean, variance, moments, **options)
    return moments


def cross_of(some, others, covariance):
    """Return covariances of functions, among which is what equal inputs share."""
    kernel = ConstantKernel(1.7) * Matern(COVARIANCE.precisions**-0.5, nu=2.5)
    equal = (some[:, None] == others).all(axis=2)
    return kernel(some, others) + covariance.shared * equal


def dense(points, covariance):
    own = covariance.noise - covariance.shared
    return cross_of(points, points, covariance) + own * np.eye(len(points))


def with_twins(points, probes):
    """Return points some of which are equal, and probes some of which are equal to them."""
    points, probes = points.copy(), probes.copy()
    points[[3, 9, 20]] = points[[1, 1, 7]]
    probes[:3] = points[[1, 7, 8]]
    return points, probes


def test_with_a_known_mean_it_is_scikit_learns_regressor():
    points, targets, probes = data()
    kernel = ConstantKernel(1.7) * Matern(COVARIANCE.precisions**-0.5, nu=2.5)
    peer = GaussianProcessRegressor(kernel, alpha=0.01, optimizer=None).fit(points, targets - 0.5)
    mean, std = peer.predict(probes, return_std=True)
    own_mean, own_variance, *_ = predict(
        GaussianProcessLeaf(points, targets, COVARIANCE), probes, 0.5, 0.0
    )
    assert np.allclose(own_mean, 0.5 + mean, atol=1e-9)
    assert np.allclose(own_variance, std**2, atol=1e-9)


@BOTH
def test_message_is_the_likelihood_of_the_mean(covariance):
    points, targets, probes = data()
    points, _ = with_twins(points, probes)
    block = GaussianProcessLeaf(points, targets, covariance)
    for mean in (-1.0, 0.0, 2.0, 7.0):
        expected = multivariate_normal(np.full(25, mean), dense(points, covariance)).logpdf(targets)
        square = block.residual + block.precision * (mean - block.location) ** 2
        own = -0.5 * (square + block.log_determinant + 25 * math.log(2.0 * math.pi))
        assert own == pytest.approx(expected, rel=1e-9)


@BOTH
def test_with_an_unknown_mean_it_is_a_process_with_a_constant(covariance):
    """A mean with a Gaussian prior adds its variance to every covariance."""
    points, targets, probes = data()
    points, probes = with_twins(points, probes)
    prior_mean, prior_variance = 0.3, 2.0
    block = GaussianProcessLeaf(points, targets, covariance)
    precision = 1.0 / prior_variance + block.precision
    mean = (prior_mean / prior_variance + block.precision * block.location) / precision
    own_mean, own_variance, *_ = predict(block, probes, mean, 1.0 / precision)
    cross = cross_of(probes, points, covariance) + prior_variance
    gain = np.linalg.solve(dense(points, covariance) + prior_variance, cross.T).T
    assert np.allclose(own_mean, prior_mean + gain @ (targets - prior_mean), atol=1e-9)
    prior = covariance.amplitude + covariance.shared + prior_variance
    assert np.allclose(own_variance, prior - np.einsum("ij,ij->i", gain, cross), atol=1e-9)
    labels = predict(block, probes, mean, 1.0 / precision, labels=True)[1]
    assert np.allclose(labels - own_variance, covariance.noise - covariance.shared)


@pytest.mark.parametrize("strength", [math.inf, 10.0, 0.0])
def test_gradients_are_those_of_differences(strength):
    points, targets, probes = data()
    block = GaussianProcessLeaf(points, targets, COVARIANCE, strength)
    _, _, mean_gradients, variance_gradients = predict(block, probes, 0.4, 0.3)
    for j, direction in enumerate(np.eye(3)):
        up = predict(block, probes + 1e-5 * direction, 0.4, 0.3)
        down = predict(block, probes - 1e-5 * direction, 0.4, 0.3)
        assert np.allclose(mean_gradients[:, j], (up[0] - down[0]) / 2e-5, atol=1e-5)
        assert np.allclose(variance_gradients[:, j], (up[1] - down[1]) / 2e-5, atol=1e-5)


def test_some_places_with_noise_and_without_gradients():
    points, targets, probes = data()
    block = GaussianProcessLeaf(points, targets, COVARIANCE, 10.0)
    full = predict(block, probes, 0.4, 0.3)
    some = Moments(np.zeros(11), np.zeros(11), np.empty((0, 3)), np.empty((0, 3)))
    places = np.array([7, 2, 9])
    block.predict(probes, places, 0.4, 0.3, some, labels=True)
    others = np.setdiff1d(np.arange(11), places)
    assert np.allclose(some.means[places], full.means[places], rtol=1e-12)
    assert np.allclose(some.variances[places], full.variances[places] + block.noise, rtol=1e-12)
    assert not some.means[others].any() and not some.variances[others].any()


def test_the_scale_follows_the_labels():
    """With no strength it is the maximum of the likelihood; with some it lies between."""
    points, targets, probes = data()
    targets = 30.0 * targets
    common = GaussianProcessLeaf(points, targets, COVARIANCE)
    own = GaussianProcessLeaf(points, targets, COVARIANCE, 0.0)
    shrunk = GaussianProcessLeaf(points, targets, COVARIANCE, 10.0)
    scale = common.residual / 25
    assert own.residual == pytest.approx(25.0)
    assert own.precision == pytest.approx(common.precision / scale)
    assert own.log_determinant == pytest.approx(common.log_determinant + 25 * math.log(scale))
    ratios = [
        predict(block, probes, 0.0, 0.0)[1] / predict(common, probes, 0.0, 0.0)[1]
        for block in (own, shrunk)
    ]
    assert np.allclose(ratios[0], scale)
    assert np.allclose(ratios[1], (10.0 + common.residual) / 35)


def test_repeated_points_do_not_break_the_factor():
    points = np.full((20, 3), 0.5)
    covariance = COVARIANCE._replace(noise=0.0)
    mean, variance, *_ = predict(
        GaussianProcessLeaf(points, np.ones(20), covariance), points[:1], 0.0, 0.0
    )
    assert mean[0] == pytest.approx(1.0, abs=1e-3)
    assert 0.0 <= variance[0] < 1e-3
    with pytest.raises(np.linalg.LinAlgError, match="positive definite"):
        factorise(np.array([[1.0, 2.0], [2.0, 1.0]]))


def test_draws_have_the_moments_of_the_posterior():
    from mondrian_bo.surrogates.gaussian_process.prior_draw import draw_from_prior

    points, targets, probes = data(12)
    block = GaussianProcessLeaf(points, targets, COVARIANCE)
    mean, variance, *_ = predict(block, probes, 3.0, 0.0)
    rng = np.random.default_rng(1)
    none = np.zeros(3, dtype=np.int64)
    draws = np.array(
        [block.draw(3.0, draw_from_prior(COVARIANCE, none, rng), rng)(probes) for _ in range(2000)]
    )
    error = draws.mean(axis=0) - mean
    assert np.all(np.abs(error) < 4.5 * np.sqrt(variance / 2000))
    assert np.allclose(draws.var(axis=0), variance, rtol=0.2)


@pytest.mark.parametrize("smoothness", [0.5, 2.5])
def test_draws_from_the_prior_have_the_kernel_as_covariance(smoothness):
    from mondrian_bo.surrogates.gaussian_process.prior_draw import draw_from_prior

    categorical = np.array([False, True, False])
    covariance = COVARIANCE._replace(categorical=categorical, amplitude=1.0, smoothness=smoothness)
    rng = np.random.default_rng(2)
    probes = np.where(categorical, rng.integers(-1, 3, (8, 3)), rng.random((8, 3)))
    choices = np.array([0, 3, 0])
    draws = np.array([draw_from_prior(covariance, choices, rng)(probes) for _ in range(4000)])
    expected = covariance.between(probes, probes)
    assert np.allclose(draws.T @ draws / 4000, expected, atol=0.09)
