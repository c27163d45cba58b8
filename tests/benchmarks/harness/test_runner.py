import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from mondrian_bo.benchmarks.harness.results import read_run, read_sessions
from mondrian_bo.benchmarks.harness.runner import Run, execute, is_finished, run_benchmark
from mondrian_bo.benchmarks.problems import get_problem


def test_a_run_records_its_trials(tmp_path):
    run = Run("conditional", "random", 1, 12, tmp_path)
    execute(run)
    records = read_run(tmp_path / "conditional" / "random" / "1.jsonl")
    assert [record.number for record in records] == list(range(12))
    problem = get_problem("conditional")
    values = [problem.function(record.params) for record in records]
    assert [record.value for record in records] == values
    assert [record.best for record in records] == np.minimum.accumulate(values).tolist()
    assert all(0 < record.seconds < 1 for record in records)
    assert {len(record.params) for record in records} == {3}


def test_under_noise_best_is_the_exact_value_of_the_apparent_best(tmp_path):
    run = Run("branin_noisy", "random", 0, 20, tmp_path)
    execute(run)
    records = read_run(run.path)
    problem = get_problem("branin_noisy")
    apparent = min(records, key=lambda record: record.value)
    assert records[-1].best == problem.function(apparent.params) != apparent.value


@pytest.mark.parametrize("sampler", ["random", "tpe"])
def test_the_seed_moves_the_function_and_makes_the_noise(tmp_path, sampler):
    run = Run("shifted_branin_noisy", sampler, 4, 12, tmp_path)
    execute(run)
    problem = get_problem(run.problem)
    function = problem.instance(4)
    for record in read_run(run.path):
        assert record.exact == function(record.params) != problem.function(record.params)
        assert record.value == problem.observe(record.exact, 4, record.number) != record.exact


def test_a_run_repeats_itself(tmp_path):
    first, second = (Run("branin", "tpe", 5, 15, tmp_path / folder) for folder in "ab")
    execute(first)
    execute(second)
    trials = [[(r.params, r.value) for r in read_run(run.path)] for run in (first, second)]
    assert trials[0] == trials[1]


def test_one_process_at_a_time_writes_to_a_directory(tmp_path):
    holder = (
        "import sys, pathlib\n"
        "from mondrian_bo.benchmarks.harness.directory_lock import only_writer\n"
        "with only_writer(pathlib.Path(sys.argv[1])):\n"
        "    print('locked', flush=True)\n"
        "    sys.stdin.read()\n"
    )
    out = tmp_path / "out"
    with subprocess.Popen(
        [sys.executable, "-c", holder, str(out)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout.readline() == b"locked\n"
        with pytest.raises(ValueError, match=f"another process writes runs to {out}"):
            run_benchmark(["branin"], ["random"], [0], out, n_trials=2)
        assert not (out / "branin").exists()
        process.kill()
    assert run_benchmark(["branin"], ["random"], [0], out, n_trials=2) == []


def test_finished_runs_are_kept_and_unfinished_ones_redone(tmp_path):
    def bench(seeds, n_trials):
        return run_benchmark(["branin"], ["random"], seeds, tmp_path, n_trials=n_trials)

    assert bench([0, 1], 4) == []
    runs = [Run("branin", "random", seed, 4, tmp_path) for seed in range(3)]
    kept = runs[0].path.read_text()  # holds times, so a repetition would differ
    truncated = runs[1].path.read_text().splitlines(keepends=True)[:2]
    runs[1].path.write_text("".join(truncated))
    runs[2].path.with_suffix(".partial").write_text("{half a line")
    assert [is_finished(run) for run in runs] == [True, False, False]

    assert bench(range(3), 4) == []
    assert runs[0].path.read_text() == kept
    assert [len(read_run(run.path)) for run in runs] == [4, 4, 4]
    assert not runs[2].path.with_suffix(".partial").exists()
    assert len(read_sessions(tmp_path)) == 2

    assert bench(range(3), 2) == []  # fewer trials than there are: nothing to do
    assert runs[0].path.read_text() == kept
    assert len(read_sessions(tmp_path)) == 2


def test_a_failing_run_leaves_the_others_alone(tmp_path):
    (tmp_path / "branin").mkdir()
    (tmp_path / "branin" / "tpe").write_text("a file where the directory of runs should be")
    failures = run_benchmark(["branin"], ["tpe", "random"], [0, 1], tmp_path, n_trials=3, n_jobs=2)
    assert {(failure.run.sampler, failure.run.seed) for failure in failures} == {
        ("tpe", 0),
        ("tpe", 1),
    }
    assert "FileExistsError" in failures[0].error
    assert "in execute" in failures[0].traceback
    assert len(list(tmp_path.glob("branin/random/*.jsonl"))) == 2


def test_limits_on_threads_do_not_outlive_the_benchmark(tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.delenv("NUMBA_NUM_THREADS", raising=False)
    run_benchmark(["branin"], ["random"], [0], tmp_path, n_trials=1)
    assert os.environ["OMP_NUM_THREADS"] == "7"
    assert "NUMBA_NUM_THREADS" not in os.environ


def test_a_directory_keeps_to_one_table(tmp_path):
    tables = tmp_path / "tables"
    tables.mkdir()
    (tables / "lda_on_grid.csv").write_text("kappa,perplexity,seconds\n0.5,2,1\n0.6,1,1\n")
    out = tmp_path / "out"
    run_benchmark(["lda_grid"], ["random"], [0], out, n_trials=1, tables=tables)
    with pytest.raises(ValueError, match="another problem called lda_grid"):
        run_benchmark(["lda_grid"], ["random"], [0], out, n_trials=1)


@pytest.mark.parametrize(
    "changes",
    [{"n_jobs": 0}, {"n_trials": 0}, {"seeds": []}, {"problems": ["x"]}, {"samplers": ["x"]}],
)
def test_wrong_arguments(tmp_path, changes):
    arguments = {"problems": ["branin"], "samplers": ["random"], "seeds": [0], "n_jobs": 1}
    with pytest.raises(ValueError, match=r"at least 1|unknown"):
        run_benchmark(**(arguments | changes), directory=tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="sends an interrupt")
def test_interrupt_ends_the_workers_and_the_same_command_resumes(tmp_path):
    command = [sys.executable, "-m", "mondrian_bo", "bench", "run", "--problems", "branin"]
    command += ["--samplers", "random", "--jobs", "2", "--out", str(tmp_path)]
    process = subprocess.Popen(
        [*command, "--seeds", "3", "--trials", "1000000"],
        stderr=subprocess.PIPE,
        text=True,
        # A test run in the background of a shell ignores interrupts, and so would its children.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    partial = tmp_path / "branin" / "random" / "0.partial"
    deadline = time.monotonic() + 60
    while not (partial.exists() and partial.stat().st_size) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted" in errors
    assert "Traceback" not in errors
    size = partial.stat().st_size
    time.sleep(0.3)
    assert partial.stat().st_size == size  # nobody writes any more

    subprocess.run([*command, "--seeds", "1", "--trials", "3"], check=True, capture_output=True)
    assert len(read_run(tmp_path / "branin" / "random" / "0.jsonl")) == 3
    meta = json.loads(Path(tmp_path / "meta.json").read_text())
    assert {"python", "optuna", "numpy"} <= meta[0]["versions"].keys()
