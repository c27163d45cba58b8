"""Predictability: whether values count as noise or as rugged, and the searches of such values."""

from __future__ import annotations

import pickle
from copy import deepcopy
from itertools import product

import numpy as np
import pytest

from mondrian_bo import Float, MondrianOptimizer, SearchSpace
from mondrian_bo.acquisitions import UpperConfidenceBound
from mondrian_bo.optimizer.models.outcome_transform import OutcomeTransform
from mondrian_bo.optimizer.models.predictability import Predictability
from mondrian_bo.optimizer.saving.saved_file import write_file
from mondrian_bo.optimizer.search.portfolio import Arm, Portfolio
from mondrian_bo.optimizer.shared.trials import Trials
from mondrian_bo.surrogates.base import Columns
from mondrian_bo.surrogates.mondrian_forest.surrogate import ForestSurrogate
from mondrian_bo.surrogates.registry import get_surrogate

FEWEST_RUGGED = 38

FOREST = Arm((UpperConfidenceBound(),), surrogate="forest")

SQUARE = SearchSpace({"x": Float(0.0, 1.0), "y": Float(0.0, 1.0)})


def surrogate_of(name="gaussian_process"):
    return get_surrogate(name)(
        Columns(np.zeros(2, dtype=np.int64), False), np.random.SeedSequence(0)
    )


def trials_of(function, n, seed=0):
    rng = np.random.default_rng(seed)
    rows = rng.random((n, 2))
    trials = Trials(2)
    trials.tell(rows, function(rows, rng))
    return trials


def noise(rows, rng):
    return rng.standard_normal(len(rows))


def waves(rows, rng):
    return np.sin(5.0 * rows[:, 0]) + rows[:, 1] + 0.3 * rng.standard_normal(len(rows))


def judge(trials, surrogate=None):
    return Predictability().judge(trials, surrogate_of() if surrogate is None else surrogate)


def test_noise_and_a_function_with_noise():
    found = [judge(trials_of(noise, 40, seed)) for seed in range(20)]
    assert np.mean([one.is_noise for one in found]) > 0.7
    assert all(one.is_rugged for one in found if one.is_noise)
    for seed in range(20):
        assert judge(trials_of(waves, 40, seed)) == (False, False)


def test_values_count_as_rugged_by_the_correlation_of_left_out_values():
    def rippled(rows, rng):
        return np.sin(5.0 * rows[:, 0]) + rows[:, 1] + 1.2 * rng.standard_normal(len(rows))

    found = []
    for seed in range(20):
        trials, surrogate = trials_of(rippled, 38, seed), surrogate_of()
        correlations = []
        for n in (16, 20, 25, 31, 38):
            rows, values = trials.rows[:n], trials.values[:n]
            targets = OutcomeTransform(values)(values)
            means, _ = surrogate.left_out(rows, targets)
            correlations.append(np.corrcoef(means, targets)[0, 1])
        # A correlation of 0.8 ends the comparisons.
        certain = next((one for one in correlations if one >= 0.8), correlations[-1])
        found.append((certain < 0.3, certain < 0.5))
        assert judge(trials) == found[-1]
        # Fewer trials are never rugged.
        assert not judge(trials.chosen(np.arange(38) < 37)).is_rugged
    assert {(False, True), (False, False)} <= set(found)


@pytest.mark.parametrize("n", [1, 15])
def test_few_trials_are_not_compared(n):
    assert judge(trials_of(noise, n)) == (False, False)


def test_many_trials_and_other_surrogates_are_not_compared():
    assert judge(trials_of(noise, 200)) == (True, True)
    assert judge(trials_of(noise, 201)) == (False, False)
    assert judge(trials_of(noise, 40), surrogate_of("forest")) == (False, False)


def test_equal_and_infinite_values_count_as_noise():
    for value in (1.0, np.inf, -np.inf):
        equal = trials_of(lambda rows, rng, value=value: np.full(len(rows), value), 20)
        assert judge(equal).is_noise


