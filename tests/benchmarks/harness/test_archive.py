import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from mondrian_bo.benchmarks.harness.archive import read_results, write_archive
from mondrian_bo.benchmarks.harness.results import facts_of, run_path
from mondrian_bo.benchmarks.harness.runner import run_benchmark
from mondrian_bo.benchmarks.problems import any_problem, get_problem
from mondrian_bo.benchmarks.report.document import write_report
from mondrian_bo.cli import main

pytestmark = pytest.mark.usefixtures("runs_in_this_process")

KEPT = Path(__file__).parents[3] / "docs" / "results"

# A table with its optimum, noise (the best value may rise), an optimum that is not known, and
# constraints on two objectives.
PROBLEMS = ("svm_grid", "shifted_branin_noisy", "real_support_vectors", "mw7")


@pytest.fixture(scope="module")
def directory(tmp_path_factory, runs_in_this_process):
    directory = tmp_path_factory.mktemp("results")
    assert not run_benchmark(PROBLEMS, ["random", "tpe"], range(2), directory, n_trials=20)
    return directory


def without_times(report):
    """Return a report without the milliseconds: those of an archive are rounded twice."""
    score, _, rest = report.partition("Cost of a suggestion")
    problems = rest.partition("Best noise-free value found")[2]
    assert problems
    return score, [line.rsplit(maxsplit=1)[:1] for line in problems.splitlines()]


def test_a_report_of_an_archive_is_that_of_the_directory(directory, tmp_path):
    archive = tmp_path / "kept" / "all.jsonl.gz"
    write_archive([directory], archive)
    kept, original = (
        without_times(write_report([source], tmp_path)) for source in (archive, directory)
    )
    assert kept == original


def test_curves_survive(directory, tmp_path):
    archive = tmp_path / "all.jsonl.gz"
    write_archive([directory], archive)
    kept, original = read_results([archive]), read_results([directory])
    assert kept.facts == original.facts
    assert kept.sessions == original.sessions
    assert kept.runs.keys() == original.runs.keys()
    for key, curve in original.runs.items():
        optimum = original.facts[key[0]].optimum
        exact = {"rtol": 0, "atol": 0} if optimum is None else {"rtol": 1e-7, "atol": 1e-14}
        offset = optimum or 0.0
        np.testing.assert_array_equal(kept.runs[key].feasible, curve.feasible)
        np.testing.assert_allclose(kept.runs[key].best - offset, curve.best - offset, **exact)
        tenths = curve.seconds.reshape(10, -1).mean(axis=1)
        np.testing.assert_allclose(kept.runs[key].seconds, tenths.repeat(2), rtol=1e-3)


@pytest.mark.parametrize("n_trials", [1, 7, 13])
def test_runs_that_do_not_divide_by_ten(tmp_path, n_trials):
    run_benchmark(["shifted_branin"], ["random"], range(1), tmp_path / "runs", n_trials=n_trials)
    archive = tmp_path / "all.jsonl.gz"
    write_archive([tmp_path / "runs"], archive)
    (kept,) = read_results([archive]).runs.values()
    (original,) = read_results([tmp_path / "runs"]).runs.values()
    assert len(kept.best) == len(kept.seconds) == n_trials
    assert kept.seconds.mean() == pytest.approx(original.seconds.mean(), rel=1e-3)


def test_the_last_of_several_sources_counts(directory, tmp_path):
    old, new = tmp_path / "old.jsonl.gz", tmp_path / "new"
    write_archive([directory], old)
    run_benchmark(["svm_grid"], ["random"], range(3), new, n_trials=10)
    runs = read_results([old, new]).runs
    assert len(runs) == len(PROBLEMS) * 2 * 2 + 1
    assert [len(runs["svm_grid", "random", seed].best) for seed in range(3)] == [10, 10, 10]
    assert len(runs["svm_grid", "tpe", 0].best) == 20
    # An archive is brought up to date in place, and nothing depends on the day.
    write_archive([old, new], old)
    before = old.read_bytes()
    write_archive([old], old)
    assert old.read_bytes() == before
    assert len(read_results([old]).runs) == len(PROBLEMS) * 2 * 2 + 1


def test_known_runs_are_not_run_again(directory, tmp_path):
    archive, out = tmp_path / "all.jsonl.gz", tmp_path / "out"
    write_archive([directory], archive)
    command = ["bench", "run", "--problems", "svm_grid", "--samplers", "random", "--out", str(out)]
    command += ["--known", str(archive), "--seeds", "3"]
    assert main([*command, "--trials", "20"]) == 0
    assert [path.stem for path in (out / "svm_grid" / "random").iterdir()] == ["2"]
    # Runs that are too short do not count.
    assert main([*command, "--trials", "21"]) == 0
    assert len(list((out / "svm_grid" / "random").iterdir())) == 3
    assert all(len(curve.best) == 21 for curve in read_results([out]).runs.values())


def test_sources_that_contradict_each_other(directory, tmp_path):
    archive = tmp_path / "all.jsonl.gz"
    write_archive([directory], archive)
    lines = [json.loads(line) for line in gzip.decompress(archive.read_bytes()).splitlines()]
    for line in lines:
        if line.get("problem", {}).get("name") == "svm_grid":
            line["problem"]["optimum"] = 0.5
    text = "\n".join(json.dumps(line) for line in lines)
    archive.write_bytes(gzip.compress(text.encode()))
    with pytest.raises(ValueError, match="another problem called svm_grid"):
        read_results([directory, archive])


