"""Exactly linear constraints: how they are found, nearest points, and searches within them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog, minimize

from mondrian_bo import Categorical, Float, Int, MondrianOptimizer, SearchSpace
from mondrian_bo.optimizer.constraints.half_spaces import HalfSpace, HalfSpaces, find_half_space
from mondrian_bo.search_space import RestrictedSpace


def box(d):
    return SearchSpace({f"x{i}": Float(-2.0, 3.0) for i in range(d)})


def values_of(params):
    return np.array(list(params.values()))


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e9])
def test_a_linear_margin_is_found_from_two_trials_more_than_coefficients(scale):
    rng = np.random.default_rng(0)
    rows, slopes = rng.random((40, 4)), rng.standard_normal(4)
    margins = scale * (rows @ slopes - 0.3)
    assert find_half_space(rows[:6], margins[:6]) is None
    length = np.linalg.norm(slopes)
    for n in (7, 40):
        found = find_half_space(rows[:n], margins[:n])
        np.testing.assert_allclose(found.normal, slopes / length, atol=1e-9)
        assert found.offset - found.clearance == pytest.approx(0.3 / length, abs=1e-9)
        assert 0.0 < found.clearance < 1e-8


def test_other_margins_are_not_linear():
    rng = np.random.default_rng(1)
    rows = rng.random((40, 3))
    linear = rows @ [1.0, -2.0, 0.5] - 0.1
    assert find_half_space(rows, linear) is not None
    last = linear.copy()
    last[-1] += 1e-5  # a trial after those of the fit
    absent = rows.copy()
    absent[30, 0] = np.nan
    infinite = linear.copy()
    infinite[2] = -np.inf
    huge = linear.copy()
    huge[3] = -1e300
    flat = rows.copy()
    flat[:, 2] = 0.5
    for some, margins in [
        (rows, linear + 1e-5 * np.sin(9.0 * rows[:, 0])),
        (rows, last),
        (absent, linear),
        (rows, infinite),
        (rows, huge),
        (rows, 1e308 * linear),
        (rows, np.full(40, 2.0)),
        (rows, np.maximum(linear, 0.0)),
        (flat, linear),
    ]:
        assert find_half_space(some, margins) is None


def polytope(seed, d=4, n_planes=3):
    """Half spaces that contain a point of the cube, at least 0.05 from each bound."""
    rng = np.random.default_rng(seed)
    inside = rng.uniform(0.2, 0.8, d)
    normals = rng.standard_normal((n_planes, d))
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    return normals, normals @ inside - 0.05


def half_spaces(normals, offsets, is_free=None):
    parts = {i: HalfSpace(*one, 1e-9) for i, one in enumerate(zip(normals, offsets, strict=True))}
    return HalfSpaces(parts, np.ones(normals.shape[1], dtype=bool) if is_free is None else is_free)


@pytest.mark.parametrize("seed", range(5))
def test_nearest_points_are_those_of_a_quadratic_program(seed):
    normals, offsets = polytope(seed)
    rows = np.random.default_rng(seed).random((10, 4))
    moved = half_spaces(normals, offsets).nearest(rows)
    for row, point in zip(rows, moved, strict=True):
        solved = minimize(
            lambda x, row=row: ((x - row) ** 2).sum(),
            row,
            jac=lambda x, row=row: 2.0 * (x - row),
            bounds=[(0.0, 1.0)] * 4,
            constraints={
                "type": "ineq",
                "fun": lambda x: normals @ x - offsets,
                "jac": lambda x: normals,
            },
            options={"ftol": 1e-14},
        )
        np.testing.assert_allclose(point, solved.x, atol=1e-5)
    assert (normals @ moved.T >= offsets[:, None] - 1e-8).all()
    inside = (normals @ rows.T >= offsets[:, None]).all(axis=0)
    np.testing.assert_array_equal(moved[inside], rows[inside])


def test_columns_that_are_not_free_stay():
    normals, offsets = np.array([[0.6, 0.8]]), np.array([0.7])
    moved = half_spaces(normals, offsets, np.array([True, False])).nearest(np.array([[0.2, 0.5]]))
    np.testing.assert_allclose(moved, [[0.5, 0.5]])


@pytest.mark.parametrize("seed", range(3))
def test_gradients_are_those_of_the_score_of_nearest_points(seed):
    centre, step = np.full(4, 0.4), 1e-6
    score, gradients = half_spaces(*polytope(seed)).within(
        lambda rows: -((rows - centre) ** 2).sum(axis=1) + rows[:, 0],
        lambda rows: (
            -((rows - centre) ** 2).sum(axis=1) + rows[:, 0],
            -2.0 * (rows - centre) + [1.0, 0.0, 0.0, 0.0],
        ),
    )
    rows = np.random.default_rng(seed).random((20, 4))
    scores, slopes = gradients(rows)
    np.testing.assert_allclose(scores, score(rows))
    near = scores > -10.0  # a projection of the others would need more sweeps
    assert near.sum() >= 18
    for j in range(4):
        moved = step * np.eye(4)[j]
        expected = (score(rows + moved) - score(rows - moved)) / (2.0 * step)
        np.testing.assert_allclose(slopes[near, j], expected[near], atol=1e-5)


@pytest.mark.parametrize("seed", range(3))
def test_a_linear_program_is_solved_without_infeasible_trials(seed):
    """The bounds are known from d + 3 trials on."""
    rng = np.random.default_rng(seed)
    slopes, normals = rng.standard_normal(5), rng.standard_normal((2, 5))
    bounds = normals @ rng.uniform(-1.0, 2.0, 5) + 0.3
    optimizer = MondrianOptimizer(box(5), constraints=["a", "b"], seed=seed)
    feasible = []
    for _ in range(30):
        params = optimizer.ask()
        values = normals @ values_of(params) - bounds
        feasible.append((values <= 0.0).all())
        optimizer.tell(params, slopes @ values_of(params), values)
    assert all(feasible[8:])
    solved = linprog(slopes, A_ub=normals, b_ub=bounds, bounds=[(-2.0, 3.0)] * 5)
    assert optimizer.best[1] == pytest.approx(solved.fun, abs=1e-4)


def test_the_first_trial_that_knows_a_small_region_is_in_it():
    """The region is 1 / 24000 of the space."""
    optimizer = MondrianOptimizer(box(4), constraints=["c"], seed=0, n_startup_trials=10)
    for number in range(9):
        params = optimizer.ask()
        margin = values_of(params).sum() + 8.0 - 0.5
        assert (margin <= 0.0) == (number >= 7)
        optimizer.tell(params, params["x0"], [margin])


def test_the_least_violation_is_best_where_bounds_exclude_each_other():
    """Columns with a grid stay: the first row violates x >= 0.8 by 0.7, the second by 0.1."""
    normals, offsets = np.array([[1.0, 0.0], [-1.0, 0.0]]), np.array([0.8, -0.9])
    spaces = half_spaces(normals, offsets, np.array([False, True]))
    score, _ = spaces.within(lambda rows: rows[:, 1], None)
    scores = score(np.array([[0.1, 0.9], [0.7, 0.5], [0.85, 0.1]]))
    assert scores[0] < scores[1] < -1e40
    assert scores[2] == 0.1


@pytest.mark.parametrize("seed", range(60))
def test_half_spaces_that_exclude_each_other_are_those_of_a_linear_program(seed):
    rng = np.random.default_rng(seed)
    d, n_planes = rng.integers(1, 6), rng.integers(1, 5)
    normals = rng.standard_normal((n_planes, d))
    normals /= np.linalg.norm(normals, axis=1)[:, None]
    upper = np.where(rng.random(d) < 0.3, 3.0, 1.0)
    offsets = normals @ (rng.random(d) * upper) + rng.normal(0.1, 0.3, n_planes)
    solved = linprog(np.zeros(d), A_ub=-normals, b_ub=-offsets, bounds=[(0.0, u) for u in upper])
    spaces = half_spaces(normals, offsets, np.ones(d, dtype=bool))
    assert spaces.exclude_each_other(upper) == (solved.status == 2)


def test_half_spaces_that_touch_do_not_exclude_each_other():
    normals = np.array([[0.6, 0.8], [-0.6, -0.8]])
    for bound in (0.3, 1.4, 1.4 + 1e-10):
        spaces = half_spaces(normals, np.array([bound, -bound]), np.ones(2, dtype=bool))
        assert not spaces.exclude_each_other(np.ones(2))
    apart = half_spaces(normals, np.array([0.3 + 1e-4, -0.3]), np.ones(2, dtype=bool))
    assert apart.exclude_each_other(np.ones(2))


@pytest.mark.parametrize("d", [1, 2])
def test_a_constraint_that_no_point_satisfies_does_not_gather_the_trials(d):
    """The nearest point of all rows is the corner at 0."""
    optimizer = MondrianOptimizer(box(d), constraints=["c"], seed=0)
    seen = []
    for _ in range(30):
        params = optimizer.ask()
        seen.append(tuple(params.values()))
        optimizer.tell(params, params["x0"] ** 2, [sum(seen[-1]) + 3.0 * d])
    assert len(set(seen)) == 30


def test_a_function_that_is_linear_in_a_part_of_the_space_only():
    """The optimum is at a kink, and the first trials know one side of it."""
    space = box(2)
    optimizer = MondrianOptimizer(space, constraints=["c"], seed=0)
    is_linear = []
    for number in range(40):
        params = {"x0": -2.0 + number, "x1": number % 2 - 1.0} if number < 5 else optimizer.ask()
        x, y = params["x0"], params["x1"]
        optimizer.tell(params, -x - 0.5 * y, [max(x + y - 1.0, 2.0 * x - y - 6.0)])
        is_linear.append(optimizer._constraints.half_spaces(space) is not None)
    assert is_linear[4] and not is_linear[-1]
    # At x = 7 / 3 and y = - 4 / 3.
    assert optimizer.best[1] == pytest.approx(-5.0 / 3.0, abs=0.05)


def linearly_constrained():
    """An optimizer of a square whose constraint is x0 <= 1, known exactly."""
    optimizer, space = MondrianOptimizer(box(2), constraints=["c"], seed=0), box(2)
    rows = space.sample(12, np.random.default_rng(0))
    optimizer.tell_rows(rows, rows[:, 1], rows[:, :1] - 0.6)
    assert optimizer._constraints.half_spaces(space) is not None
    return optimizer, space


def test_fixed_values_and_exact_constraints_do_not_go_together():
    optimizer, space = linearly_constrained()
    assert optimizer._constraints.half_spaces(RestrictedSpace(space, {"x0": 0.0})) is None


def test_scores_beyond_a_bound_are_not_those_of_the_nearest_point():
    """Pictures of an acquisition show where a constraint is violated."""
    optimizer, space = linearly_constrained()
    rng = np.random.default_rng(0)
    for _, score in optimizer._search.whole.scores(optimizer._constraints, space, rng):
        within, beyond = score(np.array([[0.6 - 1e-6, 0.2], [0.95, 0.2]]))
        assert beyond < within - 1.0


def test_a_bound_may_be_met_by_later_choices_alone():
    space = SearchSpace({"x": Float(0.0, 1.0), "kind": Categorical(tuple("abcd"))})
    optimizer = MondrianOptimizer(space, constraints=["c"], seed=0)
    rows = space.sample(20, np.random.default_rng(0))
    optimizer.tell_rows(rows, rows[:, 0], 2.0 + 0.5 * rows[:, :1] - rows[:, 1:])
    assert optimizer._constraints.half_spaces(space) is not None


def test_a_point_on_a_bound_is_suggested_once():
    """The optimum is a corner, which many candidates stand for."""
    optimizer, seen = MondrianOptimizer(box(2), constraints=["a", "b"], seed=0), []
    for _ in range(30):
        params = optimizer.ask()
        x, y = params.values()
        seen.append((x, y))
        optimizer.tell(params, -x - 2.0 * y, [x + y - 1.0, y - x])
    assert len(set(seen)) == 30


def test_integers_and_choices_take_part():
    space = SearchSpace(
        {"x": Float(0.0, 1.0), "n": Int(0, 9), "kind": Categorical(("a", "b")), "y": Float(0, 1)}
    )
    optimizer = MondrianOptimizer(space, constraints=["c", "n"], seed=0)
    feasible = []
    for _ in range(40):
        params = optimizer.ask()
        values = [params["x"] + 0.1 * params["n"] - 0.6 * (params["kind"] == "b"), params["n"] - 4]
        feasible.append(max(values) <= 0.0)
        optimizer.tell(params, -params["x"] - params["n"] + (params["y"] - 0.5) ** 2, values)
    assert all(feasible[12:])
    # With x = 0.2 and n = 4 the sum is 0.6.
    assert optimizer.best[1] == pytest.approx(-4.2, abs=1e-3)
