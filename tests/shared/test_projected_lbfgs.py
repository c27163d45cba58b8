"""Minima in a box, compared with scipy's."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import lsq_linear, minimize, rosen, rosen_der

from mondrian_bo.shared.projected_lbfgs import minimise_in_box


@pytest.mark.parametrize("seed", range(20))
def test_a_convex_quadratic_in_a_box_has_the_minimum_of_bounded_least_squares(seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 30))
    a, b = rng.normal(size=(d + 5, d)), rng.normal(size=d + 5)
    lower = rng.normal(size=d) - 0.5
    upper = lower + rng.exponential(size=d)
    expected = lsq_linear(a, b, (lower, upper), method="bvls")

    x, value, _ = minimise_in_box(
        lambda x: (float(np.sum((a @ x - b) ** 2)) / 2.0, a.T @ (a @ x - b)),
        rng.normal(size=d) * 3.0,
        (lower, upper),
        1000,
    )

    assert value == pytest.approx(expected.cost, rel=1e-6)
    np.testing.assert_allclose(x, expected.x, atol=1e-3)
    assert np.all((x >= lower) & (x <= upper))


@pytest.mark.parametrize("d", [2, 5, 10])
def test_a_curved_valley_takes_about_as_many_calls_as_in_scipy(d):
    bounds = (np.full(d, -2.0), np.linspace(2.0, 0.5, d))
    start = np.full(d, -1.0)
    calls = 0

    def loss(x):
        nonlocal calls
        calls += 1
        return float(rosen(x)), rosen_der(x)

    _, value, _ = minimise_in_box(loss, start, bounds, 500)

    pairs = list(zip(*bounds, strict=True))
    theirs = minimize(rosen, start, jac=rosen_der, method="L-BFGS-B", bounds=pairs)
    assert value <= theirs.fun + 1e-5
    assert calls <= 2 * theirs.nfev


def test_the_search_keeps_away_from_values_that_are_not_finite():
    def loss(x):
        if x[0] > 1.0:
            return math.nan, np.full(1, math.nan)
        if x[0] < -1.0:
            return math.inf, np.full(1, math.nan)
        return float((x[0] - 0.9) ** 4), 4.0 * (x - 0.9) ** 3

    x, value, _ = minimise_in_box(loss, np.array([-0.9]), (np.array([-5.0]), np.array([5.0])), 100)

    assert abs(x[0] - 0.9) < 0.05
    assert value < 1e-5


@settings(max_examples=200)
@given(st.integers(0, 2**32 - 1), st.integers(1, 8), st.floats(0.0, 10.0))
def test_a_step_never_ends_at_a_larger_value(seed, d, frequency):
    # Not convex: the estimate of the curvature misleads, and minima lie on bounds.
    rng = np.random.default_rng(seed)
    half = rng.normal(size=(d, d))
    matrix = half + half.T
    lower = -rng.exponential(size=d)
    bounds = (lower, lower + 2.0 * rng.exponential(size=d))
    start = rng.normal(size=d)

    def loss(x):
        waves = np.sin(frequency * x)
        slopes = matrix @ x + frequency * np.cos(frequency * x)
        return float(0.5 * x @ matrix @ x + np.sum(waves)), slopes

    values = [minimise_in_box(loss, start, bounds, n_steps).value for n_steps in range(10)]

    assert np.all(np.diff(values) <= 0.0)
    assert values[0] == loss(np.clip(start, *bounds))[0]


def test_the_start_moves_into_the_box_and_stays_where_the_gradient_pushes_it():
    bounds = (np.zeros(2), np.ones(2))

    x, value, _ = minimise_in_box(
        lambda x: (float(x[0] - x[1]), np.array([1.0, -1.0])), np.array([-3.0, 7.0]), bounds, 10
    )

    np.testing.assert_array_equal(x, [0.0, 1.0])
    assert value == -1.0


def test_no_iterations_return_the_start():
    bounds = (np.full(1, -1.0), np.full(1, 1.0))
    x, value, _ = minimise_in_box(lambda x: (float(x[0]), np.ones(1)), np.array([0.5]), bounds, 0)
    assert (x[0], value) == (0.5, 0.5)


@pytest.mark.parametrize("seed", range(5))
def test_a_search_with_the_curvature_of_an_earlier_one_needs_fewer_steps(seed):
    rng = np.random.default_rng(seed)
    basis, _ = np.linalg.qr(rng.normal(size=(5, 5)))
    matrix = basis * np.logspace(0.0, 2.0, 5) @ basis.T
    bounds = (np.full(5, -5.0), np.full(5, 5.0))

    def loss_with_minimum(centre):
        return lambda x: (float((x - centre) @ matrix @ (x - centre)), 2.0 * matrix @ (x - centre))

    first = minimise_in_box(loss_with_minimum(np.zeros(5)), rng.normal(size=5), bounds, 20)
    moved = loss_with_minimum(0.1 * rng.normal(size=5))
    fresh = minimise_in_box(moved, first.x, bounds, 5)
    continued = minimise_in_box(moved, first.x, bounds, 5, first.changes)

    assert continued.value < 0.1 * fresh.value


def test_the_known_curvature_is_not_changed():
    bounds = (np.full(2, -1.0), np.full(2, 1.0))
    known = minimise_in_box(lambda x: (float(x @ x), 2.0 * x), np.ones(2), bounds, 3).changes
    before = [(step.copy(), change.copy()) for step, change in known]

    minimise_in_box(lambda x: (float(np.sum(x**4)), 4.0 * x**3), np.ones(2), bounds, 3, known)

    assert len(known) == len(before)
    for pair, expected in zip(known, before, strict=True):
        np.testing.assert_array_equal(pair, expected)


@pytest.mark.parametrize("most", [1, 2, 7, 30])
def test_the_loss_is_evaluated_at_most_as_often_as_allowed(most):
    values = []

    def loss(x):
        values.append(float(rosen(x)))
        return values[-1], rosen_der(x)

    bounds = np.full(4, -2.0), np.full(4, 2.0)
    x, value, _ = minimise_in_box(loss, np.full(4, -1.0), bounds, 500, max_evaluations=most)

    assert len(values) <= most
    assert value == min(values) == rosen(x)
    minimise_in_box(loss, np.full(4, -1.0), bounds, 500)
    assert len(values) > 2 * most
