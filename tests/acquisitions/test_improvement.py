"""The acquisitions against quadrature, exact arithmetic in the tails, and their limits."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad

from mondrian_bo.acquisitions import (
    ExpectedImprovement,
    LogExpectedImprovement,
    Prediction,
    ProbabilityOfImprovement,
    UpperConfidenceBound,
)

INF = math.inf
ALL = [
    UpperConfidenceBound(),
    UpperConfidenceBound(kappa=0.0),
    ExpectedImprovement(),
    ExpectedImprovement(margin=0.1),
    LogExpectedImprovement(),
    LogExpectedImprovement(optimism=1.0),
    ProbabilityOfImprovement(),
]


def one(acquisition, mean, std, incumbent=0.0):
    """Score of a single Gaussian, or of a mixture given as lists."""
    prediction = Prediction(
        np.array(mean, dtype=float, ndmin=1)[:, None], np.array(std, dtype=float, ndmin=1)[:, None]
    )
    (score,) = acquisition(prediction, incumbent)
    return float(score)


def mixtures(rng, n_components=4, m=6):
    return Prediction(
        rng.normal(size=(n_components, m)), rng.uniform(0.1, 2.0, size=(n_components, m))
    )


def density(y, means, stds):
    z = (y - means) / stds
    return float(np.mean(np.exp(-0.5 * z * z) / (stds * math.sqrt(2.0 * math.pi))))


@pytest.mark.parametrize("margin", [0.0, 0.3])
@pytest.mark.parametrize("incumbent", [-1.0, 0.0, 2.5])
def test_mixtures_against_quadrature(incumbent, margin):
    prediction = mixtures(np.random.default_rng(0))
    target = incumbent + margin
    ei = ExpectedImprovement(margin)(prediction, incumbent)
    log_ei = LogExpectedImprovement(margin)(prediction, incumbent)
    pi = ProbabilityOfImprovement(margin)(prediction, incumbent)
    for j, (means, stds) in enumerate(zip(prediction.means.T, prediction.stds.T, strict=True)):
        gain, _ = quad(
            lambda y, means=means, stds=stds: (y - target) * density(y, means, stds),
            target,
            target + 25.0,
            epsabs=0,
            epsrel=1e-10,
            limit=200,
        )
        probability, _ = quad(
            density, target, target + 25.0, args=(means, stds), epsabs=0, epsrel=1e-10, limit=200
        )
        assert ei[j] == pytest.approx(gain, rel=1e-8)
        assert log_ei[j] == pytest.approx(math.log(gain), abs=1e-8)
        assert pi[j] == pytest.approx(probability, rel=1e-8)


@pytest.mark.parametrize("optimism", [0.5, 1.0, 3.0])
def test_optimism_is_the_improvement_of_the_upper_bound(optimism):
    means, stds = mixtures(np.random.default_rng(1))
    scores = LogExpectedImprovement(0.1, optimism)(Prediction(means, stds), 0.5)
    raised = Prediction(means + optimism * stds, stds)
    assert np.allclose(scores, LogExpectedImprovement(0.1)(raised, 0.5), rtol=0, atol=1e-12)
    assert (scores > LogExpectedImprovement(0.1)(Prediction(means, stds), 0.5)).all()


@pytest.mark.parametrize("optimism", [-0.1, math.nan, math.inf])
def test_refused_optimism(optimism):
    with pytest.raises(ValueError, match="`optimism` must be finite and >= 0"):
        LogExpectedImprovement(optimism=optimism)
    with pytest.raises(TypeError, match="`optimism` must be a number, got None"):
        LogExpectedImprovement(optimism=None)


def log_h_by_quadrature(z):
    """Log of E[max(N(z, 1), 0)] for z < 0, with the vanishing factor taken out of the integral.

    With t = u / |z|, the integral of t * density(t - z) over t > 0 is
    density(z) / z**2 * integral of u * exp(-u - u**2 / (2 z**2)) over u > 0.
    """
    rest, _ = quad(lambda u: u * math.exp(-u - 0.5 * (u / z) ** 2), 0.0, 80.0, epsrel=1e-13)
    return -0.5 * z * z - 0.5 * math.log(2 * math.pi) - 2 * math.log(-z) + math.log(rest)


@pytest.mark.parametrize(
    "z", [-0.5, -1.0, -1.0001, -2.0, -5.0, -30.0, -300.0, -999.0, -1001.0, -1e4, -1e5, -1e6]
)
def test_log_ei_in_the_tail_against_quadrature(z):
    expected = log_h_by_quadrature(z)
    # The spacing of float64 near z**2 / 2, and the loss of 1 - Mills ratio, are both of this size.
    tolerance = 1e-11 + 4e-16 * z * z
    assert one(LogExpectedImprovement(), z, 1.0) == pytest.approx(expected, abs=tolerance)
    std = 1e-3
    assert one(LogExpectedImprovement(), z * std, std) == pytest.approx(
        expected + math.log(std), abs=tolerance + 1e-15 * z * z
    )


def test_log_ei_in_the_tail_against_mpmath():
    mpmath = pytest.importorskip("mpmath")
    with mpmath.workdps(60):
        for z in [1.0, 0.0, -0.99, -1.01, -3.7, -50.0, -999.9, -1000.1, -1e6]:
            exact = mpmath.mpf(z)
            h = mpmath.npdf(exact) + exact * mpmath.erfc(-exact / mpmath.sqrt(2)) / 2
            expected = float(mpmath.log(h))
            tolerance = 1e-13 + 4e-16 * z * z
            assert one(LogExpectedImprovement(), z, 1.0) == pytest.approx(expected, abs=tolerance)


gaussians = st.tuples(st.floats(-30.0, 30.0), st.floats(1e-3, 1e3))


@given(st.lists(gaussians, min_size=1, max_size=5), st.floats(-30.0, 30.0))
def test_log_ei_is_the_log_of_ei(components, incumbent):
    means, stds = zip(*components, strict=True)
    ei = one(ExpectedImprovement(), means, stds, incumbent)
    log_ei = one(LogExpectedImprovement(), means, stds, incumbent)
    if ei > 1e-250:
        assert log_ei == pytest.approx(math.log(ei), rel=1e-9, abs=1e-9)
    else:
        assert -INF < log_ei < math.log(1e-249)


@given(st.lists(gaussians, min_size=1, max_size=5), st.floats(-30.0, 30.0), st.floats(0.0, 5.0))
def test_scores_grow_with_the_mean_and_shrink_with_the_margin(components, incumbent, rise):
    means, stds = (np.array(part) for part in zip(*components, strict=True))
    for acquisition in ALL:
        low, high = (
            one(acquisition, means, stds, incumbent),
            one(acquisition, means + rise, stds, incumbent),
        )
        assert high >= low - 1e-12 * (1 + abs(low))
    for kind in (ExpectedImprovement, LogExpectedImprovement, ProbabilityOfImprovement):
        plain, margin = one(kind(), means, stds, incumbent), one(kind(rise), means, stds, incumbent)
        assert margin <= plain + 1e-12 * (1 + abs(plain))
        # A margin is a higher incumbent.
        assert margin == one(kind(), means, stds, incumbent + rise)


@given(gaussians, st.floats(-30.0, 30.0), st.floats(1.0, 10.0))
def test_scores_grow_with_the_spread(gaussian, incumbent, factor):
    mean, std = gaussian
    for acquisition in (
        UpperConfidenceBound(),
        ExpectedImprovement(),
        LogExpectedImprovement(),
    ):
        low, high = (
            one(acquisition, mean, std, incumbent),
            one(acquisition, mean, std * factor, incumbent),
        )
        assert high >= low - 1e-12 * (1 + abs(low))
    if mean < incumbent:
        assert one(ProbabilityOfImprovement(), mean, std * factor, incumbent) >= one(
            ProbabilityOfImprovement(), mean, std, incumbent
        )


@pytest.mark.parametrize(("mean", "gain"), [(-2.0, 0.0), (0.0, 0.0), (3.0, 3.0)])
def test_point_masses(mean, gain):
    assert one(ExpectedImprovement(), mean, 0.0) == gain
    assert one(LogExpectedImprovement(), mean, 0.0) == (math.log(gain) if gain else -INF)
    assert one(ProbabilityOfImprovement(), mean, 0.0) == (1.0 if gain else 0.0)
    assert one(UpperConfidenceBound(), mean, 0.0) == mean
    # The limit of ever narrower Gaussians, down to subnormal ones.
    for std in (1e-12, 1e-200, 5e-324):
        assert one(ExpectedImprovement(), mean, std) == pytest.approx(gain, abs=1e-11)
        if gain:
            assert one(LogExpectedImprovement(), mean, std) == pytest.approx(math.log(gain))


def test_a_point_mass_among_others_counts_by_its_share():
    stds = [0.0, 1.0, 0.0]
    means = [-1.0, -40.0, -1.0]
    log_third = -math.log(3.0)
    expected = one(LogExpectedImprovement(), -40.0, 1.0) + log_third
    assert one(LogExpectedImprovement(), means, stds) == pytest.approx(expected)
    means[0] = 2.0
    assert one(LogExpectedImprovement(), means, stds) == pytest.approx(math.log(2.0) + log_third)
    assert one(ExpectedImprovement(), means, stds) == pytest.approx(2.0 / 3.0)
    assert one(ProbabilityOfImprovement(), means, stds) == pytest.approx(1.0 / 3.0)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("acquisition", ALL, ids=repr)
def test_no_extreme_gives_nan_or_a_warning(acquisition):
    means = [-INF, -1e300, -1.0, 0.0, 1.0, 1e300, INF]
    stds = [0.0, 5e-324, 1.0, 1e300, INF]
    for mean, std, incumbent in itertools.product(means, stds, [-INF, 0.0, 1.0, INF]):
        assert not math.isnan(one(acquisition, mean, std, incumbent)), (mean, std, incumbent)


def test_infinite_limits():
    for mean, std in [(0.0, 1.0), (5.0, 0.0)]:
        assert one(ExpectedImprovement(), mean, std, -INF) == INF
        assert one(LogExpectedImprovement(), mean, std, -INF) == INF
        assert one(ProbabilityOfImprovement(), mean, std, -INF) == 1.0
        assert one(ExpectedImprovement(), mean, std, INF) == 0.0
        assert one(LogExpectedImprovement(), mean, std, INF) == -INF
        assert one(ProbabilityOfImprovement(), mean, std, INF) == 0.0
    assert one(ExpectedImprovement(), -3.0, INF) == INF
    assert one(LogExpectedImprovement(), -3.0, INF) == INF
    assert one(ProbabilityOfImprovement(), -3.0, INF) == 0.5


def test_infinite_ei_and_its_logarithm_agree():
    numbers = [-INF, 0.0, INF]
    for mean, std, incumbent in itertools.product(numbers, [0.0, 1.0, INF], numbers):
        ei = one(ExpectedImprovement(), mean, std, incumbent)
        log_ei = one(LogExpectedImprovement(), mean, std, incumbent)
        assert ei == pytest.approx(math.exp(log_ei)), (mean, std, incumbent)


@pytest.mark.parametrize("value", [-INF, INF])
def test_a_point_mass_at_an_infinite_incumbent_is_no_improvement(value):
    assert one(ExpectedImprovement(), value, 0.0, value) == 0.0
    assert one(LogExpectedImprovement(), value, 0.0, value) == -INF
    assert one(ProbabilityOfImprovement(), value, 0.0, value) == 0.0


def test_shapes_and_candidates_are_independent():
    prediction = mixtures(np.random.default_rng(3), n_components=7, m=11)
    for acquisition in ALL:
        scores = acquisition(prediction, 0.4)
        assert scores.shape == (11,)
        assert scores.dtype == np.float64
        for j in range(11):
            single = Prediction(prediction.means[:, [j]], prediction.stds[:, [j]])
            assert acquisition(single, 0.4)[0] == pytest.approx(scores[j], rel=1e-12)
        empty = Prediction(np.empty((7, 0)), np.empty((7, 0)))
        assert acquisition(empty, 0.4).shape == (0,)


@pytest.mark.parametrize("margin", [-1.0, math.nan, INF])
@pytest.mark.parametrize(
    "kind", [ExpectedImprovement, LogExpectedImprovement, ProbabilityOfImprovement]
)
def test_refused_margins(kind, margin):
    with pytest.raises(ValueError, match="`margin` must be finite and >= 0"):
        kind(margin)
    with pytest.raises(TypeError, match="`margin` must be a number, got 'a'"):
        kind("a")
    with pytest.raises(ValueError, match="`incumbent` must be a number, got NaN"):
        one(kind(), 0.0, 1.0, math.nan)
