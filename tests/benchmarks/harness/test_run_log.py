"""Logs of finished runs: what is read, what is added and when, and what is not run again."""

import gzip
import json
from argparse import Namespace
from pathlib import Path

import pytest

from mondrian_bo.benchmarks.harness.run_log import (
    archived_runs,
    in_parallel,
    keep,
    known_logs,
    read_log,
)

KEPT = Path(__file__).parents[3] / "docs" / "results"


@pytest.mark.parametrize("name", ["log.jsonl", "log.jsonl.gz"])
def test_a_log_holds_what_is_added(tmp_path, name):
    log = tmp_path / name
    assert read_log(log) == []
    assert keep([{"a": 1}, [2.5, None]], log, n_results=2) == [{"a": 1}, [2.5, None]]
    assert keep(["bc"], log, n_results=1, lines=list) == ["bc"]
    assert read_log(log) == [{"a": 1}, [2.5, None], "b", "c"]
    content = log.read_bytes()
    text = gzip.decompress(content) if name.endswith("gz") else content
    assert text == b'{"a": 1}\n[2.5, null]\n"b"\n"c"\n'
    # The content says whether a file is compressed, as an archive may have any name.
    assert read_log(log.rename(tmp_path / "archive")) == [{"a": 1}, [2.5, None], "b", "c"]


def test_results_before_a_failure_are_kept(tmp_path):
    log = tmp_path / "log.jsonl"

    def run(number):
        # The run before is in the file when this one starts.
        assert [json.loads(line) for line in log.read_text().splitlines()] == [*range(number)]
        if number == 2:
            raise KeyboardInterrupt
        return number

    with pytest.raises(KeyboardInterrupt):
        keep(in_parallel(run, [(0,), (1,), (2,)], 1), log, n_results=3)
    assert read_log(log) == [0, 1]


def test_calls_in_several_processes():
    assert sorted(in_parallel(pow, [(2, 3), (3, 2), (2, 1)], 2)) == [2, 8, 9]


def test_archived_runs_are_not_run_again(tmp_path):
    ran = []

    def run(name, seed, n_trials):
        ran.append((name, seed, n_trials))
        records = [{"problem": name, "seed": seed, "method": method} for method in "xy"]
        return records if name == "two" else records[:1]

    known = tmp_path / "known.jsonl.gz"
    line = {"problem": "one", "seed": 1, "requested_trials": 9, "method": "known"}
    keep([line, {**line, "seed": 0, "requested_trials": 8}], known, n_results=2)
    arguments = Namespace(out=tmp_path / "out", seeds=2, trials=9, jobs=1, known=[known])
    found = archived_runs(arguments, "log.jsonl.gz", ["one", "two"], run, "runs")
    assert ran == [("one", 0, 9), ("two", 0, 9), ("two", 1, 9)]
    keys = [(one["problem"], one["seed"], one["method"]) for one in found]
    assert keys == [("one", 0, "x"), ("one", 1, "known")] + [
        ("two", seed, method) for seed in (0, 1) for method in "xy"
    ]
    # A line is the record of a run, or the list of its records.
    lines = read_log(tmp_path / "out" / "log.jsonl.gz")
    assert [type(line) for line in lines] == [dict, list, list]
    assert archived_runs(arguments, "log.jsonl.gz", ["one", "two"], run, "runs") == found
    assert len(ran) == 3


def test_runs_of_another_length_are_not_known(tmp_path):
    def run(name, seed, n_trials):
        return [{"problem": name, "seed": seed, "length": n_trials or 30}]

    def lengths(n_trials):
        arguments = Namespace(out=tmp_path, seeds=2, trials=n_trials, jobs=1, known=[])
        return [one["length"] for one in archived_runs(arguments, "log.jsonl", "a", run, "runs")]

    assert [lengths(n) for n in (5, 7, None, 5)] == [[5, 5], [7, 7], [30, 30], [5, 5]]
    # The usual number of trials is not noted, so archives of former versions are known.
    assert [one.get("requested_trials") for one in read_log(tmp_path / "log.jsonl")] == [
        *(5, 5, 7, 7, None, None)
    ]


@pytest.mark.parametrize("name", ["log.jsonl", "log.jsonl.gz"])
@pytest.mark.parametrize("writes_members", [True, False])
def test_a_log_of_a_program_that_was_killed(tmp_path, name, writes_members):
    """A former version wrote one compressed member for all results of a session."""
    log = tmp_path / name
    results = [{"number": number, "text": "x" * 40} for number in range(8)]
    if writes_members or name == "log.jsonl":
        keep(results, log, n_results=8)
    else:
        text = "".join(json.dumps(one) + "\n" for one in results)
        log.write_bytes(gzip.compress(text.encode(), compresslevel=0))
    log.write_bytes(log.read_bytes()[:-30])
    assert read_log(log) == results[:7]
    keep(results[7:], log, n_results=1)
    assert read_log(log) == results


@pytest.mark.parametrize(
    "content",
    [b"text\n", gzip.compress(b"text\n", mtime=0), b"\x1f\x8b" + b"\x07" * 30],
    ids=["text", "compressed text", "damaged"],
)
def test_a_file_that_is_no_log_is_named(tmp_path, content):
    (tmp_path / "bad").write_bytes(content)
    with pytest.raises(ValueError, match="bad is not a log of finished runs"):
        read_log(tmp_path / "bad")


@pytest.mark.parametrize("line", [{"sessions": []}, [], "branin", {"problem": {"name": "branin"}}])
def test_known_archives_are_there_and_of_this_program(tmp_path, line):
    arguments = Namespace(out=tmp_path / "out", seeds=1, trials=None, jobs=1)
    arguments.known = [tmp_path / "missing"]
    with pytest.raises(ValueError, match="there is no archive"):
        archived_runs(arguments, "log.jsonl", ["a"], None, "runs")
    keep([line], tmp_path / "log.jsonl", n_results=1)
    # A directory of results has the log of the suite.
    arguments.known = [tmp_path]
    assert known_logs(arguments.known, "log.jsonl") == [tmp_path / "log.jsonl"]
    with pytest.raises(ValueError, match="has runs of another program"):
        archived_runs(arguments, "log.jsonl", ["a"], None, "runs")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["fidelities", "warm_starts", "stopping", "stopping_bbob"])
def test_runs_of_kept_archives_are_known(tmp_path, name):
    """Whatever else their records have."""
    archive = KEPT / name.removesuffix("_bbob") / f"{name}.jsonl.gz"
    lines = [line if isinstance(line, list) else [line] for line in read_log(archive)]
    names = sorted({records[0]["problem"] for records in lines if records[0]["seed"] == 0})
    arguments = Namespace(out=tmp_path, seeds=1, trials=None, jobs=1, known=[archive])
    found = archived_runs(arguments, "log.jsonl.gz", names, None, "runs")
    assert found == [
        one
        for name in names
        for records in lines
        for one in records
        if records[0]["problem"] == name and records[0]["seed"] == 0
    ]
