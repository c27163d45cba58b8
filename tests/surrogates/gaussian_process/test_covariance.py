"""The Matern kernel and its derivatives."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import Matern

from mondrian_bo.surrogates.gaussian_process.covariance import (
    Covariance,
    cross_kernel,
    kernel_matrix,
    precision_gradient,
)

NUMERIC = np.zeros(4, dtype=bool)
MIXED = np.array([False, True, False, True])

SMOOTHNESS = pytest.mark.parametrize("smoothness", [0.5, 2.5])


def points(n, seed, categorical=NUMERIC):
    rng = np.random.default_rng(seed)
    return np.where(categorical, rng.integers(0, 3, (n, 4)), rng.random((n, 4)))


def covariance_of(precisions, categorical, smoothness, peak=1.0):
    """Return a covariance of amplitude 1, whose kernel of equal points is the peak."""
    return Covariance(precisions, 1.0, 0.1, categorical, smoothness, peak - 1.0)


def kernel(some, others, precisions, categorical, smoothness=2.5, peak=1.0):
    result = np.empty((len(some), len(others)))
    covariance = covariance_of(precisions, categorical, smoothness, peak)
    cross_kernel(some, others, covariance, result, np.empty((0, 0)))
    return result


@SMOOTHNESS
def test_is_scikit_learns_matern(smoothness):
    some, others = points(7, 0), points(5, 1)
    precisions = np.array([0.5, 4.0, 30.0, 0.01])
    expected = Matern(length_scale=precisions**-0.5, nu=smoothness)(some, others)
    found = kernel(some, others, precisions, NUMERIC, smoothness)
    assert np.allclose(found, expected, atol=1e-12)


def test_categories_are_at_distance_one():
    """Any two categories are at distance 1, whatever their numbers."""
    some, others = points(9, 2, MIXED), points(8, 3, MIXED)
    precisions = np.array([2.0, 0.7, 5.0, 1.3])
    corners = np.eye(3) * np.sqrt(0.5)

    def embedded(rows):
        columns = [rows[:, [0]], corners[rows[:, 1].astype(int)]]
        columns += [rows[:, [2]], corners[rows[:, 3].astype(int)]]
        return np.concatenate(columns, axis=1)

    scales = np.repeat(precisions, [1, 3, 1, 3]) ** -0.5
    expected = Matern(length_scale=scales, nu=2.5)(embedded(some), embedded(others))
    assert np.allclose(kernel(some, others, precisions, MIXED), expected, atol=1e-12)


@SMOOTHNESS
@pytest.mark.parametrize("categorical", [NUMERIC, MIXED])
def test_only_equal_points_have_the_peak(categorical, smoothness):
    some = points(6, 7, categorical)
    others = np.concatenate([some[2:4], points(3, 8, categorical), some[2:3] + 1e-9])
    precisions = np.array([0.5, 4.0, 30.0, 0.01])
    flat = kernel(some, others, precisions, categorical, smoothness)
    expected = np.where((some[:, None] == others).all(axis=2), 3.0, flat)
    assert (expected == 3.0).sum() == 2
    found = kernel(some, others, precisions, categorical, smoothness, 3.0)
    assert np.array_equal(found, expected)
    value, factors = np.empty((6, 6)), np.empty((0, 0))
    covariance = covariance_of(precisions, categorical, smoothness, 3.0)
    kernel_matrix(some, covariance, value, factors)
    expected = kernel(some, some, precisions, categorical, smoothness, 3.0)
    assert np.allclose(np.tril(value), np.tril(expected), rtol=1e-13)
    value, factors = np.empty((6, 6)), np.empty((6, 6))
    cross_kernel(some, others, covariance, value, factors)
    assert np.array_equal(value, found)


@SMOOTHNESS
@pytest.mark.parametrize("categorical", [NUMERIC, MIXED])
def test_gradients_are_limits_of_differences(categorical, smoothness):
    rng = np.random.default_rng(4)
    some, others = points(6, 5, categorical), points(7, 6, categorical)
    precisions = rng.gamma(2.0, 1.0, 4)
    weights = rng.normal(size=(6, 6))
    weights = weights + weights.T
    gradient = np.empty(4)

    def kernel_of(some, others, precisions):
        return kernel(some, others, precisions, categorical, smoothness)

    covariance = covariance_of(precisions, categorical, smoothness)
    value, factors = np.full((6, 6), np.nan), np.full((6, 6), np.nan)
    kernel_matrix(some, covariance, value, factors)
    lower = np.tril_indices(6)
    assert np.allclose(value[lower], kernel_of(some, some, precisions)[lower], rtol=1e-13)
    precision_gradient(some, covariance, np.tril(weights), factors, gradient)
    for j, direction in enumerate(np.eye(4)):
        up, down = (
            np.sum(weights * kernel_of(some, some, precisions * np.exp(h * direction)))
            for h in (1e-5, -1e-5)
        )
        assert gradient[j] == pytest.approx((up - down) / 2e-5, abs=1e-7)
    value, factors = np.empty((6, 7)), np.empty((6, 7))
    cross_kernel(some, others, covariance, value, factors)
    assert np.allclose(value, kernel_of(some, others, precisions), rtol=1e-14)
    for j, direction in enumerate(np.eye(4)):
        if not categorical[j]:
            own = factors * precisions[j] * (some[:, [j]] - others[:, j])
            up, down = (kernel_of(some + h * direction, others, precisions) for h in (1e-5, -1e-5))
            assert np.allclose(own, (up - down) / 2e-5, atol=1e-7)


@SMOOTHNESS
def test_many_dimensions_with_rare_values(smoothness):
    """In many dimensions pairs of common values are skipped: sums over all pairs are equal."""
    rng = np.random.default_rng(5)
    n, d = 30, 48
    categorical = np.arange(d) % 3 == 0
    # In each dimension the share of values that differ from the common one is another.
    some = np.where(rng.random((n, d)) < np.linspace(0.0, 1.0, d), rng.random((n, d)), 0.5)
    some = np.where(categorical, np.rint(3.0 * some), some)
    precisions = rng.uniform(0.01, 0.1, d)
    covariance = covariance_of(precisions, categorical, smoothness)
    differences = some[:, None] - some[None]
    squares = np.where(categorical, differences != 0.0, differences**2)
    distances = np.sqrt(squares @ precisions)
    expected = Matern(nu=smoothness)(np.zeros((1, 1)), distances.reshape(-1, 1)).reshape(n, n)
    assert np.allclose(kernel(some, some, precisions, categorical, smoothness), expected)
    found, factors = np.zeros((n, n)), np.zeros((n, n))
    kernel_matrix(some, covariance, found, factors)
    lower = np.tril_indices(n)
    assert np.allclose(found[lower], expected[lower])
    # The factor is twice the derivative by the squared distance; each pair occurs twice.
    weights = rng.normal(size=(n, n))
    weights += weights.T
    pairs = np.tril(np.where(squares.any(axis=2), factors * weights, 0.0), -1)
    slopes = precisions * np.einsum("ik,ikj->j", pairs, squares)
    gradient = np.empty(d)
    precision_gradient(some, covariance, weights, factors, gradient)
    assert np.allclose(gradient, slopes)
