"""Runs on problems with constraints or several objectives, against slower computations."""

import itertools
import json

import numpy as np
import pytest
from optuna.samplers import RandomSampler

from mondrian_bo.benchmarks.harness.archive import read_results
from mondrian_bo.benchmarks.harness.optuna_run import OptunaRun
from mondrian_bo.benchmarks.harness.outcome_score import OutcomeScore
from mondrian_bo.benchmarks.harness.results import read_run
from mondrian_bo.benchmarks.harness.runner import Run, execute
from mondrian_bo.benchmarks.problems import Outcomes, installed_problems, outcome_problem
from mondrian_bo.cli import main


def dominated_volume(points, reference):
    """Inclusion-exclusion over all subsets of the points, each a box up to the reference."""
    points = [np.minimum(point, reference) for point in points]
    total = 0.0
    for size in range(1, len(points) + 1):
        for subset in itertools.combinations(points, size):
            total -= (-1) ** size * np.prod(reference - np.max(subset, axis=0))
    return total


@pytest.mark.parametrize("sampler", ["random", "tpe", "nsga2"])
def test_a_run_with_constraints(tmp_path, sampler):
    run = Run("gramacy", sampler, 0, 25, tmp_path)
    execute(run)
    problem, best = outcome_problem("gramacy"), 2.0
    for record in read_run(run.path):
        outcomes = problem.function(record.params)
        assert (record.value, tuple(record.constraints)) == (
            outcomes.values[0],
            outcomes.constraints,
        )
        if max(outcomes.constraints) <= 0:
            best = min(best, record.value)
        assert record.best == best
        assert record.is_feasible == (max(outcomes.constraints) <= 0)


@pytest.mark.parametrize("name", ["branin_currin", "dtlz2_3", "mw7"])
def test_the_score_is_minus_the_hypervolume_of_feasible_trials(tmp_path, name):
    run = Run(name, "random", 1, 60, tmp_path)
    execute(run)
    problem, reference = outcome_problem(name), np.array(outcome_problem(name).reference)
    feasible = []
    for record in read_run(run.path):
        assert record.value == list(problem.function(record.params).values)
        if record.is_feasible and np.all(np.array(record.value) < reference):
            feasible.append(np.array(record.value))
    assert feasible
    front = [p for p in feasible if not any(np.all(q <= p) and np.any(q < p) for q in feasible)]
    assert record.best == pytest.approx(-dominated_volume(front, reference), rel=1e-9)


def test_the_score_counts_what_is_feasible_and_within_the_reference():
    score = OutcomeScore(outcome_problem("bnh"))  # reference (149.6, 54.6)
    assert score.update(Outcomes((10.0, 10.0), (-1.0, 1e-9))) == 0.0
    assert score.update(Outcomes((150.0, 1.0), (0.0, 0.0))) == 0.0
    assert score.update(Outcomes((float("nan"), 1.0), (0.0, 0.0))) == 0.0
    first = score.update(Outcomes((49.6, 44.6), (0.0, -1.0)))
    assert first == pytest.approx(-100 * 10)
    assert score.update(Outcomes((60.0, 50.0), (0.0, 0.0))) == first
    assert score.update(Outcomes((99.6, 34.6), (0.0, 0.0))) == pytest.approx(-1000 - 50 * 10)


def test_the_score_with_one_objective_is_at_most_the_worst_value():
    score = OutcomeScore(outcome_problem("gramacy"))
    scores = [
        score.update(Outcomes((value,), (constraint, -1.0)))
        for value, constraint in ((0.5, 0.1), (3.0, 0.0), (0.9, -1.0), (1.0, -1.0))
    ]
    assert scores == [2.0, 2.0, 0.9, 0.9]


def test_optuna_gets_all_outcomes():
    problem = outcome_problem("bnh")
    harness = OptunaRun(RandomSampler(seed=0), problem.space, problem.n_objectives)
    params, _ = harness.ask()
    outcomes = problem.function(params)
    harness.tell(0, outcomes.values, outcomes.constraints)
    (trial,) = harness._study.trials
    assert tuple(trial.values) == outcomes.values
    assert trial.constraints == dict(zip(("c1", "c2"), outcomes.constraints, strict=True))


@pytest.mark.parametrize("sampler", ["smac", "hebo"])
def test_peers_of_one_objective_are_refused(sampler, tmp_path):
    with pytest.raises(ValueError, match="is not run on problems with constraints"):
        execute(Run("bnh", sampler, 0, 2, tmp_path))


def test_problems_without_their_package_are_left_out_with_a_notice(monkeypatch):
    absent = "mondrian_bo.benchmarks.problems.base.find_spec"
    monkeypatch.setattr(absent, lambda name: None)
    notices = []
    names = ["gramacy", "bnh", "branin", "bbob_biobj_f1_d10_i1"]
    assert installed_problems(names, notices.append) == ["gramacy", "branin"]
    moocore = "skipping problems that need moocore (pip install 'mondrian-bo[bench]'): "
    assert f"{moocore}bnh, bbob_biobj_f1_d10_i1" in notices
    assert len(notices) == 2
    assert any("mondrian-bo[coco]" in notice for notice in notices)
    with pytest.raises(ValueError, match="none of the problems asked for is installed"):
        installed_problems(["bnh"], notices.append)


@pytest.mark.usefixtures("run_here")
def test_commands(tmp_path, capsys):
    run = ["bench", "run", "--problems", "bnh,constrained_hartmann6", "--samplers", "random,nsga2"]
    assert main([*run, "--seeds", "2", "--trials", "12", "--out", str(tmp_path / "a")]) == 0
    facts = json.loads((tmp_path / "a" / "bnh" / "problem.json").read_text())
    assert (facts["n_constraints"], facts["reference"]) == (2, [149.6, 54.6])
    archive = tmp_path / "all.jsonl.gz"
    assert main(["bench", "archive", str(tmp_path / "a"), "--out", str(archive)]) == 0
    assert read_results([archive]).facts == read_results([tmp_path / "a"]).facts
    capsys.readouterr()
    assert main(["bench", "report", str(archive), "--out", str(tmp_path / "report")]) == 0
    report = capsys.readouterr().out
    for text in ("Feasible trials", "reference 149.6, 54.6", "against nsga2, corrected"):
        assert text in report