def test_the_answer_depends_on_the_trials_alone():
    def steps(rows, rng):
        return np.where(np.arange(len(rows)) < 30, noise(rows, rng), 10.0 * rows[:, 0])

    for seed in range(3):
        every = trials_of(steps, 90, seed)
        often, answers = Predictability(), []
        for n in range(16, 91):
            some = every.chosen(np.arange(90) < n)
            answers.append(often.judge(some, surrogate_of()))
            if n % 10 == 0:
                assert judge(some) == answers[-1]
        assert any(one.is_noise for one in answers) and not answers[-1].is_noise


def corner_share(optimizer, n=40, value=lambda params: 1.0):
    n_at_bounds = 0
    for _ in range(n):
        params = optimizer.ask()
        n_at_bounds += any(min(x, 1.0 - x) < 0.01 for x in params.values())
        optimizer.tell(params, value(params))
    return n_at_bounds / n


def test_equal_values_are_searched_by_quasi_random_points():
    # A uniform point is so near to a bound with probability 0.04.
    assert corner_share(MondrianOptimizer(SQUARE, seed=0)) < 0.15
    # They are the points of the sequence of the first trials.
    optimizer, asked = MondrianOptimizer(SQUARE, seed=0), []
    for _ in range(40):
        asked.append(optimizer.ask())
        optimizer.tell(asked[-1], 1.0)
    assert asked == MondrianOptimizer(SQUARE, seed=0).ask(40)


def test_one_value_is_no_plateau():
    optimizer = MondrianOptimizer(SQUARE, seed=0, n_startup_trials=1)
    optimizer.tell(optimizer.ask(), 1.0)
    assert optimizer.ask() != MondrianOptimizer(SQUARE, seed=0).ask(2)[1]


def searched(value, optimizer, n=24):
    asked = []
    for _ in range(n):
        asked.append(optimizer.ask())
        optimizer.tell(asked[-1], *value(asked[-1]))
    return asked


@pytest.mark.parametrize(
    ("kind", "values"),
    # Equal values under constraints are constant outcomes, see `test_constant_outcomes.py`.
    [("constraints", "rough"), *product(["fidelity", "earlier studies"], ["equal", "rough"])],
)
def test_searches_without_exploration_and_without_the_rugged_arm(kind, values):
    def trials(*, is_plain):
        arm = Arm((UpperConfidenceBound(),), exploration=0.0 if is_plain else 0.5)
        portfolio = Portfolio((arm,), rugged=None if is_plain else FOREST)
        settings = {"seed": 0, "acquisition": portfolio}
        if kind == "constraints":
            settings["constraints"] = ["c"]
        elif kind == "fidelity":
            settings["fidelity"] = "y"
        else:
            rows = np.random.default_rng(0).random((30, 2))
            earlier = [SQUARE.from_unit(row) for row in rows]
            settings["warm_start"] = [(earlier, rows.sum(axis=1).tolist())]
        optimizer = MondrianOptimizer(SQUARE, **settings)

        def told(params):
            value = rough(params) if values == "rough" else (1.0,)
            return (*value, [-1.0]) if kind == "constraints" else value

        return searched(told, optimizer, FEWEST_RUGGED + 4)

    assert trials(is_plain=False) == trials(is_plain=True)


@pytest.mark.parametrize("told", [6, FEWEST_RUGGED + 4])
def test_a_file_is_saved_without_a_model_that_no_suggestion_needed(tmp_path, told):
    optimizer = with_forest(FOREST)
    searched(rough, optimizer, told)
    optimizer.save(tmp_path / "saved.npz")
    loaded = MondrianOptimizer.load(tmp_path / "saved.npz")
    for one in (optimizer, loaded):
        assert ("rugged" in vars(one._search.whole)) == (told > FEWEST_RUGGED)


