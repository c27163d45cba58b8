"""The Gaussian process in a leaf agrees with dense references."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern

from mondrian_bo.surrogates.gaussian_process.covariance import Covariance, factorise
from mondrian_bo.surrogates.gaussian_process.prior_draw import draw_from_prior
from mondrian_bo.surrogates.gaussian_process_forest import leaf as leaf_module
from mondrian_bo.surrogates.gaussian_process_forest.leaf import GaussianProcessLeaf, LeafTable
from mondrian_bo.surrogates.gaussian_process_forest.leaf_prediction import Moments, predict_leaves
from mondrian_bo.surrogates.gaussian_process_forest.posterior_draw import draw_of_leaf

COVARIANCE = Covariance(np.array([3.0, 0.4, 20.0]), 1.7, 0.01, np.zeros(3, dtype=bool))
SHARING = COVARIANCE._replace(noise=0.7, shared_noise=0.6)
BOTH = pytest.mark.parametrize("covariance", [COVARIANCE, SHARING])


@pytest.fixture
def extends_all(monkeypatch):
    """Leaves of any size are extended."""
    monkeypatch.setattr(leaf_module, "_FEWEST_EXTENDED", 1)


def data(n=25, seed=0):
    rng = np.random.default_rng(seed)
    points = rng.random((n, 3))
    return points, np.sin(5.0 * points[:, 0]) + points[:, 2] + 3.0, rng.random((11, 3))


def predict(leaf, rows, mean, variance, with_noise=False):
    # The second one of two trees.
    moments, gradients = np.zeros((2, 2, len(rows))), np.zeros((2, 2, len(rows), 3))
    table = LeafTable({5: leaf})
    table.numbers[5, 2:] = mean, variance
    inside = np.full((len(rows), 2), [9, 5]), 1, rows, leaf._covariance, with_noise
    predict_leaves((table.addresses, table.numbers), *inside, moments, gradients)
    assert not moments[:, 0].any() and not gradients[:, 0].any()
    return Moments(*moments[:, 1], *gradients[:, 1])


def cross_of(some, others, covariance):
    """Return covariances of functions, the shared noise of equal inputs included."""
    kernel = ConstantKernel(1.7) * Matern(COVARIANCE.precisions**-0.5, nu=2.5)
    equal = (some[:, None] == others).all(axis=2)
    return kernel(some, others) + covariance.shared_noise * equal


def dense(points, covariance):
    independent = covariance.noise - covariance.shared_noise
    return cross_of(points, points, covariance) + independent * np.eye(len(points))


def with_duplicates(points, probes):
    """Return points of which some are equal, and probes of which some are equal to points."""
    points, probes = points.copy(), probes.copy()
    points[[3, 9, 20]] = points[[1, 1, 7]]
    probes[:3] = points[[1, 7, 8]]
    return points, probes


def test_with_a_known_mean_it_is_scikit_learns_regressor():
    points, targets, probes = data()
    kernel = ConstantKernel(1.7) * Matern(COVARIANCE.precisions**-0.5, nu=2.5)
    reference = GaussianProcessRegressor(kernel, alpha=0.01, optimizer=None).fit(
        points, targets - 0.5
    )
    mean, std = reference.predict(probes, return_std=True)
    own_mean, own_variance, *_ = predict(
        GaussianProcessLeaf(points, targets, COVARIANCE), probes, 0.5, 0.0
    )
    assert np.allclose(own_mean, 0.5 + mean, atol=1e-9)
    assert np.allclose(own_variance, std**2, atol=1e-9)


@BOTH
def test_message_is_the_likelihood_of_the_mean(covariance):
    points, targets, probes = data()
    points, _ = with_duplicates(points, probes)
    leaf = GaussianProcessLeaf(points, targets, covariance)
    for mean in (-1.0, 0.0, 2.0, 7.0):
        expected = multivariate_normal(np.full(25, mean), dense(points, covariance)).logpdf(targets)
        square = leaf.residual + leaf.precision * (mean - leaf.location) ** 2
        own = -0.5 * (square + leaf.log_determinant + 25 * math.log(2.0 * math.pi))
        assert own == pytest.approx(expected, rel=1e-9)


@BOTH
def test_with_an_unknown_mean_it_is_a_process_with_a_constant(covariance):
    """A mean with a Gaussian prior adds its variance to every covariance."""
    points, targets, probes = data()
    points, probes = with_duplicates(points, probes)
    prior_mean, prior_variance = 0.3, 2.0
    leaf = GaussianProcessLeaf(points, targets, covariance)
    precision = 1.0 / prior_variance + leaf.precision
    mean = (prior_mean / prior_variance + leaf.precision * leaf.location) / precision
    own_mean, own_variance, *_ = predict(leaf, probes, mean, 1.0 / precision)
    cross = cross_of(probes, points, covariance) + prior_variance
    gain = np.linalg.solve(dense(points, covariance) + prior_variance, cross.T).T
    assert np.allclose(own_mean, prior_mean + gain @ (targets - prior_mean), atol=1e-9)
    prior = covariance.amplitude + covariance.shared_noise + prior_variance
    assert np.allclose(own_variance, prior - np.einsum("ij,ij->i", gain, cross), atol=1e-9)
    noisy = predict(leaf, probes, mean, 1.0 / precision, with_noise=True)[1]
    assert np.allclose(noisy - own_variance, covariance.noise - covariance.shared_noise)


@pytest.mark.parametrize("strength", [math.inf, 10.0, 0.0])
def test_gradients_are_limits_of_differences(strength):
    points, targets, probes = data()
    leaf = GaussianProcessLeaf(points, targets, COVARIANCE, strength)
    _, _, mean_gradients, variance_gradients = predict(leaf, probes, 0.4, 0.3)
    for j, direction in enumerate(np.eye(3)):
        up = predict(leaf, probes + 1e-5 * direction, 0.4, 0.3)
        down = predict(leaf, probes - 1e-5 * direction, 0.4, 0.3)
        assert np.allclose(mean_gradients[:, j], (up[0] - down[0]) / 2e-5, atol=1e-5)
        assert np.allclose(variance_gradients[:, j], (up[1] - down[1]) / 2e-5, atol=1e-5)


def test_points_in_several_leaves_with_noise_and_without_gradients():
    points, targets, probes = data(260)
    leaves = {2: GaussianProcessLeaf(points[:30], targets[:30], COVARIANCE, 10.0)}
    leaves[40] = GaussianProcessLeaf(points[30:], targets[30:], COVARIANCE, 10.0)
    probes = np.random.default_rng(1).random((150, 3))
    nodes = np.where(np.arange(150) % 7 == 3, 2, 40)
    table = LeafTable(leaves)
    table.numbers[2, 2:], table.numbers[40, 2:] = (0.4, 0.3), (-0.1, 0.2)
    moments, inside = np.empty((2, 1, 150)), (nodes[:, None], 0, probes, COVARIANCE, True)
    predict_leaves((table.addresses, table.numbers), *inside, moments, np.empty((2, 1, 0, 3)))
    means, variances = moments[:, 0]
    for node, leaf in leaves.items():
        inside = nodes == node
        full = predict(leaf, probes[inside], *table.numbers[node, 2:])
        assert np.allclose(means[inside], full.means, rtol=1e-12)
        assert np.allclose(variances[inside], full.variances + leaf.noise, rtol=1e-12)


@BOTH
@pytest.mark.parametrize("n_known", [1, 47, 48, 95])
def test_a_leaf_that_is_extended_is_the_leaf_of_all_points(
    covariance, n_known, extends_all, monkeypatch
):
    points, targets, probes = data(100)
    points, probes = with_duplicates(points, probes)
    leaf = GaussianProcessLeaf(points[:n_known], targets[:n_known], covariance, 10.0)
    known = predict(leaf, probes, 0.4, 0.3)
    with monkeypatch.context() as patch:
        patch.setattr(leaf_module, "factorise", None)  # no new factor
        extended = GaussianProcessLeaf(points, targets, covariance, 10.0, leaf)
    for one, other in zip(predict(leaf, probes, 0.4, 0.3), known, strict=True):
        assert np.array_equal(one, other)
    expected = GaussianProcessLeaf(points, targets, covariance, 10.0)
    for one, other in zip(extended.posterior, expected.posterior, strict=True):
        assert np.allclose(one, other, rtol=1e-9, atol=1e-9)
    assert np.allclose(extended.whitening, expected.whitening, rtol=1e-9, atol=1e-9)
    for name in ("precision", "location", "residual", "log_determinant", "scale", "noise"):
        assert getattr(extended, name) == pytest.approx(getattr(expected, name), rel=1e-9)
    for one, other in zip(
        predict(extended, probes, 0.4, 0.3), predict(expected, probes, 0.4, 0.3), strict=True
    ):
        assert np.allclose(one, other, rtol=1e-9, atol=1e-9)


def test_a_leaf_with_a_point_that_rounding_makes_redundant_is_computed_anew(extends_all):
    points, targets, _ = data(40)
    smallest = COVARIANCE._replace(precisions=np.full(3, 1e-4), amplitude=1e8, noise=1e-10)
    leaf = GaussianProcessLeaf(points[:30], targets[:30], smallest, 10.0)
    extended = GaussianProcessLeaf(points, targets, smallest, 10.0, leaf)
    assert len(extended.posterior.points) == 40 and np.isfinite(extended.posterior.panels).all()


def test_the_scale_follows_the_targets():
    """With strength 0 it maximises the likelihood; with more it is shrunk towards 1."""
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
        predict(leaf, probes, 0.0, 0.0)[1] / predict(common, probes, 0.0, 0.0)[1]
        for leaf in (own, shrunk)
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
    points, targets, probes = data(12)
    leaf = GaussianProcessLeaf(points, targets, COVARIANCE)
    mean, variance, *_ = predict(leaf, probes, 3.0, 0.0)
    rng = np.random.default_rng(1)
    none = np.zeros(3, dtype=np.int64)
    draws = np.array(
        [
            draw_of_leaf(leaf, COVARIANCE, 3.0, draw_from_prior(COVARIANCE, none, rng), rng)(probes)
            for _ in range(2000)
        ]
    )
    error = draws.mean(axis=0) - mean
    assert np.all(np.abs(error) < 4.5 * np.sqrt(variance / 2000))
    assert np.allclose(draws.var(axis=0), variance, rtol=0.2)


@pytest.mark.parametrize("smoothness", [0.5, 2.5])
def test_draws_from_the_prior_have_the_kernel_as_covariance(smoothness):
    categorical = np.array([False, True, False])
    covariance = COVARIANCE._replace(categorical=categorical, amplitude=1.0, smoothness=smoothness)
    rng = np.random.default_rng(2)
    probes = np.where(categorical, rng.integers(-1, 3, (8, 3)), rng.random((8, 3)))
    choices = np.array([0, 3, 0])
    draws = np.array([draw_from_prior(covariance, choices, rng)(probes) for _ in range(4000)])
    expected = covariance.between(probes, probes)
    assert np.allclose(draws.T @ draws / 4000, expected, atol=0.09)
