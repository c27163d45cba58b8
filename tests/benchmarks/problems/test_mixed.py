"""The problems with categories, integers and conditions: their optima by exhaustion."""

import itertools

import numpy as np
import pytest
from scipy.optimize import minimize

from mondrian_bo.benchmarks.problems import get_problem
from mondrian_bo.search_space import Float


def bowl_bottoms(problem):
    """The smallest value for each pair of mixed6's categories, by descent from several starts."""
    numbers = [name for name, parameter in problem.space.items() if isinstance(parameter, Float)]
    bottoms = {}
    pairs = itertools.product(problem.space["first"].choices, problem.space["second"].choices)
    for first, second in pairs:

        def value(x, first=first, second=second):
            params = dict(zip(numbers, x, strict=True))
            return problem.function({"first": first, "second": second, **params})

        starts = np.random.default_rng(0).random((3, len(numbers)))
        fits = [minimize(value, start, bounds=[(0, 1)] * len(numbers)) for start in starts]
        bottoms[first, second] = min(fit.fun for fit in fits)
    return bottoms


def test_mixed6_has_one_right_pair_and_a_deceptive_one():
    problem = get_problem("mixed6")
    bottoms = bowl_bottoms(problem)
    right, wrong = sorted(bottoms, key=bottoms.get)[:2]
    assert bottoms[right] == pytest.approx(problem.optimum, abs=1e-9)
    assert bottoms[wrong] > 10 * problem.tolerance
    assert right[0] != wrong[0] and right[1] != wrong[1]  # two changes at once lead out

    rng = np.random.default_rng(1)
    means = {}
    for first, second in bottoms:
        rows = [{f"x{i}": x for i, x in enumerate(row, 1)} for row in rng.random((2000, 4))]
        values = [problem.function({"first": first, "second": second, **row}) for row in rows]
        means[first, second] = np.mean(values)
    assert min(means, key=means.get) == wrong


def test_integer_optimum_by_exhaustion_along_the_coordinates():
    problem = get_problem("integer")
    best = {"k1": 13, "k2": 40, "k3": 30, "k4": 4, "k5": 2}
    assert problem.function(best) == problem.optimum
    for name, parameter in problem.space.items():
        for index in range(parameter.n_values):
            value = parameter.low + index * parameter.step
            if value != best[name]:
                assert problem.function({**best, name: value}) > problem.optimum


def test_ordinal_optimum_is_a_level_of_each():
    problem = get_problem("ordinal")
    best = {"batch": 64, "width": 96, "level": 5, "grade": 5, "dropout": 0.2, "x": 0.35}
    assert problem.function(best) == pytest.approx(0.0, abs=1e-12)
    problem.space.to_unit(best)  # it is in the space


def test_deep_tree_has_its_optimum_in_one_of_the_deepest_leaves():
    problem = get_problem("deep_tree")
    best = {
        "model": "net",
        "rate": 10**-2.5,
        "layers": 2,
        "optimizer": "momentum",
        "momentum": 0.7,
        "nesterov": 0.4,
    }
    assert problem.function(best) == pytest.approx(problem.optimum, abs=1e-12)
    rng = np.random.default_rng(0)
    for row in problem.space.sample(4000, rng):
        params = problem.space.from_unit(row)
        if params.get("optimizer") != "momentum" or params["layers"] == 3:
            assert problem.function(params) > problem.optimum + 10 * problem.tolerance


def depth(space, name):
    condition = space[name].condition
    return 0 if condition is None else 1 + depth(space, condition.parent)


def test_deep_tree_has_conditions_three_deep():
    space = get_problem("deep_tree").space
    assert max(depth(space, name) for name in space) == 3
