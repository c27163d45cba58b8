"""Searches of programs that look into the model, compared with a plain loop."""

import numpy as np

from mondrian_bo import MondrianOptimizer
from mondrian_bo.benchmarks.harness.optimizer_run import OptimizerRun
from mondrian_bo.benchmarks.harness.random_points import random_values
from mondrian_bo.benchmarks.problems import get_problem


def test_a_search_is_the_loop_of_ask_and_tell():
    problem = get_problem("shifted_branin_noisy")
    function, optimizer = problem.instance(3), MondrianOptimizer(problem.space, seed=[3, 7])
    search = OptimizerRun.of(problem, 3)
    given = problem.space.from_unit(np.array([0.2, 0.7]))
    for number in range(12):
        params = given if number == 5 else optimizer.ask()
        value = function(params)
        observed = problem.observe(value, 3, number)
        optimizer.tell(params, observed)
        assert search.step(given if number == 5 else None) == (params, value, observed)
        assert value != observed
    assert search.optimizer.ask() == optimizer.ask()


def test_a_search_without_noise_takes_settings():
    problem = get_problem("branin")
    search = OptimizerRun(problem.space, problem.function, [1, 8], n_startup_trials=3)
    optimizer = MondrianOptimizer(problem.space, seed=[1, 8], n_startup_trials=3)
    for _ in range(5):
        trial = search.step()
        assert trial.params == optimizer.ask()
        assert trial.observed == trial.value == problem.function(trial.params)
        optimizer.tell(trial.params, trial.value)


def test_random_points_are_always_the_same():
    problem = get_problem("mixed6")
    rows = problem.space.sample(500, np.random.default_rng(5))
    expected = [problem.function(problem.space.from_unit(row)) for row in rows]
    np.testing.assert_array_equal(random_values(problem.space, problem.function), expected)
