"""The variance correction follows leave-one-out residuals."""

import numpy as np
import pytest
from scipy.stats import norm

from mondrian_bo.surrogates import GaussianProcessForestRegressor
from mondrian_bo.surrogates.gaussian_process_forest.variance_correction import VarianceCorrection
from mondrian_bo.surrogates.shared.ensemble import Ensemble


def learnt(points, residuals, variances, seed=0):
    ensemble = Ensemble(10, points.shape[1], np.random.SeedSequence(seed))
    correction = VarianceCorrection(ensemble, None, None)
    correction.learn(points[None], residuals, variances)
    return correction


@pytest.mark.parametrize("seed", range(3))
def test_factors_are_ratios_of_squared_residuals_and_variances(seed):
    rng = np.random.default_rng(seed)
    points = rng.random((2000, 2))
    truth = np.where(points[:, 0] < 0.5, 0.25, 4.0)
    variances = rng.gamma(2.0, 1.0, (1, 2000))
    residuals = np.sqrt(truth * variances) * rng.standard_normal((1, 2000))
    probes = np.stack([np.repeat([0.25, 0.75], 50), np.tile(np.linspace(0.05, 0.95, 50), 2)], 1)
    found = learnt(points, residuals, variances, seed).factors(probes[None])
    low, high = np.mean(found[:50]), np.mean(found[50:])
    # Squares of normal residuals are noisy, so the forest smooths a good deal.
    assert low < 0.9 and high == pytest.approx(4.0, rel=0.3)


def test_independent_errors_of_components_reduce_the_variance():
    rng = np.random.default_rng(0)
    points = rng.random((1000, 3))
    residuals = rng.standard_normal((10, 1000))
    found = learnt(points, residuals, np.full((10, 1000), 1e-3)).factors(points[None])
    # The square of the mean of ten over nine tenths of their sample variance is 1/7 on average.
    assert np.mean(found) == pytest.approx((100.0 + 1000.0 / 7.0) / 1100.0, rel=0.15)
    assert np.all(found > 0.0)


def test_few_targets_change_little():
    rng = np.random.default_rng(1)
    points, residuals = rng.random((9, 2)), 3.0 * rng.standard_normal((1, 9))
    found = learnt(points, residuals, np.ones((1, 9))).factors(rng.random((1, 30, 2)))
    assert np.all((found > 0.9) & (found < 3.5))
    one = learnt(points[:1], residuals[:, :1], np.ones((1, 1))).factors(points[None])
    assert np.all(np.isfinite(one)) and np.all(one > 0.9)


@pytest.mark.parametrize("seed", range(3))
def test_noise_that_varies_is_followed(seed):
    """Compared with the same processes without a correction, and with the true noise."""
    rng = np.random.default_rng(seed)
    X = rng.random((1200, 2))
    noise = np.where(X[:, 1] < 0.5, 0.1, 0.8)
    y = np.sin(6.0 * X[:, 0]) + noise * rng.standard_normal(1200)
    forest = GaussianProcessForestRegressor(5, block_size=100, random_state=seed)
    forest.fit(X[:900], y[:900])
    mean, std = forest.predict(X[900:], return_std=True)
    means, variances = forest.model_.predict_uncorrected(X[None, 900:])
    uncorrected = np.sqrt(variances.mean(axis=0) + means.var(axis=0))
    densities = [norm.logpdf(y[900:], mean, scale).mean() for scale in (std, uncorrected)]
    assert densities[0] > densities[1]
    quiet = X[900:, 1] < 0.5
    assert np.median(std[quiet]) < 0.3 < 0.5 < np.median(std[~quiet])
    covered = np.abs(y[900:] - mean) < norm.ppf(0.95) * std
    was_covered = np.abs(y[900:] - mean) < norm.ppf(0.95) * uncorrected
    for part in quiet, ~quiet:
        assert abs(covered[part].mean() - 0.9) <= max(0.04, abs(was_covered[part].mean() - 0.9))
