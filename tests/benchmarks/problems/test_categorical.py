"""Problems of many categorical parameters against independent computations."""

from __future__ import annotations

import numpy as np
import pytest

from mondrian_bo.benchmarks.problems import SUITES, get_problem
from mondrian_bo.benchmarks.problems.categorical import CATEGORICAL_PROBLEMS

BARKER_13 = [1, 1, 1, 1, 1, 0, 0, 1, 1, 0, 1, 0, 1]


@pytest.mark.parametrize("problem", CATEGORICAL_PROBLEMS, ids=lambda one: one.name)
def test_instances_are_functions_of_their_seed(problem):
    assert problem.name in SUITES["categorical"].problems
    rows = problem.space.sample(4, np.random.default_rng(0))
    points = [problem.space.from_unit(row) for row in rows]
    values = [[problem.instance(seed)(one) for one in points] for seed in (0, 0, 1)]
    assert np.isfinite(values).all()
    assert values[0] == values[1] == [problem.function(one) for one in points]
    assert values[0] != values[2]


def values_of(name, points):
    """The drawn function itself, without another order of the choices."""
    return [get_problem(name).draw(np.random.default_rng(0))(np.array(x)) for x in points]


def test_a_barker_sequence_has_small_autocorrelations():
    (energy,) = values_of("labs_30", [BARKER_13])
    signs = 2 * np.array(BARKER_13) - 1
    full = np.correlate(signs, signs, "full")[len(signs) :]
    assert energy == (full**2).sum() == 6.0


def test_cleaning_and_pesticides_cost_and_help():
    nothing, all_cleaned = values_of("contamination_25", [np.zeros(25, int), np.ones(25, int)])
    assert all_cleaned < 25.0 + 1.0
    assert nothing > 15.0
    untreated, treated = values_of("pest_21", [np.zeros(21, int), np.full(21, 4)])
    assert untreated > treated
    # Without a discount, the fourth one costs a half at each stage.
    assert treated >= 10.5


def test_no_feature_is_a_guess():
    (error, everything) = values_of("features_cancer", [np.zeros(30, int), np.ones(30, int)])
    assert error == 0.5
    assert everything < 0.06
