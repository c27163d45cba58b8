"""Outcomes that are constant so far: suggestions cover the space until they vary."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import qmc

from mondrian_bo import MondrianOptimizer
from mondrian_bo.optimizer.search.constant_outcomes import is_constant, share_without_model
from mondrian_bo.search_space import Float, SearchSpace

SQUARE = SearchSpace({"x": Float(0.0, 1.0), "y": Float(0.0, 1.0)})


def asked(n_trials, outcomes, seed, **settings):
    """Ask for trials and tell their outcomes; return the points, shape (n_trials, 2)."""
    optimizer = MondrianOptimizer(SQUARE, seed=seed, **settings)
    points = []
    for _ in range(n_trials):
        params = optimizer.ask()
        values, constraints = outcomes(**params)
        optimizer.tell(params, values, **({"constraints": constraints} if constraints else {}))
        points.append([params["x"], params["y"]])
    return np.array(points)


def discrepancy(points):
    """Return the centred discrepancy; some 0.02 for 40 even points, and more for repeated ones."""
    return qmc.discrepancy(points)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], False),
        ([1.0], False),
        ([1.0, 1.0], True),
        ([1.0, 2.0, 1.0], False),
        ([1.0, 2.0], False),
    ],
)
def test_two_equal_values_or_more_are_constant(values, expected):
    assert is_constant(np.array(values)) is expected


@pytest.mark.parametrize(
    ("outcomes", "settings"),
    [
        (lambda x, y: (x, {"c": 1.0}), {"constraints": ["c"]}),
        (lambda x, y: (x, {"c": 1.0, "other": 2.0}), {"constraints": ["c", "other"]}),
        (lambda x, y: ([1.0, 1.0], None), {"directions": ["minimize", "maximize"]}),
        (lambda x, y: ([1.0] * 3, None), {"directions": ["minimize"] * 3}),
        (lambda x, y: (3.0, {"c": -1.0}), {"constraints": ["c"]}),
        (lambda x, y: (3.0, {"c": x - 2.0}), {"constraints": ["c"]}),
    ],
)
def test_while_all_outcomes_are_constant_the_space_is_covered_evenly(outcomes, settings):
    points = asked(40, outcomes, 0, **settings)
    assert discrepancy(points) < 0.01
    assert len(np.unique(np.round(points, 2), axis=0)) == 40


def test_a_rare_feasible_region_of_a_constraint_without_a_size_is_found():
    found = []
    for seed in range(8):
        corner = np.random.default_rng(seed).uniform(0.1, 0.7, 2)

        def outcomes(x, y, corner=corner):
            is_inside = np.all(np.abs(np.array([x, y]) - corner - 0.1) <= 0.1)
            return x + y, {"c": 0.0 if is_inside else 1.0}

        points = asked(60, outcomes, seed, constraints=["c"])
        found.append(any(outcomes(*point)[1]["c"] == 0.0 for point in points))
    assert all(found)


def test_beside_a_constant_constraint_half_of_the_trials_satisfy_the_other_one():
    """Quasi-random points are those that most probably satisfy the constraint that varies."""
    points = asked(
        60,
        lambda x, y: (y, {"constant": 1.0, "size": x - 0.2}),
        0,
        constraints=["constant", "size"],
    )
    later = points[20:]
    assert np.mean(later[:, 0] <= 0.2) > 0.8
    assert discrepancy(later[later[:, 0] <= 0.2] * [5.0, 1.0]) < 0.05


def test_a_constant_objective_beside_one_that_varies_takes_half_of_the_suggestions():
    points = asked(60, lambda x, y: ([x, 1.0], None), 0, directions=["minimize"] * 2)
    away = points[20:, 0] > 0.1
    assert 0.2 < away.mean() < 0.7


@pytest.mark.parametrize(
    ("margins", "share"),
    [
        ([[1.0, 1.0], [-1.0, -2.0]], 0.0),
        ([[1.0, 1.0], [-1.0, -1.0]], 1.0),
        ([[-1.0, -1.0], [-1.0, -2.0]], 0.5),
        ([[0.0, 0.0]], 0.0),
    ],
)
def test_constant_constraints_that_hold_do_not_count(margins, share):
    """Margins of 0 or more hold. No trial is eligible."""

    class Told(list):
        values = property(np.array)

    models = [SimpleNamespace(trials=Told(one)) for one in margins]
    assert share_without_model(None, SimpleNamespace(models=models), False, 0.5) == share


def test_an_acquisition_by_name_has_no_such_points():
    points = asked(30, lambda x, y: (x, {"c": 1.0}), 0, constraints=["c"], acquisition="log_ei")
    assert len(np.unique(np.round(points[4:], 2), axis=0)) < 26
