"""Split rates follow the ranges of the data."""

import numpy as np
import pytest

from mondrian_bo.surrogates.shared.scales import Scales


def rates_of(points):
    """Return the inverse ranges of points of shape (S, n, d)."""
    extent = np.ptp(points, axis=(0, 1))
    return 1.0 / np.where(extent > 0.0, extent, 1.0)


@pytest.mark.parametrize("n_views", [1, 3])
@pytest.mark.parametrize("step", [1, 7, 1024, 3000])
def test_rates_follow_every_point(n_views, step):
    rng = np.random.default_rng(step)
    points = rng.normal(size=(n_views, 3000, 2)).astype(np.float32).astype(np.float64)
    points[:, 1500:, 1] += np.arange(1500) / 50.0  # a range that keeps growing
    by_row, by_change = Scales(2), Scales(2)
    rates = np.empty((3000, 2))
    for first in range(0, 3000, step):
        part = points[:, first : first + step]
        rates[first : first + step] = by_row.follow(part)
        starts, changed = by_change.follow_changes(part)
        assert starts[0] == 0
        assert np.all(np.diff(starts) > 0)
        runs = np.diff(starts, append=part.shape[1])
        assert np.array_equal(np.repeat(changed, runs, axis=0), rates[first : first + step])
    for n in [1, 2, 3, 10, 500, 1023, 1024, 1025, 1501, 2000, 3000]:
        assert np.array_equal(rates[n - 1], rates_of(points[:, :n]))
    assert np.array_equal(by_change.rates, rates[-1])


def test_rates_follow_a_change_of_the_feature_weights():
    scales = Scales(2)
    scales.follow(np.array([[[0.0, 0.0], [2.0, 4.0]]]))
    assert np.array_equal(scales.rates, [0.5, 0.25])
    scales.feature_weights = np.array([3.0, 8.0])
    assert np.array_equal(scales.rates, [1.5, 2.0])
    assert np.array_equal(scales.follow(np.array([[[1.0, 1.0]]])), [[1.5, 2.0]])


def test_bounds_fix_the_rates():
    scales = Scales(1, (np.array([0.0]), np.array([4.0])))
    starts, rates = scales.follow_changes(np.linspace(-1.0, 9.0, 50)[None, :, None])
    assert np.array_equal(starts, [0])
    assert np.array_equal(rates, [[0.25]])
