"""The suite `outcomes` measures a row for each kind of study and number of trials."""

from __future__ import annotations

import json
from argparse import Namespace

import optuna
import pytest

from mondrian_bo.benchmarks.suites import outcome_costs, special_suite


@pytest.mark.parametrize("name", outcome_costs.OUTCOMES)
def test_objectives_have_the_outcomes_of_their_name(name):
    objective, n_objectives, _ = outcome_costs.OUTCOMES[name]
    study = optuna.create_study(
        directions=["minimize"] * n_objectives, sampler=optuna.samplers.RandomSampler(seed=0)
    )
    study.optimize(objective, n_trials=100)
    number, kind = name.split()
    n_outcomes = {"three": 3, "two": 2}[number]
    if kind == "objectives":
        assert n_outcomes == n_objectives
        return
    constraints = [list(trial.constraints.values()) for trial in study.trials]
    assert all(len(values) == n_outcomes for values in constraints)
    # Each constraint counts, and all of them hold somewhere.
    assert all(any(values[k] > 0.0 for values in constraints) for k in range(n_outcomes))
    assert any(max(values) <= 0.0 for values in constraints)


@pytest.mark.parametrize("beside", [True, False])
def test_row_has_the_times_of_the_samplers(beside):
    row = outcome_costs.measure("two objectives", 6, beside)
    assert row.name == "ask + tell, 6 floats, two objectives, at 6 trials"
    assert row.ours > 0.0 and row.limit is not None
    assert (row.baseline_name, row.baseline is not None) == ("TPE" if beside else "", beside)


def test_suite(tmp_path, capsys):
    special_suite("outcomes")(Namespace(out=tmp_path / "new", trials=5))
    printed = capsys.readouterr().out
    content = json.loads((tmp_path / "new" / "outcomes.json").read_text(encoding="utf-8"))
    assert len(content["rows"]) == 2 * len(outcome_costs.OUTCOMES)
    assert all(row["name"] in printed for row in content["rows"])
