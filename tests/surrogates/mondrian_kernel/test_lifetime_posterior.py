"""The posterior over the lifetime, and prediction averaged over it, against sums over a grid."""

import numpy as np
import pytest
from kernel_refits import refit_kernel
from scipy.stats import beta, expon, truncexpon, uniform
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel

from mondrian_bo.surrogates import (
    LaplaceKernel,
    MondrianKernelMixtureRegressor,
    MondrianKernelRegressor,
    lifetime_posterior,
)
from mondrian_bo.surrogates.mondrian_kernel.lifetime_paths.kernel_path import kernel_path
from mondrian_bo.surrogates.mondrian_kernel.lifetime_paths.path_data import sample_path_data
from mondrian_bo.surrogates.mondrian_kernel.lifetime_posterior import LifetimePosterior
from mondrian_bo.surrogates.mondrian_kernel.model import KernelModel

PRIORS = {"uniform": uniform(0.0, 5.0), "short": truncexpon(b=5.0 / 0.7, scale=0.7)}
NEW = np.array([[0.5], [0.1], [1.5]])


def make_data(n=25, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((n, 1))
    return X, 1.0 + np.sin(6.0 * X[:, 0]) + 0.3 * rng.normal(size=n)


@pytest.mark.parametrize("name", PRIORS)
def test_posterior_is_bayes_rule_on_a_grid(name):
    X, y = make_data()
    data = sample_path_data(X, y, X[:1], y[:1], n_estimators=3, max_lifetime=5.0, random_state=0)
    path = kernel_path(data, 0.1, 1.0)
    posterior = lifetime_posterior(path, PRIORS[name].cdf)
    assert abs(posterior.probabilities.sum() - 1.0) < 1e-12
    grid = (np.arange(4000) + 0.5) * 5.0 / 4000
    evidence = np.array([refit_kernel(data, x, 0.1, 1.0)[2] for x in grid[::20]])
    at_grid = path.log_marginal_likelihood[[path.index(x) for x in grid]]
    assert np.allclose(at_grid[::20], evidence)
    density = PRIORS[name].pdf(grid) * np.exp(at_grid)
    total = density.sum() * 5.0 / 4000
    assert abs(posterior.log_evidence - np.log(total)) < 0.01
    totals = np.append(0.0, np.cumsum(posterior.probabilities))
    for end, below in zip(posterior.ends[::9], totals[::9], strict=True):
        assert abs(density[grid < end].sum() * 5.0 / 4000 / total - below) < 0.01
        assert abs(posterior.quantile(below) - end) < 1e-6 or below in (0.0, 1.0)


def test_mixture_is_the_average_over_the_posterior():
    X, y = make_data()
    model = MondrianKernelMixtureRegressor(
        3, 5.0, noise_variance=0.1, max_models=None, random_state=0
    ).fit(X, y)
    mean, std = model.predict(NEW, return_std=True)
    partitions = model.path_.partitions
    unit = np.var(y)
    first, second = np.zeros(3), np.zeros(3)
    for level in (np.arange(2000) + 0.5) / 2000:
        lifetime = model.posterior_.quantile(level)
        one = KernelModel(partitions.at_lifetime(lifetime), 0.1, unit)
        own_mean, own_variance = one.predict(NEW[None])
        first += own_mean / 2000
        second += (own_variance + 0.1 * unit + own_mean**2) / 2000
    assert np.allclose(mean, first, rtol=0.002)
    assert np.allclose(std, np.sqrt(second - first**2), rtol=0.005)


@pytest.mark.parametrize("max_models", [20, None])
def test_one_distinct_input_leaves_the_lifetime_open(max_models):
    """The posterior is the prior, so a new input's kernel with it is the mean over lifetimes."""
    model = MondrianKernelMixtureRegressor(400, 10.0, max_models=max_models, random_state=0)
    model.fit([[0.5]] * 5, np.arange(5.0))
    assert model.posterior_.quantile(0.5) == 5.0
    distance = np.array([0.0, 0.1, 1.0, 100.0])
    _, std = model.predict(0.5 + distance[:, None], return_std=True)
    # The centred targets add up to 0, so all means are 2. The variances are in units of 2.
    similarity = np.exp(-(np.arange(1000) + 0.5) / 100 * distance[:, None])
    gain = 5.0 / 5.01 * similarity**2
    expected = np.sqrt(2.0 * (1.01 - gain.mean(axis=1)))
    np.testing.assert_allclose(std, expected, rtol=0.05)


def test_few_models_stand_for_all():
    X, y = make_data(60)
    whole, part = (
        MondrianKernelMixtureRegressor(5, 5.0, max_models=n, random_state=0).fit(X, y)
        for n in (None, 20)
    )
    assert len(part.models_) <= 20 < len(whole.models_)
    for model in (whole, part):
        assert model.weights_.sum() == pytest.approx(1.0)
    one, other = whole.predict(X, return_std=True), part.predict(X, return_std=True)
    assert np.allclose(one[0], other[0], atol=0.05)
    assert np.allclose(one[1], other[1], rtol=0.1)


def test_density_of_the_mixture():
    X, y = make_data()
    model = MondrianKernelMixtureRegressor(4, 5.0, random_state=0).fit(X, y)
    values = np.linspace(-12.0, 12.0, 2001)
    densities = np.exp(model.logpdf(np.repeat(NEW[:1], len(values), axis=0), values))
    step = values[1] - values[0]
    mean, std = (moment[0] for moment in model.predict(NEW[:1], return_std=True))
    assert abs(densities.sum() * step - 1.0) < 1e-6
    assert abs((densities * values).sum() * step - mean) < 1e-6
    assert abs((densities * (values - mean) ** 2).sum() * step - std**2) < 1e-5
    assert model.predict_quantiles(NEW).shape == (3, 3)


def test_true_lifetime_is_recovered():
    """Data of a Laplace kernel with lifetime 10 (section 8.2), within a factor of 3."""
    rng = np.random.default_rng(0)
    X = rng.random((150, 1))
    prior = GaussianProcessRegressor(ConstantKernel() * LaplaceKernel(10.0), optimizer=None)
    y = prior.sample_y(X, random_state=1)[:, 0] + 0.1 * rng.normal(size=150)
    model = MondrianKernelRegressor(20, 60.0, normalize_y=False, random_state=0)
    posterior = lifetime_posterior(model.lifetime_path(X, y))
    assert 10.0 / 3.0 < posterior.quantile(0.5) < 30.0


@pytest.mark.parametrize("small", [1e-17, 1e-30, 5e-324])
def test_quantiles_beside_an_interval_of_next_to_no_probability(small):
    """The last probability is lost in the sum: the level 1 is in the interval before."""
    ends, probabilities = np.array([0.0, 1.0, 2.0, 5.0]), np.array([0.5, 0.5, small])
    posterior = LifetimePosterior(ends, probabilities, 0.0, PRIORS["short"].cdf)
    with np.errstate(all="raise"):
        assert 1.0 < posterior.quantile(0.99) < posterior.quantile(1.0) <= 2.0
    assert posterior.quantile(1.0) == pytest.approx(2.0, rel=1e-12)


def test_levels_of_quantiles():
    X, y = make_data()
    path = MondrianKernelRegressor(3, 5.0, random_state=0).lifetime_path(X, y)
    posterior = lifetime_posterior(path)
    assert 0.0 <= posterior.quantile(0) <= posterior.quantile(1) <= 5.0
    for level in (2, -0.1, np.nan):
        with pytest.raises(ValueError, match=r"level must be in \[0, 1\], got"):
            posterior.quantile(level)


def test_priors_that_do_not_fit():
    X, y = make_data()
    path = MondrianKernelRegressor(3, 5.0, random_state=0).lifetime_path(X, y)
    for cdf in (expon(scale=5.0).cdf, uniform(0.0, 6.0).cdf, uniform(-1.0, 6.0).cdf, np.sin):
        with pytest.raises(ValueError, match=r"rise from 0 to 1 on \[0, 5\]"):
            lifetime_posterior(path, cdf)


NARROW = {
    "one": (uniform(9.0, 1.0), 9.0, 10.0),
    "bump": (beta(20.0, 30.0, loc=2.0, scale=6.0), 2.0, 8.0),
    "short": (truncexpon(b=10.0 / 0.5, scale=0.5), 0.0, 10.0),
}


@pytest.mark.parametrize("name", NARROW)
def test_prior_counts_within_intervals(name):
    """With few cuts an interval is long, and the prior may vary within it or begin there."""
    prior, low, high = NARROW[name]
    X, y = np.array([[0.0], [0.1], [0.2]]), np.array([0.0, 1.0, 0.5])
    path = MondrianKernelRegressor(2, 10.0, random_state=0).lifetime_path(X, y)
    posterior = lifetime_posterior(path, prior.cdf)
    assert posterior.quantile(0) == pytest.approx(low, abs=1e-12)
    assert posterior.quantile(1) <= high
    # Bayes' rule on a grid.
    grid = low + (high - low) * (np.arange(20000) + 0.5) / 20000
    evidence = np.exp(path.log_marginal_likelihood[[path.index(x) for x in grid]])
    density = prior.pdf(grid) * evidence
    totals = np.cumsum(density) / density.sum()
    for level in (0.01, 0.1, 0.5, 0.9, 0.99):
        expected = grid[np.searchsorted(totals, level)]
        assert posterior.quantile(level) == pytest.approx(expected, abs=0.005)
    for n_most in (None, 50, 2):
        lifetimes, weights = posterior.representatives(n_most)
        assert np.all(np.diff(lifetimes) >= 0.0)
        assert np.all((lifetimes >= low) & (lifetimes <= high))
        assert weights.sum() == pytest.approx(1.0)
        if n_most != 2:
            mean = density @ grid / density.sum()
            assert weights @ lifetimes == pytest.approx(mean, rel=0.03)


def test_prior_with_a_narrow_support():
    X, y = np.array([[0.0], [0.1], [0.2]]), np.array([0.0, 1.0, 0.5])
    model = MondrianKernelMixtureRegressor(lifetime_cdf=uniform(9.0, 1.0).cdf, random_state=0)
    model.fit(X, y)
    assert model.posterior_.quantile(0) == pytest.approx(9.0)
    assert model.posterior_.quantile(0.5) > 9.0
    assert min(one.partitions.cell_lifetime for one in model.models_) > 9.0


def test_the_uniform_prior_is_the_default():
    X, y = make_data()
    path = MondrianKernelRegressor(3, 5.0, random_state=0).lifetime_path(X, y)
    one, other = lifetime_posterior(path), lifetime_posterior(path, uniform(0.0, 5.0).cdf)
    for level in (0.0, 0.1, 0.5, 0.9, 1.0):
        assert other.quantile(level) == pytest.approx(one.quantile(level), rel=1e-9)
    for n_most in (None, 10):
        for found, expected in zip(
            other.representatives(n_most), one.representatives(n_most), strict=True
        ):
            np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.filterwarnings("error")
def test_the_only_lifetime_has_all_the_probability():
    X, y = make_data()
    path = MondrianKernelRegressor(3, 0.0, random_state=0).lifetime_path(X, y)
    posterior = lifetime_posterior(path)
    assert posterior.ends.tolist() == [0.0, 0.0]
    assert posterior.probabilities.tolist() == [1.0]
    assert posterior.log_evidence == path.log_marginal_likelihood[0]
    assert posterior.quantile(0.5) == 0.0
    lifetimes, weights = posterior.representatives(2)
    assert np.all(lifetimes == 0.0) and weights.sum() == pytest.approx(1.0)
    with pytest.raises(ValueError, match=r"must rise from 0 to 1 on \[0, 0\], got 0 and 0"):
        lifetime_posterior(path, uniform(0.0, 5.0).cdf)