def rough(params):
    """Return a value that others say little about, although there is no noise."""
    return (np.sin(1e3 * params["x"]) + np.sin(1e3 * params["y"]),)


def with_forest(rugged, **settings):
    portfolio = Portfolio((Arm((UpperConfidenceBound(),)),), rugged=rugged)
    return MondrianOptimizer(SQUARE, seed=0, acquisition=portfolio, **settings)


def test_rugged_values_are_searched_by_the_rugged_arm():
    n = FEWEST_RUGGED
    optimizer = with_forest(FOREST)
    alone, both = searched(rough, with_forest(None), n + 1), searched(rough, optimizer, n + 1)
    assert alone[:n] == both[:n] and alone[n] != both[n]
    model, _ = optimizer._search.whole.rugged
    assert model.learnt_at[0] == n and isinstance(model.surrogate, ForestSurrogate)
    # The number of trees is that of the other arms' surrogate.
    optimizer = with_forest(FOREST, n_estimators=1)
    searched(rough, optimizer, n + 1)
    model, _ = optimizer._search.whole.rugged
    assert len(model.predict(np.full((1, 2), 0.5)).means) == 10


def test_smooth_values_are_not_searched_by_the_rugged_arm():
    def smooth(params):
        return ((params["x"] - 0.3) ** 2 + params["y"],)

    alone, both = (searched(smooth, with_forest(arm), 45) for arm in (None, FOREST))
    assert alone == both


def test_the_rugged_arm_is_saved_undone_and_pickled(tmp_path):
    optimizer = with_forest(FOREST)
    searched(rough, optimizer, FEWEST_RUGGED + 4)
    optimizer.save(tmp_path / "saved.npz")
    copies = [MondrianOptimizer.load(tmp_path / "saved.npz"), pickle.loads(pickle.dumps(optimizer))]
    forgetful = deepcopy(optimizer)
    forgetful._search.forget()
    asked = searched(rough, optimizer, 8)
    for copy in (*copies, forgetful):
        assert searched(rough, copy, 8) == asked


def test_a_file_without_the_rugged_arm_is_read(tmp_path):
    """As earlier versions wrote it: without the numbers of trials at which its model learnt."""
    optimizer = with_forest(FOREST)
    searched(rough, optimizer, FEWEST_RUGGED + 4)
    settings, state, arrays = optimizer._content()
    n_former = state["n_steps"][0]
    assert len(state["n_steps"]) == 2 and state["n_steps"][1] > 0
    former = {**state, "n_steps": [n_former]}
    write_file(
        tmp_path / "former.npz",
        {"settings": settings, "state": former},
        {**arrays, "steps": arrays["steps"][:n_former]},
    )
    loaded = MondrianOptimizer.load(tmp_path / "former.npz")
    first, second = loaded._search.models[0], optimizer._search.models[0]
    assert first.learnt_at == second.learnt_at
    searched(rough, loaded, 4)


def test_noise_is_searched_by_quasi_random_points_half_of_the_time():
    def share(exploration, seed):
        rng = np.random.default_rng(seed)
        arm = Arm((UpperConfidenceBound(),), exploration=exploration)
        optimizer = MondrianOptimizer(SQUARE, seed=seed, acquisition=Portfolio((arm,)))
        return corner_share(optimizer, 60, lambda params: rng.standard_normal())

    without, half = (np.mean([share(e, seed) for seed in range(4)]) for e in (0.0, 0.5))
    assert half < 0.75 * without


def test_smooth_functions_have_the_same_trials_without_exploration():
    def trials(exploration):
        arm = Arm((UpperConfidenceBound(),), exploration=exploration)
        optimizer = MondrianOptimizer(SQUARE, seed=0, acquisition=Portfolio((arm,)))
        asked = []
        for _ in range(30):
            asked.append(optimizer.ask())
            optimizer.tell(asked[-1], (asked[-1]["x"] - 0.3) ** 2 + asked[-1]["y"])
        return asked

    assert trials(0.5) == trials(0.0)
