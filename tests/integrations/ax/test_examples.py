"""The examples for Ax run as they stand, and the benchmarks through Ax."""

from __future__ import annotations

import json

import numpy as np
import pytest
from example_runs import run_example

pytest.importorskip("ax", reason="Ax is not installed (extra `ax`)")

from mondrian_bo.benchmarks.harness.ax_run import AxRun
from mondrian_bo.benchmarks.harness.runner import Run, execute
from mondrian_bo.benchmarks.problems import get_problem, outcome_problem


def test_both_frameworks_ask_for_the_same_trials(tmp_path):
    printed = run_example("ax_and_optuna.py", cwd=tmp_path)
    assert "the same trials: 20 of 20" in printed


def test_tuning_example(tmp_path):
    printed = run_example("ax_tuning.py", "--trials", "12", "--output", "out", cwd=tmp_path)
    assert "best, trial" in printed
    pages = list((tmp_path / "out").glob("*.html"))
    assert len(pages) >= 4
    assert all(page.stat().st_size > 1000 for page in pages)


@pytest.mark.parametrize("sampler", ["ax", "ax_mondrian:surrogate=forest", "ax_mondrian_node"])
def test_benchmark_through_ax(sampler, tmp_path):
    run = Run("svm_grid", sampler, 0, 4, tmp_path)
    execute(run)
    records = [json.loads(line) for line in run.path.read_text().splitlines()]
    assert len(records) == 4
    assert all(record["seconds"] > 0 for record in records)


@pytest.mark.parametrize("problem", ["bnh", "gramacy"])
def test_benchmark_of_several_outcomes_through_ax(problem, tmp_path):
    expected = outcome_problem(problem)
    run = Run(problem, "ax_mondrian", 0, 6, tmp_path)
    execute(run)
    records = [json.loads(line) for line in run.path.read_text().splitlines()]
    assert len(records) == 6
    for record in records:
        outcomes = expected.function(record["params"])
        assert np.ravel(record["value"]).tolist() == pytest.approx(list(outcomes.values))
        assert record["constraints"] == pytest.approx(list(outcomes.constraints))


def test_ax_gets_all_outcomes():
    problem = outcome_problem("bnh")
    harness = AxRun(problem.space, "default", 0, problem.n_objectives, problem.n_constraints)
    params, _ = harness.ask()
    outcomes = problem.function(params)
    harness.tell(0, outcomes.values, outcomes.constraints)
    frame = harness.client.summarize()
    names = ["value0", "value1", "constraint0", "constraint1"]
    found = frame[names].iloc[0].tolist()
    assert found == pytest.approx([*outcomes.values, *outcomes.constraints])
    config = harness.client._experiment.optimization_config
    assert config.objective.expression == "-value0, -value1"
    assert len(config.outcome_constraints) == 2


def test_conditional_problems_are_refused():
    with pytest.raises(ValueError, match="trees"):
        AxRun(get_problem("conditional").space, "candidate", 0)
