"""Predictability: whether values count as noise."""

from __future__ import annotations

import numpy as np
import pytest

from mondrian_bo import Float, MondrianOptimizer, SearchSpace
from mondrian_bo.acquisitions import UpperConfidenceBound
from mondrian_bo.optimizer.models.predictability import Predictability
from mondrian_bo.optimizer.search.portfolio import Arm, Portfolio
from mondrian_bo.optimizer.shared.trials import Trials
from mondrian_bo.surrogates.base import Columns
from mondrian_bo.surrogates.registry import get_surrogate

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


def test_noise_and_a_function_with_noise():
    surrogate = surrogate_of()
    found = [Predictability().is_noise(trials_of(noise, 40, seed), surrogate) for seed in range(20)]
    assert np.mean(found) > 0.7
    found = [Predictability().is_noise(trials_of(waves, 40, seed), surrogate) for seed in range(20)]
    assert not any(found)


@pytest.mark.parametrize("n", [1, 15])
def test_few_trials_are_not_compared(n):
    assert not Predictability().is_noise(trials_of(noise, n), surrogate_of())


def test_many_trials_and_other_surrogates_are_not_compared():
    trials = trials_of(noise, 201)
    assert Predictability().is_noise(trials_of(noise, 200), surrogate_of())
    assert not Predictability().is_noise(trials, surrogate_of())
    assert not Predictability().is_noise(trials_of(noise, 40), surrogate_of("forest"))


def test_equal_and_infinite_values_count_as_noise():
    for value in (1.0, np.inf, -np.inf):
        equal = trials_of(lambda rows, rng, value=value: np.full(len(rows), value), 20)
        assert Predictability().is_noise(equal, surrogate_of())


def test_the_answer_depends_on_the_trials_alone():
    def steps(rows, rng):
        return np.where(np.arange(len(rows)) < 30, noise(rows, rng), 10.0 * rows[:, 0])

    for seed in range(5):
        every = trials_of(steps, 90, seed)
        often, answers = Predictability(), []
        for n in range(16, 91):
            some = every.chosen(np.arange(90) < n)
            answers.append(often.is_noise(some, surrogate_of()))
            if n % 10 == 0:
                assert Predictability().is_noise(some, surrogate_of()) == answers[-1]
        assert any(answers) and not answers[-1]


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


@pytest.mark.parametrize("kind", ["constraints", "fidelity", "earlier studies"])
def test_searches_without_exploration(kind):
    def trials(exploration):
        arm = Arm((UpperConfidenceBound(),), exploration=exploration)
        settings = {"seed": 0, "acquisition": Portfolio((arm,))}
        if kind == "constraints":
            settings["constraints"] = ["c"]
        elif kind == "fidelity":
            settings["fidelity"] = "y"
        else:
            rows = np.random.default_rng(0).random((30, 2))
            earlier = [SQUARE.from_unit(row) for row in rows]
            settings["warm_start"] = [(earlier, rows.sum(axis=1).tolist())]
        optimizer = MondrianOptimizer(SQUARE, **settings)
        told = (1.0, [-1.0]) if kind == "constraints" else (1.0,)
        return searched(lambda params: told, optimizer)

    assert trials(0.5) == trials(0.0)


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
