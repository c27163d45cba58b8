"""The table of the suite ``bbob``, from runs whose regrets are known."""

import numpy as np
import pytest

from mondrian_bo import cli
from mondrian_bo.benchmarks import bbob_table
from mondrian_bo.benchmarks.harness.archive import Curve, Results
from mondrian_bo.benchmarks.harness.results import facts_of
from mondrian_bo.benchmarks.problems import any_problem, get_problem


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
    early, late = bbob_table.compare(make_results(), ["mondrian"], ["tpe"])
    assert (early.budget, late.budget) == (25, 50)
    assert not early.differences.any() and early.p_value == 1.0
    np.testing.assert_allclose(late.differences, [-1.0] * 9 + [2.0])
    first, second = bbob_table.rows([early, late])
    assert first[:7] == ["mondrian", "tpe", "2", "25", "0 of 10", "+0.00 ± 0.00", "1"]
    # Nine times -1 and once 2: mean -0.7, variance 0.9, and 0.9 / 10 is the square of 0.3.
    assert second[:7] == ["mondrian", "tpe", "2", "50", "9 of 10", "-0.70 ± 0.30", "0.2"]
    assert second[-1] == "f10 +2.0"


def test_some_of_the_functions():
    _, late = bbob_table.compare(make_results(), ["mondrian"], ["tpe"], functions=[10, 2, 30])
    assert late.functions == (2, 10)
    np.testing.assert_allclose(late.differences, [-1.0, 2.0])


def test_each_function_over_its_instances():
    results = make_results()
    results.runs["bbob_f10_d2", "mondrian", 0].best[:] *= 10.0
    first, *_, last = bbob_table.compare(results, ["mondrian"], ["tpe"], [50], by_function=True)
    assert (first.functions, last.functions) == ((1,) * 3, (10,) * 3)
    np.testing.assert_allclose(first.differences, [-1.0] * 3)
    np.testing.assert_allclose(last.differences, [3.0, 2.0, 2.0])
    cells = [row[4:] for row in bbob_table.rows([first, last])]
    assert cells[0][:3] == ["3 of 3", "-1.00 ± 0.00", "0.1"] and cells[0][-1] == ""
    assert cells[1][:2] == ["0 of 3", "+2.33 ± 0.33"] and cells[1][-1] == "f10 +2.3"


def test_holm_counts_all_rows():
    _, late = bbob_table.compare(make_results(), ["mondrian"], ["tpe"])
    rows = [late._replace(p_value=p) for p in (0.04, 0.001, 0.03)]
    assert [row[7] for row in bbob_table.rows(rows)] == ["0.06", "0.003", "0.06"]


def test_instances_are_paired():
    results = make_results()
    del results.runs["bbob_f10_d2", "tpe", 0]
    results.runs["bbob_f10_d2", "mondrian", 0].best[:] = 1e9
    *_, late = bbob_table.compare(results, ["mondrian"], ["tpe"])
    assert late.differences[-1] == pytest.approx(2.0)


def test_regrets_end_at_the_precision():
    results = make_results()
    for curve in results.runs.values():
        curve.best[:] = 0.0
    *_, late = bbob_table.compare(results, ["mondrian"], ["tpe"])
    assert not late.differences.any()


def test_batches_are_compared_on_functions_with_an_optimum():
    results = Results()
    for number in (1, 2, 3):
        problem = f"bbob_f{number}_d5_i1"
        results.facts[problem] = facts_of(any_problem(problem))
        for name, regret in (("tpe", 1e-2), ("tpe:constant_liar=True,batch=8", 10.0**number)):
            best = results.facts[problem].optimum + np.full(20, regret)
            results.runs[problem, name, 0] = Curve(best, np.full(20, 1e-3), np.ones(20, dtype=bool))
    baselines = ["tpe", "tpe:constant_liar=True,batch=8"]
    [found] = bbob_table.compare(results, baselines[1:], baselines, [20])
    np.testing.assert_allclose(found.differences, [3.0, 4.0, 5.0])


def test_the_command_takes_samplers_with_settings_and_budgets(tmp_path, capsys):
    batches = "random:batch=2,random:batch=3"
    arguments = ["bench", "run", "--problems", "bbob_f1_d2", "--trials", "6", "--seeds", "1"]
    pytest.importorskip("cocoex")
    assert cli.main([*arguments, "--samplers", f"random,{batches}", "--out", str(tmp_path)]) == 0
    capsys.readouterr()
    options = ["--samplers", batches, "--baselines", "random", "--budgets", "3,6"]
    bbob_table.main([str(tmp_path), *options])
    lines = capsys.readouterr().out.splitlines()[2:]
    assert [line.split("|")[1:5] for line in lines] == [
        [f" {name} ", " random ", " 2 ", f" {budget} "]
        for name in batches.split(",")
        for budget in (3, 6)
    ]
    bbob_table.main([str(tmp_path), *options, "--functions", "2"])
    assert len(capsys.readouterr().out.splitlines()) == 2
    bbob_table.main([str(tmp_path), *options, "--by-function"])
    header, _, *lines = capsys.readouterr().out.splitlines()
    assert header.startswith("| function | sampler |")
    assert [line.split("|")[1] for line in lines] == [" f1 "] * 4
