import numpy as np
import pytest
from optuna.trial import FixedTrial
from scipy import stats
from scipy.optimize import minimize

from mondrian_bo.benchmarks.problems import (
    SUITES,
    all_problem_names,
    any_problem,
    get_problem,
    installed_problems,
    problem_names,
    suggest,
)
from mondrian_bo.benchmarks.problems.bayesmark_tasks import PYTHON_VARIABLE
from mondrian_bo.benchmarks.problems.noisy import NoisyFunction
from mondrian_bo.search_space import Categorical, Condition, Float, Int, SearchSpace

# Minimisers as the literature prints them, and the minimum to the digits printed.
LITERATURE = [
    ("branin", (-np.pi, 12.275), 0.397887),
    ("branin", (np.pi, 2.275), 0.397887),
    ("branin", (9.42478, 2.475), 0.397887),
    ("branin10", (np.pi, 2.275, *[0.3] * 8), 0.397887),
    ("hartmann3", (0.114614, 0.555649, 0.852547), -3.86278),
    ("hartmann6", (0.20169, 0.150011, 0.476874, 0.275332, 0.311652, 0.6573), -3.32237),
]


def has_known_optimum(name):
    """Whether to compare values with the optimum.

    Those of real problems are unknown (test_learning.py). The regrets of noisy functions are cut at
    0, so that no value is below (test_noisy.py has their optima).
    """
    problem = get_problem(name)
    return problem.optimum is not None and not isinstance(problem, NoisyFunction)


KNOWN = list(filter(has_known_optimum, problem_names()))


def as_params(point):
    return {f"x{i + 1}": float(x) for i, x in enumerate(point)}


@pytest.mark.parametrize(("name", "point", "value"), LITERATURE)
def test_minima_of_the_literature(name, point, value):
    problem = get_problem(name)
    assert problem.function(as_params(point)) == pytest.approx(value, abs=5e-6)
    assert problem.optimum == pytest.approx(value, abs=5e-6)


@pytest.mark.parametrize(("name", "point", "value"), LITERATURE)
def test_optimum_is_that_of_a_polished_minimiser(name, point, value):
    problem = get_problem(name)
    polished = minimize(lambda x: problem.function(as_params(x)), point, tol=1e-12)
    assert polished.fun == pytest.approx(problem.optimum, abs=1e-8)


def test_values_away_from_the_minima():
    # By hand: cos 0 = 1 and the valley term is (0 - 0 + 0 - 6)^2.
    branin = get_problem("branin").function({"x1": 0.0, "x2": 0.0})
    assert branin == pytest.approx(36 + 10 * (1 - 1 / (8 * np.pi)) + 10)


@pytest.mark.parametrize("name", KNOWN)
def test_nothing_is_below_the_optimum(name):
    problem = get_problem(name)
    for module in problem.requires:
        pytest.importorskip(module, reason=f"needs {module}")
    rng = np.random.default_rng(0)
    for seed in range(3):
        function = problem.instance(seed)
        for row in problem.space.sample(300, rng):
            assert function(problem.space.from_unit(row)) >= problem.optimum


def test_conditional_optimum_is_in_branch_d_alone():
    problem = get_problem("conditional")
    d = [{"c": "d", "k": k, "z": z} for k in range(1, 21) for z in np.linspace(-1, 1, 201)]
    assert min(map(problem.function, d)) == pytest.approx(problem.optimum, abs=1e-12)
    others = [{"c": "c", "k": k, "z": z} for k in range(1, 21) for z in np.linspace(-1, 1, 201)]
    others += [
        {"c": c, "x": x, "y": y}
        for c in "ab"
        for x in np.linspace(0, 1, 51)
        for y in np.geomspace(1e-5, 10, 51)
    ]
    assert min(map(problem.function, others)) > problem.optimum + problem.tolerance


