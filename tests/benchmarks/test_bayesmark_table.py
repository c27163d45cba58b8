"""Scores on Bayesmark's tasks, from losses whose normalised values are known."""

import json
import os
import subprocess

import numpy as np
import pytest

from mondrian_bo.benchmarks import bayesmark_table
from mondrian_bo.benchmarks.bayesmark_baseline import Baseline
from mondrian_bo.benchmarks.bayesmark_table import losses, normalised
from mondrian_bo.benchmarks.harness.archive import Curve, Results, write_archive
from mondrian_bo.benchmarks.harness.results import facts_of
from mondrian_bo.benchmarks.problems import SUITES, get_problem
from mondrian_bo.benchmarks.problems.bayesmark_tasks import PYTHON_VARIABLE
from mondrian_bo.benchmarks.problems.problem_suites import Suite

TASKS = ("kNN_wine_acc", "kNN_wine_nll", "SVM_iris_nll")
KNOWN = dict(
    zip(TASKS, (Baseline(-0.5, -0.9), Baseline(2.0, 0.3), Baseline(1.1, 0.1)), strict=True)
)


@pytest.fixture(autouse=True)
def known_baselines(monkeypatch):
    monkeypatch.setattr(bayesmark_table, "baselines", lambda: KNOWN)


def curve(task, shares, n_trials=128):
    """Return a run whose normalised losses after 32, 64 and 128 trials are given."""
    base = KNOWN[task]
    ends = np.repeat([base.best + (base.clip - base.best) * one for one in shares], [32, 32, 64])
    return Curve(ends[:n_trials], np.full(n_trials, 1e-3), np.ones(n_trials, dtype=bool))


@pytest.fixture
def results():
    """Ours ends at 0.5, 0.1 and -0.2; theirs at 0.5, 0.3 and 0.8; a third has one task.

    The two values of 0.5 are equal but for rounding.
    """
    results = Results()
    for task, ours, theirs in zip(TASKS, (0.5, 0.1, -0.2), (0.5 + 1e-13, 0.3, 0.8), strict=True):
        problem = f"bayesmark_{task}"
        results.facts[problem] = facts_of(get_problem(problem))
        for seed in (0, 1):
            shift = 0.05 if seed else -0.05  # the means over seeds stay
            results.runs[problem, "ours", seed] = curve(task, (2.0, 1.0, ours + shift))
            results.runs[problem, "theirs", seed] = curve(task, (2.0, 0.9, theirs + shift))
    results.runs["bayesmark_SVM_iris_nll", "third", 1] = curve("SVM_iris_nll", (1, 1, 1))
    results.runs["bayesmark_kNN_wine_acc", "third", 1] = curve("kNN_wine_acc", (1, 1, 1), 127)
    results.facts["branin"] = facts_of(get_problem("branin"))
    for name in ("ours", "theirs"):
        results.runs["branin", name, 0] = Curve(np.ones(200), np.ones(200), np.ones(200, bool))
    return results


def test_normalised_losses_by_hand():
    best = np.array([7.0, 5.0, 4.0, 3.0, 2.0, 1.0, -9.0])
    expected = [1.0, 1.0, 0.5, 0.0, -0.5, -1.0, -1.0]
    np.testing.assert_allclose(normalised(best, Baseline(5.0, 3.0)), expected)


def test_scores_are_means_over_seeds_then_tasks(results):
    measured = losses(results, ["ours", "theirs"])
    assert measured.tasks == ("SVM_iris_nll", "kNN_wine_acc", "kNN_wine_nll")
    assert measured.n_seeds == (2, 2, 2)
    np.testing.assert_allclose(measured.means[:, 0], [[1.0, 1.0, -0.2], [1.0, 0.9, 0.8]])
    # 100 (1 - (0.5 + 0.1 - 0.2) / 3) and 100 (1 - (0.5 + 0.3 + 0.8) / 3)
    expected = [[0.0, 0.0, 100 - 40 / 3], [0.0, 10.0, 100 - 160 / 3]]
    np.testing.assert_allclose(measured.scores, expected, atol=1e-9)


def test_common_seeds_and_complete_runs_count(results):
    measured = losses(results, ["ours", "third"])
    assert measured.tasks == ("SVM_iris_nll",) and measured.n_seeds == (1,)
    np.testing.assert_allclose(measured.means[:, 0, -1], [-0.15, 1.0])
    with pytest.raises(ValueError, match="no task on which all of ours, absent have a run"):
        losses(results, ["ours", "absent"])


def test_a_task_without_baseline_is_named(results, monkeypatch):
    known = {"SVM_iris_nll": KNOWN["SVM_iris_nll"]}
    monkeypatch.setattr(bayesmark_table, "baselines", lambda: known)
    with pytest.raises(ValueError, match="kNN_wine_acc has no baseline"):
        losses(results, ["ours", "theirs"])