def test_bad_sources(tmp_path):
    with pytest.raises(ValueError, match="neither a directory nor an archive"):
        read_results([tmp_path / "nothing"])
    with pytest.raises(ValueError, match="no finished run to archive"):
        write_archive([tmp_path], tmp_path / "all.jsonl.gz")
    assert not (tmp_path / "all.jsonl.gz").exists()
    damaged = gzip.compress(b"text")[:10] + b"\x07" * 20
    for content in (b"text", gzip.compress(b"text"), gzip.compress(b'{"run": 1}'), damaged):
        (tmp_path / "bad").write_bytes(content)
        with pytest.raises(ValueError, match="bad is not an archive of results"):
            read_results([tmp_path / "bad"])


@pytest.mark.parametrize(
    "line",
    [
        b'{"run": ["digits", "mondrian", 0], "times": [1.0], "outcomes": [0.1]}',
        b'{"problem": "branin", "seed": 0, "estimates": [[20, 0.1]]}',
        b'[{"problem": "branin", "seed": 0, "method": "cold"}]',
        b"3",
    ],
)
def test_runs_of_a_program_with_tables_of_its_own(tmp_path, line):
    (tmp_path / "curves").write_bytes(gzip.compress(line))
    with pytest.raises(ValueError, match="a program with tables of its own"):
        read_results([tmp_path / "curves"])


@pytest.mark.parametrize(
    ("name", "contents"),
    [
        (
            "branin/random/0.jsonl",
            [b'{"number": 0, "par', b"", b"\xff\xfe", b"[1]\n", b'{"numbr": 0}\n'],
        ),
        ("branin/random/zero.jsonl", [b""]),
        ("branin/problem.json", [b"{", b"{}"]),
        ("meta.json", [b"3", b"{", b"{}", b"[1]", b'[{"a": 1}]']),
    ],
)
def test_damaged_files_are_named(tmp_path, capsys, name, contents):
    assert not run_benchmark(["branin"], ["random"], range(1), tmp_path, n_trials=2)
    for content in contents:
        (tmp_path / name).write_bytes(content)
        assert main(["bench", "report", str(tmp_path)]) == 2
        assert f"error: {tmp_path / name} is not what `mondrian-bo" in capsys.readouterr().err
    (tmp_path / name).unlink()
    assert not run_benchmark(["branin"], ["random"], range(1), tmp_path, n_trials=2)
    assert main(["bench", "report", str(tmp_path)]) == 0


@pytest.mark.parametrize("change", ["other name", "no problem.json"])
def test_no_runs_are_passed_over(tmp_path, change):
    assert not run_benchmark(["branin"], ["random"], range(1), tmp_path, n_trials=2)
    folder = tmp_path / "branin"
    if change == "other name":
        folder = folder.rename(tmp_path / "former")
    else:
        (folder / "problem.json").unlink()
    with pytest.raises(ValueError, match=f"{folder} has runs"):
        read_results([tmp_path])


def test_problems_are_equal_whatever_their_descriptions(directory, tmp_path):
    archive = tmp_path / "all.jsonl.gz"
    write_archive([directory], archive)
    text = gzip.decompress(archive.read_bytes()).replace(b'"description":"', b'"description":"new ')
    archive.write_bytes(gzip.compress(text))
    assert read_results([directory, archive]).facts == read_results([directory]).facts


def test_a_sampler_without_runs_is_named(directory, tmp_path):
    with pytest.raises(ValueError, match="there is no run of 'gp', but of random, tpe"):
        write_report([directory], tmp_path, samplers=["gp"])


def test_known_runs_of_another_problem_are_refused(directory, tmp_path):
    record = tmp_path / "shifted_branin_noisy" / "problem.json"
    record.parent.mkdir()
    facts = json.loads((directory / "shifted_branin_noisy" / "problem.json").read_text())
    record.write_text(json.dumps({**facts, "optimum": 0.5}))
    with pytest.raises(ValueError, match="another problem called shifted_branin_noisy"):
        run_benchmark(
            ["branin", "shifted_branin_noisy"],
            ["random"],
            range(1),
            tmp_path / "new",
            known=[tmp_path],
        )
    assert not (tmp_path / "new").exists()


def test_commands(directory, tmp_path, capsys):
    archive = str(tmp_path / "all.jsonl.gz")
    assert main(["bench", "archive", str(directory), "--out", archive]) == 0
    assert main(["bench", "report", archive]) == 2
    assert "--out is needed" in capsys.readouterr().err
    assert main(["bench", "archive", str(directory), "--out", str(tmp_path)]) == 2
    assert "Is a directory" in capsys.readouterr().err
    report = ["bench", "report", archive, str(directory), "--out", str(tmp_path / "report")]
    assert main(report) == 0
    assert "Mean rank over 4 problems, 2 seeds" in capsys.readouterr().out


@pytest.mark.parametrize("archive", sorted(KEPT.glob("*.jsonl.gz")), ids=lambda path: path.name)
def test_kept_results_are_of_the_problems_as_they_are(archive):
    results = read_results([archive])
    assert results.runs
    for name, facts in results.facts.items():
        assert facts == facts_of(any_problem(name))


def test_a_directory_whose_problem_has_no_run(tmp_path):
    run_benchmark(["shifted_branin"], ["random"], range(1), tmp_path, n_trials=3)
    run_path(tmp_path, "shifted_branin", "random", 0).unlink()
    assert read_results([tmp_path]).facts["shifted_branin"].optimum == pytest.approx(
        get_problem("shifted_branin").optimum
    )
    assert not read_results([tmp_path]).runs
