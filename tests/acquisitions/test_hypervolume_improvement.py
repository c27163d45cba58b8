"""Expected hypervolume improvement against sampling, quadrature, exact arithmetic and log-EI."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from boxes import corners_of
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import erfcx, log_ndtr, ndtr

from mondrian_bo.acquisitions import (
    LogExpectedImprovement,
    Prediction,
    decompose,
    hypervolume,
    log_expected_hypervolume_improvement,
    log_expected_hypervolume_improvement_gradient,
)
from mondrian_bo.acquisitions.hypervolume_improvement import (
    _add_improvements,
    _log_improvement,
    _log_improvement_derivatives,
    _tail,
)

RNG = np.random.default_rng(0)
FRONTS = {
    1: np.array([[0.7]]),
    2: np.array([[0.2, 1.0], [0.5, 0.8], [0.9, 0.1], [0.4, 0.4]]),
    3: np.array([[0.2, 0.9, 0.5], [0.6, 0.5, 0.4], [0.9, 0.1, 0.7], [0.3, 0.3, 0.9]]),
    4: np.array([[0.2, 0.9, 0.5, 0.1], [0.6, 0.5, 0.4, 0.3], [0.9, 0.1, 0.7, 0.5]]),
}


def candidates(n_objectives, m=6, std=0.4, seed=1):
    rng = np.random.default_rng(seed)
    means = rng.normal(0.5, 0.5, size=(m, n_objectives))
    return means, std * rng.uniform(0.3, 1.5, size=(m, n_objectives))


def gains_of(front, reference, points):
    base = hypervolume(front, reference)
    return np.array([hypervolume(np.vstack([front, point]), reference) - base for point in points])


@pytest.mark.parametrize("n_objectives", FRONTS)
def test_against_sampled_hypervolumes(n_objectives):
    front, reference = FRONTS[n_objectives], np.full(n_objectives, -0.1)
    rng = np.random.default_rng(2)
    means, stds = rng.normal(0.5, 0.3, (6, n_objectives)), rng.uniform(0.3, 0.6, (6, n_objectives))
    scores = log_expected_hypervolume_improvement(means, stds, decompose(front, reference))
    for mean, std, score in zip(means, stds, scores, strict=True):
        gains = gains_of(front, reference, rng.normal(mean, std, size=(1000, n_objectives)))
        error = gains.std() / math.sqrt(len(gains))
        # Five standard errors: one false alarm in about 70,000 such tests of 24 candidates.
        assert abs(math.exp(score) - gains.mean()) < 5.0 * error


@pytest.mark.parametrize("n_objectives", [1, 2, 3])
def test_against_quadrature(n_objectives):
    """The gain is linear in every coordinate between those of the front: Gauss is near exact."""
    front, reference = FRONTS[n_objectives], np.full(n_objectives, -0.1)
    means, stds = candidates(n_objectives, m=1)
    # A rule of eight nodes on every interval between the coordinates, to eight deviations.
    nodes, weights = np.polynomial.legendre.leggauss(8)
    axes = []
    for k in range(n_objectives):
        start, end = means[0, k] - 8.5 * stds[0, k], means[0, k] + 8.5 * stds[0, k]
        edges = np.unique(np.clip([reference[k], *front[:, k], start, end], start, end))
        fine = [
            np.linspace(a, b, 1 + math.ceil((b - a) / stds[0, k]))
            for a, b in itertools.pairwise(edges)
        ]
        edges = np.unique(np.concatenate(fine))
        half = np.diff(edges)[:, None] / 2.0
        places = (edges[:-1, None] + half + half * nodes).ravel()
        density = np.exp(-0.5 * ((places - means[0, k]) / stds[0, k]) ** 2)
        density *= (half * weights).ravel() / (stds[0, k] * math.sqrt(2.0 * math.pi))
        keep = places > reference[k]
        axes.append((places[keep], density[keep]))
    points = np.stack(np.meshgrid(*[a for a, _ in axes], indexing="ij"), -1)
    mass = np.ones(points.shape[:-1])
    for k, (_, density) in enumerate(axes):
        mass *= density.reshape([-1 if j == k else 1 for j in range(n_objectives)])
    # The volume that a point adds: that below it, without that below the front as well.
    gain = np.prod(points - reference, axis=-1)
    for size in range(1, len(front) + 1):
        for subset in itertools.combinations(front, size):
            corner = np.minimum(points, np.min(subset, axis=0))
            gain += (-1) ** size * np.prod(corner - reference, axis=-1)
    (score,) = log_expected_hypervolume_improvement(means, stds, decompose(front, reference))
    assert score == pytest.approx(math.log(np.sum(gain * mass)), abs=1e-10)


@pytest.mark.parametrize("incumbent", [0.0, 3.0])
def test_one_objective_is_log_expected_improvement(incumbent):
    means = np.concatenate([np.linspace(-40.0, 12.0, 300), [-500.0, -1e4, 1e3]])
    stds = np.geomspace(1e-3, 1e2, len(means))
    boxes = decompose(np.array([[incumbent], [incumbent - 1.0]]), np.array([-7.0]))
    expected = LogExpectedImprovement()(Prediction(means[None], stds[None]), incumbent)
    for function in SCORES:
        np.testing.assert_allclose(
            function(means[:, None], stds[:, None], boxes), expected, rtol=1e-12, atol=1e-12
        )


def with_gradient(means, stds, boxes):
    return log_expected_hypervolume_improvement_gradient(means, stds, boxes)[0]


SCORES = [log_expected_hypervolume_improvement, with_gradient]


@pytest.mark.parametrize("function", SCORES)
@pytest.mark.parametrize("n_objectives", [1, 2, 3, 4])
def test_finite_and_increasing_far_from_the_front(n_objectives, function):
    boxes = decompose(FRONTS[n_objectives], np.full(n_objectives, -0.1))
    for std in (1.0, 1e-2, 1e-6):
        steps = np.concatenate([-np.geomspace(1e4, 1e-1, 200), [0.0, 0.1, 1.0]])
        means = np.tile(0.5 + std * steps[:, None], (1, n_objectives))
        scores = function(means, np.full(means.shape, std), boxes)
        assert np.isfinite(scores).all()
        assert (np.diff(scores) > 0.0).all()


@pytest.mark.parametrize("function", SCORES)
def test_far_tails_against_exact_arithmetic(function):
    mpmath = pytest.importorskip("mpmath")
    front, reference = FRONTS[2], np.array([-0.1, -0.1])
    boxes = decompose(front, reference)
    lower, upper = corners_of(boxes)
    # Far from everything, below the front alone, above it, and thin boxes far away.
    means = np.array([[-3.0, -2.0], [0.3, 0.3], [0.5, 2.0], [0.1, 0.4], [0.0, 5.0]])
    stds = np.array([[0.1, 0.07], [1e-3, 1e-3], [0.2, 0.1], [1e-4, 3e-2], [1e-8, 1e-3]])
    scores = function(means, stds, boxes)
    with mpmath.workdps(60):

        def improvement(mean, std, bound):
            if math.isinf(bound):
                return mpmath.mpf(0)
            z = (mpmath.mpf(mean) - mpmath.mpf(bound)) / mpmath.mpf(std)
            return std * (mpmath.npdf(z) + z * mpmath.erfc(-z / mpmath.sqrt(2)) / 2)

        for mean, std, score in zip(means, stds, scores, strict=True):
            total = mpmath.mpf(0)
            for low, high in zip(lower, upper, strict=True):
                product = mpmath.mpf(1)
                for k in range(2):
                    product *= improvement(mean[k], std[k], low[k])
                    product -= (
                        product
                        / improvement(mean[k], std[k], low[k])
                        * improvement(mean[k], std[k], high[k])
                    )
                total += product
            expected = float(mpmath.log(total))
            assert score == pytest.approx(expected, rel=1e-14, abs=1e-12)


def test_parts_against_scipy():
    """Tails are one minus x times the Mills ratio, which scipy has; all follows from them."""
    for z in [-1e8, -3e3, -1e3, -200.0, -38.5, -20.0, -6.0, -3.0, -1.001, -0.999, -0.3, 0.0, 2.0]:
        x = abs(z)
        mills = math.sqrt(0.5 * math.pi) * erfcx(x * math.sqrt(0.5))
        if x <= 1e3:
            assert _tail(x) == pytest.approx(1.0 - x * mills, rel=1e-12, abs=1e-15)
        if x > 1.0:
            assert (1.0 - _tail(x)) / x == pytest.approx(mills, rel=1e-12)
        log = _log_improvement(2.0 * z, 2.0, _tail(x))
        by_gain, by_std = _log_improvement_derivatives(2.0 * z, 2.0, _tail(x))
        # Euler: the expectation is homogeneous in gain and deviation.
        assert 2.0 * z * by_gain + 2.0 * by_std == pytest.approx(1.0, abs=1e-15 * z * z + 1e-13)
        log_density = -0.5 * z * z - 0.5 * math.log(2.0 * math.pi)
        assert log + math.log(by_std) == pytest.approx(log_density, rel=1e-13)
        assert log + math.log(by_gain) == pytest.approx(log_ndtr(z), rel=1e-13)


@pytest.mark.parametrize("std", [0.0, 1e-3, 0.5, 40.0])
def test_improvements_on_all_coordinates_against_scipy(std):
    coordinates = np.append(np.sort(RNG.normal(size=301)), np.inf)
    coordinates[17] = mean = 0.3
    gains = mean - coordinates
    z = np.divide(gains, std, out=np.full(302, -np.inf), where=std > 0.0)
    tails = np.array([_tail(min(abs(value), 1e100)) for value in z])
    sums = np.arange(302.0)

    _add_improvements(mean, std, coordinates, tails, sums)

    expected = np.maximum(gains, 0.0)
    if std > 0.0:
        density = np.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
        expected[:-1] = (gains[:-1] * ndtr(z[:-1])) + std * density[:-1]
    np.testing.assert_allclose(
        sums - np.arange(302.0), expected, rtol=1e-12, atol=1e-13 * (300 + std)
    )


@pytest.mark.parametrize("moments", [(math.nan, 1.0), (0.0, math.nan)])
def test_nothing_improves_where_a_moment_is_not_a_number(moments):
    sums = np.zeros(4)
    _add_improvements(*moments, np.array([-1.0, 0.0, 1.0, np.inf]), np.ones(4), sums)
    np.testing.assert_array_equal(sums, 0.0)


def test_tail_against_exact_arithmetic():
    mpmath = pytest.importorskip("mpmath")
    with mpmath.workdps(60):
        for x in [0.0, *np.geomspace(1e-3, 1e6, 100)]:
            exact = mpmath.mpf(float(x))
            mills = (
                mpmath.erfc(exact / mpmath.sqrt(2)) / 2 / mpmath.npdf(exact) if x < 1e3 else None
            )
            if mills is None:
                # Asymptotic series, exact to 1e-17 here.
                square = exact**-2
                expected = square * (1 - square * (3 - square * (15 - square * 105)))
            else:
                expected = 1 - exact * mills
            assert _tail(float(x)) == pytest.approx(float(expected), rel=2e-15)


@pytest.mark.parametrize("n_components", [None, 3])
@pytest.mark.parametrize("n_objectives", FRONTS)
@pytest.mark.parametrize("std", [0.4, 0.01])
def test_gradients_against_differences(n_objectives, std, n_components):
    boxes = decompose(FRONTS[n_objectives], np.full(n_objectives, -0.1))
    means, stds = candidates(n_objectives, std=std)
    if n_components:
        rng = np.random.default_rng(3)
        means = means + std * rng.normal(size=(n_components, *means.shape))
        stds = stds * rng.uniform(0.7, 1.5, size=means.shape)
    scores, d_means, d_stds = log_expected_hypervolume_improvement_gradient(means, stds, boxes)
    np.testing.assert_allclose(
        scores, log_expected_hypervolume_improvement(means, stds, boxes), rtol=1e-13, atol=1e-13
    )
    assert d_means.shape == d_stds.shape == means.shape
    step = 1e-5 * std
    for index in np.ndindex(means.shape):
        for array, derivatives in [(means, d_means), (stds, d_stds)]:
            above, below = array.copy(), array.copy()
            above[index] += step
            below[index] -= step
            changes = [
                log_expected_hypervolume_improvement(
                    *((a, stds) if array is means else (means, a)), boxes
                )[index[-2]]
                for a in (above, below)
            ]
            slope = (changes[0] - changes[1]) / (2.0 * step)
            scale = np.abs(derivatives).max()
            assert derivatives[index] == pytest.approx(slope, rel=1e-6, abs=1e-7 * scale)


def test_mixtures_average_over_all_combinations():
    """Objectives are independent: so the mixture has an equal share of each pair of components."""
    boxes = decompose(FRONTS[2], np.full(2, -0.1))
    means, stds = candidates(2, m=3)
    other_means, other_stds = candidates(2, m=3, seed=7)
    both = np.stack([means, other_means]), np.stack([stds, other_stds])
    total = np.zeros(3)
    for i, j in itertools.product(range(2), repeat=2):
        pair = [np.stack([array[i][:, 0], array[j][:, 1]], axis=1) for array in both]
        total += np.exp(log_expected_hypervolume_improvement(*pair, boxes)) / 4.0
    for function in SCORES:
        np.testing.assert_allclose(function(*both, boxes), np.log(total), rtol=1e-12)
        # Two components that are the same are one, also in the tail.
        for shift in (0.0, -100.0):
            np.testing.assert_allclose(
                function(np.stack([means + shift] * 2), np.stack([stds] * 2), boxes),
                function(means + shift, stds, boxes),
                rtol=1e-13,
                atol=1e-13,
            )


@pytest.mark.parametrize("n_objectives", FRONTS)
def test_point_masses_add_their_hypervolume(n_objectives):
    front, reference = FRONTS[n_objectives], np.full(n_objectives, -0.1)
    boxes = decompose(front, reference)
    points = np.concatenate([RNG.uniform(0.0, 1.2, size=(20, n_objectives)), front, front + 1e-9])
    gains = gains_of(front, reference, points)
    gains[20 : 20 + len(front)] = 0.0
    for function in SCORES:
        scores = function(points, np.zeros_like(points), boxes)
        np.testing.assert_allclose(np.exp(scores), gains, rtol=1e-9, atol=1e-13)
        # A point of the front cannot improve on it.
        assert (scores[20 : 20 + len(front)] == -np.inf).all()
        # The limit of narrow Gaussians.
        narrow = function(points[:20], np.full((20, n_objectives), 1e-200), boxes)
        np.testing.assert_allclose(np.exp(narrow), gains[:20], rtol=1e-9, atol=1e-13)


def test_gradients_of_point_masses_are_finite():
    boxes = decompose(FRONTS[2], np.full(2, -0.1))
    means = np.array([[0.1, 0.1], [2.0, 2.0], [-5.0, 2.0], [0.5, 0.8]])
    for stds in (np.zeros((4, 2)), np.tile([0.0, 0.3], (4, 1)), np.full((4, 2), 1e-300)):
        scores, d_means, d_stds = log_expected_hypervolume_improvement_gradient(means, stds, boxes)
        assert np.isfinite(d_means).all()
        assert np.isfinite(d_stds).all()
        # One component among others.
        both = np.stack([means, means - 0.1]), np.stack([stds, np.full((4, 2), 0.2)])
        _, *derivatives = log_expected_hypervolume_improvement_gradient(*both, boxes)
        assert np.isfinite(derivatives).all()
        assert scores[2] == -np.inf
        assert not d_means[2].any()


@pytest.mark.parametrize("function", SCORES)
def test_nan_is_the_worst_score(function):
    boxes = decompose(FRONTS[2], np.full(2, -0.1))
    means, stds = candidates(2, m=4)
    expected = function(means, stds, boxes)
    means[0, 1] = np.nan
    stds[2, 0] = np.nan
    expected[[0, 2]] = -np.inf
    np.testing.assert_array_equal(function(means, stds, boxes), expected)


@settings(max_examples=50)
@given(
    st.integers(1, 4),
    st.integers(0, 2**32),
    st.permutations(range(4)),
    st.floats(-3.0, 3.0),
    st.floats(1e-3, 1e3),
)
def test_invariances(n_objectives, seed, order, shift, factor):
    """Order, origin and unit of the objectives do not matter, far away and near."""
    rng = np.random.default_rng(seed)
    front = rng.normal(size=(6, n_objectives))
    reference = np.full(n_objectives, -2.0)
    means = rng.normal(scale=3.0, size=(5, n_objectives))
    stds = np.exp(rng.normal(-1.0, 2.0, size=(5, n_objectives)))
    columns = [k for k in order if k < n_objectives]
    for function in SCORES:
        scores = function(means, stds, decompose(front, reference))
        tolerance = {"rtol": 1e-10, "atol": 1e-10}
        permuted = decompose(front[:, columns], reference)
        np.testing.assert_allclose(
            function(means[:, columns], stds[:, columns], permuted), scores, **tolerance
        )
        moved = decompose(front + shift, reference + shift)
        np.testing.assert_allclose(function(means + shift, stds, moved), scores, rtol=1e-6)
        scaled = decompose(front * factor, reference * factor)
        np.testing.assert_allclose(
            function(means * factor, stds * factor, scaled),
            scores + n_objectives * math.log(factor),
            **tolerance,
        )


@pytest.mark.parametrize("function", SCORES)
def test_extreme_units(function):
    """Products of improvements overflow or underflow where their logarithms do not."""
    front, reference = FRONTS[3], np.full(3, -0.1)
    means, stds = candidates(3)
    scores = function(means, stds, decompose(front, reference))
    for factor in (1e-130, 1e130):
        boxes = decompose(front * factor, reference * factor)
        np.testing.assert_allclose(
            function(means * factor, stds * factor, boxes),
            scores + 3.0 * math.log(factor),
            rtol=1e-12,
        )


@pytest.mark.parametrize("function", SCORES)
def test_clear_errors(function):
    boxes = decompose(FRONTS[2], np.full(2, -0.1))
    for shape, other in [((3, 3), (3, 3)), ((3, 2), (2, 2)), ((2,), (2,))]:
        with pytest.raises(ValueError, match="the boxes have 2 objectives"):
            function(np.ones(shape), np.ones(other), boxes)
    assert function(np.empty((0, 2)), np.empty((0, 2)), boxes).shape == (0,)
