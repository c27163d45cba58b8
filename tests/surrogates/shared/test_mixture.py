"""Mixtures of Gaussians against sums of scipy's normal distributions."""

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import logsumexp

from mondrian_bo.surrogates.shared.mixture import GaussianMixture

SEEDS = [0, 1, 2]
LEVELS = [1e-12, 1e-4, 0.05, 0.5, 0.9, 0.999, 1.0 - 1e-9]


class Plain:
    """The components of each point, as lists."""

    def __init__(self, seed, *, offset=0.0, scale=1.0):
        rng = np.random.default_rng(seed)
        counts = rng.integers(1, 7, size=9)
        self.weights = [rng.dirichlet(np.ones(count)) for count in counts]
        self.means = [offset + scale * rng.normal(scale=3.0, size=count) for count in counts]
        self.stds = [scale * rng.gamma(2.0, size=count) + 0.01 * scale for count in counts]

    def mixture(self):
        return GaussianMixture(
            point=np.repeat(np.arange(len(self.weights)), [len(w) for w in self.weights]),
            weight=np.concatenate(self.weights),
            mean=np.concatenate(self.means),
            std=np.concatenate(self.stds),
        )

    def rows(self):
        return zip(self.weights, self.means, self.stds, strict=True)

    def moments(self):
        mean = [w @ m for w, m, _ in self.rows()]
        variance = [w @ ((m - w @ m) ** 2 + s**2) for w, m, s in self.rows()]
        return np.array(mean), np.array(variance)


