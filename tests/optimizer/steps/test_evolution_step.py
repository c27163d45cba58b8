"""Steps of an evolution strategy: their distribution, and when a search takes them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mondrian_bo import Categorical, Float, Int, MondrianOptimizer, SearchSpace
from mondrian_bo.acquisitions import UpperConfidenceBound
from mondrian_bo.optimizer.search import step_choice
from mondrian_bo.optimizer.search.portfolio import Arm, Portfolio
from mondrian_bo.optimizer.steps.evolution_step import _WINDOW, offspring
from mondrian_bo.search_space import Condition


def trials(rng, n=49, d=3):
    return 0.5 + 0.02 * rng.standard_normal((n, d)), rng.standard_normal(n)


def test_offspring_have_the_weighted_moments_of_the_best():
    rng = np.random.default_rng(0)
    rows, values = trials(rng)
    drawn = np.concatenate([offspring(rows, values, rng) for _ in range(20_000)])
    # Of the latest 16 for each of three parameters, four for each.
    best = rows[1:][np.argsort(-values[1:])[:12]]
    weights = math.log(12.5) - np.log(np.arange(1, 13))
    weights /= weights.sum()
    mean = weights @ best
    covariance = (weights[:, None] * (best - mean)).T @ (best - mean)
    # The mean square of a factor between 0.7 and 2 that is uniform in its logarithm.
    square = (2.0**2 - 0.7**2) / (2.0 * math.log(2.0 / 0.7))
    deviations = np.sqrt(np.diag(covariance))
    assert np.abs((drawn.mean(axis=0) - mean) / deviations).max() < 0.02
    found = np.cov(drawn.T) / square
    assert np.abs((found - covariance) / np.outer(deviations, deviations)).max() < 0.03


def test_poor_trials_do_not_matter():
    rows, values = trials(np.random.default_rng(1))
    values[:12] -= 100.0
    moved = rows.copy()
    moved[:12] = 0.0
    same = [offspring(some, values, np.random.default_rng(2)) for some in (rows, moved)]
    assert np.array_equal(*same)


def test_offspring_turn_and_stretch_with_the_trials():
    rng = np.random.default_rng(3)
    rows, values = trials(rng)
    matrix = rng.standard_normal((3, 3))
    turned = 0.5 + (rows - 0.5) @ matrix
    found = offspring(rows, values, np.random.default_rng(4))
    there = offspring(turned, values, np.random.default_rng(4))
    np.testing.assert_allclose(there, 0.5 + (found - 0.5) @ matrix, rtol=1e-9)


def test_few_trials_and_inactive_parameters_have_no_offspring():
    rng = np.random.default_rng(8)
    rows, values = trials(rng)
    assert offspring(rows[1:], values[1:], rng).shape == (0, 3)
    rows[0, 1] = np.nan
    assert len(offspring(rows, values, rng)) == 10
    rows[1, 1] = np.nan
    assert len(offspring(rows, values, rng)) == 0


def test_offspring_stay_in_the_cube():
    rng = np.random.default_rng(5)
    rows = rng.random((33, 2)) ** 8
    found = np.concatenate([offspring(rows, -rows.sum(axis=1), rng) for _ in range(50)])
    assert found.min() == 0.0
    assert found.max() <= 1.0


def test_older_trials_do_not_matter_while_the_latest_are_better():
    rng = np.random.default_rng(6)
    rows, values = trials(rng)
    found = offspring(rows, values, np.random.default_rng(7))
    poor = values.min() - 1.0 - rng.random(300)
    more = np.concatenate([rng.random((300, 3)), rows]), np.concatenate([poor, values])
    assert np.array_equal(offspring(*more, np.random.default_rng(7)), found)


def test_random_trials_are_no_parents():
    found = []
    for seed in range(50):
        rng = np.random.default_rng(seed)
        rows = rng.random((600, 3))
        found.append(offspring(rows, -((rows - 0.5) ** 2).sum(axis=1), rng))
    assert sum(len(some) > 0 for some in found) <= 5


BEGIN = 60
"""Number of trials up to which the tests below have no steps, instead of 300."""


@pytest.fixture
def early(monkeypatch):
    monkeypatch.setattr(step_choice, "_EVOLUTION_AFTER", BEGIN)


PLANE = {"x": Float(-1.0, 1.0), "y": Float(-1.0, 1.0)}
SPACE = {name: Float(-1.0, 1.0) for name in "xyuv"}


def told(space, share, n_trials, seed=0, constrained=False, is_valid=None, n_known=0):
    """Return the values of a search, whose first `n_known` trials come nearer to the optimum."""
    arm = Arm((UpperConfidenceBound(),), quadratic=0.1, evolution=share)
    optimizer = MondrianOptimizer(
        SearchSpace(space),
        surrogate="forest",
        acquisition=Portfolio((arm,)),
        seed=seed,
        n_candidates=120,
        constraints=["c"] if constrained else (),
        is_valid=is_valid,
    )
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal((4, 4)))[0]
    values = []
    spread = np.geomspace(0.2, 0.02, n_known)[:, None]
    near = 0.65 + spread * np.random.default_rng(0).uniform(-1.0, 1.0, (n_known, len(space)))
    for i in range(n_trials):
        params = optimizer.space.from_unit(near[i]) if i < n_known else optimizer.ask()
        offsets = turn @ ([params.get(name, 0.0) - 0.3 for name in "xyuv"])
        # An attractive sector: the function is steeper on one side of each oblique direction.
        values.append(float((np.where(offsets > 0.0, 100.0, 1.0) * offsets**2).sum()))
        optimizer.tell(params, values[-1], [params["x"]] if constrained else None)
    return np.array(values)


def test_steps_gain_digits_where_a_function_has_a_kink(early):
    digits = []
    for seed in range(2):
        plain, found = told(SPACE, 0.0, 250, seed), told(SPACE, 0.5, 250, seed)
        digits.append(np.log10([plain.min(), found.min()]))
    plain_digits, found_digits = np.mean(digits, axis=0)
    assert found_digits < plain_digits - 1.0


@pytest.mark.parametrize(("n_parameters", "begin"), [(2, 32), (4, 128), (6, 300)])
def test_steps_begin_after_300_trials_or_8_for_each_orthant(n_parameters, begin):
    names = [*SPACE, "z0", "z1"][:n_parameters]
    space = {name: Float(-1.0, 1.0) for name in names}
    plain, found = (told(space, share, begin + 12, n_known=begin - 5) for share in (0.0, 0.8))
    # The trial after `begin` ones is suggested when as many are known, and the next one is the
    # first after more of them.
    assert np.array_equal(plain[: begin + 1], found[: begin + 1])
    assert not np.array_equal(plain, found)


def test_one_seed_gives_one_search(early):
    one, again, other = (told(PLANE, 0.5, BEGIN + 15, seed) for seed in (0, 0, 1))
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)


def test_more_parameters_wait_for_as_many_trials_as_parents_are_chosen_from(early):
    d = BEGIN // _WINDOW + 2
    space = {**PLANE, **{f"z{i}": Float(0.0, 1.0) for i in range(d - 2)}}
    plain, found = (
        told(space, share, _WINDOW * d + 12, n_known=_WINDOW * d - 5) for share in (0.0, 0.9)
    )
    assert np.array_equal(plain[: _WINDOW * d + 1], found[: _WINDOW * d + 1])
    assert not np.array_equal(plain, found)


@pytest.mark.parametrize(
    ("space", "constrained"),
    [
        ({**PLANE, "kind": Categorical(("a", "b"))}, False),
        (
            {
                **PLANE,
                "n": Int(0, 1),
                **{f"z{n}": Float(0.0, 1.0, condition=Condition("n", (n,))) for n in (0, 1)},
            },
            False,
        ),
        (PLANE, True),
    ],
    ids=["a choice", "a condition", "a constraint"],
)
def test_where_there_are_no_steps(early, space, constrained):
    plain = told(space, 0.0, BEGIN + 12, constrained=constrained)
    assert np.array_equal(plain, told(space, 0.8, BEGIN + 12, constrained=constrained))


def test_with_a_function_of_valid_points_there_are_no_steps(early):
    def is_valid(params):
        return params["x"] + params["y"] <= 0.5

    plain, found = (told(PLANE, share, BEGIN + 12, is_valid=is_valid) for share in (0.0, 0.8))
    assert np.array_equal(plain, found)


def test_a_grid_gets_its_own_points_once(early):
    space = {"x": Int(-40, 40), "y": Int(-40, 40)}
    arm = Arm((UpperConfidenceBound(),), evolution=1.0, candidates=0.25)
    optimizer = MondrianOptimizer(
        SearchSpace(space), surrogate="forest", acquisition=Portfolio((arm,)), seed=0
    )
    points = []
    for _ in range(BEGIN + 60):
        params = optimizer.ask()
        points.append((params["x"], params["y"]))
        optimizer.tell(params, abs(params["x"] - 7) + abs(params["y"] + 11))
    assert len(set(points)) == len(points)
    assert all(isinstance(x, int) and -40 <= x <= 40 for point in points for x in point)


def test_saved_with_its_share(early, tmp_path):
    arm = Arm((UpperConfidenceBound(),), evolution=0.7)
    optimizer = MondrianOptimizer(
        SearchSpace(PLANE), surrogate="forest", acquisition=Portfolio((arm,)), seed=0
    )
    rows = np.random.default_rng(0).uniform(-1.0, 1.0, (BEGIN + 1, 2))
    for x, y in rows:
        optimizer.tell({"x": x, "y": y}, x**2 + y**2)
    optimizer.save(tmp_path / "optimizer.npz")
    loaded = MondrianOptimizer.load(tmp_path / "optimizer.npz")
    assert [loaded.ask() for _ in range(6)] == [optimizer.ask() for _ in range(6)]


def test_shares_are_checked():
    for share in (-0.1, 1.1, math.nan):
        with pytest.raises(ValueError, match=r"`evolution` of an arm must be in \[0, 1\]"):
            told(PLANE, share, 0)
    with pytest.raises(ValueError, match=r"must add up to at most 1, got 0\.6 and 0\.6"):
        Arm((UpperConfidenceBound(),), quadratic=0.6, evolution=0.6)
