"""Problems with several outcomes against published values, closed forms and dense fronts."""

import math

import moocore
import numpy as np
import pytest
from scipy.optimize import minimize

from mondrian_bo.benchmarks.problems import (
    SUITES,
    all_problem_names,
    any_problem,
    outcome_problem,
)
from mondrian_bo.benchmarks.problems.coco import BBOB_PROBLEMS
from mondrian_bo.benchmarks.problems.problem_suites import OUTCOME_PROBLEMS
from mondrian_bo.benchmarks.problems.tradeoffs import n_weights

INSTALLED = [problem.name for problem in OUTCOME_PROBLEMS if not problem.missing]
CHEAP = [name for name in INSTALLED if not name.startswith("real")]
FRONTS = [name for name in CHEAP if outcome_problem(name).n_objectives > 1]
COCO = [
    problem.name for problem in (*OUTCOME_PROBLEMS, *BBOB_PROBLEMS) if "cocoex" in problem.requires
]


def point(*x):
    return {f"x{i + 1}": float(value) for i, value in enumerate(x)}


def sampled(problem, n):
    rows = problem.space.sample(n, np.random.default_rng(0))
    return [problem.function(problem.space.from_unit(row)) for row in rows]


def volume(problem, outcomes):
    values = np.array([outcome.values for outcome in outcomes if outcome.is_feasible])
    return moocore.hypervolume(values, ref=problem.reference)


def test_suites_share_no_problem_and_hold_all():
    constrained, several = SUITES["constrained"].problems, SUITES["multiobjective"].problems
    assert not set(constrained) & set(several)
    assert {*constrained, *several} == {problem.name for problem in OUTCOME_PROBLEMS}


@pytest.mark.parametrize("suite", ["constrained", "multiobjective"])
def test_halves_are_balanced(suite):
    halves = [outcome_problem(name).half for name in SUITES[suite].problems]
    assert abs(halves.count("development") - halves.count("held-out")) <= 2


def test_names_are_those_of_any_problem():
    for problem in OUTCOME_PROBLEMS:
        assert any_problem(problem.name) is problem
        assert problem.name in all_problem_names()
    with pytest.raises(ValueError, match=r"unknown problem 'bhn'; similar ones: .*bnh"):
        any_problem("bhn")


@pytest.mark.parametrize("name", INSTALLED)
def test_outcomes_are_those_declared(name):
    problem = outcome_problem(name)
    for outcome in sampled(problem, 2 if name.startswith("real") else 50):
        assert len(outcome.values) == problem.n_objectives
        assert len(outcome.constraints) == problem.n_constraints
        assert np.isfinite([*outcome.values, *outcome.constraints]).all()
        assert outcome.is_feasible == all(value <= 0.0 for value in outcome.constraints)


@pytest.mark.parametrize("name", [name for name in CHEAP if name not in FRONTS])
def test_no_feasible_value_is_below_the_optimum(name):
    problem = outcome_problem(name)
    for outcome in sampled(problem, 300):
        assert outcome.values[0] <= problem.worst
        assert not outcome.is_feasible or outcome.values[0] >= problem.optimum - 1e-9


@pytest.mark.parametrize("name", FRONTS)
def test_random_points_dominate_less_than_the_front(name):
    problem = outcome_problem(name)
    found = volume(problem, sampled(problem, 300))
    assert found > 0.0
    assert problem.optimum is None or found < -problem.optimum


def test_optimum_of_gramacy():
    problem = outcome_problem("gramacy")

    def constraints(x):
        return -np.array(problem.function(point(*x)).constraints)

    solution = minimize(
        lambda x: x.sum(),
        (0.19, 0.41),  # the paper's minimiser is (0.195, 0.404), with value 0.600
        bounds=[(0, 1)] * 2,
        constraints={"type": "ineq", "fun": constraints},
        tol=1e-12,
    )
    assert solution.fun == pytest.approx(problem.optimum, abs=1e-7)
    np.testing.assert_allclose(solution.x, (0.1954, 0.4044), atol=5e-4)


