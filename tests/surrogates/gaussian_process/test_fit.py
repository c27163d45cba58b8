"""MAP estimates of the hyper-parameters."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from mondrian_bo.surrogates.gaussian_process.covariance import Covariance
from mondrian_bo.surrogates.gaussian_process.fit import (
    Estimate,
    Prior,
    _covariance_at,
    _leaf_of,
    _log_marginal_likelihood,
    _log_prior,
    best_estimates,
    fit_hyperparameters,
    initial_estimates,
)
from mondrian_bo.surrogates.gaussian_process_forest.leaf import GaussianProcessLeaf

CATEGORICAL = np.array([True, False, False])
START = initial_estimates(CATEGORICAL, Prior())


def make_leaf(n, seed, noise=0.05):
    rng = np.random.default_rng(seed)
    points = rng.random((n, 3))
    points[:, 0] = rng.integers(0, 3, n)
    targets = np.sin(9.0 * points[:, 1]) + 0.5 * points[:, 0] + noise * rng.standard_normal(n)
    return points, (targets - targets.mean()) / targets.std()


@pytest.mark.parametrize("smoothness", [0.5, 2.5])
@pytest.mark.parametrize(
    "settings",
    [
        {"mean_variance": 1e-4},
        {"mean_variance": 2.0, "precision": (1.1, 0.1), "noise_share": (1.0, 5.0)},
    ],
)
def test_likelihood_is_the_normal_density_and_its_gradient_a_difference(settings, smoothness):
    points, targets = make_leaf(30, 0)
    points[[4, 9, 17]] = points[[2, 2, 11]]
    rng = np.random.default_rng(1)
    prior = Prior(smoothness=(smoothness,), **settings)
    mean_variance = prior.mean_variance
    n_parameters = 6 if prior.noise_share else 5
    theta = 0.5 * rng.standard_normal(n_parameters) - [0, 0, 0, 0, 3, 0][:n_parameters]
    ((like, *_),) = initial_estimates(CATEGORICAL, prior)
    leaf = _leaf_of(points, targets, prior)

    def log_posterior(theta):
        covariance = _covariance_at(theta, like)
        one = _log_marginal_likelihood(leaf, covariance, mean_variance)
        two = _log_prior(covariance, prior)
        return one[0] + two[0], one[1] + two[1], one[0], covariance

    _, gradient, likelihood, covariance = log_posterior(theta)
    equal = (points[:, None] == points).all(axis=2)
    assert equal.sum() == 30 + 2 * 4
    assert (covariance.shared_noise > 0.0) == (n_parameters == 6)
    smooth = covariance._replace(shared_noise=0.0).between(points, points)
    independent = covariance.noise - covariance.shared_noise
    dense = smooth + covariance.shared_noise * equal + independent * np.eye(30) + mean_variance
    expected = multivariate_normal(np.zeros(30), dense).logpdf(targets)
    assert likelihood == pytest.approx(expected, rel=1e-9)
    for j, direction in enumerate(np.eye(n_parameters)):
        change = (
            log_posterior(theta + 1e-5 * direction)[0] - log_posterior(theta - 1e-5 * direction)[0]
        )
        assert gradient[j] == pytest.approx(change / 2e-5, abs=1e-5)


def test_relevant_features_and_the_noise_are_found():
    for noise in (0.02, 0.5):
        leaves = [make_leaf(60, seed, noise) for seed in range(3)]
        ((found, *_),) = fit_hyperparameters(leaves, START, Prior(), 100)
        irrelevant, relevant = found.precisions[2], found.precisions[1]
        assert relevant > 10.0 * irrelevant
        # Targets were scaled to variance 1.
        share = noise**2 / (0.5 + 1.0 / 6.0 + noise**2)
        assert found.noise == pytest.approx(share, rel=0.5, abs=2e-3)


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_the_noise_that_equal_inputs_share_is_found(share):
    prior = Prior(noise=(2.0, 1.0), mean_variance=1.0, noise_share=(1.0, 5.0))
    leaves = []
    for seed in range(2):
        rng = np.random.default_rng(seed)
        points, targets = make_leaf(100, seed, 0.0)
        points = np.concatenate([points, points])
        common = np.tile(rng.standard_normal(100), 2)
        noise = np.sqrt(share) * common + np.sqrt(1.0 - share) * rng.standard_normal(200)
        leaves.append((points, np.tile(targets, 2) + 0.7 * noise))
    ((found, *_),) = fit_hyperparameters(leaves, initial_estimates(CATEGORICAL, prior), prior, 200)
    assert found.noise == pytest.approx(0.49, rel=0.3)
    assert found.shared_noise / found.noise == pytest.approx(share, abs=0.15)
    if share == 1.0:
        assert found.noise - found.shared_noise < 1e-5
    # The share is 0 without a prior for it, and where no inputs are equal.
    ((plain, *_),) = fit_hyperparameters(
        leaves, initial_estimates(CATEGORICAL, prior), prior._replace(noise_share=None), 50
    )
    halves = [(points[:100], targets[:100]) for points, targets in leaves]
    ((none, *_),) = fit_hyperparameters(halves, initial_estimates(CATEGORICAL, prior), prior, 50)
    assert plain.shared_noise == none.shared_noise == 0.0


def test_a_fit_continues_from_its_start():
    leaves = [make_leaf(60, 5)]
    (estimate,) = fit_hyperparameters(leaves, START, Prior(), 200)
    for start in estimate, Estimate(estimate.covariance):
        ((again, *_),) = fit_hyperparameters(leaves, [start], Prior(), 3)
        assert np.allclose(again.precisions, estimate.covariance.precisions, rtol=0.05)


def test_a_fit_continues_where_inputs_repeat_for_the_first_time():
    """The share of the noise is then one more parameter."""
    prior = Prior(noise_share=(1.0, 5.0))
    initial = initial_estimates(CATEGORICAL, prior)
    points, targets = make_leaf(60, 5)
    start = fit_hyperparameters([(points, targets)], initial, prior, 9)
    points[7] = points[3]
    ((found, *_),) = fit_hyperparameters([(points, targets)], start, prior, 200)
    ((fresh, *_),) = fit_hyperparameters([(points, targets)], initial, prior, 200)
    assert found.noise == pytest.approx(fresh.noise, rel=0.05)
    assert found.shared_noise > 0.0


def test_without_information_the_maximum_is_that_of_the_prior():
    """One point has no information about lengthscales, so their prior density is maximal."""
    ((found, *_),) = fit_hyperparameters([(np.full((1, 3), 0.5), np.zeros(1))], START, Prior(), 100)
    assert np.allclose(found.precisions, 1.0, atol=1e-3)
    assert isinstance(found, Covariance)
    GaussianProcessLeaf(np.full((1, 3), 0.5), np.zeros(1), found)


@pytest.mark.parametrize(("n_categorical", "mode"), [(1, 1.0), (3, 1.0), (6, 0.5), (30, 0.1)])
def test_lengthscales_of_many_categorical_features_are_longer(n_categorical, mode):
    """The prior density of their precisions is maximal at a mode that falls with their number."""
    categorical = np.arange(n_categorical + 2) < n_categorical
    start = initial_estimates(categorical, Prior())
    assert np.allclose(start[0].covariance.precisions, np.where(categorical, mode, 1.0))
    point = np.full((1, n_categorical + 2), 0.5)
    ((found, *_),) = fit_hyperparameters([(point, np.zeros(1))], start, Prior(), 100)
    assert np.allclose(found.precisions, np.where(categorical, mode, 1.0), atol=1e-3)
    # Two points that differ in all categorical features remain similar.
    other = np.where(categorical, 1.5, point)
    assert found.between(point, other)[0, 0] > 0.1 * found.amplitude


@pytest.mark.parametrize("smoothness", [0.5, 2.5])
def test_the_smoothness_of_the_targets_is_found(smoothness):
    prior = Prior(smoothness=(0.5, 2.5))
    rng = np.random.default_rng(3)
    truth = Covariance(np.array([9.0, 4.0]), 1.0, 1e-3, np.zeros(2, dtype=bool), smoothness)
    leaves = []
    for _ in range(2):
        points = rng.random((120, 2))
        factor = np.linalg.cholesky(truth.between(points, points) + 1e-3 * np.eye(120))
        leaves.append((points, factor @ rng.standard_normal(120)))
    (best, *_), (other, *_) = fit_hyperparameters(
        leaves, initial_estimates(truth.categorical, prior), prior, 100
    )
    assert (best.smoothness, other.smoothness) == (smoothness, 3.0 - smoothness)
    for found in best, other:
        # Each is the maximum for its own smoothness.
        ((again, *_),) = fit_hyperparameters(leaves, [Estimate(found)], prior, 50)
        assert np.allclose(again.precisions, found.precisions, rtol=0.1)


def test_the_best_of_several_fits_counts_for_each_smoothness():
    prior = Prior(smoothness=(0.5, 2.5))
    leaves = [make_leaf(40, 0)]
    starts = initial_estimates(CATEGORICAL, prior)
    short, long = (fit_hyperparameters(leaves, starts, prior, n) for n in (2, 60))
    mixed = [min(short, key=lambda one: one.covariance.smoothness), long[0]]
    assert best_estimates(short, long) == best_estimates(long, short) == long
    assert [one.loss for one in long] == sorted(one.loss for one in long)
    assert [one.covariance.smoothness for one in best_estimates(mixed)] == [2.5, 0.5]
