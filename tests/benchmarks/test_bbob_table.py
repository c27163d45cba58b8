"""The table of the suite ``bbob``, from runs whose regrets are known."""

import numpy as np
import pytest

from mondrian_bo.benchmarks import bbob_table
from mondrian_bo.benchmarks.harness.archive import Curve, Results
from mondrian_bo.benchmarks.harness.results import facts_of
from mondrian_bo.benchmarks.problems import get_problem


def make_results():
    """Ours is 10 times better on functions 1 to 9 from trial 50 on, 100 times worse on 10."""
    results = Results()
    for number in range(1, 11):
        problem = f"bbob_f{number}_d2"
        results.facts[problem] = facts_of(get_problem(problem))
        for seed in range(3):
            theirs = np.full(60, 10.0**seed)
            ours = theirs.copy()
            ours[49:] *= 0.1 if number < 10 else 100.0
            for name, best in (("mondrian", ours), ("tpe", theirs)):
                curve = Curve(best, np.full(60, 1e-3), np.ones(60, dtype=bool))
                results.runs[problem, name, seed] = curve
    return results


def test_means_over_instances_and_functions():
    early, late = bbob_table.compare(make_results(), "mondrian", ["tpe"])
    assert (early.budget, late.budget) == (25, 50)
    assert not early.differences.any() and early.p_value == 1.0
    np.testing.assert_allclose(late.differences, [-1.0] * 9 + [2.0])
    first, second = bbob_table.rows([early, late])
    assert first[:5] == ["tpe", "2", "25", "0 of 10", "1"]
    assert second[:5] == ["tpe", "2", "50", "9 of 10", "0.2"]
    assert second[-1] == "f10 +2.0"


def test_holm_counts_all_rows():
    _, late = bbob_table.compare(make_results(), "mondrian", ["tpe"])
    rows = [late._replace(p_value=p) for p in (0.04, 0.001, 0.03)]
    assert [row[5] for row in bbob_table.rows(rows)] == ["0.06", "0.003", "0.06"]


def test_instances_are_paired():
    results = make_results()
    del results.runs["bbob_f10_d2", "tpe", 0]
    results.runs["bbob_f10_d2", "mondrian", 0].best[:] = 1e9
    *_, late = bbob_table.compare(results, "mondrian", ["tpe"])
    assert late.differences[-1] == pytest.approx(2.0)


def test_regrets_end_at_the_precision():
    results = make_results()
    for curve in results.runs.values():
        curve.best[:] = 0.0
    *_, late = bbob_table.compare(results, "mondrian", ["tpe"])
    assert not late.differences.any()