def test_irrelevant_inputs_do_nothing():
    problem = get_problem("branin10")
    plane = get_problem("branin").function({"x1": 1.0, "x2": 2.0})
    for level in (0.0, 0.5, 1.0):
        point = {"x1": 1.0, "x2": 2.0, **{f"x{i}": level for i in range(3, 11)}}
        assert problem.function(point) == plane


def test_noise_has_the_declared_deviation():
    problem = get_problem("branin_noisy")
    seen = [problem.observe(3.0, 0, number) for number in range(4000)]
    assert np.mean(seen) == pytest.approx(3.0, abs=4 * problem.noise / np.sqrt(4000))
    assert np.std(seen) == pytest.approx(problem.noise, rel=0.05)
    assert get_problem("branin").observe(3.0, 0, 0) == 3.0


def test_noise_is_that_of_the_seed_and_the_trial():
    problem = get_problem("shifted_hartmann6_heavy")
    noise = problem.observe(0.0, 3, 17)
    assert problem.observe(-2.0, 3, 17) == pytest.approx(noise - 2.0)
    assert (
        len({problem.observe(0.0, seed, number) for seed in range(5) for number in range(5)}) == 25
    )


def test_heavy_tails_are_those_of_a_student_t():
    problem = get_problem("shifted_branin_heavy")
    seen = np.array([problem.observe(0.0, 1, number) for number in range(3000)])
    expected = stats.t(df=2, scale=problem.noise)
    assert stats.kstest(seen, expected.cdf).pvalue > 1e-3
    assert stats.kstest(seen, stats.norm(scale=problem.noise).cdf).pvalue < 1e-6


def test_suggest_asks_parents_first_and_active_parameters_only():
    space = SearchSpace(
        {
            "leaf": Int(1, 9, log=True, condition=Condition("inner", ("deep",))),
            "inner": Categorical(("flat", "deep"), condition=Condition("outer", (True,))),
            "outer": Categorical((True, False)),
            "step": Float(0, 1, step=0.25),
            "rate": Float(1e-3, 1, log=True),
        }
    )
    given = {"leaf": 3, "inner": "deep", "outer": True, "step": 0.5, "rate": 0.1}
    trial = FixedTrial(given)
    assert suggest(trial, space) == given
    assert trial.distributions["leaf"].log
    assert trial.distributions["step"].step == 0.25
    assert trial.distributions["rate"].log

    flat = FixedTrial({"inner": "flat", "outer": True, "step": 0.5, "rate": 0.1})
    assert "leaf" not in suggest(flat, space)
    closed = FixedTrial({"outer": False, "step": 0.5, "rate": 0.1})
    assert suggest(closed, space).keys() == {"outer", "step", "rate"}


def test_suites_name_known_problems():
    assert SUITES["paper"].problems == ("branin", "hartmann6", "svm_grid", "lda_grid")
    for suite in SUITES.values():
        assert set(suite.problems) <= set(all_problem_names())
        assert len(set(suite.problems)) == len(suite.problems)


def test_the_default_suite_is_balanced():
    suite = SUITES["default"]
    assert suite.n_seeds == 20
    halves = {}
    for problem in map(get_problem, suite.problems):
        halves.setdefault(problem.group, []).append(problem.half)
    assert len(halves) == 9
    for half in halves.values():
        assert abs(half.count("development") - half.count("held-out")) <= 1


def test_unknown_problem():
    with pytest.raises(ValueError, match=r"unknown problem 'brain'; similar ones: .*branin"):
        get_problem("brain")


def test_every_missing_module_has_a_command_that_installs_it(monkeypatch):
    monkeypatch.setattr("mondrian_bo.benchmarks.problems.base.find_spec", lambda name: None)
    monkeypatch.delenv(PYTHON_VARIABLE, raising=False)
    names, told = all_problem_names(), []
    missing = {module for name in names for module in any_problem(name).missing}
    assert "branin" in installed_problems(names, told.append)
    assert len(told) == len(missing) > 0
    for module in missing:
        assert any(f"need {module} (p" in sentence for sentence in told)
