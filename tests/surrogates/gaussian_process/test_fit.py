"""Hyper-parameters by maximum a posteriori."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from mondrian_bo.surrogates.gaussian_process.covariance import Covariance
from mondrian_bo.surrogates.gaussian_process.fit import (
    Prior,
    _from_logs,
    _log_likelihood,
    _log_prior,
    _twins,
    fit,
    start,
)
from mondrian_bo.surrogates.gaussian_process_forest.leaf import GaussianProcessLeaf

CATEGORICAL = np.array([True, False, False])
START = start(CATEGORICAL, Prior())


def labelled(n, seed, noise=0.05):
    rng = np.random.default_rng(seed)
    points = rng.random((n, 3))
    points[:, 0] = rng.integers(0, 3, n)
    targets = np.sin(9.0 * points[:, 1]) + 0.5 * points[:, 0] + noise * rng.standard_normal(n)
    return points, (targets - targets.mean()) / targets.std()


@pytest.mark.parametrize("smoothness", [0.5, 2.5])
@pytest.mark.parametrize(
    "beliefs",
    [
        {"mean_variance": 1e-4},
        {"mean_variance": 2.0, "precision": (1.1, 0.1), "shared": (1.0, 5.0)},
    ],
)
def test_likelihood_is_the_normal_density_and_its_gradient_a_difference(beliefs, smoothness):
    points, targets = labelled(30, 0)
    points[[4, 9, 17]] = points[[2, 2, 11]]
    rng = np.random.default_rng(1)
    prior = Prior(smoothness=(smoothness,), **beliefs)
    mean_variance = prior.mean_variance
    n_logs = 6 if prior.shared else 5
    logs = 0.5 * rng.standard_normal(n_logs) - [0, 0, 0, 0, 3, 0][:n_logs]
    (like,) = start(CATEGORICAL, prior)

    def both(logs):
        covariance = _from_logs(logs, like)
        one = _log_likelihood(points, targets, covariance, mean_variance, _twins(points))
        two = _log_prior(covariance, prior)
        return one[0] + two[0], one[1] + two[1], one[0], covariance

    _, gradient, likelihood, covariance = both(logs)
    equal = (points[:, None] == points).all(axis=2)
    assert equal.sum() == 30 + 2 * 4
    assert (covariance.shared > 0.0) == (n_logs == 6)
    smooth = covariance._replace(shared=0.0).between(points, points)
    own = covariance.noise - covariance.shared
    dense = smooth + covariance.shared * equal + own * np.eye(30) + mean_variance
    expected = multivariate_normal(np.zeros(30), dense).logpdf(targets)
    assert likelihood == pytest.approx(expected, rel=1e-9)
    for j, direction in enumerate(np.eye(n_logs)):
        change = both(logs + 1e-5 * direction)[0] - both(logs - 1e-5 * direction)[0]
        assert gradient[j] == pytest.approx(change / 2e-5, abs=1e-5)


def test_finds_what_matters_and_how_noisy_it_is():
    for noise in (0.02, 0.5):
        blocks = [labelled(60, seed, noise) for seed in range(3)]
        (found,) = fit(blocks, START, Prior(), 100)
        irrelevant, relevant = found.precisions[2], found.precisions[1]
        assert relevant > 10.0 * irrelevant
        # Labels were scaled to variance 1.
        share = noise**2 / (0.5 + 1.0 / 6.0 + noise**2)
        assert found.noise == pytest.approx(share, rel=0.5, abs=2e-3)


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_finds_what_equal_inputs_share(share):
    prior = Prior(noise=(2.0, 1.0), mean_variance=1.0, shared=(1.0, 5.0))
    blocks = []
    for seed in range(2):
        rng = np.random.default_rng(seed)
        points, targets = labelled(100, seed, 0.0)
        points = np.concatenate([points, points])
        common = np.tile(rng.standard_normal(100), 2)
        noise = np.sqrt(share) * common + np.sqrt(1.0 - share) * rng.standard_normal(200)
        blocks.append((points, np.tile(targets, 2) + 0.7 * noise))
    (found,) = fit(blocks, start(CATEGORICAL, prior), prior, 200)
    assert found.noise == pytest.approx(0.49, rel=0.3)
    assert found.shared / found.noise == pytest.approx(share, abs=0.15)
    if share == 1.0:
        assert found.noise - found.shared < 1e-5
    # Not unless it is asked for, and not where no inputs are equal.
    (plain,) = fit(blocks, start(CATEGORICAL, prior), prior._replace(shared=None), 50)
    halves = [(points[:100], targets[:100]) for points, targets in blocks]
    (none,) = fit(halves, start(CATEGORICAL, prior), prior, 50)
    assert plain.shared == none.shared == 0.0


def test_goes_on_from_where_it_was():
    blocks = [labelled(60, 5)]
    (found,) = fit(blocks, START, Prior(), 200)
    (again,) = fit(blocks, [found], Prior(), 3)
    assert np.allclose(again.precisions, found.precisions, rtol=0.05)


def test_the_prior_alone_is_met_without_information():
    """One point says nothing of lengthscales: they stay where the prior's density is largest."""
    (found,) = fit([(np.full((1, 3), 0.5), np.zeros(1))], START, Prior(), 100)
    assert np.allclose(found.precisions, 1.0, atol=1e-3)
    assert isinstance(found, Covariance)
    GaussianProcessLeaf(np.full((1, 3), 0.5), np.zeros(1), found)


@pytest.mark.parametrize("smoothness", [0.5, 2.5])
def test_the_smoothness_of_the_labels_is_found(smoothness):
    prior = Prior(smoothness=(0.5, 2.5))
    rng = np.random.default_rng(3)
    truth = Covariance(np.array([9.0, 4.0]), 1.0, 1e-3, np.zeros(2, dtype=bool), smoothness)
    blocks = []
    for _ in range(2):
        points = rng.random((120, 2))
        factor = np.linalg.cholesky(truth.between(points, points) + 1e-3 * np.eye(120))
        blocks.append((points, factor @ rng.standard_normal(120)))
    best, other = fit(blocks, start(truth.categorical, prior), prior, 100)
    assert (best.smoothness, other.smoothness) == (smoothness, 3.0 - smoothness)
    for found in best, other:
        # The best of its own kind, not a copy of the other with a new name.
        (again,) = fit(blocks, [found], prior, 50)
        assert np.allclose(again.precisions, found.precisions, rtol=0.1)