def test_optima_of_the_constrained_functions():
    hartmann = outcome_problem("constrained_hartmann6")
    minimiser = (0.20169, 0.150011, 0.476874, 0.275332, 0.311652, 0.6573)
    outcome = hartmann.function(point(*minimiser))
    assert outcome.is_feasible
    assert outcome.values[0] == pytest.approx(hartmann.optimum, abs=1e-5)
    assert not hartmann.function(point(*[0.5] * 6)).is_feasible
    ackley = outcome_problem("constrained_ackley10")
    assert ackley.function(point(*[0] * 10)) == ((pytest.approx(0.0, abs=1e-12),), (0.0, -5.0))


def zdt(name, f1):
    d = len(outcome_problem(name).space)
    return [point(x, *[0.0] * (d - 1)) for x in f1]


def sphere(angles, d):
    return [point(x, *[0.5] * (d - 1)) for x in angles]


def mw7(x1, scale):
    """Points of MW7 at the distance `scale` from the origin: g is moved by the last input."""
    x = [x1]
    for _ in range(2):
        x.append(1.0 - (x[-1] - 0.5) ** 2)
    x.append(1.0 - (x[-1] - 0.5) ** 2 - math.sqrt(max(scale - 1.0, 0.0) / 2.0))
    return point(*x)


T = np.linspace(0.0, 1.0, 4001)
ARC = np.pi / 2 * T
PARETO_SETS = {
    "zdt1": zdt("zdt1", T),
    "zdt3": zdt("zdt3", T),
    "dtlz2_2": sphere(T, 6),
    "c2dtlz2": sphere(T, 4),
    "bnh": [point(3 * t, 3 * t) for t in T] + [point(3 + 2 * t, 3) for t in T],
    "constr": [point(x, max(6 - 9 * x, 0)) for x in 7 / 18 + 11 / 18 * T],
    "srn": [point(-2.5, 2.5 + 12.2 * t) for t in T]
    + [point(3 * y - 10, y) for y in 2.5 + 1.2 * T]
    + [point(15 * math.cos(a), 15 * math.sin(a)) for a in np.pi / 2 + np.pi / 4 * T],
    # On the larger of the unit circle and the inner constraint, and just outside of it.
    "mw7": [
        mw7(math.cos(a), max(1.0, 1.15 - 0.2 * math.sin(4 * a) ** 8) + 1e-9) for a in ARC[1:-1]
    ],
}


@pytest.mark.parametrize("name", PARETO_SETS)
def test_hypervolume_of_the_front_is_that_of_its_points(name):
    problem = outcome_problem(name)
    found = volume(problem, map(problem.function, PARETO_SETS[name]))
    # Points on the front dominate less than the front, by the steps between 4,001 of them.
    assert found <= -problem.optimum * (1 + 1e-7)
    assert found == pytest.approx(-problem.optimum, rel=1e-3)


def test_closed_forms():
    # 121 minus the area below 1 - sqrt(f1); the integral of the front of CONSTR by hand.
    assert outcome_problem("zdt1").optimum == pytest.approx(-(121 - 1 / 3))
    first = 10 * (2 / 3 - 7 / 18) - 7 * math.log((2 / 3) / (7 / 18)) + 9 * (2 / 3 - 7 / 18)
    second = 10 / 3 - math.log(3 / 2)
    assert outcome_problem("constr").optimum == pytest.approx(-(first + second + 81))
    assert outcome_problem("dtlz2_2").optimum == pytest.approx(-(1.21 - math.pi / 4))


