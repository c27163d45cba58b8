"""The functions of ``bbob-mixint``: regrets of COCO's instances over integers and real numbers."""

import itertools

import numpy as np
import pytest
from optuna.trial import FixedTrial

from mondrian_bo.benchmarks.problems import SUITES, get_problem, installed_problems, suggest
from mondrian_bo.benchmarks.problems.bbob import minimiser
from mondrian_bo.benchmarks.problems.mixint import MIXINT_DIMENSIONS, MIXINT_FUNCTIONS
from mondrian_bo.search_space import Int


def params_of(problem, x):
    return {
        name: int(value) if isinstance(parameter, Int) else float(value)
        for (name, parameter), value in zip(problem.space.items(), x, strict=True)
    }


def points(problem, n):
    rng = np.random.default_rng(0)
    return np.column_stack(
        [
            rng.integers(one.low, one.high + 1, n)
            if isinstance(one, Int)
            else rng.uniform(one.low, one.high, n)
            for one in problem.space.values()
        ]
    )


def coco_suite(dimension, instance):
    cocoex = pytest.importorskip("cocoex", reason="needs coco-experiment")
    return cocoex.Suite("bbob-mixint", f"instances:{instance}", f"dimensions:{dimension}")


def test_the_suite_has_every_function_in_every_dimension():
    assert SUITES["mixint"].problems == tuple(
        f"mixint_f{number}_d{dimension}"
        for dimension in MIXINT_DIMENSIONS
        for number in range(1, 25)
    )
    assert all(problem.half == "held-out" for problem in MIXINT_FUNCTIONS)


@pytest.mark.parametrize("dimension", MIXINT_DIMENSIONS)
def test_the_space_is_that_of_coco(dimension):
    suite = coco_suite(dimension, 1)
    assert len(suite) == 24
    for theirs in suite:
        problem = get_problem(f"mixint_f{theirs.id_function}_d{dimension}")
        parameters = list(problem.space.values())
        n_integers = sum(isinstance(one, Int) for one in parameters)
        assert n_integers == theirs.number_of_integer_variables == 4 * dimension // 5
        assert all(isinstance(one, Int) for one in parameters[:n_integers])
        assert [one.low for one in parameters] == theirs.lower_bounds.tolist()
        assert [one.high for one in parameters] == theirs.upper_bounds.tolist()


def test_differences_of_regrets_are_those_of_coco_values():
    for theirs in coco_suite(10, 4):
        problem = get_problem(f"mixint_f{theirs.id_function}_d10")
        regret = problem.instance(3)
        decoded = [
            suggest(FixedTrial(params_of(problem, x)), problem.space) for x in points(problem, 4)
        ]
        values = [theirs(np.array(list(params.values()), dtype=float)) for params in decoded]
        np.testing.assert_allclose(
            np.diff([regret(params) for params in decoded]), np.diff(values), rtol=1e-9, atol=1e-9
        )
        others = [problem.instance(0)(params) for params in decoded]
        assert not np.allclose(np.diff(others), np.diff(values))


@pytest.mark.parametrize("number", [1, 5, 15, 22])
def test_no_cell_is_below_the_optimum_which_lies_in_the_space(number):
    pytest.importorskip("cocoex", reason="needs coco-experiment")
    problem = get_problem(f"mixint_f{number}_d5")
    regret = problem.instance(1)
    cells = itertools.product(*(range(n) for n in (2, 4, 8, 16)))
    reals = np.linspace(-5.0, 5.0, 21)
    regrets = [regret(params_of(problem, (*cell, x))) for cell in cells for x in reals]
    assert len(regrets) == 1024 * 21 and min(regrets) >= -1e-9
    best = minimiser("bbob-mixint", number, 5, 2)
    assert np.array_equal(best[:4], best[:4].round())
    params = params_of(problem, best)
    assert suggest(FixedTrial(params), problem.space) == params  # raises outside the bounds
    assert regret(params) == pytest.approx(0.0, abs=1e-9)


def test_integers_are_told_apart():
    pytest.importorskip("cocoex", reason="needs coco-experiment")
    problem = get_problem("mixint_f1_d5")
    regret = problem.instance(0)
    for name, n in zip(problem.space, (2, 4, 8, 16), strict=False):
        base = params_of(problem, (0, 0, 0, 0, 0.0))
        assert len({regret({**base, name: i}) for i in range(n)}) > n // 2


def test_without_the_package_problems_are_skipped(monkeypatch):
    monkeypatch.setattr("mondrian_bo.benchmarks.problems.base.find_spec", lambda name: None)
    told = []
    assert installed_problems(["branin", "mixint_f1_d5"], told.append) == ["branin"]
    assert "cocoex" in told[0] and "mixint_f1_d5" in told[0]
