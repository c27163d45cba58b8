"""Trials are asked for and told one by one, in batches, or by simulated workers."""

from __future__ import annotations

import json

import pytest

from mondrian_bo.benchmarks.harness.runner import Run, execute
from mondrian_bo.benchmarks.harness.samplers import get_sampler
from mondrian_bo.benchmarks.harness.schedule import Schedule


def words(schedule, n_trials, seed=0):
    return [f"{'ask' if asked else 'tell'} {i}" for asked, i in schedule.steps(n_trials, seed)]


def test_one_by_one():
    assert words(Schedule(), 2) == ["ask 0", "tell 0", "ask 1", "tell 1"]


def test_batches():
    expected = ["ask 0", "ask 1", "tell 0", "tell 1", "ask 2", "tell 2"]
    assert words(Schedule(batch=2), 3) == expected


@pytest.mark.parametrize("n_trials", [3, 40])
def test_workers(n_trials):
    running, told, most = set(), [], 0
    for is_asked, number in Schedule(workers=8).steps(n_trials, 1):
        if is_asked:
            running.add(number)
        else:
            running.remove(number)
            told.append(number)
        most = max(most, len(running))
    assert most == min(8, n_trials)
    assert sorted(told) == list(range(n_trials))
    # Run times differ, so trials do not end in the order in which they started.
    assert told != sorted(told)
    assert words(Schedule(workers=8), n_trials, 1) == words(Schedule(workers=8), n_trials, 1)
    assert words(Schedule(workers=8), n_trials, 1) != words(Schedule(workers=8), n_trials, 2)


def test_bad_schedules_are_refused():
    with pytest.raises(ValueError, match="`batch` must be an integer >= 1, got 0"):
        get_sampler("tpe:batch=0")
    with pytest.raises(ValueError, match="`workers` must be an integer >= 1, got 'many'"):
        get_sampler("tpe:workers=many")
    with pytest.raises(ValueError, match="batches or with workers, not both"):
        get_sampler("tpe:workers=2,batch=2")


@pytest.mark.parametrize("sampler", ["random:batch=4", "random:workers=4"])
@pytest.mark.parametrize("problem", ["branin", "gramacy"])
def test_runs_have_every_trial_once(sampler, problem, tmp_path):
    run = Run(problem, sampler, 0, 10, tmp_path)
    execute(run)
    records = [json.loads(line) for line in run.path.read_text().splitlines()]
    assert sorted(record["number"] for record in records) == list(range(10))
    best = [record["best"] for record in records]
    assert best == sorted(best, reverse=True)
    alone = Run(problem, "random", 0, 10, tmp_path)
    execute(alone)
    expected = [json.loads(line) for line in alone.path.read_text().splitlines()]
    # Random search does not depend on what it is told, nor do the values on the order.
    records.sort(key=lambda record: record["number"])
    for one, other in zip(records, expected, strict=True):
        assert one["params"] == other["params"]
        assert one["value"] == other["value"]
