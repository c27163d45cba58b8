"""Problems that train models, on linear scales."""

from __future__ import annotations

import pytest

from mondrian_bo.benchmarks.problems import SUITES, get_problem
from mondrian_bo.benchmarks.problems.linear_scales import LINEAR_SCALE_PROBLEMS


@pytest.mark.parametrize("problem", LINEAR_SCALE_PROBLEMS, ids=lambda one: one.name)
def test_only_the_scales_differ(problem):
    assert problem.name in SUITES["linear_scales"].problems
    original = get_problem(problem.name.replace("linear_", "real_"))
    assert problem.function is original.function
    assert list(problem.space) == list(original.space)
    n_logarithmic = 0
    for name, parameter in problem.space.items():
        other = original.space[name]
        assert not getattr(parameter, "log", False)
        assert parameter.condition == other.condition
        if getattr(other, "log", False):
            n_logarithmic += 1
            assert (parameter.low, parameter.high) == (other.low, other.high)
        else:
            assert parameter == other
    assert n_logarithmic >= 2
