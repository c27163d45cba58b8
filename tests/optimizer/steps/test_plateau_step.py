"""Steps on a plateau: where they lie, and when a search takes them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mondrian_bo import Categorical, Float, Int, MondrianOptimizer, SearchSpace
from mondrian_bo.acquisitions import UpperConfidenceBound
from mondrian_bo.optimizer.search.portfolio import Arm, Portfolio
from mondrian_bo.optimizer.shared.trials import Trials
from mondrian_bo.optimizer.steps.plateau_step import plateau_steps
from mondrian_bo.search_space import Condition

CUBE = SearchSpace({name: Float(0.0, 1.0) for name in "xyz"})
NOBODY = np.empty((0, 3))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([0.5], False),
        ([0.5, 0.5], True),
        ([0.5, 0.5, 0.6], False),
        ([0.5, 0.6, 0.4, 0.6], True),
        ([0.5, 0.6, 0.6 - 1e-15], False),
        ([-math.inf, -math.inf], False),
        ([math.inf, math.inf], False),
    ],
)
def test_a_plateau_has_several_best_trials(values, expected):
    trials = Trials(1)
    for i, value in enumerate(values):
        trials.tell(np.array([[i / 10.0]]), np.array([value]))
        trials.tell(np.array([[i / 10.0 + 0.05]]), np.array([0.6]), eligible=False)
    assert trials.is_on_plateau() is expected


def test_infeasible_trials_are_on_no_plateau():
    trials = Trials(1)
    for x in (0.1, 0.2, 0.3):
        trials.tell(np.array([[x]]), np.array([0.5]), eligible=False)
    assert not trials.is_on_plateau()
    trials.tell(np.array([[0.4]]), np.array([0.5]))
    assert not trials.is_on_plateau()


def test_steps_have_the_bandwidth_of_a_density_estimate():
    """The moments are those of Gaussians around the 100 good ones of 500 trials."""
    rng = np.random.default_rng(0)
    rows = rng.random((500, 3))
    values = -np.abs(rows - 0.5).sum(axis=1)
    good = rows[np.argsort(-values)[:100]]
    drawn = np.concatenate([plateau_steps(CUBE, rows, values, NOBODY, rng) for _ in range(4000)])
    bandwidth = good.std(axis=0) * 100 ** (-1.0 / 7.0)
    expected = good.var(axis=0) + bandwidth**2
    np.testing.assert_allclose(drawn.mean(axis=0), good.mean(axis=0), atol=0.004)
    np.testing.assert_allclose(drawn.var(axis=0), expected, rtol=0.03)


def test_the_first_step_is_farthest_from_the_good_and_the_running():
    rng = np.random.default_rng(1)
    rows = rng.random((25, 3))
    values = np.arange(25.0)
    pending = rng.random((4, 3))
    found = plateau_steps(CUBE, rows, values, pending, rng)
    known = np.concatenate([rows[20:], pending])
    distances = np.abs(found[:, None] - known).max(axis=2).min(axis=1)
    assert len(found) == 10
    assert (np.diff(distances) <= 0.0).all()
    assert len(set(distances)) == 10


def test_equal_values_have_equal_chances():
    """Of 50 equal trials 10 are good: other ones for each step."""
    rows = np.repeat(np.linspace(0.1, 0.9, 50)[:, None], 3, axis=1)
    starts = []
    for seed in range(300):
        found = plateau_steps(CUBE, rows, np.ones(50), NOBODY, np.random.default_rng(seed))
        starts.append(found.mean())
    assert abs(np.mean(starts) - 0.5) < 0.03


def test_steps_are_points_of_the_space():
    space = SearchSpace(
        {
            "n": Int(1, 8),
            "kind": Categorical(("a", "b", "c")),
            "x": Float(0.0, 1.0, condition=Condition("kind", ("a",))),
            "m": Int(1, 9, condition=Condition("kind", ("b",))),
        }
    )
    rng = np.random.default_rng(2)
    rows = space.sample(60, rng)
    values = np.where(rows[:, 1] == 0.0, 1.0, 0.0)
    nobody = np.empty((0, 4))
    found = np.concatenate([plateau_steps(space, rows, values, nobody, rng) for _ in range(200)])
    np.testing.assert_array_equal(space.snap(found), found)
    # All good trials have the first choice.
    assert (found[:, 1] == 0.0).all()
    assert np.isnan(found[:, 3]).all()
    assert len(set(found[:, 0])) == 8
    values = np.where(rows[:, 1] == 2.0, 0.0, 1.0)
    found = np.concatenate([plateau_steps(space, rows, values, nobody, rng) for _ in range(200)])
    assert set(found[:, 1]) == {0.0, 1.0}
    np.testing.assert_array_equal(np.isnan(found[:, 2]), found[:, 1] == 1.0)


def test_a_step_on_a_grid_has_at_least_the_deviation_of_a_cell():
    """All good trials have the same integer. A half of a cell is half of the deviation."""
    space, rng = SearchSpace({"n": Int(1, 8)}), np.random.default_rng(0)
    rows, nobody = space.snap(np.full((20, 1), 0.5)), np.empty((0, 1))
    found = np.concatenate(
        [plateau_steps(space, rows, np.ones(20), nobody, rng) for _ in range(200)]
    )
    share = math.erfc(0.5 / math.sqrt(2.0))
    # Four standard errors.
    assert (found != rows[0, 0]).mean() == pytest.approx(share, abs=4.0 * math.sqrt(0.25 / 2000))


PLANE = {"x": Float(0.0, 1.0), "y": Float(0.0, 1.0)}


def rough(params):
    """An error rate: 80 levels of a slope, and a rare lower one in small cells near its foot."""
    x, y = params["x"], params["y"]
    level = math.floor(30.0 * (abs(x - 0.6) + abs(y - 0.4))) + 3
    cell = int(x * 40.0) * 97 + int(y * 40.0) * 31
    return (level - (cell % 5 == 0) - 2 * (cell % 41 == 0)) / 80.0


def searched(share, seed, n_trials=60, function=rough, **options):
    arm = Arm((UpperConfidenceBound(),), quadratic=0.5, plateau=share)
    optimizer = MondrianOptimizer(
        SearchSpace(PLANE), acquisition=Portfolio((arm,)), seed=seed, n_candidates=120, **options
    )
    values = []
    for _ in range(n_trials):
        params = optimizer.ask()
        values.append(function(params))
        optimizer.tell(params, values[-1], [params["x"]] if options else None)
    return np.array(values)


def test_steps_find_higher_plateaus():
    shares = (0.0, 0.5)
    best = np.array([[searched(one, seed, 40).min() for one in shares] for seed in range(12)])
    assert best[:, 1].mean() < best[:, 0].mean()
    assert (best[:, 1] <= best[:, 0]).sum() >= 9


def test_without_a_plateau_the_search_is_the_same():
    def smooth(params):
        return (params["x"] - 0.3) ** 2 + (params["y"] - 0.7) ** 2

    one, other = (searched(share, 0, 40, smooth) for share in (0.0, 1.0))
    assert np.array_equal(one, other)


def test_under_constraints_there_are_no_steps():
    one, other = (searched(share, 0, 40, constraints=["c"]) for share in (0.0, 1.0))
    assert np.array_equal(one, other)


def test_values_of_several_fidelities_make_no_plateau():
    def search(share):
        arm = Arm((UpperConfidenceBound(),), plateau=share)
        optimizer = MondrianOptimizer(
            SearchSpace({**PLANE, "n": Int(1, 9)}),
            acquisition=Portfolio((arm,)),
            seed=0,
            n_candidates=60,
            fidelity="n",
        )
        asked = []
        for _ in range(25):
            asked.append(optimizer.ask())
            optimizer.tell(asked[-1], rough(asked[-1]))
        return asked

    assert search(0.0) == search(1.0)


def test_one_seed_gives_one_search():
    one, again, other = (searched(0.5, seed) for seed in (0, 0, 1))
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)


def test_a_finite_space_gets_its_points_once():
    arm = Arm((UpperConfidenceBound(),), plateau=1.0)
    optimizer = MondrianOptimizer(
        SearchSpace({"n": Int(1, 6), "m": Int(1, 6)}), acquisition=Portfolio((arm,)), seed=0
    )
    points = []
    for _ in range(36):
        params = optimizer.ask()
        points.append((params["n"], params["m"]))
        optimizer.tell(params, 0.0)
    assert len(set(points)) == 36


def test_shares_are_checked():
    for share in (-0.1, 1.1, math.nan):
        with pytest.raises(ValueError, match=r"`plateau` of an arm must be in \[0, 1\]"):
            searched(share, 0, 0)


def test_many_choices_are_drawn_anew():
    """About one of them, with any choice, also one that no good trial has."""
    space = SearchSpace({f"x{i}": Categorical(("a", "b", "c")) for i in range(12)})
    rows, values = np.zeros((20, 12)), np.ones(20)
    rng = np.random.default_rng(0)
    nobody = np.empty((0, 12))
    drawn = np.concatenate([plateau_steps(space, rows, values, nobody, rng) for _ in range(300)])
    n_changed = (drawn != 0.0).sum(axis=1)
    # At least one is drawn, and two of its three choices are others: 2/3 (1 + 11/12).
    assert n_changed.mean() == pytest.approx(2.0 / 3.0 * (1.0 + 11.0 / 12.0), abs=0.06)
    assert set(np.unique(drawn)) == {0.0, 1.0, 2.0}
    few = SearchSpace({f"x{i}": Categorical(("a", "b", "c")) for i in range(3)})
    assert not plateau_steps(few, rows[:, :3], values, nobody[:, :3], rng).any()
