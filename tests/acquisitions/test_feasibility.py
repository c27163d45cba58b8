"""Acquisitions weighted by the probability of feasibility."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from mondrian_bo import Float, MondrianOptimizer, SearchSpace
from mondrian_bo.acquisitions import get_acquisition
from mondrian_bo.acquisitions.feasibility import constrained, log_probabilities_above

SCORES = np.array([0.5, 1.5, 0.1])
PROBABILITIES = np.array([0.9, 0.2, 0.5])


class Fixed:
    """A probability that depends on the row's number alone."""

    n_smooth_components = 1

    def log_probability(self, rows):
        return np.log(PROBABILITIES)

    def gradients(self, rows):
        return np.log(PROBABILITIES), np.ones((3, 1))


def weighted(acquisition, scores):
    return constrained(acquisition, lambda rows: scores, None, Fixed())[0](np.zeros((3, 1)))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ei", SCORES * PROBABILITIES),
        ("pi", SCORES * PROBABILITIES),
        ("log_ei", SCORES + np.log(PROBABILITIES)),
        ("ucb", SCORES + np.log(PROBABILITIES)),
        ("thompson", SCORES + np.log(PROBABILITIES)),
    ],
)
def test_weighted(name, expected):
    np.testing.assert_allclose(weighted(get_acquisition(name), SCORES), expected)


def test_a_callable_that_states_nothing_gets_the_logarithm_added():
    scores = weighted(lambda prediction, incumbent: prediction.means[0], SCORES)
    np.testing.assert_allclose(scores, SCORES + np.log(PROBABILITIES))


def test_log_ei_is_the_logarithm_of_ei_still():
    gains = np.array([1e-3, 0.2, 3.0])
    ei = weighted(get_acquisition("ei"), gains)
    np.testing.assert_allclose(np.log(ei), weighted(get_acquisition("log_ei"), np.log(gains)))


class Bell:
    """A probability exp(-x**2) with its derivatives."""

    n_smooth_components = 1

    def log_probability(self, rows):
        return -(rows[:, 0] ** 2)

    def gradients(self, rows):
        return self.log_probability(rows), -2.0 * rows


def test_exponent_is_a_power_of_the_probability():
    for name, expected in (
        ("ei", SCORES * PROBABILITIES**2),
        ("log_ei", SCORES + 2.0 * np.log(PROBABILITIES)),
    ):
        score, _ = constrained(get_acquisition(name), lambda rows: SCORES, None, Fixed(), 2.0)
        np.testing.assert_allclose(score(np.zeros((3, 1))), expected)


@pytest.mark.parametrize("exponent", [1.0, 2.0])
@pytest.mark.parametrize("name", ["ei", "log_ei"])
def test_gradients_are_those_of_the_weighted_score(name, exponent):
    score, gradients = constrained(
        get_acquisition(name),
        lambda rows: np.sin(rows[:, 0]),
        lambda rows: (np.sin(rows[:, 0]), np.cos(rows)),
        Bell(),
        exponent,
    )
    rows, step = np.array([[0.3], [-1.2]]), 1e-6
    scores, slopes = gradients(rows)
    np.testing.assert_allclose(scores, score(rows))
    expected = (score(rows + step) - score(rows - step)) / (2.0 * step)
    np.testing.assert_allclose(slopes[:, 0], expected, rtol=1e-6)


MEANS = np.array([[0.0, 1.0, -3.0], [0.5, 0.9, 4.0]])
STDS = np.array([[1.0, 0.5, 2.0], [0.1, 3.0, 1.0]])


def test_log_probability_is_that_of_a_mixture_of_normal_distributions():
    logs, _, _ = log_probabilities_above(MEANS, STDS, 0.7)
    np.testing.assert_allclose(np.exp(logs), norm.sf(0.7, MEANS, STDS).mean(axis=0))


def test_derivatives_of_the_log_probability():
    _, by_means, by_stds = log_probabilities_above(MEANS, STDS, 0.7)
    step = 1e-6
    for c in range(2):
        moved = np.zeros((2, 1))
        moved[c] = step
        for derivatives, (up, down) in (
            (by_means, ((MEANS + moved, STDS), (MEANS - moved, STDS))),
            (by_stds, ((MEANS, STDS + moved), (MEANS, STDS - moved))),
        ):
            difference = (
                log_probabilities_above(*up, 0.7)[0] - log_probabilities_above(*down, 0.7)[0]
            )
            np.testing.assert_allclose(
                derivatives[c], difference / (2 * step), rtol=1e-5, atol=1e-8
            )


def test_log_probability_stays_finite():
    means, stds = np.array([[0.0, -2.0, -1e300]]), np.array([[0.0, 0.0, 1e-300]])
    logs, _, _ = log_probabilities_above(means, stds, -1.0)
    assert np.isfinite(logs).all()
    assert logs[0] == 0.0
    assert logs[1] < -1e9


@pytest.mark.parametrize("z", [-20.0, -29.9, -30.1, -1e4, -1e8])
def test_derivatives_far_below_the_bound(z):
    """They approach -z - 1 / z, to a relative 3 / z^4."""
    means, stds = np.array([[z], [z - 1.0]]), np.ones((2, 1))
    _, by_means, by_stds = log_probabilities_above(means, stds, 0.0)
    shares = norm.logcdf([z, z - 1.0])
    shares = np.exp(shares - np.logaddexp(*shares))
    expected = shares * np.array([-z - 1.0 / z, 1.0 - z - 1.0 / (z - 1.0)])
    np.testing.assert_allclose(by_means[:, 0], expected, rtol=3.0 / z**4 + 1e-12)
    np.testing.assert_allclose(by_stds[:, 0], -means[:, 0] * by_means[:, 0], rtol=1e-12)


@pytest.mark.parametrize("acquisition", ["auto", "ei", "log_ei", "pi", "ucb", "thompson"])
@pytest.mark.parametrize("surrogate", ["forest", "gaussian_process"])
def test_optimizer_stays_where_it_is_allowed(acquisition, surrogate):
    """The optimum of the objective, x = 0, is not feasible: the best allowed point is 0.5."""
    optimizer = MondrianOptimizer(
        SearchSpace({"x": Float(0.0, 1.0), "y": Float(0.0, 1.0)}),
        surrogate=surrogate,
        acquisition=acquisition,
        constraints=["right"],
        seed=0,
    )
    feasible = []
    for _ in range(40):
        params = optimizer.ask()
        optimizer.tell(params, params["x"] + params["y"] ** 2, {"right": 0.5 - params["x"]})
        # A search that has converged steps over the bound by less than counts.
        feasible.append(params["x"] >= 0.5 - 1e-4)
    assert np.mean(feasible[15:]) > 0.3
    params, value = optimizer.best
    assert params["x"] >= 0.5
    assert value < (0.65 if surrogate == "gaussian_process" else 0.7)
