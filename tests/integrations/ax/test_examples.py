"""The examples for Ax run as they stand, and the benchmarks through Ax."""

from __future__ import annotations

import json

import pytest
from example_runs import run_example

pytest.importorskip("ax", reason="Ax is not installed (extra `ax`)")

from mondrian_bo.benchmarks.harness.ax_run import AxRun
from mondrian_bo.benchmarks.harness.runner import Run, execute
from mondrian_bo.benchmarks.problems import get_problem


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


def test_conditional_problems_are_refused():
    with pytest.raises(ValueError, match="trees"):
        AxRun(get_problem("conditional").space, "candidate", 0)
