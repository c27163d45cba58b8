"""Acquisitions weighted by the probability of feasibility."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from mondrian_bo import Float, MondrianOptimizer, SearchSpace
from mondrian_bo.acquisitions import get_acquisition
from mondrian_bo.acquisitions.feasibility import constrained, log_probability_below

SCORES = np.array([0.5, 1.5, 0.1])
PROBABILITIES = np.array([0.9, 0.2, 0.5])


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
    score = constrained(
        get_acquisition(name), lambda rows: SCORES, lambda rows: np.log(PROBABILITIES)
    )
    np.testing.assert_allclose(score(np.zeros((3, 1))), expected)


def test_a_callable_that_states_nothing_gets_the_logarithm_added():
    score = constrained(
        lambda prediction, incumbent: prediction.means[0],
        lambda rows: SCORES,
        lambda rows: np.log(PROBABILITIES),
    )
    np.testing.assert_allclose(score(np.zeros((3, 1))), SCORES + np.log(PROBABILITIES))


def test_log_ei_is_the_logarithm_of_ei_still():
    gains = np.array([1e-3, 0.2, 3.0])
    ei = constrained(get_acquisition("ei"), lambda r: gains, lambda r: np.log(PROBABILITIES))
    log_ei = constrained(
        get_acquisition("log_ei"), lambda r: np.log(gains), lambda r: np.log(PROBABILITIES)
    )
    rows = np.zeros((3, 1))
    np.testing.assert_allclose(np.log(ei(rows)), log_ei(rows))


def test_log_probability_is_that_of_the_normal_distribution():
    mean, std = np.array([0.0, 1.0, -3.0]), np.array([1.0, 0.5, 2.0])
    np.testing.assert_allclose(log_probability_below(mean, std, 0.7), norm.logcdf(0.7, mean, std))


def test_log_probability_stays_finite():
    logs = log_probability_below(np.array([0.0, 2.0, 1e300]), np.array([0.0, 0.0, 1e-300]), 1.0)
    assert np.isfinite(logs).all()
    assert logs[0] == 0.0
    assert logs[1] < -1e9


@pytest.mark.parametrize("acquisition", ["auto", "ei", "log_ei", "pi", "ucb", "thompson"])
def test_optimizer_stays_where_it_is_allowed(acquisition):
    """The optimum of the objective, x = 0, is not feasible: the best allowed point is 0.5."""
    space = SearchSpace({"x": Float(0.0, 1.0), "y": Float(0.0, 1.0)})
    optimizer = MondrianOptimizer(space, surrogate="forest", acquisition=acquisition, seed=0)

    def log_probability(rows):
        return np.where(rows[:, 0] >= 0.5, 0.0, -50.0)

    for index in range(40):
        row = space.to_unit(optimizer.suggest(np.empty((0, 2)), index, None, log_probability))
        feasible = row[0] >= 0.5
        assert feasible or index < 10
        optimizer.tell_rows(row[None], np.array([row[0] + row[1] ** 2]), np.array([feasible]))
    params, value = optimizer.best
    assert params["x"] >= 0.5
    assert value < 0.65


def test_while_nothing_is_feasible_only_the_probability_counts():
    space = SearchSpace({"x": Float(0.0, 1.0)})
    optimizer = MondrianOptimizer(space, surrogate="forest", n_startup_trials=3, seed=0)
    for x in (0.1, 0.2, 0.3):
        optimizer.tell_rows(np.array([[x]]), np.array([x]), np.array([False]))
    params = optimizer.suggest(np.empty((0, 1)), 3, None, lambda rows: -np.abs(rows[:, 0] - 0.9))
    assert params["x"] == pytest.approx(0.9, abs=0.02)
