"""The Gaussian process forest over rows of a search space."""

from __future__ import annotations

import numpy as np
import pytest

from mondrian_bo.surrogates.base import Columns, SmoothSurrogate, Surrogate
from mondrian_bo.surrogates.gaussian_process_forest.surrogate import GaussianProcessForestSurrogate

CHOICES = np.array([0, 3, 0, 2])


def rows_of(n, seed, absent=True):
    rng = np.random.default_rng(seed)
    rows = rng.random((n, 4))
    rows[:, 1] = rng.integers(0, 3, n)
    rows[:, 3] = rng.integers(0, 2, n)
    if absent:
        # Two parameters are active with the first choice only.
        rows[rows[:, 1] > 0, 2:] = np.nan
    return rows


def values_of(rows):
    values = np.sin(4.0 * rows[:, 0]) + rows[:, 1]
    return values - 1.0 + np.where(np.isnan(rows[:, 2]), 0.0, rows[:, 2] + 0.5 * rows[:, 3])


def surrogate_of(n, block_size=200, absent=True):
    surrogate: Surrogate = GaussianProcessForestSurrogate(
        Columns(CHOICES, absent), np.random.SeedSequence(0), block_size=block_size
    )
    rows = rows_of(n, 1, absent)
    surrogate.learn(rows[: n // 2], values_of(rows)[: n // 2])
    surrogate.learn(rows[n // 2 :], values_of(rows)[n // 2 :])
    return surrogate, rows


@pytest.mark.parametrize("block_size", [200, 40])
def test_learns_numbers_choices_and_absences(block_size):
    surrogate, _ = surrogate_of(120, block_size)
    probes = rows_of(50, 2)
    means, stds = surrogate.predict(probes)
    assert means.shape == stds.shape == ((1, 50) if block_size == 200 else (2, 50))
    error = means.mean(axis=0) - values_of(probes)
    assert np.sqrt(np.mean(error**2)) < 0.1 * values_of(probes).std()
    assert (stds > 0.0).all()


@pytest.mark.parametrize("block_size", [200, 30])
def test_rows_that_lack_a_number_without_a_condition_are_no_rows_with_its_middle(block_size):
    """They are 3 above what the function is there."""
    rng = np.random.default_rng(0)
    rows = rng.random((80, 2))
    values = rows[:, 0] + 3.0 * (rows[:, 1] - 0.1) ** 2
    rows[::2, 1], values[::2] = np.nan, rows[::2, 0] + 3.0
    columns = Columns(np.zeros(2, dtype=np.int64), True, np.array([False, True]))
    surrogate = GaussianProcessForestSurrogate(
        columns, np.random.SeedSequence(0), block_size=block_size
    )
    scale = values.std()
    surrogate.learn(rows, (values - values.mean()) / scale)
    probes = rng.random((50, 2))
    means, _ = surrogate.predict(probes)
    expected = probes[:, 0] + 3.0 * (probes[:, 1] - 0.1) ** 2
    errors = scale * means.mean(axis=0) + values.mean() - expected
    assert np.sqrt(np.mean(errors**2)) < (0.02 if block_size == 200 else 0.3)
    lacking = np.column_stack([probes[:, 0], np.full(50, np.nan)])
    means, _ = surrogate.predict(lacking)
    errors = scale * means.mean(axis=0) + values.mean() - probes[:, 0] - 3.0
    assert np.sqrt(np.mean(errors**2)) < (0.02 if block_size == 200 else 0.3)


def test_an_absence_leaves_the_warps_of_other_columns():
    rng = np.random.default_rng(0)
    rows = rng.random((60, 2))
    values = np.log10(rows[:, 0] + 1e-4) + rows[:, 1]
    rows[5, 1] = np.nan
    columns = Columns(np.zeros(2, dtype=np.int64), True, np.array([True, True]))
    surrogate = GaussianProcessForestSurrogate(columns, np.random.SeedSequence(0))
    surrogate.learn(rows, (values - values.mean()) / values.std())
    assert surrogate.warping.ends.tolist() == [1, 0]


def test_gradients_are_limits_of_differences_and_zero_for_choices():
    surrogate, _ = surrogate_of(120, 40, absent=False)
    assert isinstance(surrogate, SmoothSurrogate)
    probes = rows_of(8, 3, absent=False)
    means, stds, mean_gradients, std_gradients = surrogate.gradients(probes)
    assert np.allclose(surrogate.predict(probes), (means, stds))
    for j in (0, 2):
        step = 1e-6 * (np.arange(4) == j)
        up, down = surrogate.predict(probes + step), surrogate.predict(probes - step)
        assert np.allclose(mean_gradients[:, :, j], (up[0] - down[0]) / 2e-6, atol=1e-4)
        assert np.allclose(std_gradients[:, :, j], (up[1] - down[1]) / 2e-6, atol=1e-3)
    assert not mean_gradients[:, :, [1, 3]].any() and not std_gradients[:, :, [1, 3]].any()


@pytest.mark.parametrize("block_size", [200, 40])
def test_pending_rows_are_learnt_and_undone(block_size):
    surrogate, _ = surrogate_of(120, block_size)
    probes = rows_of(6, 4)
    before = surrogate.predict(probes)
    with surrogate.extended(probes, np.full(6, 9.0)):
        assert np.all(surrogate.predict(probes)[0].mean(axis=0) > before[0].mean(axis=0))
    assert np.array_equal(surrogate.predict(probes), before)


def test_values_are_copied_and_can_be_replaced():
    surrogate, rows = surrogate_of(60)
    values = -values_of(rows)
    surrogate.set_targets(values)
    after = surrogate.predict(rows)[0]
    assert np.corrcoef(after[0], values)[0, 1] > 0.99


def test_a_draw_is_a_function():
    surrogate, rows = surrogate_of(120, 40)
    function = surrogate.draw(np.random.default_rng(0))
    probes = rows_of(30, 5)
    drawn = function(probes)
    # Draws are evaluated in single precision.
    assert np.allclose(function(probes[10:20]), drawn[10:20], atol=1e-5)
    # At learnt rows the posterior variance is small.
    assert np.corrcoef(function(rows), values_of(rows))[0, 1] > 0.99
    assert not np.allclose(surrogate.draw(np.random.default_rng(1))(probes), drawn, atol=1e-2)


def test_the_same_seed_gives_the_same_predictions():
    predictions = [surrogate_of(120, 40)[0].predict(rows_of(5, 6)) for _ in range(2)]
    assert np.array_equal(*predictions)


@pytest.mark.parametrize(
    ("d", "absent", "expected"),
    [(4, True, 100), (64, True, 100), (64, False, 100), (80, False, 80), (80, True, 16)],
)
def test_first_fits_of_wide_spaces_have_fewer_iterations(d, absent, expected):
    columns = Columns(np.zeros(d, dtype=np.int64), absent)
    surrogate = GaussianProcessForestSurrogate(columns, np.random.SeedSequence(0))
    assert surrogate._forest._fits._first_iterations == expected
