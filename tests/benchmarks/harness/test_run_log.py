"""Logs of finished runs: what is read, what is added and when, and what is not run again."""

import gzip
import json
from argparse import Namespace

import pytest

from mondrian_bo.benchmarks.harness.run_log import archived_runs, in_parallel, keep, read_log


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
    keep([{"problem": "one", "seed": 1, "method": "known"}], known, n_results=1)
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