@pytest.mark.parametrize("m", [2, 3, 4])
def test_hypervolume_of_dtlz2_by_sampling(m):
    problem = outcome_problem(f"dtlz2_{m}")
    # A point of the positive orthant is dominated by the front if it is outside of the ball.
    points = np.random.default_rng(m).uniform(0.0, 1.1, (200_000, m))
    share = np.mean(np.linalg.norm(points, axis=1) >= 1.0)
    error = math.sqrt(share * (1 - share) / len(points))
    assert -problem.optimum == pytest.approx(1.1**m * share, abs=4 * 1.1**m * error)
    on_front = problem.function(point(*np.random.default_rng(0).random(m - 1), *[0.5] * (7 - m)))
    assert np.linalg.norm(on_front.values) == pytest.approx(1.0)


def test_branin_currin_reaches_the_published_hypervolumes():
    # BoTorch 0.18 gives 59.36 and 608.40, found by NSGA-II with 90,000 evaluations.
    grid = np.linspace(0.0, 1.0, 301)
    for name, published in (("branin_currin", 59.36), ("constrained_branin_currin", 608.4)):
        problem = outcome_problem(name)
        found = volume(problem, (problem.function(point(a, b)) for a in grid for b in grid))
        assert 0.98 * published < found < -problem.optimum
        assert published < -problem.optimum < 1.002 * published


@pytest.mark.parametrize(
    ("x", "values"),
    [
        ((90, 9, 298, 9, 0.25, 600, 5.75), (-11.457334143638, 46.911010541143, 314)),
        ((60, 0.5, 300, 18, 0.1, 500, 6.5), (-9.272074409355, 28.838621722124, 282)),
    ],
)
def test_penicillin_is_that_of_botorch(x, values):
    problem = outcome_problem("penicillin")  # values of botorch 0.18.1
    found = problem.function(dict(zip(problem.space, map(float, x), strict=True)))
    np.testing.assert_allclose(found.values, values, rtol=1e-11)


def test_weights_are_those_of_scikit_learn():
    from sklearn.neural_network import MLPClassifier

    x, y = np.random.default_rng(0).random((20, 64)), np.arange(20) % 10
    for depth, width in ((1, 5), (3, 7)):
        model = MLPClassifier([width] * depth).partial_fit(x, y, classes=range(10))
        arrays = (*model.coefs_, *model.intercepts_)
        assert n_weights(depth, width) == sum(array.size for array in arrays)


def test_cost_counts_operations():
    function = outcome_problem("real_error_and_cost").function
    linear = function({"n_components": 5, "model": "linear", "alpha": 1.0})
    assert linear.values[1] == pytest.approx(math.log10(64 * 5 + 5 * 10))
    # Trees of depth one: every prediction visits the root and a leaf of each.
    stumps = {
        "n_components": 5,
        "model": "trees",
        "n_trees": 7,
        "max_depth": 1,
        "max_features": 1.0,
    }
    assert function(stumps).values[1] == pytest.approx(math.log10(64 * 5 + 7 * 2))
    assert 0.0 < linear.values[0] < function(stumps).values[0] < 0.9


@pytest.mark.parametrize("name", COCO)
def test_facts_are_those_of_coco(name, tmp_path, monkeypatch):
    cocoex = pytest.importorskip("cocoex", reason="needs coco-experiment")
    problem = outcome_problem(name)
    *start, function, dimension, instance = name.split("_")
    numbers = [int(part[1:]) for part in (function, dimension, instance)]
    suite = cocoex.Suite("-".join(start), "", f"dimensions:{numbers[1]} instance_indices:1-5")
    theirs = suite.get_problem_by_function_dimension_instance(*numbers)
    assert theirs.dimension == len(problem.space)
    assert theirs.number_of_objectives == problem.n_objectives
    if problem.n_objectives > 1:
        np.testing.assert_allclose(theirs.largest_fvalues_of_interest, problem.reference)
        return
    monkeypatch.chdir(tmp_path)  # cocoex writes the minimiser to a file
    theirs._best_parameter("print")
    outcome = problem.function(point(*np.loadtxt(tmp_path / "._bbob_problem_best_parameter.txt")))
    assert max(outcome.constraints, default=0.0) <= 1e-12
    assert outcome.values[0] == pytest.approx(problem.optimum, rel=1e-12)
