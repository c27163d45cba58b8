"""Which targets are constant, by one rule for all models."""

import numpy as np
import pytest

from mondrian_bo.surrogates.mondrian_kernel.lifetime_paths.path_data import target_variance
from mondrian_bo.surrogates.shared.target_scale import is_constant, target_scale

EPS = np.finfo(float).eps


@pytest.mark.parametrize("value", [0.0, 0.1, -1e-300, 1e150 / 3.0, np.pi * 1e8])
@pytest.mark.parametrize("n", [1, 3, 1000])
def test_equal_targets(value, n):
    targets = np.full(n, value)
    mean, std = float(targets.mean()), float(targets.std())
    assert is_constant(mean, std)
    assert target_scale(mean, std) == (abs(mean) or 1.0)
    assert target_variance(targets) == 1.0


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
    assert target_variance(targets) == 1.0