@pytest.mark.parametrize("seed", SEEDS)
def test_logpdf_and_cdf(seed):
    plain = Plain(seed)
    mixture = plain.mixture()
    assert len(mixture) == 9
    rng = np.random.default_rng(seed + 100)
    for scale in (1.0, 5.0, 100.0, 1e6):
        values = rng.normal(scale=scale, size=9)
        logpdf = [
            logsumexp(stats.norm.logpdf(y, m, s), b=w)
            for y, (w, m, s) in zip(values, plain.rows(), strict=True)
        ]
        assert np.allclose(mixture.logpdf(values), logpdf, rtol=1e-12)
        cdf = [
            w @ stats.norm.cdf(y, m, s) for y, (w, m, s) in zip(values, plain.rows(), strict=True)
        ]
        assert np.allclose(mixture.cdf(values), cdf, rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize("seed", SEEDS)
def test_density_integrates_to_the_distribution_function(seed):
    plain = Plain(seed)
    mixture = plain.mixture()
    mean, variance = plain.moments()
    for i in range(9):
        centres = np.sort(plain.means[i])
        low, high = mean[i] - 40.0 * variance[i] ** 0.5, mean[i] + 40.0 * variance[i] ** 0.5

        def density(y, i=i):
            return np.exp(mixture.logpdf(np.full(9, y))[i])

        whole = integrate.quad(density, low, high, points=centres, limit=400)[0]
        assert whole == pytest.approx(1.0, abs=1e-6)
        part = integrate.quad(density, low, mean[i], points=centres, limit=400)[0]
        assert part == pytest.approx(mixture.cdf(mean)[i], abs=1e-6)


@pytest.mark.parametrize("seed", SEEDS)
def test_quantile_inverts_the_distribution_function(seed):
    for options in ({}, {"scale": 1e-9}, {"scale": 1e30}, {"offset": 1e6}):
        mixture = Plain(seed, **options).mixture()
        found = np.stack([mixture.quantile(level) for level in LEVELS])
        assert np.all(np.diff(found, axis=0) > 0.0)
        # At a large offset, adjacent floating-point numbers are 1e-10 apart.
        accuracy = 1e-6 if "offset" in options else 1e-11
        for level, values in zip(LEVELS, found, strict=True):
            assert np.allclose(mixture.cdf(values), level, rtol=accuracy, atol=0.0)


def test_quantiles_of_one_gaussian():
    mixture = GaussianMixture(np.array([0]), np.ones(1), np.array([3.0]), np.array([0.5]))
    for level in LEVELS:
        assert mixture.quantile(level)[0] == pytest.approx(stats.norm.ppf(level, 3.0, 0.5))


@pytest.mark.parametrize(("mean", "std"), [(3e307, 1e307), (1e10, 5e306), (-1e308, 1e306)])
def test_quantiles_at_the_end_of_the_range(mean, std):
    mixture = GaussianMixture(np.zeros(2, int), np.full(2, 0.5), np.full(2, mean), np.full(2, std))
    for level in (0.01, 0.3, 0.5, 0.9):
        expected = mean + std * stats.norm.ppf(level)
        assert mixture.quantile(level)[0] == pytest.approx(expected, rel=1e-9, abs=1e-9 * std)


def test_quantiles_with_a_gap():
    # Two narrow peaks: the median may be anywhere between them.
    mixture = GaussianMixture(
        np.zeros(2, dtype=int), np.array([0.5, 0.5]), np.array([-1.0, 1e8]), np.array([1e-9, 1e-9])
    )
    assert mixture.quantile(0.49)[0] == pytest.approx(-1.0, abs=1e-7)
    assert -1.0 - 1e-7 < mixture.quantile(0.5)[0] < 1e8 + 1e-7
    assert mixture.quantile(0.51)[0] == pytest.approx(1e8, abs=1e-6)


@pytest.mark.parametrize("seed", SEEDS)
def test_sample(seed):
    plain = Plain(seed)
    mean, variance = plain.moments()
    n_samples = 20_000
    draws = plain.mixture().sample(n_samples, np.random.default_rng(seed))
    assert draws.shape == (9, n_samples)
    assert np.all(np.abs(draws.mean(axis=1) - mean) < 4.5 * np.sqrt(variance / n_samples))
    fourth = ((draws - mean[:, None]) ** 4).mean(axis=1)
    error = np.sqrt((fourth - variance**2) / n_samples)
    assert np.all(np.abs(draws.var(axis=1) - variance) < 4.5 * error)
    for i, (w, m, s) in enumerate(plain.rows()):

        def cdf(y, w=w, m=m, s=s):
            return stats.norm.cdf((y[:, None] - m) / s) @ w

        # The smallest of 27 p-values is 0.1.
        assert stats.kstest(draws[i], cdf).pvalue > 1e-4
    # Points are drawn independently of each other.
    correlation = np.corrcoef(draws) - np.eye(9)
    assert np.abs(correlation).max() < 4.5 / np.sqrt(n_samples)


def test_components_with_weight_zero():
    plain = GaussianMixture(
        np.array([0, 0, 1]), np.array([0.0, 1.0, 1.0]), np.array([9.0, 1.0, 2.0]), np.ones(3)
    )
    with np.errstate(all="raise"):
        found = plain.logpdf([1.0, 2.0])
    assert np.allclose(found, stats.norm.logpdf(0.0))
    assert np.allclose(plain.cdf([1.0, 2.0]), 0.5)
    assert np.allclose(plain.quantile(0.5), [1.0, 2.0])
    draws = plain.sample(4000, np.random.default_rng(0))
    assert draws[0].max() < 6.5


def test_the_log_density_far_from_all_components():
    mixture = GaussianMixture(
        point=np.array([0, 0, 1, 2]),
        weight=np.array([0.5, 0.5, 1.0, 1.0]),
        mean=np.array([0.0, 1.0, 0.0, -1e308]),
        std=np.array([1e-9, 1.0, 1e-9, 1.0]),
    )
    far = mixture.logpdf([1e100, 1e160, 1e308])
    assert far[0] == pytest.approx(-0.5e200)
    np.testing.assert_array_equal(far[1:], -np.inf)


@pytest.mark.parametrize("weights", [None, np.array([0.2, 0.3, 0.5])])
def test_components_of_all_points(weights):
    rng = np.random.default_rng(0)
    means, variances = rng.normal(size=(3, 5)), rng.gamma(2.0, size=(3, 5))
    mixture = GaussianMixture.of_components(means, variances, weights=weights)
    shares = np.full(3, 1.0 / 3.0) if weights is None else weights
    expected = shares @ stats.norm.cdf((0.3 - means) / np.sqrt(variances))
    assert len(mixture) == 5
    assert np.allclose(mixture.cdf(np.full(5, 0.3)), expected, rtol=1e-12, atol=0.0)


def test_components_as_rows():
    rows = np.array([[0.0, 0.4, 1.0, 4.0], [0.0, 0.6, 2.0, 9.0], [1.0, 1.0, -1.0, 0.25]])
    mixture = GaussianMixture.of_rows(rows, 1.0)
    first = 0.4 * stats.norm.cdf(0.5) + 0.6 * stats.norm.cdf(0.0)
    assert len(mixture) == 2
    assert np.allclose(mixture.cdf([2.0, 3.0]), [first, stats.norm.cdf(8.0)], rtol=1e-12, atol=0.0)


@pytest.mark.parametrize("scale", [0.0, 1e-200, 1.0, 1e200])
def test_densities_of_point_masses_are_finite(scale):
    """Standard deviations are at least a billionth of the scale of the targets, and positive."""
    means, variances = np.zeros((2, 1)), np.zeros((2, 1))
    rows = np.array([[0.0, 1.0, 0.0, 0.0]])
    for mixture in (
        GaussianMixture.of_components(means, variances, scale),
        GaussianMixture.of_rows(rows, scale),
    ):
        assert np.all(mixture.std > 0.0)
        assert np.allclose(mixture.std, max(1e-9 * scale, np.finfo(float).tiny), rtol=1e-12, atol=0)
        assert np.isfinite(mixture.logpdf([0.0])).all()