def test_rows(results):
    measured = losses(results, ["ours", "theirs"])
    ours, theirs = bayesmark_table.score_rows(measured, "ours")
    assert ours == ["ours", "0.00", "0.00", "86.67", "", "", ""]
    # Differences 0, -20 and -100: mean -40, standard deviation 52.9, t quantile 4.303.
    assert theirs[:5] == ["theirs", "0.00", "10.00", "46.67", "-40.00 ± 131.45"]
    assert theirs[5] == "0, 1, 2"
    assert bayesmark_table.model_rows(measured) == [
        ["SVM", "1", "120.00", "20.00"],
        ["kNN", "2", "70.00", "60.00"],
    ]


def test_tasks_are_left_out(results):
    measured = losses(results, ["ours", "theirs"], ["SVM_iris_nll", "kNN_wine_acc"])
    assert measured.tasks == ("kNN_wine_nll",)
    np.testing.assert_allclose(measured.scores[:, -1], [90.0, 70.0])
    with pytest.raises(ValueError, match="there is no run on DT_iris_acc"):
        losses(results, ["ours", "theirs"], ["DT_iris_acc", "SVM_iris_nll"])


def test_tables_of_an_archive(results, tmp_path, monkeypatch, capsys):
    with monkeypatch.context() as patch:
        patch.setattr("mondrian_bo.benchmarks.harness.archive.read_results", lambda _: results)
        write_archive([], tmp_path / "some.jsonl.gz")
    arguments = [str(tmp_path / "some.jsonl.gz"), "--samplers", "theirs,ours"]
    bayesmark_table.main([*arguments, "--reference", "ours"])
    printed = capsys.readouterr().out
    assert printed.startswith("3 tasks, 6 runs of each sampler\n")
    assert "| theirs | 0.00 | 10.00 | 46.67 | -40.00 ± 131.45 | 0, 1, 2 |" in printed
    assert "| kNN | 2 | 60.00 | 70.00 |" in printed
    assert "SVM_iris_nll" not in printed
    bayesmark_table.main([*arguments, "--tasks", "--without", "kNN_wine_acc"])
    printed = capsys.readouterr().out
    assert printed.startswith("2 tasks, 4 runs of each sampler\n")
    task = printed.partition("| task | theirs | ours |")[2].splitlines()
    assert task[2:] == ["| SVM_iris_nll | 20.00 | 120.00 |", "| kNN_wine_nll | 70.00 | 90.00 |"]
    monkeypatch.setitem(SUITES, "bayesmark_one", Suite(("bayesmark_SVM_iris_nll",), n_seeds=1))
    bayesmark_table.main([*arguments, "--suite", "bayesmark_one"])
    assert capsys.readouterr().out.startswith("1 tasks, 2 runs of each sampler\n")
    with pytest.raises(SystemExit):
        bayesmark_table.main([*arguments, "--reference", "absent"])


@pytest.mark.skipif(
    not os.environ.get(PYTHON_VARIABLE),
    reason=f"{PYTHON_VARIABLE} does not name an interpreter that has Bayesmark",
)
def test_scores_are_bayesmarks():
    """Bayesmark's own analysis of random losses gives the same mean normalised losses."""
    code = """
import json
import numpy as np
import xarray as xr
from bayesmark.experiment_analysis import compute_aggregates
rng = np.random.RandomState(0)
dims = ("iter", "suggestion", "function", "optimizer", "study_id")
coords = {"iter": range(16), "suggestion": range(8), "function": ["f", "g"], "optimizer": ["o"]}
coords["study_id"] = range(3)
losses = xr.DataArray(rng.exponential(size=(16, 8, 2, 1, 3)), coords, dims)
shape = (("iter", "function"), np.linspace(3.0, 2.0, 32).reshape(16, 2))
base = {"median": shape, "mean": shape, "clip": ("function", [3.0, 3.5])}
base = xr.Dataset({**base, "best": ("function", [0.1, 0.02])}, {"iter": range(16),
    "function": ["f", "g"]})
_, summary = compute_aggregates(losses, base)
print(json.dumps([losses.values.tolist(), summary["mean"].values[[3, 7, 15], 0].tolist()]))
"""
    command = [os.environ[PYTHON_VARIABLE], "-W", "ignore", "-c", code]
    answer = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    values, expected = json.loads(answer)
    best = np.minimum.accumulate(np.min(values, axis=1)[:, :, 0], axis=0)[[3, 7, 15]]
    bases = (Baseline(3.0, 0.1), Baseline(3.5, 0.02))
    own = [normalised(best[:, i], base).mean(axis=1) for i, base in enumerate(bases)]
    np.testing.assert_allclose(np.mean(own, axis=0), expected)
