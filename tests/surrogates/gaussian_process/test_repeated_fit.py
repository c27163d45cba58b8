"""Fits of hyper-parameters to points that become more."""

from __future__ import annotations

import numpy as np
import pytest

from mondrian_bo.surrogates.gaussian_process.fit import Prior, initial_estimates
from mondrian_bo.surrogates.gaussian_process.repeated_fit import RepeatedFit

NUMBERS = np.zeros(1, dtype=np.bool_)


def standardised(values):
    return (values - values.mean()) / values.std()


def ripple(n):
    points = np.random.default_rng(2).random((n, 1))
    return points, standardised(points[:, 0] + np.sin(30.0 * points[:, 0]))


def fits(numbers, start=None, **settings):
    fit = RepeatedFit(NUMBERS, Prior(mean_variance=10.0, amplitude=(1.0, 0.0)), **settings)
    if start is not None:
        fit.prepare(start, 100)
    for n in numbers:
        if n >= fit.n_due:
            fit.fit([ripple(n)], n)
    return fit


def test_a_fit_that_starts_anew_leaves_a_maximum_that_takes_a_ripple_for_noise():
    points, _ = ripple(30)
    noise = points, standardised(points[:, 0] + np.random.default_rng(5).standard_normal(30))
    numbers = range(30, 80)
    continued, restarted = fits(numbers, noise), fits(numbers, noise, restart_growth=1.5)
    assert continued.estimates[0].covariance.noise > 0.1
    assert restarted.estimates[0].covariance.noise < 1e-3
    assert restarted.estimates[0].loss < continued.estimates[0].loss - 100.0


def test_the_better_fit_counts():
    numbers = [5, 12, 40, 60]
    losses = [
        fits(numbers[:k], growth=1.0, restart_growth=growth).estimates[0].loss
        for k in (2, 3, 4)
        for growth in (np.inf, 1.0)
    ]
    assert (np.array(losses[1::2]) <= np.array(losses[::2]) + 1e-6).all()
    assert losses[0] != losses[1]


def test_when_fits_are_due():
    assert fits([]).n_due == 0
    assert fits([20]).n_due == 21
    assert fits([20], growth=2.0).n_due == 40


def test_a_start_replaces_the_estimate_of_its_smoothness():
    fit = RepeatedFit(NUMBERS, Prior(smoothness=(0.5, 2.5)))
    rough, smooth = sorted(fit.estimates, key=lambda one: one.covariance.smoothness)
    start = smooth.covariance._replace(precisions=np.array([7.0]))
    fit.start_from(start)
    assert fit.estimates[0].covariance is start
    assert fit.estimates[1:] == [rough]


def test_fixed_hyper_parameters_stay():
    covariance = initial_estimates(NUMBERS, Prior())[0].covariance._replace(noise=0.3)
    fit = fits([])
    fit.fix(covariance)
    assert fit.estimates[0].covariance == covariance
    assert fit.n_due == np.inf


@pytest.mark.parametrize("max_iterations", [1, 50])
def test_another_leaf_sets_the_start(max_iterations):
    fit = fits([])
    fit.prepare(ripple(30), max_iterations)
    assert fit.n_due == 0
    assert fit.estimates[0].loss < np.inf
