"""The error rates: few values, other folds for each seed, and the same value for the same seed."""

from __future__ import annotations

import numpy as np
import pytest

from mondrian_bo.benchmarks.problems import SUITES, get_problem
from mondrian_bo.benchmarks.problems.accuracies import ACCURACY_PROBLEMS


def test_the_suite_has_all_of_them():
    names = SUITES["accuracies"].problems
    assert names == tuple(problem.name for problem in ACCURACY_PROBLEMS)
    assert len(set(names)) == 12
    assert [get_problem(name) for name in names] == list(ACCURACY_PROBLEMS)


@pytest.mark.parametrize("problem", ACCURACY_PROBLEMS, ids=lambda problem: problem.name)
def test_values_are_error_rates_of_the_seed(problem):
    rows = problem.space.sample(6, np.random.default_rng(0))
    points = [problem.space.from_unit(row) for row in rows]
    one, again, other = ([problem.instance(seed)(p) for p in points] for seed in (0, 0, 1))
    assert one == again
    assert one != other
    assert all(0.0 <= value <= 1.0 for value in (*one, *other))


def test_an_error_rate_counts_the_errors_of_the_folds():
    """All folds of iris have 50 rows, so a rate is a number of errors divided by 150."""
    function = get_problem("accuracy_svm_iris").instance(2)
    space = get_problem("accuracy_svm_iris").space
    rows = space.sample(12, np.random.default_rng(1))
    counts = 150.0 * np.array([function(space.from_unit(row)) for row in rows])
    np.testing.assert_allclose(counts, np.rint(counts), atol=1e-6)
    assert len(set(np.rint(counts))) > 1


def test_a_model_that_cannot_be_fitted_has_the_error_rate_one():
    problem = get_problem("accuracy_svm_cancer")
    assert problem.instance(0)({"C": -1.0, "gamma": 1.0}) == 1.0
