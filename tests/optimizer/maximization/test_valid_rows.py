"""Constraints between inputs: suggestions are valid, and optima on the boundary are found."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mondrian_bo import Categorical, Condition, Float, Int, MondrianOptimizer, SearchSpace
from mondrian_bo.optimizer.maximization.candidates import quasi_random_rows
from mondrian_bo.optimizer.maximization.valid_rows import ValidRows
from mondrian_bo.optimizer.row_optimizer import RowOptimizer
from mondrian_bo.search_space import RestrictedSpace

SQUARE = SearchSpace({"x": Float(0.0, 1.0), "y": Float(0.0, 1.0)})
BRANCHES = SearchSpace(
    {
        "kind": Categorical(("net", "tree", "none")),
        "width": Int(1, 64, log=True, condition=Condition("kind", ("net",))),
        "depth": Int(1, 16, condition=Condition("kind", ("net", "tree"))),
        "rate": Float(1e-4, 1.0, log=True),
    }
)
FINITE = SearchSpace({"n": Int(0, 40), "kind": Categorical(tuple("abcdefgh"))})


def in_corner(params):
    """Half a percent of the square."""
    return params["x"] + params["y"] <= 0.1


def in_ring(params):
    """Four percent of the square, not convex and with a hole."""
    return 0.30 <= math.hypot(params["x"] - 0.5, params["y"] - 0.5) <= 0.32


def in_branches(params):
    """A product of categories and ranges; trees have no width, and "none" has neither."""
    if params["kind"] == "none":
        return params["rate"] < 1e-3
    return params["rate"] > 0.1 and params["depth"] * params["width"] <= 16


def branches_hold(params):
    return in_branches({"width": 1, **params})


def test_a_function_that_accepts_all_changes_nothing():
    trials = []
    for is_valid in (None, lambda params: True):
        optimizer = MondrianOptimizer(BRANCHES, seed=1, n_startup_trials=4, is_valid=is_valid)
        for _ in range(12):
            params = optimizer.ask()
            optimizer.tell(params, math.log10(params["rate"]) ** 2 + params.get("depth", 3))
        trials.append(optimizer.ask(3))
    assert trials[0] == trials[1]


@pytest.mark.parametrize("surrogate", ["gaussian_process", "forest", "amf", "kernel"])
@pytest.mark.parametrize(
    ("space", "is_valid", "holds"),
    [
        (SQUARE, in_corner, in_corner),
        (SQUARE, in_ring, in_ring),
        (BRANCHES, in_branches, branches_hold),
        (FINITE, lambda p: p["n"] % 7 == 3, lambda p: p["n"] % 7 == 3),
    ],
    ids=["corner", "ring", "branches", "finite"],
)
def test_all_suggestions_are_valid(space, is_valid, holds, surrogate):
    optimizer = MondrianOptimizer(
        space, seed=0, surrogate=surrogate, n_startup_trials=4, n_candidates=150, is_valid=is_valid
    )
    for _ in range(10):
        batch = optimizer.ask(2)
        assert all(holds(params) for params in batch)
        # The middle of the space is best.
        rows = np.nan_to_num([space.to_unit(params) for params in batch], nan=0.5)
        optimizer.tell(batch, ((rows - 0.5) ** 2).sum(axis=1))


def test_first_points_are_the_valid_ones_of_the_sequence():
    shift = np.random.default_rng(3).random(2)
    expected = [
        row for row in quasi_random_rows(SQUARE, 0, 4096, shift) if in_corner(SQUARE.from_unit(row))
    ]
    valid = ValidRows(in_corner, SQUARE)
    none = np.empty((0, 2))
    found = [valid.first(SQUARE, i, shift, np.random.default_rng(0), none) for i in range(15)]
    assert np.array_equal(found, expected[:15])


def test_each_row_is_asked_once():
    asked = []
    valid = ValidRows(lambda params: bool(asked.append(params)) or params["n"] > 3, FINITE)
    rows = FINITE.enumerate_rows()
    first, again = valid.contains(rows), valid.contains(rows[::-1])[::-1]
    assert asked == [FINITE.from_unit(row) for row in rows]
    assert np.array_equal(first, [params["n"] > 3 for params in asked])
    assert np.array_equal(first, again)


def test_all_valid_points_of_a_finite_space_are_found():
    optimizer = MondrianOptimizer(
        FINITE, seed=0, n_startup_trials=4, is_valid=lambda p: p["n"] == 11 + ord(p["kind"]) % 2
    )
    found = []
    for _ in range(10):
        params = optimizer.ask()
        optimizer.tell(params, -params["n"])
        found.append((params["n"], params["kind"]))
    expected = {(11 + ord(kind) % 2, kind) for kind in "abcdefgh"}
    # Trials repeat only when no other is left.
    assert set(found[:8]) == expected and set(found) == expected


def target(x, y):
    """A bowl whose minimum is outside of the corner and of the ring."""
    return 3.0 * (x - 0.3) ** 2 + (y - 0.25) ** 2


@pytest.mark.parametrize("is_valid", [in_corner, in_ring])
def test_an_optimum_on_the_boundary_is_found(is_valid):
    if is_valid is in_corner:
        ways = [(t, 0.1 - t) for t in np.linspace(0.0, 0.1, 10_001)]
    else:
        angles = np.linspace(0.0, 2.0 * np.pi, 100_001)
        ways = [(0.5 + r * np.cos(a), 0.5 + r * np.sin(a)) for r in (0.3, 0.32) for a in angles]
    best = min(target(x, y) for x, y in ways)
    free = SearchSpace({"u": Float(0.0, 1.0), "v": Float(0.0, 1.0)})

    def mapped(u, v):
        """The unit square onto the valid region."""
        if is_valid is in_corner:
            total = 0.1 * math.sqrt(u)
            return total * v, total * (1.0 - v)
        angle, radius = 2.0 * math.pi * v, 0.3 + 0.02 * u
        return 0.5 + radius * math.cos(angle), 0.5 + radius * math.sin(angle)

    gaps = []
    for space, options, function in (
        (SQUARE, {"is_valid": is_valid}, target),
        (free, {}, lambda u, v: target(*mapped(u, v))),
    ):
        optimizer = MondrianOptimizer(space, seed=0, **options)
        for _ in range(30):
            params = optimizer.ask()
            optimizer.tell(params, function(**params))
        gaps.append(optimizer.best[1] - best)
    constrained, reparametrised = gaps
    assert -1e-8 < constrained < max(10.0 * reparametrised, 1e-4)


def test_several_objectives_and_constraints():
    optimizer = MondrianOptimizer(
        SQUARE,
        seed=0,
        directions=["minimize", "maximize"],
        constraints=["c"],
        n_startup_trials=5,
        is_valid=in_corner,
    )
    for _ in range(15):
        params = optimizer.ask()
        assert in_corner(params)
        x, y = params["x"], params["y"]
        optimizer.tell(params, [x - y, x + y], constraints=[0.02 - x])
    assert optimizer.pareto_front()


@pytest.mark.parametrize("directions", [["maximize"], ["maximize", "maximize"]])
def test_an_invalid_trial_that_was_told_was_evaluated(directions):
    optimizer = MondrianOptimizer(
        SQUARE, seed=0, directions=directions, n_startup_trials=3, is_valid=in_corner
    )
    invalid, value = {"x": 0.5, "y": 0.5}, np.full(len(directions), 9.0)
    optimizer.tell(invalid, value if len(value) > 1 else 9.0)
    for _ in range(6):
        params = optimizer.ask()
        assert in_corner(params)
        values = [params["x"], params["y"]][: len(directions)]
        optimizer.tell(params, values if len(values) > 1 else values[0])
    ((best, front),) = optimizer.pareto_front()
    assert best == invalid
    np.testing.assert_array_equal(front, value)
    if len(directions) == 1:
        assert optimizer.best == (invalid, 9.0)


def test_suggestions_of_a_part_are_valid():
    optimizer = RowOptimizer(SQUARE, seed=0, n_startup_trials=3, is_valid=in_ring)
    within = RestrictedSpace(SQUARE, {"x": 0.5})
    none = np.empty((0, 2))
    for i in range(8):
        params = optimizer.suggest(none, i, within)
        assert params["x"] == 0.5 and in_ring(params)
        optimizer.tell_rows(SQUARE.to_unit(params)[None], np.array([params["y"]]))


@pytest.mark.parametrize(
    ("space", "message"),
    [(SQUARE, r"refused all of \d{4,} points drawn"), (FINITE, "refused all 328 points")],
)
@pytest.mark.parametrize("n_told", [0, 12])
def test_nothing_valid_is_an_error(space, message, n_told):
    optimizer = MondrianOptimizer(
        space, seed=0, n_candidates=100, n_startup_trials=4, is_valid=lambda params: False
    )
    for i, row in enumerate(quasi_random_rows(space, 0, n_told, np.zeros(2))):
        optimizer.tell(space.from_unit(row), i)
    with pytest.raises(ValueError, match=message):
        optimizer.ask()
    assert optimizer.n_trials == n_told and optimizer.pending == []


def test_the_error_names_fixed_values():
    optimizer = MondrianOptimizer(
        FINITE, seed=0, fidelity="n", is_valid=lambda params: params["n"] < 40
    )
    with pytest.raises(ValueError, match="refused all 8 points of the space with fixed 'n' at 40"):
        optimizer.ask()
    optimizer = RowOptimizer(SQUARE, seed=0, is_valid=lambda params: False)
    with pytest.raises(ValueError, match=r"drawn from the space with fixed 'x' at 0\.5: no valid"):
        optimizer.suggest(np.empty((0, 2)), 0, RestrictedSpace(SQUARE, {"x": 0.5}))
    within = RestrictedSpace(FINITE, {"kind": "b"})
    optimizer = RowOptimizer(FINITE, seed=0, is_valid=lambda params: False)
    with pytest.raises(ValueError, match="points of the space with fixed 'kind'"):
        optimizer.suggest(np.empty((0, 2)), 0, within)


def test_answers_and_exceptions_of_the_function():
    answers = iter(["yes", None, 1, ZeroDivisionError("mine"), KeyError("typo")])
    told = []

    def is_valid(params):
        told.append(params)
        answer = next(answers, True)
        if isinstance(answer, Exception):
            raise answer
        return answer

    optimizer = MondrianOptimizer(SQUARE, seed=0, n_startup_trials=64, is_valid=is_valid)
    for kind, message in [
        (TypeError, "`is_valid` must return True or False, got 'yes'"),
        (TypeError, "got None"),
        (TypeError, "got 1"),
        (ZeroDivisionError, "mine"),
        (KeyError, "typo"),
    ]:
        with pytest.raises(kind, match=message):
            optimizer.ask()
        assert optimizer.pending == [] and optimizer.n_trials == 0
    params = optimizer.ask()
    assert params == MondrianOptimizer(SQUARE, seed=0, n_startup_trials=64).ask()
    with pytest.raises(TypeError, match="`is_valid` must be a function or None, got 3"):
        MondrianOptimizer(SQUARE, is_valid=3)


def test_numpy_booleans_are_answers(tmp_path):
    optimizer = MondrianOptimizer(
        SQUARE, seed=0, n_startup_trials=2, is_valid=np_corner, n_candidates=100
    )
    for _ in range(4):
        optimizer.tell(optimizer.ask(), 1.0)
    optimizer.save(tmp_path / "optimizer.npz")
    loaded = MondrianOptimizer.load(tmp_path / "optimizer.npz", is_valid=np_corner)
    for _ in range(3):
        params = optimizer.ask()
        assert params == loaded.ask() and in_corner(params)


def np_corner(params):
    """As `in_corner`, a `numpy.bool_`."""
    return np.bool_(in_corner(params))
