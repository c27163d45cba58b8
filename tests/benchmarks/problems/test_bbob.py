"""The functions of ``bbob``: regrets of COCO's instances."""

import numpy as np
import pytest

from mondrian_bo.benchmarks.problems import SUITES, get_problem, installed_problems, outcome_problem
from mondrian_bo.benchmarks.problems.bbob import BBOB_FUNCTIONS, DIMENSIONS, UNSEEN_FUNCTIONS


def params_of(x):
    return {f"x{i + 1}": float(value) for i, value in enumerate(x)}


def test_the_suite_has_every_function_in_every_dimension():
    assert len(SUITES["bbob"].problems) == 24 * len(DIMENSIONS)
    assert {problem.number for problem in BBOB_FUNCTIONS} == set(range(1, 25))
    assert all(len(get_problem(problem.name).space) in DIMENSIONS for problem in BBOB_FUNCTIONS)


@pytest.mark.parametrize("number", [1, 6, 20])
def test_a_regret_is_the_value_above_the_optimum(number):
    pytest.importorskip("cocoex", reason="needs coco-experiment")
    fixed, problem = outcome_problem(f"bbob_f{number}_d5_i1"), get_problem(f"bbob_f{number}_d5")
    regret = problem.instance(0)
    for x in np.random.default_rng(0).uniform(-5.0, 5.0, (5, 5)):
        (value,) = fixed.function(params_of(x)).values
        assert regret(params_of(x)) == pytest.approx(value - fixed.optimum, rel=1e-9)
        assert problem.function(params_of(x)) == regret(params_of(x)) > 0.0


@pytest.mark.parametrize("number", range(1, 25))
def test_an_instance_is_that_of_coco(number, tmp_path, monkeypatch):
    cocoex = pytest.importorskip("cocoex", reason="needs coco-experiment")
    suite = cocoex.Suite("bbob", "instances:4", f"dimensions:2 function_indices:{number}")
    theirs = suite[0]
    problem = get_problem(f"bbob_f{number}_d2")
    regret = problem.instance(3)
    points = np.random.default_rng(0).uniform(-5.0, 5.0, (3, 2))
    values = np.array([theirs(x) for x in points])
    regrets = np.array([regret(params_of(x)) for x in points])
    np.testing.assert_allclose(np.diff(values), np.diff(regrets), rtol=1e-9)
    others = [[problem.instance(seed)(params_of(x)) for x in points] for seed in range(3)]
    assert not np.allclose(others, regrets)
    monkeypatch.chdir(tmp_path)  # cocoex writes the minimiser to a file
    theirs._best_parameter("print")
    (file,) = tmp_path.iterdir()
    assert regret(params_of(np.loadtxt(file))) == pytest.approx(0.0, abs=1e-9)


def test_unseen_instances_count_from_101():
    cocoex = pytest.importorskip("cocoex", reason="needs coco-experiment")
    assert [len(SUITES[name].problems) for name in ("bbob", "bbob_unseen")] == [120, 120]
    problem = get_problem("unseen_f6_d2")
    assert problem in UNSEEN_FUNCTIONS and problem.half == "held-out"
    points = np.random.default_rng(0).uniform(-5.0, 5.0, (3, 2))
    for seed in (0, 4):
        suite = cocoex.Suite("bbob", f"instances:{101 + seed}", "dimensions:2 function_indices:6")
        values = np.array([suite[0](x) for x in points])
        regrets = np.array([problem.instance(seed)(params_of(x)) for x in points])
        np.testing.assert_allclose(np.diff(values), np.diff(regrets), rtol=1e-9)
    assert problem.function(params_of(points[0])) == problem.instance(0)(params_of(points[0]))


def test_without_the_package_problems_are_skipped(monkeypatch):
    monkeypatch.setattr("mondrian_bo.benchmarks.problems.base.find_spec", lambda name: None)
    told = []
    assert installed_problems(["branin", "bbob_f1_d2"], told.append) == ["branin"]
    assert "cocoex" in told[0] and "bbob_f1_d2" in told[0]
