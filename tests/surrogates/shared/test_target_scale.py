"""Which targets are constant, by one rule for all models."""

import numpy as np
import pytest

from mondrian_bo.surrogates import GaussianProcessForestRegressor, MondrianKernelRegressor
from mondrian_bo.surrogates.mondrian_kernel.lifetime_paths.path_data import target_variance
from mondrian_bo.surrogates.shared.target_scale import deviation_of, is_constant, target_scale

EPS = np.finfo(float).eps


@pytest.mark.parametrize("value", [0.0, 0.1, -1e-300, 1e150 / 3.0, np.pi * 1e8])
@pytest.mark.parametrize("n", [1, 3, 1000])
def test_equal_targets(value, n):
    targets = np.full(n, value)
    mean, std = float(targets.mean()), float(targets.std())
    assert is_constant(mean, std)
    assert target_scale(mean, std) == (abs(mean) or 1.0)
    assert target_variance(targets) == 1.0
    assert deviation_of(targets) == 0.0
    differing = np.append(targets, np.nextafter(value, 2.0 * abs(value) + 1.0))
    assert deviation_of(differing) > 0.0 or abs(value) < 1e-150


@pytest.mark.parametrize("offset", [0.0, 1.0, -1e6])
@pytest.mark.parametrize("size", [20.0, 1e6])
def test_targets_that_differ_by_more_than_rounding(offset, size):
    targets = offset + size * EPS * max(abs(offset), 1.0) * np.array([-1.0, 1.0, 1.0, -1.0])
    mean, std = float(targets.mean()), float(targets.std())
    assert not is_constant(mean, std)
    assert target_scale(mean, std) == std
    assert target_variance(targets) == pytest.approx(std**2, rel=1e-12)


@pytest.mark.parametrize("offset", [1.0, -1e6])
def test_targets_that_differ_by_rounding(offset):
    targets = offset * (1.0 + EPS * np.array([0.0, 1.0, 1.0, -1.0]))
    assert is_constant(float(targets.mean()), float(targets.std()))
    exact = np.array([0.0, 1.0, 1.0, -1.0]) * EPS * abs(offset)
    assert target_variance(targets) == pytest.approx(exact.var(), rel=0.5)


def test_targets_far_from_0_that_differ_by_few_roundings():
    """Targets near 1e15, where floats are 0.125 apart, and deviations from them near 0."""
    X = np.random.default_rng(0).random((40, 2))
    y = np.round(8.0 * np.sin(5.0 * X[:, 0])) / 8.0
    for make in (
        lambda: GaussianProcessForestRegressor(2, random_state=0),
        lambda: MondrianKernelRegressor(5, 3.0, random_state=0),
    ):
        near, near_std = make().fit(X, y).predict(X, return_std=True)
        far, far_std = make().fit(X, 1e15 + y).predict(X, return_std=True)
        np.testing.assert_allclose(far_std, near_std, rtol=0.5)
        np.testing.assert_allclose(far - 1e15, near, atol=0.5)
