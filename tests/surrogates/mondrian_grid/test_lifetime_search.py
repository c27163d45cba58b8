"""Searches find the relevant dimension, and leave the model where they say."""

import numpy as np
import pytest

from mondrian_bo import Float, MondrianOptimizer, SearchSpace
from mondrian_bo.surrogates import (
    SPSA,
    AskTellSearch,
    Greedy,
    MondrianGridRegressor,
    search_lifetimes,
)


def make_model(seed=0, n=160, n_val=80, **options):
    """The second dimension is irrelevant (Balog2016thesis, figure 5.4)."""
    rng = np.random.default_rng(seed)
    X = rng.random((n + n_val, 2))
    y = np.sin(8.0 * X[:, 0]) + 0.1 * rng.normal(size=len(X))
    grid = MondrianGridRegressor(10, random_state=seed, **options)
    return grid.grid_model(X[:n], y[:n], X[n:], y[n:])


def bayesian(seed=0):
    space = SearchSpace({name: Float(0.01, 30.0, log=True) for name in ("0", "1")})
    optimizer = MondrianOptimizer(space, direction="minimize", seed=seed)
    return AskTellSearch(optimizer, lambda params: np.array([params["0"], params["1"]]))


STRATEGIES = {
    "greedy": (Greedy(), 60),
    "with removals": (Greedy(removals=True, look_ahead=3), 60),
    "look-ahead": (Greedy(look_ahead=5), 60),
    "spsa": (SPSA(unit=0.5), 25),
    "bayesian": (bayesian(), 25),
}


@pytest.mark.parametrize("name", STRATEGIES)
def test_finds_the_relevant_dimension(name):
    model = make_model()
    start = model.validation_error()
    search = search_lifetimes(model, *STRATEGIES[name])
    assert search.scores[0] == start
    assert search.best_score < 0.5 * start
    assert search.best_lifetimes[0] > 3.0 * search.best_lifetimes[1]
    threshold = float(np.sqrt(search.best_lifetimes[0] * max(search.best_lifetimes[1], 1e-3)))
    assert np.array_equal(search.relevant_features(threshold), [0])
    # The model is at the best lifetimes, with the error that was told.
    assert np.array_equal(model.lifetimes, search.best_lifetimes)
    assert abs(model.validation_error() - search.best_score) < 1e-8
    assert len(search.lifetimes) == len(search.scores)
    assert search.n_evaluations >= len(search.scores)


def test_evidence_as_the_criterion():
    model = make_model(1)
    start = model.log_marginal_likelihood()
    search = search_lifetimes(model, Greedy(), 60, "log_marginal_likelihood")
    assert search.scores[0] == -start
    assert abs(model.log_marginal_likelihood() + search.best_score) < 1e-6
    assert model.log_marginal_likelihood() > start + 10.0
    assert search.best_lifetimes[0] > 2.0 * search.best_lifetimes[1]


def test_greedy_takes_the_best_neighbour():
    model = make_model(2)
    replica = make_model(2)
    search = search_lifetimes(model, Greedy(), 3)
    for step in range(3):
        errors = []
        for d in (0, 1):
            before = replica.lifetimes
            replica.set_lifetime(d, replica.cells.cut_time(d, 1))
            errors.append((replica.validation_error(), tuple(replica.lifetimes)))
            replica.set_lifetimes(before)
        error, lifetimes = min(errors)
        assert np.array_equal(search.lifetimes[step + 1], lifetimes)
        assert abs(search.scores[step + 1] - error) < 1e-8
        replica.set_lifetimes(np.array(lifetimes))


def test_greedy_with_removals_ends_in_a_local_minimum():
    model = make_model(3, n=60, n_val=30)
    search = search_lifetimes(model, Greedy(removals=True), 400)
    assert len(search.scores) < 400
    assert np.all(np.diff(search.scores) < 0.0)
    for d in (0, 1):
        for sign in (1, -1):
            lifetime = model.cells.cut_time(d, sign)
            if lifetime is not None:
                before = float(model.lifetimes[d])
                model.set_lifetime(d, lifetime)
                assert model.validation_error() >= search.best_score - 1e-9
                model.set_lifetime(d, before)


def test_greedy_ends_when_all_is_cut():
    X, y = [[0.0], [1.0]], [0.0, 1.0]
    model = MondrianGridRegressor(2, random_state=0).grid_model(X, y, X, y)
    search = search_lifetimes(model, Greedy(), 50)
    assert len(search.scores) == 3


def test_wrong_criteria():
    X, y = np.random.default_rng(0).random((10, 2)), np.arange(10.0)
    model = MondrianGridRegressor(2, random_state=0).grid_model(X, y)
    with pytest.raises(ValueError, match="needs validation points"):
        search_lifetimes(model, Greedy(), 1)
    with pytest.raises(ValueError, match="criterion must be"):
        search_lifetimes(model, Greedy(), 1, "training_error")


@pytest.mark.parametrize(
    ("kind", "settings", "error", "message"),
    [
        (Greedy, {"look_ahead": 0}, ValueError, "`look_ahead` must be at least 1, got 0"),
        (Greedy, {"look_ahead": 1.5}, TypeError, "`look_ahead` must be an integer, got 1.5"),
        (SPSA, {"unit": 0.0}, ValueError, "`unit` must be finite and above 0, got 0.0"),
        (SPSA, {"unit": np.nan}, ValueError, "`unit` must be finite and above 0, got nan"),
        (SPSA, {"unit": "1"}, TypeError, "`unit` must be a number, got '1'"),
        (SPSA, {"unit": 1.0, "step": -1.0}, ValueError, "`step` must be finite and above 0"),
        (SPSA, {"unit": 1.0, "perturbation": 0}, ValueError, "`perturbation` must be finite"),
    ],
)
def test_wrong_settings(kind, settings, error, message):
    with pytest.raises(error, match=message):
        kind(**settings)


def test_wrong_searches():
    model = make_model(n=20, n_val=10)
    with pytest.raises(ValueError, match="`n_steps` must be at least 0, got -1"):
        search_lifetimes(model, Greedy(), -1)
    with pytest.raises(TypeError, match=r"`n_steps` must be an integer, got 2.0"):
        search_lifetimes(model, Greedy(), 2.0)
    assert len(search_lifetimes(model, Greedy(), 0).scores) == 1
    search = AskTellSearch(bayesian().optimizer, lambda params: [params["0"]])
    with pytest.raises(ValueError, match=r"lifetimes must have shape \(2,\).*got shape \(1,\)"):
        search_lifetimes(model, search, 1)
